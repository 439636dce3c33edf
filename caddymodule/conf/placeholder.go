// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/internal/shown"
)

// Replace replaces the placeholders of a setting. Each must have a value. The error, which is to follow the name of
// the setting, names the placeholder, and quotes nothing else of the setting.
func Replace(repl *caddy.Replacer, s string) (string, error) {
	value, err := repl.ReplaceOrErr(s, true, true)
	if err == nil {
		return value, nil
	}
	if names := shown.Placeholders(err.Error()); len(names) > 0 {
		return "", fmt.Errorf("has a placeholder without a value: %s", names[0])
	}
	return "", errors.New("has a placeholder without a value")
}

// FileName replaces the placeholders in the name of a file.
func FileName(repl *caddy.Replacer, s string) (string, error) {
	name, err := Replace(repl, s)
	if err != nil {
		return "", fmt.Errorf("the name of a file %w", err)
	}
	return name, nil
}

// ReadFile reads a file whose name may have placeholders.
func ReadFile(repl *caddy.Replacer, name string) ([]byte, error) {
	name, err := FileName(repl, name)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

// Literal refuses a placeholder in a setting that takes none.
func Literal(setting, value string) error {
	names := shown.Placeholders(value)
	if len(names) == 0 {
		return nil
	}
	name := names[0]
	advice := ""
	if variable, ok := strings.CutPrefix(strings.Trim(name, "{}"), "env."); ok {
		advice = "; in a Caddyfile, write {$" + variable + "}, which is replaced when the file is read"
	}
	return fmt.Errorf("%s cannot have the placeholder %s%s", setting, name, advice)
}
