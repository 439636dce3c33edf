// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
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

// TestMutants wants a failure of each Mutant, by a check of its section.
func TestMutants(t *testing.T) {
	s := load(t, true)
	all := All()
	if n := len(all); n < 150 {
		t.Errorf("there are %d Mutants, want at least 150", n)
	}
	results, errs := make([]string, len(all)), make([]error, len(all))
	each(all, func(i int, m Mutant) {
		only := s.covering(m)
		if len(only) == 0 {
			results[i] = "no check is for its section"
			return
		}
		r, err := s.run(m, only, nil, true)
		if errs[i] = err; err != nil {
			return
		}
		if !slices.ContainsFunc(r.All(), func(result *run.TestResult) bool { return result.Verdict == run.Fail }) {
			results[i] = fmt.Sprintf("%d checks do not fail it: %v", len(only), r.Count(""))
		}
	})
	escaped := []string{}
	for i, m := range all {
		switch {
		case errs[i] != nil:
			t.Errorf("%s: %v", m.Name, errs[i])
		case results[i] != "":
			escaped = append(escaped, m.Name)
			t.Logf("%s (%s): %s", m.Name, m.Section, results[i])
		}
	}
	t.Logf("%d of %d Mutants are failed by a check", len(all)-len(escaped), len(all))
	if diff := cmp.Diff(uncaught, escaped); diff != "" {
		t.Errorf("the Mutants that no check fails (-want +got):\n%s", diff)
	}
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
