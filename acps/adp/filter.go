// SPDX-License-Identifier: Apache-2.0

package adp

import (
	"encoding/json"
	"slices"
)

// The bounds of a filter.
const (
	maxDepth      = 3   // levels of groups (v02.02 §4.2.2)
	maxConditions = 100 // in all groups
	maxValues     = 100 // of a condition
)

// filterBody and conditionBody are a filter as it is sent.
type filterBody struct {
	Conditions []conditionBody `json:"conditions"`
	Groups     []filterBody    `json:"groups"`
	Logic      *string         `json:"logic"`
}

type conditionBody struct {
	Field string          `json:"field"`
	Op    string          `json:"op"`
	Value json.RawMessage `json:"value"`
}

// filter is a filter that was checked.
type filter struct {
	logic      string
	conditions []condition
	groups     []*filter
}

// condition is a condition that was checked.
type condition struct {
	path  []string
	holds func(value any) bool // of one value
	// negative says that the condition holds where there is no value.
	negative bool
}

// compile checks a filter.
func compile(b *filterBody) (*filter, *Error) {
	left := maxConditions
	return compileAt(b, 1, &left)
}

func compileAt(b *filterBody, depth int, left *int) (*filter, *Error) {
	if depth > maxDepth {
		return nil, filterWrong.errorf("groups are nested deeper than %d levels", maxDepth)
	}
	f := &filter{logic: "and"}
	if b.Logic != nil {
		f.logic = *b.Logic
	}
	if !slices.Contains([]string{"and", "or", "not"}, f.logic) {
		return nil, filterWrong.errorf("logic is %q, but must be and, or or not", clip(f.logic))
	}
	for i := range b.Conditions {
		if *left--; *left < 0 {
			return nil, filterWrong.errorf("the filter has more than %d conditions", maxConditions)
		}
		c, err := b.Conditions[i].compile()
		if err != nil {
			return nil, err
		}
		f.conditions = append(f.conditions, c)
	}
	for i := range b.Groups {
		if *left--; *left < 0 {
			return nil, filterWrong.errorf("the filter has more than %d conditions", maxConditions)
		}
		g, err := compileAt(&b.Groups[i], depth+1, left)
		if err != nil {
			return nil, err
		}
		f.groups = append(f.groups, g)
	}
	if f.logic == "or" && len(f.conditions)+len(f.groups) == 0 {
		return nil, filterWrong.errorf("logic is or, but there is nothing to choose from")
	}
	return f, nil
}

// compile checks a condition: its field, and whether its operator and its value are for a field of that type.
func (b *conditionBody) compile() (c condition, bad *Error) {
	path, of, ok := fieldOf(b.Field)
	if !ok {
		return c, filterWrong.errorf("there is no field %q in an ACS", clip(b.Field))
	}
	op, ok := operators[b.Op]
	if !ok {
		return c, filterWrong.errorf("there is no operator %q", clip(b.Op))
	}
	if op.types&of == 0 {
		return c, filterWrong.errorf("the operator %s is not for %s", b.Op, b.Field)
	}
	var value any
	if len(b.Value) > 0 {
		_ = json.Unmarshal(b.Value, &value) // it is JSON, since the body was
	}
	holds, why := op.compile(of, value)
	if why != "" {
		return c, filterWrong.errorf("%s of %s: value %s", b.Op, b.Field, why)
	}
	return condition{path, holds, op.negative || b.Op == "exists" && value == false}, nil
}

// matches reports whether an ACS passes the filter.
func (f *filter) matches(acs map[string]any) bool {
	if f == nil {
		return true
	}
	if f.logic == "or" {
		return slices.ContainsFunc(f.conditions, func(c condition) bool { return c.matches(acs) }) ||
			slices.ContainsFunc(f.groups, func(g *filter) bool { return g.matches(acs) })
	}
	all := !slices.ContainsFunc(f.conditions, func(c condition) bool { return !c.matches(acs) }) &&
		!slices.ContainsFunc(f.groups, func(g *filter) bool { return !g.matches(acs) })
	return all != (f.logic == "not")
}

// matches reports whether one of the values at the path fulfils the condition.
func (c *condition) matches(acs map[string]any) bool {
	found, there := c.at(acs, c.path)
	if !there {
		return c.negative
	}
	return found
}

// at returns whether a value at a path below v fulfils the condition, and whether there is any value.
func (c *condition) at(v any, path []string) (found, there bool) {
	if len(path) == 0 {
		return c.holds(v), true
	}
	switch v := v.(type) {
	case map[string]any:
		below, ok := v[path[0]]
		if !ok || below == nil {
			return false, false
		}
		return c.at(below, path[1:])
	case []any:
		for _, one := range v {
			f, t := c.at(one, path)
			if there = there || t; f {
				return true, true
			}
		}
	}
	return false, there
}
