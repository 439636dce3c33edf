// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"fmt"
	"regexp"
	"strings"
)

// Vars finds the value of an expression between {{ and }} (ACTS §8): a captured value, a variable of the document, or
// a generated one.
type Vars func(expression string) (any, bool)

var reference = regexp.MustCompile(`\{\{\s*([^{}]+?)\s*\}\}`)

// Absent, in place of a value, removes the member or element.
const Absent = "{{$absent}}"

// UnknownError is a reference to a variable that has no value.
type UnknownError struct{ Expression string }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no value for {{%s}}", e.Expression)
}

// Resolve returns a copy of the value with its references replaced, those in names of members, too. A text that is one
// reference becomes its value, with the type of this.
func (vars Vars) Resolve(value any) (any, error) {
	switch v := value.(type) {
	case string:
		return vars.text(v)
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			if member == Absent {
				continue
			}
			key, err := vars.Text(name)
			if err != nil {
				return nil, err
			}
			if object[key], err = vars.Resolve(member); err != nil {
				return nil, err
			}
		}
		return object, nil
	case []any:
		array := make([]any, 0, len(v))
		for _, element := range v {
			if element == Absent {
				continue
			}
			resolved, err := vars.Resolve(element)
			if err != nil {
				return nil, err
			}
			array = append(array, resolved)
		}
		return array, nil
	}
	return value, nil
}

func (vars Vars) text(s string) (any, error) {
	if !strings.Contains(s, "{{") {
		return s, nil
	}
	if m := reference.FindStringSubmatchIndex(s); m != nil && m[0] == 0 && m[1] == len(s) {
		if v, ok := vars(s[m[2]:m[3]]); ok {
			return v, nil
		}
		return nil, &UnknownError{s[m[2]:m[3]]}
	}
	var unknown error
	replaced := reference.ReplaceAllStringFunc(s, func(found string) string {
		expression := reference.FindStringSubmatch(found)[1]
		v, ok := vars(expression)
		if !ok {
			unknown = &UnknownError{expression}
			return found
		}
		if text, isText := v.(string); isText {
			return text
		}
		return show(v)
	})
	return replaced, unknown
}

// Text returns the text with its references replaced.
func (vars Vars) Text(s string) (string, error) {
	v, err := vars.text(s)
	if err != nil {
		return "", err
	}
	if text, ok := v.(string); ok {
		return text, nil
	}
	return show(v), nil
}

// Merge returns the template with the members of over in it, deeply. A member that is Absent is removed.
func Merge(template, over map[string]any) map[string]any {
	merged := make(map[string]any, len(template)+len(over))
	for name, v := range template {
		merged[name] = v
	}
	for name, v := range over {
		inner, both := v.(map[string]any)
		below, object := merged[name].(map[string]any)
		switch {
		case v == Absent:
			delete(merged, name)
		case both && object:
			merged[name] = Merge(below, inner)
		default:
			merged[name] = v
		}
	}
	return merged
}

// Set puts a value at a path of member names, making the objects on the way.
func Set(object map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		inner, ok := object[name].(map[string]any)
		if !ok {
			inner = make(map[string]any)
			object[name] = inner
		}
		object = inner
	}
	object[names[len(names)-1]] = value
}
