// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// scenario is one test as it runs.
type scenario struct {
	runner  *Runner
	test    *acts.Test
	scope   *scope
	result  *TestResult
	streams map[string]*outcome
	awaited map[string]int // events of a stream that an await has passed
	last    *outcome       // with an exchange
	behind  sync.WaitGroup // of abandoned requests
}

// one runs a test.
func (r *Runner) one(ctx context.Context, d *acts.Document, test *acts.Test, p *acts.Protocol) TestResult {
	began := time.Now()
	result := TestResult{Test: test, File: d.File, Protocol: p.ID}
	if result.Reason = r.untestable(test, p); context.Cause(ctx) == errFirst {
		result.Reason = errFirst.Error()
	}
	if result.Reason != "" {
		result.Verdict = Skip
		return result
	}
	t := &scenario{runner: r, test: test, scope: newScope(r, p, d), result: &result,
		streams: make(map[string]*outcome), awaited: make(map[string]int)}
	defer t.behind.Wait()
	ctx, cancel := context.WithTimeoutCause(ctx, millis(r.profile.Bounds.TestMS), errTest)
	defer cancel()
	defer t.close()
	t.conclude(t.run(ctx))
	result.Took = time.Since(began)
	return result
}

func (t *scenario) close() {
	for _, o := range t.streams {
		o.exchange.Stream.Cut()
	}
	for _, hook := range t.scope.hooks {
		hook.Close()
	}
}

func (t *scenario) run(ctx context.Context) error {
	for name, receiver := range t.test.Receivers {
		hook, err := wire.Receive(t.runner.listening, receiver.Respond, millis(receiver.DelayMS))
		if err != nil {
			return err
		}
		t.scope.hooks[name] = hook
	}
	for i := range t.test.Steps {
		s := &t.test.Steps[i]
		if s.ID == "" {
			s = new(acts.Step)
			*s = t.test.Steps[i]
			s.ID = fmt.Sprintf("step %d", i+1)
		}
		began := time.Now()
		err := t.step(ctx, s)
		verdict := Pass
		if err != nil {
			verdict = verdictOf(err)
		}
		t.result.Steps = append(t.result.Steps, StepResult{s.ID, verdict, time.Since(began)})
		if err != nil {
			var f *failed
			if errors.As(err, &f) {
				f.failure.Step = cmp.Or(f.failure.Step, s.ID)
				return err
			}
			return fmt.Errorf("step %s: %w", s.ID, err)
		}
	}
	v := verifier{t.scope.protocol, t.scope.vars(t.runner.identities["leader"])}
	for _, a := range t.test.Assertions {
		found, err := v.named(a)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return t.fail(&acts.Step{ID: cmp.Or(a.ID, "assertions")}, t.last, found)
		}
	}
	return nil
}

func verdictOf(err error) Verdict {
	var f *failed
	var s *skipped
	switch {
	case errors.As(err, &f):
		return Fail
	case errors.As(err, &s):
		return Skip
	}
	return Error
}

// conclude sets the verdict. A test that asked what is open may lack what its later steps need: then it is open.
func (t *scenario) conclude(err error) {
	var f *failed
	var s *skipped
	var unknown *acts.UnknownError
	switch {
	case err == nil && len(t.result.Readings) > 0:
		t.result.Verdict = Open
	case err == nil:
		t.result.Verdict = Pass
	case errors.As(err, &f):
		t.result.Verdict, t.result.Failure = Fail, &f.failure
	case errors.As(err, &s):
		t.result.Verdict, t.result.Reason = Skip, s.reason
	case errors.Is(err, errFirst):
		t.result.Verdict, t.result.Reason = Skip, errFirst.Error()
	case errors.As(err, &unknown) && len(t.result.Readings) > 0:
		t.result.Verdict = Open
	case errors.As(err, &unknown) && t.given(unknown.Expression):
		t.result.Verdict, t.result.Reason = Skip, unknown.Error()
	default:
		t.result.Verdict = Error
		t.result.Failure = &Failure{Message: err.Error()}
		t.result.Failure.Sent, t.result.Failure.Got = t.last.exchanged()
	}
}

// given reports whether a variable is one that the profile or the caller gives, and no step.
func (t *scenario) given(expression string) bool {
	head, _, dotted := strings.Cut(expression, ".")
	for i := range t.test.Steps {
		if t.test.Steps[i].ID == head {
			return false
		}
	}
	return !dotted || head == "behavior" || head == "env" || head == "partner" || head == "url" || head == "identity"
}

// keep keeps what came of a step.
func (s *scope) keep(step string, o *outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[step] = o
}

// capture keeps a value of the answer, from the domain object, or by the names of outcome.part.
func (s *scope) capture(step, name, path string, o *outcome) bool {
	root := o.root
	if o.raw {
		root = o.body
	}
	value, ok := at(root, path)
	if !ok {
		if value, ok = o.part(path); !ok || value == nil {
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.captured[step] == nil {
		s.captured[step] = make(map[string]any)
	}
	s.captured[step][name] = value
	return true
}
