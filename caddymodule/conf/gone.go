// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"
)

// gone says that an option is gone from the block at path; empty for one that is not.
func (g *Grammar) gone(path []string, option string) string {
	var words []string
	for _, block := range path {
		words = append(words, strings.Fields(block)[0])
	}
	instead, ok := g.Gone[strings.Join(append(words, option), " ")]
	if !ok {
		return ""
	}
	return "the option " + option + " of " + words[len(words)-1] + " is gone; remove it: " + instead
}

// ReadJSON reads the JSON of a directive or of a global option, into a type without methods. Options that are gone, and
// unknown members, are refused.
func ReadJSON(directive string, text []byte, into any) error {
	for _, name := range slices.Sorted(maps.Keys(registered.Gone)) {
		words := strings.Fields(name)
		if words[0] == directive && gjson.GetBytes(text, strings.Join(words[1:], ".")).Exists() {
			last := len(words) - 1
			return errors.New(registered.gone(words[:last], words[last]))
		}
	}
	return caddy.StrictUnmarshalJSON(text, into)
}
