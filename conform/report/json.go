// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"io"
	"runtime"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/run"
)

// The types are the document of ACTS §13, and members beside it: protocol, section, verdict, sent, got, mismatches and
// open. The result of a test whose verdict is open is pass.
type document struct {
	Version     string            `json:"acts_version"`
	Extension   string            `json:"extension"`
	SpecVersion string            `json:"spec_version"`
	Generated   string            `json:"generated_at"`
	SDK         sdk               `json:"sdk"`
	Transport   string            `json:"transport"`
	Partner     string            `json:"partner"`
	Protocols   []string          `json:"protocols"`
	Environment map[string]string `json:"environment"`
	Summary     total             `json:"summary"`
	Suites      []suite           `json:"suites"`
}

type sdk struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Language string `json:"language"`
}

type count struct {
	Total   int `json:"total"`
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Errors  int `json:"errors"`
	Open    int `json:"open"`
}

type total struct {
	count
	Duration int64                `json:"duration_ms"`
	ByLevel  map[acts.Level]count `json:"by_level"`
}

type suite struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Tests    []test `json:"tests"`
}

type test struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Level      acts.Level  `json:"level"`
	Section    string      `json:"section,omitempty"`
	SpecRef    string      `json:"spec_ref,omitempty"`
	Result     run.Verdict `json:"result"`
	Verdict    run.Verdict `json:"verdict"`
	Duration   int64       `json:"duration_ms"`
	SkipReason string      `json:"skip_reason,omitempty"`
	Failure    *failed     `json:"failure,omitempty"`
	Open       []reading   `json:"open,omitempty"`
	Procedures []string    `json:"procedures,omitempty"`
	Steps      []step      `json:"steps,omitempty"`
}

type failed struct {
	Message    string     `json:"message"`
	Step       string     `json:"step_id,omitempty"`
	Expected   string     `json:"expected,omitempty"`
	Actual     string     `json:"actual,omitempty"`
	Path       string     `json:"assertion_path,omitempty"`
	Sent       string     `json:"sent,omitempty"`
	Got        string     `json:"got,omitempty"`
	Mismatches []mismatch `json:"mismatches,omitempty"`
}

type mismatch struct {
	Path     string `json:"path"`
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
}

type reading struct {
	Question string `json:"question"`
	Section  string `json:"section,omitempty"`
	Reading  string `json:"reading"`
	Says     string `json:"says,omitempty"`
	Got      string `json:"got,omitempty"`
}

type step struct {
	ID       string      `json:"id"`
	Result   run.Verdict `json:"result"`
	Duration int64       `json:"duration_ms"`
}

// JSON writes the report of ACTS §13.
func JSON(w io.Writer, r *run.Report) error {
	d := document{Version: "1.0", Extension: "aipconform/1", Generated: r.Began.UTC().Format(time.RFC3339),
		SDK: sdk{Name: r.Name, Version: r.Version, Language: r.Language}, Transport: r.Transport, Partner: r.Partner,
		Protocols: r.Protocols, Environment: map[string]string{"os": runtime.GOOS, "runtime": runtime.Version()},
		SpecVersion: r.SpecVersion, Suites: []suite{}}
	d.Summary = total{count: counted(r, ""), Duration: r.Took.Milliseconds(), ByLevel: map[acts.Level]count{
		acts.Must: counted(r, acts.Must), acts.Should: counted(r, acts.Should), acts.May: counted(r, acts.May)}}
	for _, s := range r.Suites {
		out := suite{ID: s.ID, Name: s.Name, Protocol: s.Protocol, Tests: []test{}}
		for i := range s.Tests {
			out.Tests = append(out.Tests, testOf(&s.Tests[i]))
		}
		d.Suites = append(d.Suites, out)
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(d)
}

func counted(r *run.Report, level acts.Level) count {
	n := r.Count(level)
	c := count{Passed: n[run.Pass] + n[run.Open], Failed: n[run.Fail], Skipped: n[run.Skip], Errors: n[run.Error],
		Open: n[run.Open]}
	c.Total = c.Passed + c.Failed + c.Skipped + c.Errors
	return c
}

func testOf(t *run.TestResult) test {
	out := test{ID: t.Test.ID, Name: t.Test.Name, Level: t.Test.Level, Section: t.Test.Section, SpecRef: t.Test.SpecRef,
		Result: t.Verdict, Verdict: t.Verdict, Duration: t.Took.Milliseconds(), SkipReason: t.Reason,
		Procedures: t.Procedures}
	if t.Verdict == run.Open {
		out.Result = run.Pass
	}
	if f := t.Failure; f != nil {
		out.Failure = &failed{Message: f.Message, Step: f.Step, Sent: f.Sent, Got: f.Got}
		for i, m := range f.Mismatches {
			if i == 0 {
				out.Failure.Expected, out.Failure.Actual, out.Failure.Path = m.Expected, m.Actual, m.Path
			}
			out.Failure.Mismatches = append(out.Failure.Mismatches, mismatch{m.Path, m.Expected, m.Actual})
		}
	}
	for _, seen := range t.Readings {
		out.Open = append(out.Open, reading{seen.Question, seen.Section, seen.ID, seen.Says, seen.Got})
	}
	for _, s := range t.Steps {
		out.Steps = append(out.Steps, step{s.ID, s.Verdict, s.Took.Milliseconds()})
	}
	return out
}
