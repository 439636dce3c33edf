// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/checks"
	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
	"github.com/aip-gateway/aip-gateway/conform/run"
)

// atOnce is how many Partners are tested at a time. They wait more than they work.
const atOnce = 16

// suite is all checks and protocols.
type suite struct {
	documents []*acts.Document
	protocols []*acts.Protocol
	files     certificates
	bounds    run.Bounds
}

// load loads them. A suite for Mutants waits less: one that is late is only failed the sooner.
func load(t *testing.T, mutants bool) *suite {
	t.Helper()
	documents, err := acts.Load(checks.Files, "aip/suite.acts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{documents: documents, files: newCertificates(t), bounds: run.Bounds{AnswerMS: 60_000,
		StreamMS: 60_000, SettleMS: 100, WaitMS: 60_000, TestMS: 200_000}}
	if mutants {
		s.bounds = run.Bounds{AnswerMS: 8000, StreamMS: 3000, SettleMS: 60, WaitMS: 2000, TestMS: 60_000}
		for _, d := range documents {
			hasten(d)
		}
	}
	entries, err := checks.Files.ReadDir("protocols")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "aip-") {
			continue
		}
		p, err := acts.LoadProtocol(checks.Files, path.Join("protocols", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		s.protocols = append(s.protocols, p)
	}
	return s
}

// The most of waits in milliseconds, and of attempts. The small Partner needs less than real ones.
const (
	pauseMS   = 40
	webhookMS = 3000
	attempts  = 60
)

// hasten makes pauses between attempts, and waits for webhooks, shorter.
func hasten(d *acts.Document) {
	for i := range d.Suites {
		for j := range d.Suites[i].Tests {
			steps := d.Suites[i].Tests[j].Steps
			for k := range steps {
				if again := steps[k].Repeat; again != nil {
					steps[k].Repeat = &acts.Repeat{Until: again.Until, MaxAttempts: min(again.MaxAttempts, attempts),
						DelayMS: pauseMS}
				}
				if hook := steps[k].Webhook; hook != nil {
					hook.WithinMS = min(hook.WithinMS, webhookMS)
				}
			}
		}
	}
}

// covering returns the ids of the checks for a Mutant.
func (s *suite) covering(m Mutant) (ids []string) {
	for _, d := range s.documents {
		for _, suite := range d.Suites {
			for _, test := range suite.Tests {
				if m.Covers(test.Section) {
					ids = append(ids, test.ID)
				}
			}
		}
	}
	return ids
}

// run tests a Partner that a Mutant makes, with some of the checks and protocols, or with all; until
// the first failure, if first is set.
func (s *suite) run(m Mutant, only, protocols []string, first bool) (*run.Report, error) {
	p := partner.New(partnerAIC)
	defer p.Close()
	if m.Change != nil {
		m.Change(p)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{s.files.server}, ClientAuth: p.ClientAuth,
		ClientCAs: s.files.roots, NextProtos: []string{"h2", "http/1.1"}}
	server := &http.Server{Handler: p, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() { server.ServeTLS(listener, "", "") })
	defer serving.Wait()
	defer server.Close()

	profile := run.DefaultProfile()
	profile.URL = fmt.Sprintf("https://%s/rpc", listener.Addr())
	profile.CA = s.files.ca
	profile.Partner.AIC = partnerAIC
	profile.Identities = s.files.identities
	profile.Behaviors = map[string]string{"complete": "hello", "ask": "ask", "answer": "blue", "fail": "fail",
		"reject": "reject", "stream": "stream 5 15", "long": "slow 30", "many_events": "stream 40 1", "file": "file",
		"data": "data", "two_products": "two", "accept": "accept", "notification": "yes",
		"pieces": "stream 5 15"}
	profile.Protocols = protocols
	profile.Bounds = s.bounds
	runner, err := run.New(run.Options{Profile: profile, Documents: s.documents, Protocols: s.protocols, Only: only,
		FirstFailure: first})
	if err != nil {
		return nil, err
	}
	defer runner.Close()
	return runner.Run(context.Background())
}

