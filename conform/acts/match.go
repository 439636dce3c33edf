// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mismatch is one way in which a value differs from an assertion.
type Mismatch struct {
	Path     string // from the value that was matched
	Expected string
	Actual   string
}

func (m Mismatch) String() string {
	return fmt.Sprintf("%s: want %s, got %s", m.Path, m.Expected, m.Actual)
}

// Match compares a value with an assertion (ACTS §5): a scalar is the value, a list its first elements (an empty list:
// no elements), and a map its members, or operators about it. A map is of operators if all its keys are, and a type is
// then one of the six of JSON; so {type: task} is a member, and {type: string} an operator.
func Match(assertion, value any) []Mismatch {
	return match("", assertion, value, true)
}

func match(path string, assertion, value any, present bool) []Mismatch {
	if operators, ok := operatorsOf(assertion); ok {
		return applyAll(path, operators, value, present)
	}
	if !present {
		return []Mismatch{{path, show(assertion), "no such member"}}
	}
	switch want := assertion.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		if !ok {
			return []Mismatch{{path, "an object", show(value)}}
		}
		var found []Mismatch
		for _, name := range slices.Sorted(maps.Keys(want)) {
			v, has := object[name]
			found = append(found, match(join(path, name), want[name], v, has)...)
		}
		return found
	case []any:
		array, ok := value.([]any)
		switch {
		case !ok:
			return []Mismatch{{path, "an array", show(value)}}
		case len(want) == 0 && len(array) > 0:
			return []Mismatch{{path, "an empty array", show(value)}}
		case len(array) < len(want):
			return []Mismatch{{path, fmt.Sprintf("at least %d elements", len(want)), show(value)}}
		}
		var found []Mismatch
		for i := range want {
			found = append(found, match(fmt.Sprintf("%s[%d]", path, i), want[i], array[i], true)...)
		}
		return found
	}
	if !Equal(assertion, value) {
		return []Mismatch{{path, show(assertion), show(value)}}
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// types are the names of JSON's.
var types = []string{"string", "number", "boolean", "array", "object", "null"}

// operators are those of ACTS §5.1, those of FORMAT.md (equals, each, format, only, after and before), and items, as
// A2A's tests have it beside type: an assertion about each element, or a list about the first ones.
var operators = []string{"type", "exists", "absent", "contains", "matches", "starts_with", "ends_with", "gte", "lte",
	"gt", "lt", "after", "before", "count", "count_gte", "count_lte", "one_of", "all_of", "any_of", "not", "equals",
	"each", "format", "only", "items"}

func operatorsOf(assertion any) (map[string]any, bool) {
	m, ok := assertion.(map[string]any)
	if !ok || len(m) == 0 {
		return nil, false
	}
	for key, v := range m {
		if !slices.Contains(operators, key) {
			return nil, false
		}
		if key == "items" && m["type"] == nil {
			return nil, false
		}
		if name, _ := v.(string); key == "type" && !slices.Contains(types, name) {
			return nil, false
		}
	}
	return m, true
}

func applyAll(path string, operators map[string]any, value any, present bool) (found []Mismatch) {
	if operators["absent"] == true {
		if present {
			return []Mismatch{{path, "no such member", show(value)}}
		}
		return nil
	}
	if !present {
		// An alternative may be that it is absent.
		for _, name := range []string{"any_of", "one_of"} {
			alternatives, _ := operators[name].([]any)
			for _, a := range alternatives {
				if inner, ok := operatorsOf(a); ok && len(applyAll(path, inner, nil, false)) == 0 {
					return nil
				}
			}
		}
		if len(operators) == 1 && operators["not"] != nil {
			return nil
		}
		return []Mismatch{{path, show(operators), "no such member"}}
	}
	for _, name := range slices.Sorted(maps.Keys(operators)) {
		found = append(found, apply(path, name, operators[name], value)...)
	}
	return found
}

func apply(path, name string, want, value any) []Mismatch {
	bad := func(expected string) []Mismatch { return []Mismatch{{path, expected, show(value)}} }
	switch name {
	case "exists":
		return nil // it is
	case "type":
		if typeOf(value) != want {
			return bad("a value of type " + show(want))
		}
	case "equals":
		if !Equal(want, value) {
			return bad(show(want))
		}
	case "contains", "starts_with", "ends_with", "matches":
		return text(path, name, want, value)
	case "gte", "lte", "gt", "lt":
		if w, v, ok := numbers(want, value); !ok || !compare(name, v, w) {
			return bad("a number that is " + name + " " + show(want))
		}
	case "after", "before":
		if order, ok := Times(value, want); !ok || order == 0 || (order > 0) != (name == "after") {
			return bad("a time " + name + " " + show(want))
		}
	case "count", "count_gte", "count_lte":
		return count(path, name, want, value)
	case "one_of", "any_of":
		alternatives, _ := want.([]any)
		for _, a := range alternatives {
			if len(match(path, a, value, true)) == 0 {
				return nil
			}
		}
		return bad("one of " + show(want))
	case "all_of":
		alternatives, _ := want.([]any)
		var found []Mismatch
		for _, a := range alternatives {
			found = append(found, match(path, a, value, true)...)
		}
		return found
	case "not":
		if len(match(path, want, value, true)) == 0 {
			return bad("not " + show(want))
		}
	case "each", "items":
		if first, list := want.([]any); list && name == "items" {
			return match(path, first, value, true)
		}
		array, ok := value.([]any)
		if !ok {
			return bad("an array")
		}
		var found []Mismatch
		for i, v := range array {
			found = append(found, match(fmt.Sprintf("%s[%d]", path, i), want, v, true)...)
		}
		return found
	case "only":
		return only(path, want, value)
	case "format":
		if s, ok := value.(string); !ok || !formatted(want, s) {
			return bad("a text in the format " + show(want))
		}
	}
	return nil
}

func text(path, name string, want, value any) []Mismatch {
	w, _ := want.(string)
	v, ok := value.(string)
	holds := false
	switch name {
	case "contains":
		holds = strings.Contains(v, w)
	case "starts_with":
		holds = strings.HasPrefix(v, w)
	case "ends_with":
		holds = strings.HasSuffix(v, w)
	case "matches":
		pattern, err := regexp.Compile(w)
		if err != nil {
			return []Mismatch{{path, "a regular expression: " + err.Error(), show(value)}}
		}
		holds = pattern.MatchString(v)
	}
	if !ok || !holds {
		return []Mismatch{{path, "a text that " + name + " " + show(want), show(value)}}
	}
	return nil
}

func count(path, name string, want, value any) []Mismatch {
	array, ok := value.([]any)
	w, _, isNumber := numbers(want, want)
	n := float64(len(array))
	holds := name == "count" && n == w || name == "count_gte" && n >= w || name == "count_lte" && n <= w
	if !ok || !isNumber || !holds {
		return []Mismatch{{path, "an array whose " + name + " is " + show(want), show(value)}}
	}
	return nil
}

// only finds members beside those that are named.
func only(path string, want, value any) (found []Mismatch) {
	names, _ := want.([]any)
	object, ok := value.(map[string]any)
	if !ok {
		return []Mismatch{{path, "an object", show(value)}}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(names, any(name)) {
			found = append(found, Mismatch{join(path, name), "no such member", show(object[name])})
		}
	}
	return found
}

func formatted(format any, s string) bool {
	var err error
	switch format {
	case "date-time":
		_, err = time.Parse(time.RFC3339Nano, s)
	case "base64":
		_, err = base64.StdEncoding.DecodeString(s)
	case "uri":
		var u *url.URL
		u, err = url.Parse(s)
		if err == nil && u.Scheme == "" {
			return false
		}
	default:
		return false
	}
	return err == nil
}

// Times compares two times as texts by what they mean: 1 if the first one is later. It reports whether both are times.
func Times(a, b any) (int, bool) {
	first, isText := a.(string)
	second, also := b.(string)
	x, is := parseTime(first)
	y, other := parseTime(second)
	return x.Compare(y), isText && also && is && other
}

var timeForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00"}

var beijing = time.FixedZone("", 8*60*60)

// parseTime reads the usual forms of ISO 8601. One without a zone is in Beijing's, as AIP says.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range timeForms {
		if t, err := time.ParseInLocation(layout, text, beijing); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

func typeOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number, int, int64, uint64, float64:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// Equal reports whether two values are the same, numbers by what they are worth.
func Equal(a, b any) bool {
	if x, y, ok := numbers(a, b); ok {
		return x == y
	}
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, other, Equal)
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, Equal)
	}
	return reflect.DeepEqual(a, b)
}

func numbers(a, b any) (x, y float64, ok bool) {
	x, first := number(a)
	y, second := number(b)
	return x, y, first && second
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := strconv.ParseFloat(v.String(), 64)
		return f, err == nil
	}
	return 0, false
}

func compare(name string, v, w float64) bool {
	switch name {
	case "gte":
		return v >= w
	case "lte":
		return v <= w
	case "gt":
		return v > w
	}
	return v < w
}

// The longest value that a Mismatch shows.
const maxShown = 300

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > maxShown {
		return string(text[:maxShown]) + "…"
	}
	return string(text)
}
