// SPDX-License-Identifier: Apache-2.0

// Package shown says how settings and names are shown to people.
package shown

import (
	"regexp"
	"strings"
)

// OneOf returns names to choose from, as words of a sentence. There is at least one.
func OneOf(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// placeholder is a placeholder of Caddy's with a name that may be shown. Other text in braces may be part of a secret.
var placeholder = regexp.MustCompile(`\{(?:env|file|system)\.[^{}]*\}`)

// Placeholders returns the placeholders in a setting whose names may be shown.
func Placeholders(s string) []string { return placeholder.FindAllString(s, -1) }
