// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// errTime is that a wait reached its bound.
var errTime = errors.New("the time is over")

// changes calls look at each change of a stream, until it is satisfied, the stream ends, or the time is over.
func changes(ctx context.Context, o *outcome, within time.Duration, look func() bool) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		// What came before the end is there when the end is: the last look sees all.
		news := o.exchange.Stream.News()
		_, end := o.exchange.Stream.Events()
		o.settle()
		if look() || end != nil {
			return nil
		}
		select {
		case <-news:
		case <-timer.C:
			return errTime
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// collect reads the events of a stream until it ends, until its time is over, or until all that is expected came and
// the stream is quiet.
func (t *scenario) collect(ctx context.Context, o *outcome, s *acts.Step, v verifier) error {
	bounds := t.runner.profile.Bounds
	within := millis(bounds.StreamMS)
	want := s.ExpectStream
	if want != nil && want.TimeoutMS > 0 {
		within = millis(want.TimeoutMS)
	}
	deadline := time.Now().Add(within)
	for {
		var failure error
		err := changes(ctx, o, max(0, time.Until(deadline)), func() bool {
			var enough bool
			enough, failure = v.enough(o, s)
			return enough || failure != nil
		})
		if failure != nil {
			return failure
		}
		if errors.Is(err, errTime) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, end := o.exchange.Stream.Events(); end != nil {
			o.settle()
			return nil
		}
		// All is there; more events may contradict it.
		n := len(o.events)
		settle := millis(bounds.SettleMS)
		if n == 0 {
			settle *= 5 // a first event may take longer than one behind another
		}
		settle = min(settle, max(0, time.Until(deadline)))
		err = changes(ctx, o, settle, func() bool { return len(o.events) > n })
		if errors.Is(err, errTime) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// enough reports whether the events so far are all that a step expects.
func (v verifier) enough(o *outcome, s *acts.Step) (bool, error) {
	switch want := s.ExpectStream; {
	case o.failure != nil:
		return true, nil
	case want != nil:
		if len(o.events) == 0 && (want.MaxCount == nil || *want.MaxCount > 0) {
			return false, nil
		}
		found, err := v.stream(o, want)
		return len(found) == 0, err
	case s.Open != nil:
		_, holds, err := v.reading(o, s.Open.Readings)
		return holds, err
	case len(s.ExpectAny) > 0:
		_, holds, err := v.reading(o, s.ExpectAny)
		return holds, err
	}
	return len(o.events) > 0, nil
}

// keepStream keeps an open stream under its name, in place of an earlier one.
func (t *scenario) keepStream(name string, o *outcome) {
	if old := t.streams[name]; old != nil {
		old.exchange.Stream.Cut()
	}
	t.streams[name] = o
}

func (t *scenario) stream(name string) (*outcome, error) {
	o := t.streams[name]
	if o == nil {
		f := Failure{Message: "the stream " + name + " was not opened: its answer was no stream of events"}
		f.Sent, f.Got = t.last.exchanged()
		return nil, &failed{f}
	}
	return o, nil
}

// await waits for an event behind the one of the last await.
func (t *scenario) await(ctx context.Context, s *acts.Step, v verifier) (*outcome, error) {
	a := s.AwaitEvent
	o, err := t.stream(a.Stream)
	if err != nil {
		return nil, err
	}
	within := millis(cmp.Or(a.WithinMS, s.WithinMS, t.runner.profile.Bounds.WaitMS))
	want, err := v.vars.Resolve(a.Match)
	if err != nil {
		return nil, err
	}
	var found event
	has := false
	from := t.awaited[a.Stream]
	err = changes(ctx, o, within, func() bool {
		if a.Ended {
			return false
		}
		for i := from; i < len(o.events); i++ {
			e := o.events[i]
			from = i + 1
			if e.has && (a.Match == nil || len(acts.Match(want, o.view(e))) == 0) {
				found, has = e, true
				return true
			}
		}
		return false
	})
	if err != nil && !errors.Is(err, errTime) {
		return nil, err
	}
	if a.Ended {
		if err != nil {
			return nil, t.fail(s, o, []acts.Mismatch{{Path: a.Stream, Expected: fmt.Sprintf("its end within %v", within),
				Actual: "the stream is open"}})
		}
		return o.with(nil), nil
	}
	if !has {
		actual := fmt.Sprintf("none of %d events", len(o.events))
		if n := len(o.events); n > t.awaited[a.Stream] {
			last := o.events[n-1]
			if near := acts.Match(want, o.view(last)); last.has && len(near) > 0 {
				actual += "; the last one: " + near[0].String()
			} else if !last.has {
				actual += "; the last one: " + brief(last.data)
			}
		}
		return nil, t.fail(s, o, []acts.Mismatch{{Path: a.Stream,
			Expected: fmt.Sprintf("an event with %s within %v", brief(want), within), Actual: actual}})
	}
	t.awaited[a.Stream] = from
	return o.with(&found), nil
}

// with returns the outcome of a step that found an event.
func (o *outcome) with(e *event) *outcome {
	o.settle()
	found := *o
	found.events = slices.Clone(o.events)
	if found.event = e; e != nil {
		found.root, found.hasRoot, found.body = e.object, true, e.data
	}
	return &found
}

func (t *scenario) cut(s *acts.Step) (*outcome, error) {
	o, err := t.stream(s.Cut)
	if err != nil {
		return nil, err
	}
	o.exchange.Stream.Cut()
	return o.with(nil), nil
}

// increasing compares numbers or times of events, of webhooks or of an answer.
func (t *scenario) increasing(s *acts.Step, v verifier) (*outcome, error) {
	path, err := v.path(s.Increasing.Path)
	if err != nil {
		return nil, err
	}
	values, o, err := t.values(s.Increasing.Source, path)
	if err != nil {
		return nil, err
	}
	var before any
	for i, v := range values {
		rises := len(acts.Match(map[string]any{"gt": before}, v)) == 0
		if order, times := acts.Times(v, before); times {
			rises = order > 0
		}
		if i > 0 && !rises && !(s.Increasing.OrEqual && acts.Equal(v, before)) {
			return nil, t.fail(s, o, []acts.Mismatch{{Path: s.Increasing.Path, Expected: "more than " + brief(before),
				Actual: brief(v)}})
		}
		before = v
	}
	if len(values) == 0 {
		return nil, t.fail(s, o, []acts.Mismatch{{Path: s.Increasing.Path, Expected: "numbers", Actual: "none"}})
	}
	return &outcome{}, nil
}

// ordered compares states with the transitions of the protocol.
func (t *scenario) ordered(s *acts.Step, v verifier) (*outcome, error) {
	path, err := v.path(s.Ordered.Path)
	if err != nil {
		return nil, err
	}
	values, o, err := t.values(s.Ordered.Source, path)
	if err != nil {
		return nil, err
	}
	events := make([]event, len(values))
	for i, value := range values {
		events[i].state, _ = value.(string)
	}
	if len(events) == 0 {
		return nil, t.fail(s, o, []acts.Mismatch{{Path: s.Ordered.Path, Expected: "states", Actual: "none"}})
	}
	found := v.ordering(events)
	for i := range found {
		found[i].Path = strings.Replace(found[i].Path, "event", s.Ordered.Path+", state", 1)
	}
	if len(found) > 0 {
		return nil, t.fail(s, o, found)
	}
	return &outcome{}, nil
}

// values returns those at a path of a stream's events, of a receiver's requests, or of a step's answer. In an event,
// the path is from its object, or from the top of its data.
func (t *scenario) values(source string, path acts.Path) (values []any, o *outcome, err error) {
	if hook := t.scope.hooks[source]; hook != nil {
		hooks, _ := hook.Hooks()
		for _, h := range hooks {
			values = append(values, path.Of(hookValue(h))...)
		}
		return values, t.last, nil
	}
	o = t.streams[source]
	if o == nil {
		if o = t.scope.steps[source]; o == nil {
			return nil, nil, fmt.Errorf("there is no stream, receiver or step %s", source)
		}
	}
	if o.exchange == nil || o.exchange.Stream == nil {
		return path.Of(o.root), o, nil
	}
	o.settle()
	for _, e := range o.events {
		found := path.Of(e.object)
		if len(found) == 0 {
			found = path.Of(e.data)
		}
		values = append(values, found...)
	}
	return values, o, nil
}
