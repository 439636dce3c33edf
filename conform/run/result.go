// SPDX-License-Identifier: Apache-2.0

package run

import (
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// Verdict is what became of a test.
type Verdict string

// The verdicts. Open is a test that asked what the specification leaves open, and found nothing wrong; Skip is one that
// was not tested; Error is one that the runner could not carry out.
const (
	Pass  Verdict = "pass"
	Fail  Verdict = "fail"
	Open  Verdict = "open"
	Skip  Verdict = "skip"
	Error Verdict = "error"
)

// Report is the results of a run.
type Report struct {
	Partner string // its URL
	// Name, Version and Language are those of the Partner, as far as they are known.
	Name, Version, Language string
	Transport               string // ACTS' name of the binding
	SpecVersion             string // of the first protocol
	Protocols               []string
	Began                   time.Time
	Took                    time.Duration
	Suites                  []SuiteResult
}

// SuiteResult is the results of a suite with one protocol.
type SuiteResult struct {
	ID, Name string
	Protocol string
	Tests    []TestResult
}

// TestResult is what became of a test.
type TestResult struct {
	Test     *acts.Test
	File     string
	Protocol string
	Verdict  Verdict
	Took     time.Duration
	// Reason says why a test was not tested.
	Reason string
	// Failure is the first one.
	Failure *Failure
	// Readings are those that were seen, of what the specification leaves open.
	Readings []Reading
	// Procedures are the functions of the runner that the test used.
	Procedures []string
	Steps      []StepResult
}

// Failure is what was sent, what came back, and what was expected.
type Failure struct {
	Step       string
	Message    string
	Mismatches []acts.Mismatch
	Sent, Got  string
}

// Reading is how the Partner reads what the specification leaves open.
type Reading struct {
	Question string
	Section  string
	// ID and Says are those of the reading; "another" if none of them was seen.
	ID, Says string
	Got      string // for another one
}

// StepResult is what became of a step.
type StepResult struct {
	ID      string
	Verdict Verdict
	Took    time.Duration
}

// All returns the results of all suites.
func (r *Report) All() []*TestResult {
	var all []*TestResult
	for i := range r.Suites {
		for j := range r.Suites[i].Tests {
			all = append(all, &r.Suites[i].Tests[j])
		}
	}
	return all
}

// Count counts the tests of a level by verdict; those of all levels, if it is empty.
func (r *Report) Count(level acts.Level) map[Verdict]int {
	count := make(map[Verdict]int)
	for _, t := range r.All() {
		if level == "" || t.Test.Level == level {
			count[t.Verdict]++
		}
	}
	return count
}
