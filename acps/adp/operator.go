// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// operator is an operator of conditions.
type operator struct {
	types    fieldType // that it is for
	negative bool      // it holds where there is nothing
	// compile returns what a value must be like, or why the condition's own cannot be.
	compile func(of fieldType, value any) (holds func(any) bool, why string)
}

// operators are all operators (v02.02 §4.2.2), by their names.
var operators = map[string]operator{
	"eq": {text | number | boolean | date, false, equals(fold, false)},
	"ne": {text | number | boolean | date, true, equals(fold, true)},
	"in": {text | number, false, among(fold, false)}, "nin": {text | number, true, among(fold, true)},
	"eqCs": {text, false, equals(same, false)}, "neCs": {text, true, equals(same, true)},
	"inCs": {text, false, among(same, false)}, "ninCs": {text, true, among(same, true)},

	"gt":      {text | number | date, false, ordered(func(c int) bool { return c > 0 })},
	"gte":     {text | number | date, false, ordered(func(c int) bool { return c >= 0 })},
	"lt":      {text | number | date, false, ordered(func(c int) bool { return c < 0 })},
	"lte":     {text | number | date, false, ordered(func(c int) bool { return c <= 0 })},
	"between": {number | date, false, between},

	"contains":      {text, false, part(fold, strings.Contains, false)},
	"notContains":   {text, true, part(fold, strings.Contains, true)},
	"startsWith":    {text, false, part(fold, strings.HasPrefix, false)},
	"endsWith":      {text, false, part(fold, strings.HasSuffix, false)},
	"containsCs":    {text, false, part(same, strings.Contains, false)},
	"notContainsCs": {text, true, part(same, strings.Contains, true)},
	"startsWithCs":  {text, false, part(same, strings.HasPrefix, false)},
	"endsWithCs":    {text, false, part(same, strings.HasSuffix, false)},

	"exists": {every, false, exists},

	"anyOf":  {list, false, elements(func(has []any, of []any) bool { return slices.ContainsFunc(of, in(has)) })},
	"allOf":  {list, false, elements(func(has []any, of []any) bool { return !slices.ContainsFunc(of, notIn(has)) })},
	"noneOf": {list, true, elements(func(has []any, of []any) bool { return !slices.ContainsFunc(of, in(has)) })},

	"size":    {list, false, length(func(c int) bool { return c == 0 })},
	"sizeGt":  {list, false, length(func(c int) bool { return c > 0 })},
	"sizeGte": {list, false, length(func(c int) bool { return c >= 0 })},
	"sizeLt":  {list, false, length(func(c int) bool { return c < 0 })},
	"sizeLte": {list, false, length(func(c int) bool { return c <= 0 })},

	"hasKey":     {object, false, keys(func(has map[string]any, of []string) bool { return has[of[0]] != nil })},
	"hasNoKey":   {object, true, keys(func(has map[string]any, of []string) bool { return !hasAny(has, of) })},
	"hasAnyKey":  {object, false, keys(hasAny)},
	"hasAllKeys": {object, false, keys(hasAll)},
}

// fold and same bring text into the form in which it is compared.
func fold(s string) string { return strings.ToLower(s) }
func same(s string) string { return s }

// scalar brings a value into the form in which it is compared, and reports whether it can be of a field of a type.
func scalar(of fieldType, value any, form func(string) string) (any, bool) {
	switch v := value.(type) {
	case string:
		if of == date {
			at, err := time.Parse(time.RFC3339Nano, v)
			return at.UnixNano(), err == nil
		}
		return form(v), of&text != 0
	case float64:
		return v, of&number != 0
	case bool:
		return v, of&boolean != 0
	}
	return nil, false
}

const wrongType = "is not of the type of the field"

func equals(form func(string) string, not bool) func(fieldType, any) (func(any) bool, string) {
	return func(of fieldType, value any) (func(any) bool, string) {
		want, ok := scalar(of, value, form)
		if !ok {
			return nil, wrongType
		}
		return func(v any) bool {
			has, ok := scalar(of, v, form)
			return (ok && has == want) != not
		}, ""
	}
}

// scalars returns the values of a list.
func scalars(of fieldType, value any, form func(string) string) (all []any, why string) {
	given, ok := value.([]any)
	if !ok || len(given) == 0 || len(given) > maxValues {
		return nil, "must be a list of 1 to 100 values"
	}
	for _, one := range given {
		v, ok := scalar(of, one, form)
		if !ok {
			return nil, "has an element that " + wrongType
		}
		all = append(all, v)
	}
	return all, ""
}

