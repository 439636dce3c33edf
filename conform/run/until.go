// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// until reports whether an expression of ACTS §9.1 holds: path == value, path != value, or path in [values].
func until(expression string, o *outcome) (bool, error) {
	for _, operator := range []string{" in ", "==", "!="} {
		path, right, found := strings.Cut(expression, operator)
		if !found {
			continue
		}
		var values []any
		right = strings.TrimSpace(right)
		if operator == " in " {
			inner, ok := strings.CutPrefix(right, "[")
			inner, closed := strings.CutSuffix(inner, "]")
			if !ok || !closed {
				return false, fmt.Errorf("until: %q has no list in [ and ]", expression)
			}
			for part := range strings.SplitSeq(inner, ",") {
				values = append(values, literal(part))
			}
		} else {
			values = []any{literal(right)}
		}
		value, has := at(o.root, strings.TrimSpace(path))
		is := has && slices.ContainsFunc(values, func(v any) bool { return acts.Equal(v, value) })
		return is != (operator == "!="), nil
	}
	return false, fmt.Errorf("until: %q has neither ==, != nor in", expression)
}

// literal reads a value: JSON, or a text without quotes.
func literal(text string) any {
	text = strings.TrimSpace(text)
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) == nil && !decoder.More() {
		return v
	}
	return strings.Trim(text, "'")
}
