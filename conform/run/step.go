// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// The most of what one step of a document may ask for.
const (
	maxParallel = 1000
	maxRepeated = 64 << 20 // bytes
	maxAttempts = 1000
)

// failed is that a step did not end as expected.
type failed struct{ failure Failure }

func (f *failed) Error() string { return f.failure.Message }

// skipped is that a test cannot be tested.
type skipped struct{ reason string }

func (s *skipped) Error() string { return s.reason }

// step carries out a step, and compares. Its error is a failed, a skipped, or one of the runner.
func (t *scenario) step(ctx context.Context, s *acts.Step) error {
	if err := pause(ctx, millis(s.DelayMS)); err != nil {
		return err
	}
	id := t.identity(s)
	v := verifier{t.scope.protocol, t.scope.vars(id)}
	o, err := t.perform(ctx, s, v)
	if err != nil {
		return err
	}
	if s.Repeat != nil {
		if o, err = t.repeat(ctx, s, v, o); err != nil {
			return err
		}
	}
	if o.exchange != nil {
		t.last = o
	}
	t.scope.keep(s.ID, o)
	found, err := t.compare(s, o, v)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return t.fail(s, o, found)
	}
	return nil
}

// repeat carries out a step again until the expression of its Repeat holds for what came of it. o is of the first time.
func (t *scenario) repeat(ctx context.Context, s *acts.Step, v verifier, o *outcome) (*outcome, error) {
	for attempt := 1; ; attempt++ {
		expression, err := v.vars.Text(s.Repeat.Until)
		if err != nil {
			return nil, err
		}
		if done, err := until(expression, o); err != nil || done {
			return o, err
		}
		if most := min(cmp.Or(s.Repeat.MaxAttempts, 10), maxAttempts); attempt >= most {
			return nil, t.fail(s, o, []acts.Mismatch{{Expected: s.Repeat.Until,
				Actual: fmt.Sprintf("it did not hold in %d attempts", attempt)}})
		}
		delay := millis(cmp.Or(s.Repeat.DelayMS, 1000))
		switch s.Repeat.Backoff {
		case "linear":
			delay *= time.Duration(attempt)
		case "exponential":
			delay <<= min(attempt-1, 6)
		}
		if err := pause(ctx, delay); err != nil {
			return nil, err
		}
		if o, err = t.perform(ctx, s, v); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fail describes a failure.
func (t *scenario) fail(s *acts.Step, o *outcome, found []acts.Mismatch) error {
	f := Failure{Step: s.ID, Mismatches: found}
	messages := make([]string, len(found))
	for i, m := range found {
		messages[i] = m.String()
		if m.Path == "" {
			messages[i] = fmt.Sprintf("want %s, got %s", m.Expected, m.Actual)
		}
	}
	f.Message = strings.Join(messages, "; ")
	f.Sent, f.Got = o.exchanged()
	return &failed{f}
}

// identity returns the caller of a step.
func (t *scenario) identity(s *acts.Step) *wire.Identity {
	id := t.runner.identities[cmp.Or(s.As, "leader")]
	if id.AIC == "" { // one without a certificate says that it is the Leader
		with := *id
		with.AIC = t.runner.aic(id)
		return &with
	}
	return id
}

// perform does what a step does, and returns what came of it.
func (t *scenario) perform(ctx context.Context, s *acts.Step, v verifier) (*outcome, error) {
	switch {
	case s.Operation != "" || s.Raw != nil:
		return t.send(ctx, s, v)
	case s.AwaitEvent != nil:
		return t.await(ctx, s, v)
	case s.Cut != "":
		return t.cut(s)
	case s.Webhook != nil:
		return t.webhook(ctx, s, v)
	case s.Parallel != nil:
		return t.parallel(ctx, s)
	case s.Assertion != nil:
		return t.assert(s, v)
	case s.Increasing != nil:
		return t.increasing(s, v)
	case s.Ordered != nil:
		return t.ordered(s, v)
	case s.SameEvents != nil:
		return t.sameEvents(ctx, s, v)
	case s.Fold != nil:
		return t.fold(s, v)
	case s.Procedure != "":
		return t.procedure(ctx, s, v)
	}
	return nil, fmt.Errorf("step %s does nothing that this runner knows", s.ID)
}

// send sends a request and reads its answer.
func (t *scenario) send(ctx context.Context, s *acts.Step, v verifier) (*outcome, error) {
	r, o, err := t.request(s, v)
	if err != nil {
		return nil, err
	}
	timeout := millis(t.runner.profile.Bounds.AnswerMS)
	if s.WithinMS > 0 && s.OpenStream == "" {
		timeout = millis(s.WithinMS)
	}
	fresh := s.ExpectHandshake != ""
	client := t.runner.client(cmp.Or(s.As, "leader"), fresh)
	if fresh {
		defer client.Close()
	}
	if s.AbandonMS > 0 {
		o.exchange = client.Abandon(ctx, r, timeout, millis(s.AbandonMS), &t.behind)
	} else {
		o.exchange = client.Do(ctx, r, timeout)
	}
	if err := context.Cause(ctx); err != nil {
		if o.exchange.Stream != nil {
			o.exchange.Stream.Cut()
		}
		return nil, err
	}
	if stream := o.exchange.Stream; stream != nil {
		if s.OpenStream != "" {
			t.keepStream(s.OpenStream, o)
		} else {
			defer stream.Cut()
		}
		if s.OpenStream == "" || !bare(s) {
			if err := t.collect(ctx, o, s, v); err != nil {
				return nil, err
			}
		}
	}
	o.settle()
	return o, nil
}

// assert compares what an earlier step left.
func (t *scenario) assert(s *acts.Step, v verifier) (*outcome, error) {
	a := s.Assertion
	found, err := v.named(acts.NamedAssertion{Source: a.Source, Any: a.Any, All: a.All, None: a.None})
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, t.fail(s, t.last, found)
	}
	return new(outcome), nil
}

var errTest = errors.New("the test took longer than its bound")
