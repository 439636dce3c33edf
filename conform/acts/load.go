// SPDX-License-Identifier: Apache-2.0

package acts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"go.yaml.in/yaml/v3"
)

// The largest file that Load reads, and the number of files.
const (
	maxFile  = 4 << 20
	maxFiles = 200
)

// Load reads the document of that name and all that it includes, each once, in their order. An unknown key, a test
// without an action, and an id that two tests have are errors, with the file and the line.
func Load(files fs.FS, name string) ([]*Document, error) {
	l := loading{files: files, seen: make(map[string]bool), ids: make(map[string]string)}
	if err := l.load(name); err != nil {
		return nil, err
	}
	return l.documents, nil
}

type loading struct {
	files     fs.FS
	seen      map[string]bool
	ids       map[string]string // of tests, and the file of each
	documents []*Document
}

func (l *loading) load(name string) error {
	if l.seen[name] {
		return nil
	}
	if l.seen[name] = true; len(l.seen) > maxFiles {
		return fmt.Errorf("more than %d files are included", maxFiles)
	}
	content, err := read(l.files, name)
	if err != nil {
		return err
	}
	d := &Document{File: name}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(d); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := l.check(d); err != nil {
		return err
	}
	place(d, content)
	l.documents = append(l.documents, d)
	for _, included := range d.Include {
		if err := l.load(path.Join(path.Dir(name), included)); err != nil {
			return err
		}
	}
	return nil
}

func read(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return content, err
}

// check reports what the types do not.
func (l *loading) check(d *Document) error {
	var errs []error
	problem := func(t *Test, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: test %s: "+format, append([]any{d.File, t.ID}, args...)...))
	}
	if len(d.Suites)+len(d.Include) == 0 {
		errs = append(errs, fmt.Errorf("%s has neither suites nor include", d.File))
	}
	for i := range d.Suites {
		for j := range d.Suites[i].Tests {
			t := &d.Suites[i].Tests[j]
			if t.ID == "" {
				errs = append(errs, fmt.Errorf("%s: a test of suite %s has no id", d.File, d.Suites[i].ID))
			} else if other, twice := l.ids[t.ID]; twice {
				problem(t, "the id is that of a test in %s", other)
			}
			l.ids[t.ID] = d.File
			if t.Level != Must && t.Level != Should && t.Level != May {
				problem(t, "the level is %q, want must, should or may", t.Level)
			}
			if len(t.Steps) == 0 {
				problem(t, "it has no steps")
			}
			for k := range t.Steps {
				if n := t.Steps[k].actions(); n != 1 {
					problem(t, "step %s has %d actions, want 1", t.Steps[k].ID, n)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// actions counts what a step does.
func (s *Step) actions() (n int) {
	for _, is := range []bool{s.Operation != "" || s.OpenStream != "", s.Raw != nil, s.Assertion != nil,
		s.ClientResponse != nil, s.AwaitEvent != nil, s.Cut != "", s.Webhook != nil, s.Parallel != nil,
		s.Increasing != nil, s.Ordered != nil, s.SameEvents != nil, s.Fold != nil, s.Procedure != ""} {
		if is {
			n++
		}
	}
	return n
}

// place gives each test the line on which it begins.
func place(d *Document, content []byte) {
	var root yaml.Node
	if yaml.Unmarshal(content, &root) != nil || len(root.Content) == 0 {
		return
	}
	for i, suite := range items(member(root.Content[0], "suites")) {
		for j, test := range items(member(suite, "tests")) {
			if i < len(d.Suites) && j < len(d.Suites[i].Tests) {
				d.Suites[i].Tests[j].Line = test.Line
			}
		}
	}
}

func member(node *yaml.Node, name string) *yaml.Node {
	if node != nil && node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i+1]
			}
		}
	}
	return nil
}

func items(node *yaml.Node) []*yaml.Node {
	if node == nil || node.Kind != yaml.SequenceNode {
		return nil
	}
	return node.Content
}
