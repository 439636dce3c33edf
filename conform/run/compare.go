// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// compare returns how what came of a step differs from all that it expects.
func (t *scenario) compare(s *acts.Step, o *outcome, v verifier) ([]acts.Mismatch, error) {
	if o.exchange == nil {
		return t.assertions(s, v)
	}
	found, err := t.answer(s, o, v)
	if err != nil {
		return nil, err
	}
	if s.Open != nil {
		if err := t.open(s, o, v); err != nil {
			return nil, err
		}
	}
	for _, l := range s.Lexical {
		more, err := lexical(l, o)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	if len(found) > 0 {
		return found, nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Capture)) {
		path, err := v.vars.Text(s.Capture[name])
		if err != nil {
			return nil, err
		}
		if !t.scope.capture(s.ID, name, path, o) && s.Open == nil {
			found = append(found, acts.Mismatch{Path: path, Expected: "a value", Actual: o.exchange.Got()})
		}
	}
	more, err := t.assertions(s, v)
	return append(found, more...), err
}

// answer compares with expect, expect_error, expect_stream, expect_handshake and expect_any.
func (t *scenario) answer(s *acts.Step, o *outcome, v verifier) ([]acts.Mismatch, error) {
	e := o.exchange
	if s.AbandonMS > 0 && wire.TimedOut(e.Err) {
		return nil, nil
	}
	if e.Err != nil && s.ExpectHandshake == "" && s.Open == nil && len(s.ExpectAny) == 0 {
		return []acts.Mismatch{{Expected: "an answer", Actual: e.Err.Error()}}, nil
	}
	found, err := v.outcome(o, acts.Outcome{Expect: s.Expect, ExpectError: s.ExpectError, ExpectStream: s.ExpectStream,
		ExpectHandshake: s.ExpectHandshake})
	if err != nil {
		return nil, err
	}
	switch {
	case s.Operation == "" || !bare(s):
	case o.failure != nil:
		found = append(found, acts.Mismatch{Path: "error", Expected: "no error", Actual: brief(o.failure)})
	case o.lacksResult():
		found = append(found, acts.Mismatch{Path: o.path, Expected: "a value", Actual: e.Got()})
	}
	if within := millis(s.WithinMS); within > 0 && s.Webhook == nil && s.AwaitEvent == nil && e.Took > within {
		found = append(found, acts.Mismatch{Expected: fmt.Sprintf("an answer within %v", within),
			Actual: e.Took.Round(time.Millisecond).String()})
	}
	if len(s.ExpectAny) == 0 {
		return found, nil
	}
	var all []acts.Mismatch
	for _, one := range s.ExpectAny {
		more, err := v.outcome(o, one)
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			return found, nil
		}
		all = append(all, more...)
	}
	for i := range all {
		all[i].Expected = "(one of) " + all[i].Expected
	}
	return append(found, all...), nil
}

// bare reports whether a step says nothing of its answer: then it wants no error.
func bare(s *acts.Step) bool {
	return s.Expect == nil && s.ExpectError == nil && s.ExpectStream == nil && s.ExpectHandshake == "" && s.Open == nil &&
		len(s.ExpectAny) == 0
}

// open notes the reading that the Partner has.
func (t *scenario) open(s *acts.Step, o *outcome, v verifier) error {
	seen := Reading{Question: s.Open.Question, Section: cmp.Or(s.Open.Section, t.test.Section)}
	reading, holds, err := v.reading(o, s.Open.Readings)
	if err != nil {
		return err
	}
	if seen.ID, seen.Says = reading.ID, reading.Says; !holds {
		seen.ID, seen.Got = "another", o.exchange.Got()
	}
	t.result.Readings = append(t.result.Readings, seen)
	return nil
}

// reading finds the reading that holds. One with a variable without a value does not.
func (v verifier) reading(o *outcome, readings []acts.Outcome) (reading acts.Outcome, holds bool, err error) {
	for _, reading := range readings {
		found, err := v.outcome(o, reading)
		var unknown *acts.UnknownError
		if err != nil && !errors.As(err, &unknown) {
			return acts.Outcome{}, false, err
		}
		if err == nil && len(found) == 0 {
			return reading, true, nil
		}
	}
	return acts.Outcome{}, false, nil
}

func (t *scenario) assertions(s *acts.Step, v verifier) (found []acts.Mismatch, err error) {
	for _, a := range s.Assertions {
		more, err := v.named(a)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func lexical(l acts.Lexical, o *outcome) ([]acts.Mismatch, error) {
	pattern, err := regexp.Compile(l.Matches)
	if err != nil {
		return nil, err
	}
	bytes, has := o.lexeme(l.Path)
	if !has {
		return []acts.Mismatch{{Path: l.Path, Expected: "bytes as " + l.Matches, Actual: "no such member"}}, nil
	}
	if !pattern.MatchString(bytes) {
		return []acts.Mismatch{{Path: l.Path, Expected: "bytes as " + l.Matches, Actual: bytes}}, nil
	}
	return nil, nil
}
