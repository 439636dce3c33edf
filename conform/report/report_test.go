// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/run"
)

// example has a test with each verdict.
func example() *run.Report {
	test := func(id string, level acts.Level) *acts.Test {
		return &acts.Test{ID: id, Name: "A name", Section: "6.1", Level: level, Line: 7}
	}
	return &run.Report{Partner: "https://partner/rpc", Protocols: []string{"aip-01.00"}, SpecVersion: "01.00",
		Name: "partner", Version: "1", Language: "go", Transport: "jsonrpc", Took: time.Second,
		Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Suites: []run.SuiteResult{{ID: "rpc", Name: "Tasks", Protocol: "aip-01.00", Tests: []run.TestResult{
			{Test: test("A-1", acts.Must), Protocol: "aip-01.00", Verdict: run.Pass, Took: 5 * time.Millisecond},
			{Test: test("A-2", acts.Must), Protocol: "aip-01.00", File: "a.yaml", Verdict: run.Fail, Failure: &run.Failure{
				Step: "start", Message: "a: want 1, got 2", Sent: "POST /rpc\n{}", Got: "HTTP/1.1 200 OK",
				Mismatches: []acts.Mismatch{{Path: "a", Expected: "1", Actual: "2"}}}},
			{Test: test("A-3", acts.Should), Protocol: "aip-01.00", File: "a.yaml", Verdict: run.Error,
				Failure: &run.Failure{Message: "step x: <bad> & #1"}},
			{Test: test("A-4", acts.May), Protocol: "aip-01.00", Verdict: run.Skip, Reason: "the profile has no behavior ask"},
			{Test: test("A-5", acts.May), Protocol: "aip-01.00", Verdict: run.Open, Readings: []run.Reading{
				{Question: "200 or any 2xx?", Section: "6.3", ID: "any", Says: "any 2xx"},
				{Question: "Who owns a task?", Section: "4.2", ID: "another", Got: "HTTP/1.1 500"}}},
		}}}}
}

func text(t *testing.T, write func(io.Writer, *run.Report) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, example()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTable(t *testing.T) {
	want := `https://partner/rpc, aip-01.00

pass   A-1  aip-01.00  must    6.1  A name
fail   A-2  aip-01.00  must    6.1  A name
error  A-3  aip-01.00  should  6.1  A name
skip   A-4  aip-01.00  may     6.1  A name (not tested: the profile has no behavior ask)
open   A-5  aip-01.00  may     6.1  A name (any, another)

FAIL A-2, aip-01.00, must: A name
  section   6.1
  step      start
  sent      POST /rpc
            {}
  got       HTTP/1.1 200 OK
  expected  a: 1, got 2
  defined   a.yaml:7

ERROR A-3, aip-01.00, should: A name
  section   6.1
  because   step x: <bad> & #1
  defined   a.yaml:7

The text leaves open, and the Partner reads:
  200 or any 2xx? (6.3, aip-01.00): any (any 2xx): A-5
  Who owns a task? (4.2, aip-01.00): another: A-5
  got       HTTP/1.1 500

MUST:   1/2 passed (1 failed)
SHOULD: 0/1 passed (1 errors)
MAY:    1/2 passed (1 of them open, 1 not tested)
in 1s
`
	if diff := cmp.Diff(want, text(t, Table)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestControlCharacters: what a Partner sends gives a terminal no orders.
func TestControlCharacters(t *testing.T) {
	var b strings.Builder
	field(&b, "got", "a\n\x1b[2Jb\r\u009bc\td")
	if diff := cmp.Diff("  got       a\n            �[2Jb��c d\n", b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJSON looks at the members that ACTS §13 names, and at those beside them.
func TestJSON(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal([]byte(text(t, JSON)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"acts_version": "1.0", "spec_version": "01.00", "generated_at": "2026-01-02T03:04:05Z", "transport": "jsonrpc",
		"sdk": map[string]any{"name": "partner", "version": "1", "language": "go"},
		"summary": map[string]any{"total": 5, "passed": 2, "failed": 1, "skipped": 1, "errors": 1, "duration_ms": 1000,
			"by_level": map[string]any{"must": map[string]any{"total": 2, "passed": 1, "failed": 1},
				"should": map[string]any{"errors": 1}, "may": map[string]any{"skipped": 1, "open": 1}}},
		"suites": []any{map[string]any{"id": "rpc", "name": "Tasks", "tests": []any{
			map[string]any{"id": "A-1", "level": "must", "result": "pass", "duration_ms": 5, "section": "6.1"},
			map[string]any{"result": "fail", "failure": map[string]any{"step_id": "start", "message": "a: want 1, got 2",
				"expected": "1", "actual": "2", "assertion_path": "a", "sent": "POST /rpc\n{}", "got": "HTTP/1.1 200 OK"}},
			map[string]any{"result": "error", "failure": map[string]any{"message": "step x: <bad> & #1"}},
			map[string]any{"result": "skip", "skip_reason": "the profile has no behavior ask"},
			map[string]any{"result": "pass", "verdict": "open", "open": []any{
				map[string]any{"question": "200 or any 2xx?", "reading": "any", "section": "6.3"}}},
		}}},
	}
	if found := acts.Match(want, any(got)); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestJUnit(t *testing.T) {
	var got junitSuites
	if err := xml.Unmarshal([]byte(text(t, JUnit)), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Suites[0]
	want := junitSuite{Name: "rpc aip-01.00", Tests: 5, Failures: 1, Errors: 1, Skipped: 1, Time: "0.005", Cases: s.Cases}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := s.Cases[1].Failure; f == nil || f.Type != "must 6.1" || !strings.Contains(f.Text, "expected  a: 1, got 2") {
		t.Errorf("the failure is %+v", f)
	}
}

func TestTAP(t *testing.T) {
	want := `TAP version 14
1..5
ok 1 - A-1 aip-01.00 A name
not ok 2 - A-2 aip-01.00 A name
  ---
  message: |
    FAIL A-2, aip-01.00, must: A name
      section   6.1
      step      start
      sent      POST /rpc
                {}
      got       HTTP/1.1 200 OK
      expected  a: 1, got 2
      defined   a.yaml:7
  ...
not ok 3 - A-3 aip-01.00 A name # todo should
  ---
  message: |
    ERROR A-3, aip-01.00, should: A name
      section   6.1
      because   step x: <bad> & #1
      defined   a.yaml:7
  ...
ok 4 - A-4 aip-01.00 A name # skip the profile has no behavior ask
ok 5 - A-5 aip-01.00 A name
`
	if diff := cmp.Diff(want, text(t, TAP)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDifferences(t *testing.T) {
	direct, through := example(), example()
	through.Suites[0].Tests[0].Verdict = run.Fail
	through.Suites[0].Tests[0].Failure = &run.Failure{Message: "a: want 1,\ngot 3"}
	through.Suites[0].Tests[1].Verdict = run.Pass
	through.Suites[0].Tests[1].Failure = nil
	var b strings.Builder
	worse, err := Differences(&b, direct, through)
	if err != nil {
		t.Fatal(err)
	}
	want := `
At https://partner/rpc, and what differs at https://partner/rpc:

A-1  must  pass → fail  a: want 1, got 3
A-2  must  fail → pass  was: a: want 1, got 2
2 of 5 differ, 1 are worse
`
	if diff := cmp.Diff(want, b.String()); diff != "" || worse != 1 {
		t.Errorf("%d are worse (-want +got):\n%s", worse, diff)
	}
}
