// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/caddyserver/caddy/v2"
)

// placeholder is a placeholder of Caddy's with a name that may be shown. Other text in braces may be part of a secret.
var placeholder = regexp.MustCompile(`\{(?:env|file|system)\.[^{}]*\}`)

// replaceAll replaces the placeholders of a setting. Each must have a value. The error, which is to follow the name of
// the setting, names the placeholder, and quotes nothing else of the setting.
func replaceAll(repl *caddy.Replacer, s string) (string, error) {
	value, err := repl.ReplaceOrErr(s, true, true)
	if err == nil {
		return value, nil
	}
	if name := placeholder.FindString(err.Error()); name != "" {
		return "", fmt.Errorf("has a placeholder without a value: %s", name)
	}
	return "", errors.New("has a placeholder without a value")
}
