// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// LoggedCall is the object aip of a line in an access log.
type LoggedCall struct{ Dialect, Command, Leader, Task, State, Error string }

// AMPRecords returns the records of a type, as soon as one of them has a member with a value.
func (s *Site) AMPRecords(kind, path, value string) (all []gjson.Result) {
	s.T.Helper()
	Eventually(s.T, "a record of "+kind+" with "+path+" "+value, func() bool {
		content, _ := os.ReadFile(filepath.Join(s.Dir, "amp", "amp_"+kind+"_aip-gateway.jsonl"))
		all = nil
		found := false
		for line := range strings.Lines(string(content)) {
			all = append(all, gjson.Parse(line))
			found = found || gjson.Get(line, path).String() == value
		}
		return found
	})
	return all
}

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

// Contents returns what the files in the directory of a site hold, by their names below it.
func (s *Site) Contents() map[string]string {
	s.T.Helper()
	files := make(map[string]string)
	NoError(s.T, filepath.WalkDir(s.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		files[strings.TrimPrefix(name, s.Dir)] = string(content)
		return err
	}))
	return files
}
