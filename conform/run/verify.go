// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// verifier compares what came of a step with what is expected.
type verifier struct {
	protocol *acts.Protocol
	vars     acts.Vars
}

// outcome returns how the step differs from one way in which it may end.
func (v verifier) outcome(o *outcome, want acts.Outcome) ([]acts.Mismatch, error) {
	switch want.ExpectHandshake {
	case "refused":
		if err := o.exchange.Err; err == nil || o.exchange.Status != 0 || !wire.Refused(err) {
			return []acts.Mismatch{{Path: "handshake", Expected: "refused", Actual: o.exchange.Got()}}, nil
		}
		return nil, nil
	case "accepted":
		if o.exchange.Status == 0 {
			return []acts.Mismatch{{Path: "handshake", Expected: "accepted", Actual: o.exchange.Got()}}, nil
		}
	case "", "any":
	default:
		return nil, fmt.Errorf("expect_handshake is %q, want refused, accepted or any", want.ExpectHandshake)
	}
	if want.Expect == nil && want.ExpectError == nil && want.ExpectStream == nil {
		return nil, nil
	}
	if o.exchange != nil && o.exchange.Err != nil {
		return []acts.Mismatch{{Expected: "an answer", Actual: o.exchange.Err.Error()}}, nil
	}
	var found []acts.Mismatch
	for _, check := range []func() ([]acts.Mismatch, error){
		func() ([]acts.Mismatch, error) { return v.expect(o, want.Expect) },
		func() ([]acts.Mismatch, error) { return v.failure(o, want.ExpectError) },
		func() ([]acts.Mismatch, error) { return v.stream(o, want.ExpectStream) },
	} {
		more, err := check()
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// lacksResult reports whether the answer to an operation of JSON-RPC is neither a stream nor has a result.
func (o *outcome) lacksResult() bool {
	return !o.raw && o.path != "" && o.exchange.Stream == nil && !o.hasRoot
}

// match resolves an assertion and compares a member with it, which may be absent.
func (v verifier) match(name string, assertion, value any, has bool) ([]acts.Mismatch, error) {
	resolved, err := v.vars.Resolve(assertion)
	if err != nil {
		return nil, err
	}
	if has {
		found := acts.Match(resolved, value)
		for i := range found {
			found[i].Path = strings.TrimPrefix(name+"."+found[i].Path, ".")
			found[i].Path = strings.TrimSuffix(found[i].Path, ".")
		}
		return found, nil
	}
	return acts.Match(map[string]any{name: resolved}, map[string]any{}), nil
}

func (v verifier) expect(o *outcome, want *acts.Expect) (found []acts.Mismatch, err error) {
	if want == nil {
		return nil, nil
	}
	add := func(name string, assertion, value any, has bool) {
		if err == nil {
			var more []acts.Mismatch
			more, err = v.match(name, assertion, value, has)
			found = append(found, more...)
		}
	}
	status := want.Status
	if status == nil && !o.raw && want.Error == nil {
		status = 200
	}
	if status != nil {
		add("HTTP status", status, json.Number(fmt.Sprint(o.exchange.Status)), true)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Headers)) {
		values, has := o.exchange.Headers[http.CanonicalHeaderKey(name)]
		add("header "+name, want.Headers[name], strings.Join(values, ", "), has)
	}
	if want.Envelope != nil {
		add("", want.Envelope, o.body, true)
	}
	switch {
	case want.Error != nil:
		add("error", want.Error, o.failure, o.failure != nil)
	case o.failure != nil && !o.raw:
		found = append(found, acts.Mismatch{Path: "error", Expected: "no error", Actual: brief(o.failure)})
		return found, err
	}
	if want.Body == nil {
		if want.Error == nil && want.Envelope == nil && want.Status == nil && o.lacksResult() {
			found = append(found, acts.Mismatch{Path: o.path, Expected: "a value", Actual: o.exchange.Got()})
		}
		return found, err
	}
	switch {
	case o.exchange.Stream != nil && o.event == nil:
		found = append(found, acts.Mismatch{Expected: "an answer in JSON", Actual: "a stream of events"})
	case o.raw && !o.isJSON:
		add("", want.Body, string(o.exchange.Body), true)
	case !o.hasRoot:
		found = append(found, acts.Mismatch{Path: o.path, Expected: "a value", Actual: o.exchange.Got()})
	default:
		add("", want.Body, o.root, true)
	}
	return found, err
}

func (v verifier) failure(o *outcome, want *acts.ExpectError) (found []acts.Mismatch, err error) {
	if want == nil {
		return nil, nil
	}
	if want.Status != nil {
		found, err = v.match("HTTP status", want.Status, json.Number(fmt.Sprint(o.exchange.Status)), true)
		if err != nil {
			return nil, err
		}
	}
	code := want.Code
	name, _ := want.Code.(string)
	for _, other := range []string{want.Error, want.ErrorType} {
		if other != "" {
			name = other
		}
	}
	if name != "" {
		number, known := v.protocol.Errors[name]
		if !known {
			return nil, fmt.Errorf("the protocol %s has no error %s", v.protocol.ID, name)
		}
		code = number
	}
	object, is := o.failure.(map[string]any)
	if !is {
		wanted := "an error"
		if name != "" {
			wanted += " " + name
		}
		return append(found, acts.Mismatch{Path: "error", Expected: wanted, Actual: o.exchange.Got()}), nil
	}
	for _, c := range []struct {
		path, member string
		want         any
	}{
		{"error.code", "code", v.codes(code)}, {"error.message", "message", want.Message}, {"error.data", "data", want.Data},
		{"details", "data", want.Details},
	} {
		if c.want == nil {
			continue
		}
		value, has := object[c.member]
		more, err := v.match(c.path, c.want, value, has)
		if err != nil {
			return nil, err
		}
		for i := range more {
			if c.member == "code" && name != "" {
				more[i].Expected += " (" + name + ")"
			}
		}
		found = append(found, more...)
	}
	return found, nil
}

// codes puts the numbers of errors in place of their names in a list of alternatives.
func (v verifier) codes(assertion any) any {
	operators, _ := assertion.(map[string]any)
	alternatives, _ := operators["one_of"].([]any)
	if len(operators) != 1 || alternatives == nil {
		return assertion
	}
	var numbers []any
	for _, a := range alternatives {
		if name, _ := a.(string); name != "" {
			if number, known := v.protocol.Errors[name]; known {
				a = number
			}
		}
		numbers = append(numbers, a)
	}
	return map[string]any{"one_of": numbers}
}

// named returns the assertion of a step or a test about what earlier steps left.
func (v verifier) named(a acts.NamedAssertion) ([]acts.Mismatch, error) {
	source := a.Source
	if !strings.Contains(source, "{{") {
		source = "{{" + source + "}}"
	}
	value, err := v.vars.Resolve(source)
	if err != nil {
		return nil, err
	}
	name := strings.Trim(source, "{}")
	if a.Path != "" {
		path, err := v.vars.Text(a.Path)
		if err != nil {
			return nil, err
		}
		inner, has := at(value, path)
		if name += "." + path; !has && a.Match != nil {
			return v.match(name, a.Match, nil, false)
		}
		value = inner
	}
	var found []acts.Mismatch
	if a.Match != nil {
		if found, err = v.match(name, a.Match, value, true); err != nil {
			return nil, err
		}
	}
	for _, c := range []struct {
		kind string
		of   *acts.Collection
	}{{"any", a.Any}, {"all", a.All}, {"none", a.None}} {
		if c.of == nil {
			continue
		}
		more, err := v.collection(name, c.kind, *c.of, value)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

func (v verifier) collection(name, kind string, c acts.Collection, value any) ([]acts.Mismatch, error) {
	path, err := v.path(c.Path)
	if err != nil {
		return nil, err
	}
	want, err := v.vars.Resolve(c.Match)
	if err != nil {
		return nil, err
	}
	elements := path.Of(value)
	matching := 0
	for _, e := range elements {
		if len(acts.Match(want, e)) == 0 {
			matching++
		}
	}
	if kind == "any" && matching > 0 || kind == "all" && matching == len(elements) || kind == "none" && matching == 0 {
		return nil, nil
	}
	return []acts.Mismatch{{Path: name + "." + c.Path, Expected: kind + " of the elements as " + brief(want),
		Actual: brief(elements)}}, nil
}

// path resolves references in a path, and reads it.
func (v verifier) path(text string) (acts.Path, error) {
	resolved, err := v.vars.Text(text)
	if err != nil {
		return nil, err
	}
	return acts.ParsePath(resolved)
}

// brief is a value in a report.
func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > 600 {
		return strings.ToValidUTF8(string(b[:600]), "") + "…"
	}
	return string(b)
}