// TestCorrect runs all checks against the Partner without a deviation.
func TestCorrect(t *testing.T) {
	s := load(t, false)
	r, err := s.run(Mutant{}, nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	report(t, "the Partner", r)
	count := r.Count("")
	t.Logf("%d tests: %v, in %v", len(r.All()), count, r.Took)
	for _, result := range r.All() {
		if result.Verdict == run.Skip {
			t.Logf("%s (%s) is not tested: %s", result.Test.ID, result.Protocol, result.Reason)
		}
	}
}

// report reports the failures of a Partner that should have none.
func report(t *testing.T, name string, r *run.Report) {
	for _, result := range r.All() {
		if f := result.Failure; f != nil {
			t.Errorf("%s: %s (%s, %s) is %s at %s: %s\nsent %s\ngot %s", name, result.Test.ID, result.Test.Section,
				result.Protocol, result.Verdict, f.Step, f.Message, f.Sent, f.Got)
		}
	}
}

// each runs do for each Mutant, some at a time.
func each(all []Mutant, do func(i int, m Mutant)) {
	limit := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, m := range all {
		limit <- struct{}{}
		running.Go(func() {
			do(i, m)
			<-limit
		})
	}
	running.Wait()
}

// TestMutants wants a failure of each Mutant, by a check of its section. The one that failed it the last time is tried
// first, and then all.
func TestMutants(t *testing.T) {
	s := load(t, true)
	all := All()
	if n := len(all); n < 150 {
		t.Errorf("there are %d Mutants, want at least 150", n)
	}
	before := failedBy(t)
	results, errs := make([]string, len(all)), make([]error, len(all))
	each(all, func(i int, m Mutant) {
		covering := s.covering(m)
		if len(covering) == 0 {
			return
		}
		for _, only := range [][]string{{before[m.Name]}, covering} {
			if !slices.Contains(covering, only[0]) {
				continue
			}
			var r *run.Report
			if r, errs[i] = s.run(m, only, nil, true); errs[i] != nil {
				return
			}
			if results[i] = firstFailed(r); results[i] != "" {
				return
			}
		}
	})
	var lines strings.Builder
	escaped := []string{}
	for i, m := range all {
		fmt.Fprintf(&lines, "%s\t%s\n", results[i], m.Name)
		switch {
		case errs[i] != nil:
			t.Errorf("%s: %v", m.Name, errs[i])
		case results[i] == "":
			escaped = append(escaped, m.Name)
			t.Logf("%s (%s): none of %d checks fails it", m.Name, m.Section, len(s.covering(m)))
		}
	}
	t.Logf("%d of %d Mutants are failed by a check", len(all)-len(escaped), len(all))
	if diff := cmp.Diff(uncaught, escaped); diff != "" {
		t.Errorf("the Mutants that no check fails (-want +got):\n%s", diff)
	}
	if *rewrite {
		if err := os.WriteFile(failedFile, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var rewrite = flag.Bool("update", false, "write which check fails which Mutant")

// failedFile has a check and a Mutant a line. It only saves time.
const failedFile = "testdata/failed.txt"

// failedBy returns the check of each Mutant in the file.
func failedBy(t *testing.T) map[string]string {
	content, err := os.ReadFile(failedFile)
	if err != nil {
		t.Fatal(err)
	}
	checks := make(map[string]string)
	for line := range strings.Lines(string(content)) {
		check, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		checks[name] = check
	}
	return checks
}

// firstFailed returns the first check that failed; empty for none.
func firstFailed(r *run.Report) string {
	for _, result := range r.All() {
		if result.Verdict == run.Fail {
			return result.Test.ID
		}
	}
	return ""
}

// uncaught are the Mutants that no check fails, in the order of the table.
var uncaught = []string{}

// TestInnocents wants no failure of differences that the specification permits.
func TestInnocents(t *testing.T) { spared(t, Innocents(), 20) }

// TestReadings wants no failure of other readings of what the specification leaves open.
func TestReadings(t *testing.T) { spared(t, Readings(), 10) }

func spared(t *testing.T, all []Mutant, least int) {
	s := load(t, false)
	if len(all) < least {
		t.Errorf("there are %d, want at least %d", len(all), least)
	}
	reports, errs := make([]*run.Report, len(all)), make([]error, len(all))
	each(all, func(i int, m Mutant) {
		// One version for each keeps the test short.
		reports[i], errs[i] = s.run(m, nil, []string{s.protocols[i%len(s.protocols)].ID}, false)
	})
	for i, m := range all {
		if errs[i] != nil {
			t.Errorf("%s: %v", m.Name, errs[i])
			continue
		}
		report(t, m.Name, reports[i])
	}
}
