// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of a run: for people, as JSON of ACTS §13, as JUnit, and as TAP.
package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/run"
)

// Table writes a line for each test, then each failure, the open questions, and a summary.
func Table(w io.Writer, r *run.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s\n\n", r.Partner, strings.Join(r.Protocols, ", "))
	lines := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, t := range r.All() {
		note := ""
		switch t.Verdict {
		case run.Skip:
			note = " (not tested: " + t.Reason + ")"
		case run.Open:
			note = " (" + readings(t) + ")"
		}
		fmt.Fprintf(lines, "%s\t%s\t%s\t%s\t%s\t%s%s\n", t.Verdict, t.Test.ID, t.Protocol, t.Test.Level,
			cmp.Or(t.Test.Section, t.Test.SpecRef), t.Test.Name, note)
	}
	if err := lines.Flush(); err != nil {
		return err
	}
	for _, t := range r.All() {
		if t.Failure != nil {
			failure(&b, t)
		}
	}
	open(&b, r)
	summary(&b, r)
	_, err := io.WriteString(w, b.String())
	return err
}

func readings(t *run.TestResult) string {
	var ids []string
	for _, seen := range t.Readings {
		ids = append(ids, seen.ID)
	}
	return strings.Join(ids, ", ")
}

func failure(b *strings.Builder, t *run.TestResult) {
	f := t.Failure
	fmt.Fprintf(b, "\n%s %s, %s, %s: %s\n", strings.ToUpper(string(t.Verdict)), t.Test.ID, t.Protocol, t.Test.Level,
		t.Test.Name)
	field(b, "section", cmp.Or(t.Test.Section, t.Test.SpecRef))
	field(b, "step", f.Step)
	field(b, "sent", f.Sent)
	field(b, "got", f.Got)
	if len(f.Mismatches) == 0 {
		field(b, "because", f.Message)
	}
	for _, m := range f.Mismatches {
		text := m.Expected + ", got " + m.Actual
		if m.Path != "" {
			text = m.Path + ": " + text
		}
		field(b, "expected", text)
	}
	field(b, "defined", fmt.Sprintf("%s:%d", t.File, t.Test.Line))
}

func field(b *strings.Builder, name, text string) {
	if text != "" {
		fmt.Fprintf(b, "  %-9s %s\n", name, strings.ReplaceAll(strings.Map(shown, text), "\n", "\n            "))
	}
}

// shown replaces the control characters of a Partner, which a terminal would obey.
func shown(r rune) rune {
	switch {
	case r == '\t':
		return ' '
	case r != '\n' && unicode.IsControl(r):
		return utf8.RuneError
	}
	return r
}

// seen is a reading of one protocol, and the tests that saw it.
type seen struct {
	run.Reading
	protocol string
	tests    []string
}

// gathered returns the readings in their order, each once.
func gathered(r *run.Report) (all []*seen) {
	for _, t := range r.All() {
		for _, reading := range t.Readings {
			i := slices.IndexFunc(all, func(s *seen) bool {
				return s.protocol == t.Protocol && s.Question == reading.Question && s.ID == reading.ID && s.Got == ""
			})
			if i < 0 || reading.Got != "" {
				i, all = len(all), append(all, &seen{Reading: reading, protocol: t.Protocol})
			}
			all[i].tests = append(all[i].tests, t.Test.ID)
		}
	}
	return all
}

// shownTests is the most tests that a reading names.
const shownTests = 3

func open(b *strings.Builder, r *run.Report) {
	for i, s := range gathered(r) {
		if i == 0 {
			b.WriteString("\nThe text leaves open, and the Partner reads:\n")
		}
		tests := s.tests
		if more := len(tests) - shownTests; more > 0 {
			tests = append(slices.Clone(tests[:shownTests]), fmt.Sprintf("%d more", more))
		}
		fmt.Fprintf(b, "  %s (%s, %s): %s", s.Question, s.Section, s.protocol, s.ID)
		if s.Says != "" {
			fmt.Fprintf(b, " (%s)", s.Says)
		}
		fmt.Fprintf(b, ": %s\n", strings.Join(tests, ", "))
		field(b, "got", s.Got)
	}
}

func summary(b *strings.Builder, r *run.Report) {
	b.WriteString("\n")
	for _, level := range []acts.Level{acts.Must, acts.Should, acts.May} {
		count := r.Count(level)
		total := 0
		for _, n := range count {
			total += n
		}
		fmt.Fprintf(b, "%-7s %d/%d passed", strings.ToUpper(string(level))+":", count[run.Pass]+count[run.Open], total)
		var rest []string
		for _, v := range []run.Verdict{run.Fail, run.Error, run.Open, run.Skip} {
			if n := count[v]; n > 0 {
				rest = append(rest, fmt.Sprintf("%d %s", n, words[v]))
			}
		}
		if len(rest) > 0 {
			fmt.Fprintf(b, " (%s)", strings.Join(rest, ", "))
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "in %v\n", r.Took.Round(100*time.Millisecond))
}

var words = map[run.Verdict]string{run.Fail: "failed", run.Error: "errors", run.Open: "of them open",
	run.Skip: "not tested"}
