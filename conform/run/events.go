// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// stream returns how the events differ from those expected.
func (v verifier) stream(o *outcome, want *acts.ExpectStream) (found []acts.Mismatch, err error) {
	if want == nil {
		return nil, nil
	}
	add := func(path, expected, actual string) {
		found = append(found, acts.Mismatch{Path: path, Expected: expected, Actual: actual})
	}
	if o.exchange.Stream == nil {
		add("", "a stream of events", o.exchange.Got())
		return found, nil
	}
	match := func(path string, assertion any, e event) {
		if err != nil {
			return
		}
		var more []acts.Mismatch
		more, err = v.match(path, assertion, o.view(e), true)
		found = append(found, more...)
	}
	n := len(o.events)
	if n < want.MinCount {
		add("events", fmt.Sprintf("at least %d", want.MinCount), fmt.Sprint(n))
	}
	if want.MaxCount != nil && n > *want.MaxCount {
		add("events", fmt.Sprintf("at most %d", *want.MaxCount), fmt.Sprint(n))
	}
	if want.Ordering != "" {
		found = append(found, v.ordering(o.events)...)
	}
	for i, asserted := range want.Events {
		more, failed := v.position(o, i, asserted)
		if failed != nil {
			return nil, failed
		}
		found = append(found, more...)
	}
	if want.EachEvent != nil {
		for i, e := range o.events {
			match(fmt.Sprintf("event %d", i+1), want.EachEvent, e)
		}
	}
	if want.FinalEvent != nil {
		if n == 0 {
			add("final event", brief(want.FinalEvent), "no event")
		} else {
			match("final event", want.FinalEvent, o.events[n-1])
		}
	}
	if want.Ends == "server" {
		if _, end := o.exchange.Stream.Events(); end != io.EOF {
			add("end of the stream", "the server's", describe(o.exchange.Stream))
		}
	}
	return found, err
}

func describe(s *wire.Stream) string {
	if !s.EndedByServer() {
		return "the stream is open"
	}
	_, end := s.Events()
	return end.Error()
}

// position is an assertion about one event: the one at its index, or any.
func (v verifier) position(o *outcome, i int, asserted map[string]any) ([]acts.Mismatch, error) {
	assertion := make(map[string]any)
	index := i
	anywhere := false
	for key, value := range asserted {
		switch key {
		case "description":
		case "match":
			anywhere = value == "any_position"
		case "index":
			index, _ = value.(int)
		default:
			assertion[key] = value
		}
	}
	if !anywhere {
		if index >= len(o.events) {
			return []acts.Mismatch{{Path: fmt.Sprintf("event %d", index+1), Expected: brief(assertion),
				Actual: fmt.Sprintf("%d events", len(o.events))}}, nil
		}
		return v.match(fmt.Sprintf("event %d", index+1), assertion, o.view(o.events[index]), true)
	}
	resolved, err := v.vars.Resolve(assertion)
	if err != nil {
		return nil, err
	}
	for _, e := range o.events {
		if len(acts.Match(resolved, o.view(e))) == 0 {
			return nil, nil
		}
	}
	return []acts.Mismatch{{Path: "events", Expected: "one with " + brief(resolved), Actual: brief(o.objects())}}, nil
}

// ordering finds states that may not follow each other.
func (v verifier) ordering(events []event) (found []acts.Mismatch) {
	before := ""
	for i, e := range events {
		if e.state == "" {
			continue
		}
		path := fmt.Sprintf("event %d", i+1)
		switch {
		case before == "" || before == e.state:
		case slices.Contains(v.protocol.Final, before):
			found = append(found, acts.Mismatch{Path: path, Expected: "no state behind " + before, Actual: e.state})
		case len(v.protocol.Transitions) > 0 && !slices.ContainsFunc(v.protocol.Transitions, func(t acts.Transition) bool {
			return t.From == before && t.To == e.state
		}):
			found = append(found, acts.Mismatch{Path: path, Expected: "a state that may follow " + before, Actual: e.state})
		}
		before = e.state
	}
	return found
}

// view is an event as assertions see it: its object, or the whole data in a raw step.
func (o *outcome) view(e event) any {
	if o.raw {
		return e.data
	}
	return view(e.object, o.form.Kinds)
}

// view is an object as assertions see it. Where a member names the kind of the object in it, the members of this are
// there, too, and the kind by its name in ACTS.
func view(v any, kinds map[string]string) any {
	object, ok := v.(map[string]any)
	if !ok || len(kinds) == 0 {
		return v
	}
	seen := maps.Clone(object)
	for member, alias := range kinds {
		if inner, ok := object[member].(map[string]any); ok {
			maps.Copy(seen, inner)
			seen[alias] = inner
		}
	}
	return seen
}
