// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"strings"
	"testing"
)

// LoggedCall is the object aip of a line in an access log.
type LoggedCall struct{ Dialect, Command, Leader, Task, State, Error string }

// Logged returns the lines with a message in what a gateway has logged, as soon as there is one.
func (s *Site) Logged(t *testing.T, msg string) (lines []map[string]any) {
	t.Helper()
	Eventually(t, "the log says "+msg, func() bool {
		lines = nil
		for text := range strings.Lines(s.Out.String()) {
			var line map[string]any
			if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == msg {
				lines = append(lines, line)
			}
		}
		return len(lines) > 0
	})
	return lines
}
