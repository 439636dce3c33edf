// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"fmt"
	"strconv"
	"strings"
)

// A Path leads to values in a value: members by name, elements by [n], and all elements by [*] (ACTS §5.2). The empty
// path is the value itself.
type Path []element

type element struct {
	name  string
	index int // of an array, if name is empty; all for every element
}

const all = -1

// ParsePath reads a path.
func ParsePath(text string) (Path, error) {
	var path Path
	for part := range strings.SplitSeq(text, ".") {
		name, rest, indexed := strings.Cut(part, "[")
		if name != "" {
			path = append(path, element{name: name})
		} else if !indexed && text != "" {
			return nil, fmt.Errorf("the path %q has an empty member", text)
		}
		for indexed {
			var inner string
			var closed bool
			inner, rest, closed = strings.Cut(rest, "]")
			if !closed {
				return nil, fmt.Errorf("the path %q has a [ without its ]", text)
			}
			index := all
			if inner != "*" {
				n, err := strconv.Atoi(inner)
				if err != nil || n < 0 {
					return nil, fmt.Errorf("the path %q has [%s], want a number or *", text, inner)
				}
				index = n
			}
			path = append(path, element{index: index})
			if rest == "" {
				break
			}
			if rest[0] != '[' {
				return nil, fmt.Errorf("the path %q has %q behind a ]", text, rest)
			}
			rest = rest[1:]
		}
	}
	return path, nil
}

// Of returns the values to which the path leads, in order: none if there are none.
func (p Path) Of(value any) []any {
	values := []any{value}
	for _, e := range p {
		var next []any
		for _, v := range values {
			next = append(next, e.of(v)...)
		}
		values = next
	}
	return values
}

func (e element) of(value any) []any {
	if e.name != "" {
		if object, ok := value.(map[string]any); ok {
			if v, has := object[e.name]; has {
				return []any{v}
			}
		}
		return nil
	}
	array, ok := value.([]any)
	switch {
	case !ok:
		return nil
	case e.index == all:
		return array
	case e.index < len(array):
		return array[e.index : e.index+1]
	}
	return nil
}
