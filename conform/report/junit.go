// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/run"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitProse `xml:"failure"`
	Error   *junitProse `xml:"error"`
	Skipped *junitProse `xml:"skipped"`
	Output  string      `xml:"system-out,omitempty"`
}

type junitProse struct {
	Message string `xml:"message,attr,omitempty"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes the report as JUnit's XML: a suite for each of ACTS and each protocol.
func JUnit(w io.Writer, r *run.Report) error {
	var all junitSuites
	for _, s := range r.Suites {
		out := junitSuite{Name: s.ID + " " + s.Protocol, Tests: len(s.Tests)}
		seconds := 0.0
		for i := range s.Tests {
			t := &s.Tests[i]
			seconds += t.Took.Seconds()
			c := junitCase{Class: s.ID + "." + s.Protocol, Name: t.Test.ID + " " + t.Test.Name,
				Time: fmt.Sprintf("%.3f", t.Took.Seconds())}
			switch t.Verdict {
			case run.Fail:
				out.Failures++
				c.Failure = prose(t)
			case run.Error:
				out.Errors++
				c.Error = prose(t)
			case run.Skip:
				out.Skipped++
				c.Skipped = &junitProse{Message: t.Reason}
			}
			for _, seen := range t.Readings {
				c.Output += fmt.Sprintf("open: %s: %s\n", seen.Question, seen.ID)
			}
			out.Cases = append(out.Cases, c)
		}
		out.Time = fmt.Sprintf("%.3f", seconds)
		all.Suites = append(all.Suites, out)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func prose(t *run.TestResult) *junitProse {
	var b strings.Builder
	failure(&b, t)
	return &junitProse{Message: t.Failure.Message, Text: b.String(),
		Type: strings.TrimSpace(string(t.Test.Level) + " " + cmp.Or(t.Test.Section, t.Test.SpecRef))}
}
