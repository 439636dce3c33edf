// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	for attempt := 1; s.Repeat != nil; attempt++ {
		expression, err := v.vars.Text(s.Repeat.Until)
		if err != nil {
			return err
		}
		done, err := until(expression, o)
		if err != nil || done {
			if err != nil {
				return err
			}
			break
		}
		if most := min(cmp.Or(s.Repeat.MaxAttempts, 10), maxAttempts); attempt >= most {
			return t.fail(s, o, []acts.Mismatch{{Expected: s.Repeat.Until,
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
			return err
		}
		if o, err = t.perform(ctx, s, v); err != nil {
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
	if o != nil && o.exchange != nil {
		f.Sent, f.Got = o.exchange.Sent(), o.exchange.Got()
	}
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
	if s.AbandonMS > 0 {
		timeout = millis(s.AbandonMS)
	}
	fresh := s.ExpectHandshake != ""
	client := t.runner.client(cmp.Or(s.As, "leader"), fresh)
	if fresh {
		defer client.Close()
	}
	o.exchange = client.Do(ctx, r, timeout)
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
		if s.OpenStream == "" || s.ExpectStream != nil || s.ExpectError != nil || s.Open != nil || s.Expect != nil {
			if err := t.collect(ctx, o, s, v); err != nil {
				return nil, err
			}
		}
	}
	o.settle()
	return o, nil
}

// request makes the request of a step.
func (t *scenario) request(s *acts.Step, v verifier) (wire.Request, *outcome, error) {
	if s.Raw != nil {
		r, err := t.raw(s.Raw, v)
		return r, &outcome{raw: true}, err
	}
	p := t.scope.protocol
	operation, known := p.Operations[s.Operation]
	if !known {
		return wire.Request{}, nil, &skipped{fmt.Sprintf("%s has no operation %s", p.ID, s.Operation)}
	}
	url, err := t.runner.url(operation.URL)
	if err != nil {
		return wire.Request{}, nil, &skipped{err.Error()}
	}
	o := &outcome{path: "result", form: p.Events}
	if operation.Root != nil {
		o.path = *operation.Root
	}
	r := wire.Request{Method: "POST", URL: url, Headers: map[string]string{"Accept": "application/json"}}
	if operation.Stream {
		r.Headers["Accept"] = "text/event-stream, application/json"
	}
	for _, headers := range []map[string]string{p.Headers, t.runner.profile.Headers} {
		maps.Copy(r.Headers, headers)
	}
	if operation.HTTP != "" {
		r.Method = operation.HTTP
		return r, o, nil
	}
	named, err := names(s.Params, v.vars)
	if err != nil {
		return r, nil, err
	}
	if s.Command != nil {
		if operation.Command == "" {
			return r, nil, fmt.Errorf("the operation %s of %s has no command", s.Operation, p.ID)
		}
		named = acts.Merge(map[string]any{operation.Command: s.Command}, named)
	}
	merged := acts.Merge(operation.Params, named)
	for _, name := range operation.Inline {
		inner, is := merged[name].(map[string]any)
		if delete(merged, name); !is {
			continue
		}
		maps.Copy(merged, inner)
	}
	params, err := v.vars.Resolve(merged)
	if err != nil {
		return r, nil, err
	}
	envelope, err := v.vars.Resolve(acts.Merge(map[string]any{"jsonrpc": "2.0", "id": "rpc-" + uuid(),
		"method": operation.Method, "params": params}, s.Envelope))
	if err != nil {
		return r, nil, err
	}
	r.Headers["Content-Type"] = "application/json"
	if r.Body, err = json.Marshal(envelope); err != nil {
		return r, nil, err
	}
	return r, o, setHeaders(r.Headers, s.Headers, v)
}

// names resolves references in names of members, and leaves the values.
func names(params map[string]any, vars acts.Vars) (map[string]any, error) {
	resolved := make(map[string]any, len(params))
	for name, value := range params {
		key, err := vars.Text(name)
		if err != nil {
			return nil, err
		}
		if object, is := value.(map[string]any); is {
			if value, err = names(object, vars); err != nil {
				return nil, err
			}
		}
		resolved[key] = value
	}
	return resolved, nil
}

func (t *scenario) raw(raw *acts.Raw, v verifier) (wire.Request, error) {
	r := wire.Request{Method: raw.Method, Headers: make(map[string]string)}
	path, err := v.vars.Text(raw.Path)
	if err != nil {
		return r, err
	}
	if r.URL, err = t.runner.rawURL(path); err != nil {
		return r, err
	}
	maps.Copy(r.Headers, t.runner.profile.Headers)
	switch {
	case raw.BodyBase64 != "":
		if r.Body, err = base64.StdEncoding.DecodeString(raw.BodyBase64); err != nil {
			return r, fmt.Errorf("body_base64: %w", err)
		}
	case raw.BodyRaw != "":
		text, err := v.vars.Text(raw.BodyRaw)
		if err != nil {
			return r, err
		}
		if again := raw.Repeat; again != nil {
			if len(again.Of)*max(again.Times, 0) > maxRepeated {
				return r, fmt.Errorf("repeat makes more than %d bytes", maxRepeated)
			}
			text = strings.ReplaceAll(text, "{{$repeat}}", strings.Repeat(again.Of, max(again.Times, 0)))
		}
		r.Body = []byte(text)
	case raw.Body != nil:
		body, err := v.vars.Resolve(raw.Body)
		if err != nil {
			return r, err
		}
		if r.Body, err = json.Marshal(body); err != nil {
			return r, err
		}
	}
	if r.Body != nil {
		r.Headers["Content-Type"] = "application/json"
	}
	return r, setHeaders(r.Headers, raw.Headers, v)
}

// setHeaders puts headers in place of those with the same names.
func setHeaders(headers, over map[string]string, v verifier) (err error) {
	for name, value := range over {
		for other := range headers {
			if strings.EqualFold(name, other) {
				delete(headers, other)
			}
		}
		if value == acts.Absent {
			continue
		}
		if headers[name], err = v.vars.Text(value); err != nil {
			return err
		}
	}
	return nil
}

// assert compares what an earlier step left.
func (t *scenario) assert(s *acts.Step, v verifier) (*outcome, error) {
	a := s.Assertion
	found, err := v.named(acts.NamedAssertion{Source: a.Source, Any: a.Any, All: a.All, None: a.None})
	if err != nil {
		return nil, err
	}
	o := &outcome{}
	if len(found) > 0 {
		return nil, t.fail(s, t.last, found)
	}
	return o, nil
}

var errTest = errors.New("the test took longer than its bound")
