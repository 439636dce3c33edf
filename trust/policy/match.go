// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/identity"
)

// Match are the conditions of a rule or of a quota. All of them must hold; one holds if one of its values does. The
// zero Match has every call.
type Match struct {
	AIC       []string // a whole AIC
	Registrar []string // the beginning of an AIC up to its registrar, as an AIC of the same generation writes it
	Vendor    []string // likewise, up to its vendor
	Ontology  []string // likewise, up to its ontology

	Leader      []string            // the whole name of a Leader, as logs have it
	Certificate map[string][]string // attributes of the caller's certificate
	Claim       map[string][]string // claims of the caller's token

	Dialect []string // the name of a dialect, or of a family of them
	Command []string // a command, or another operation
	Method  []string // the dialect's own name of it
	Skill   []string // the skill a message asks for, or those of an invitation
	Mount   []string // the path of the mount point
}

// Names are the possible names in a Match.
type Names struct {
	Commands []string
	Dialects []string
}

// matcher is a compiled Match. It allocates nothing, unless it looks into a message or a token.
type matcher []condition

type condition interface{ holds(c *Call) bool }

func (m matcher) holds(c *Call) bool {
	for _, one := range m {
		if !one.holds(c) {
			return false
		}
	}
	return true
}

// compile checks a Match. every is true if it lets calls in: then all skills of a call must be listed, and otherwise
// one of them.
func (m *Match) compile(n Names, every bool) (all matcher, err error) {
	add := func(name string, values []string, make func([]string) (condition, error)) {
		if err != nil || values == nil {
			return
		}
		if len(values) == 0 || slices.Contains(values, "") {
			err = fmt.Errorf("%s has an empty value", name)
			return
		}
		var one condition
		if one, err = make(values); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			return
		}
		all = append(all, one)
	}
	add("aic", m.AIC, func(values []string) (condition, error) {
		return aicsOf(values, identity.ParseAIC, identity.AIC.Is)
	})
	for _, part := range [...]struct {
		name   string
		values []string
	}{{"registrar", m.Registrar}, {"vendor", m.Vendor}, {"ontology", m.Ontology}} {
		add(part.name, part.values, func(values []string) (condition, error) {
			parse := func(s string) (identity.AICPrefix, error) { return identity.ParseAICPrefix(part.name, s) }
			return aicsOf(values, parse, identity.AICPrefix.Begins)
		})
	}
	text := func(of func(*Call) string) func([]string) (condition, error) {
		return func(values []string) (condition, error) { return texts{of, values}, nil }
	}
	add("leader", m.Leader, text(func(c *Call) string { return c.Leader }))
	for _, name := range slices.Sorted(maps.Keys(m.Certificate)) {
		add("certificate "+name, m.Certificate[name], func(values []string) (condition, error) {
			return certificateHas(name, values)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Claim)) {
		add("claim "+name, m.Claim[name], func(values []string) (condition, error) {
			if name == "" {
				return nil, errors.New("it has no name")
			}
			return claimed{name, values}, nil
		})
	}
	add("dialect", m.Dialect, func(values []string) (condition, error) { return dialectsOf(values, n.Dialects) })
	add("command", m.Command, func(values []string) (condition, error) {
		for _, v := range values {
			if !slices.Contains(n.Commands, v) {
				return nil, fmt.Errorf("there is no command %q, but %s", v, strings.Join(n.Commands, ", "))
			}
		}
		return texts{func(c *Call) string { return c.Command }, values}, nil
	})
	add("method", m.Method, text(func(c *Call) string { return c.Method }))
	add("skill", m.Skill, func(values []string) (condition, error) { return skills{values, every}, nil })
	add("mount", m.Mount, func(values []string) (condition, error) {
		paths := make([]string, len(values))
		for i, v := range values {
			if v[0] != '/' {
				return nil, fmt.Errorf("%q does not begin with a slash", v)
			}
			paths[i] = strings.TrimRight(v, "/")
		}
		return texts{func(c *Call) string { return c.Mount }, paths}, nil
	})
	return all, err
}

// texts holds if a text is one of a few.
type texts struct {
	of     func(*Call) string
	values []string
}

func (t texts) holds(c *Call) bool { return slices.Contains(t.values, t.of(c)) }

// dialects holds if the dialect is one of a few, or of their families.
type dialects []string

func dialectsOf(values, known []string) (condition, error) {
	d := dialects(values)
	for i, v := range values {
		if !slices.ContainsFunc(known, func(name string) bool { return d[i : i+1].holds(&Call{Dialect: name}) }) {
			return nil, fmt.Errorf("there is no dialect %q, but %s", v, strings.Join(known, ", "))
		}
	}
	return d, nil
}

func (d dialects) holds(c *Call) bool {
	for _, v := range d {
		if rest, ok := strings.CutPrefix(c.Dialect, v); ok && (rest == "" || rest[0] == '/' || rest[0] == '-') {
			return true
		}
	}
	return false
}

// aicOf returns the AIC of the Leader; empty if it has none. If callers are not identified, it is the one claimed by
// the caller.
func aicOf(c *Call) string {
	if c.Peer.Verified() && c.Peer.Kind != identity.AICKind {
		return ""
	}
	return c.Leader
}

// aics holds if the Leader's AIC is one of a few AICs, or begins with one of a few beginnings.
type aics[T any] struct {
	list []T
	is   func(one T, aic string) bool
}

func aicsOf[T any](values []string, parse func(string) (T, error), is func(T, string) bool) (condition, error) {
	all := aics[T]{make([]T, len(values)), is}
	for i, v := range values {
		var err error
		if all.list[i], err = parse(v); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (a aics[T]) holds(c *Call) bool {
	of := aicOf(c)
	for _, one := range a.list {
		if a.is(one, of) {
			return true
		}
	}
	return false
}