func among(form func(string) string, not bool) func(fieldType, any) (func(any) bool, string) {
	return func(of fieldType, value any) (func(any) bool, string) {
		want, why := scalars(of, value, form)
		return func(v any) bool {
			has, ok := scalar(of, v, form)
			return (ok && slices.Contains(want, has)) != not
		}, why
	}
}

// compare compares two scalars of one type; ok is false for those of two types.
func compare(a, b any) (c int, ok bool) {
	switch a := a.(type) {
	case string:
		b, ok := b.(string)
		return strings.Compare(a, b), ok
	case float64:
		b, ok := b.(float64)
		return cmp.Compare(a, b), ok
	case int64:
		b, ok := b.(int64)
		return cmp.Compare(a, b), ok
	}
	return 0, false
}

func ordered(holds func(int) bool) func(fieldType, any) (func(any) bool, string) {
	return func(of fieldType, value any) (func(any) bool, string) {
		want, ok := scalar(of&^boolean, value, same)
		if !ok {
			return nil, wrongType
		}
		return func(v any) bool {
			has, ok := scalar(of, v, same)
			c, comparable := compare(has, want)
			return ok && comparable && holds(c)
		}, ""
	}
}

func between(of fieldType, value any) (func(any) bool, string) {
	bounds, why := scalars(of&^(text|boolean), value, same)
	if why != "" || len(bounds) != 2 {
		return nil, "must be a list of the least and the greatest value"
	}
	if c, ok := compare(bounds[0], bounds[1]); !ok || c > 0 {
		return nil, "has a least value above the greatest"
	}
	return func(v any) bool {
		has, ok := scalar(of, v, same)
		least, ok1 := compare(has, bounds[0])
		greatest, ok2 := compare(has, bounds[1])
		return ok && ok1 && ok2 && least >= 0 && greatest <= 0
	}, ""
}

func part(
	form func(string) string, has func(s, part string) bool, not bool,
) func(fieldType, any) (func(any) bool, string) {
	return func(_ fieldType, value any) (func(any) bool, string) {
		want, ok := value.(string)
		if !ok {
			return nil, "must be a text"
		}
		want = form(want)
		return func(v any) bool {
			s, ok := v.(string)
			return (ok && has(form(s), want)) != not
		}, ""
	}
}

// exists is about what is there and not empty.
func exists(_ fieldType, value any) (func(any) bool, string) {
	want, ok := value.(bool)
	if !ok {
		return nil, "must be true or false"
	}
	return func(v any) bool {
		full := v != nil
		switch v := v.(type) {
		case string:
			full = v != ""
		case []any:
			full = len(v) > 0
		case map[string]any:
			full = len(v) > 0
		}
		return full == want
	}, ""
}

// in returns what reports whether a value is in a list.
func in(has []any) func(any) bool { return func(v any) bool { return slices.Contains(has, v) } }

func notIn(has []any) func(any) bool { return func(v any) bool { return !slices.Contains(has, v) } }

func elements(holds func(has, of []any) bool) func(fieldType, any) (func(any) bool, string) {
	return func(_ fieldType, value any) (func(any) bool, string) {
		want, why := scalars(text|number|boolean, value, fold)
		return func(v any) bool {
			given, _ := v.([]any)
			var has []any
			for _, one := range given {
				if s, ok := scalar(text|number|boolean, one, fold); ok {
					has = append(has, s)
				}
			}
			return holds(has, want)
		}, why
	}
}

func length(holds func(int) bool) func(fieldType, any) (func(any) bool, string) {
	return func(_ fieldType, value any) (func(any) bool, string) {
		want, ok := value.(float64)
		if !ok || want < 0 || want != float64(int(want)) {
			return nil, "must be a whole number, and not below 0"
		}
		return func(v any) bool {
			given, ok := v.([]any)
			return ok && holds(cmp.Compare(len(given), int(want)))
		}, ""
	}
}

func keys(holds func(map[string]any, []string) bool) func(fieldType, any) (func(any) bool, string) {
	return func(_ fieldType, value any) (func(any) bool, string) {
		var want []string
		if s, ok := value.(string); ok {
			want = []string{s}
		} else if list, ok := value.([]any); ok && len(list) <= maxValues {
			for _, one := range list {
				if s, ok := one.(string); ok {
					want = append(want, s)
				}
			}
			if len(want) != len(list) {
				want = nil
			}
		}
		if len(want) == 0 {
			return nil, "must be a key, or a list of keys"
		}
		return func(v any) bool {
			has, ok := v.(map[string]any)
			return ok && holds(has, want)
		}, ""
	}
}

func hasAny(has map[string]any, of []string) bool {
	return slices.ContainsFunc(of, func(key string) bool { return has[key] != nil })
}

func hasAll(has map[string]any, of []string) bool {
	return !slices.ContainsFunc(of, func(key string) bool { return has[key] == nil })
}
