// SPDX-License-Identifier: Apache-2.0

// Package run carries out the tests of ACTS' documents against a Partner, and says what became of each.
//
//	Runner ──▶ scenario, one for a test ──▶ step ──▶ perform: wire ──▶ outcome
//	                                          └──▶ compare: verifier ──▶ TestResult
package run

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// Options say what is tested.
type Options struct {
	Profile   *Profile
	Documents []*acts.Document
	// Protocols are all that there are. Those that the Partner does not speak are left out.
	Protocols []*acts.Protocol
	// Only are ids of tests, or beginnings of ids with a * behind them; empty for all.
	Only []string
	// Level is the lowest level; empty for all.
	Level acts.Level
	// Transport is ACTS' name of the binding: jsonrpc if empty.
	Transport string
	// FirstFailure ends the run behind the first failure: the other tests are not tested.
	FirstFailure bool
	// Card is the path of an agent's card behind its URL; empty for a Partner of AIP. The card says where the agent is,
	// and the preconditions of tests are about it.
	Card string
}

// Runner tests a Partner. The caller must close it.
type Runner struct {
	options    Options
	profile    *Profile
	identities map[string]*wire.Identity
	clients    map[string]*wire.Client
	wire       wire.Options
	listening  wire.Listening
	base       *url.URL
	urls       map[string]string
	protocols  []*acts.Protocol
	partner    string // its AIC, as the profile or its certificate says
	card       any    // of an A2A agent
}

// New prepares a run: it reads the certificates, and sends nothing.
func New(o Options) (*Runner, error) {
	r := &Runner{options: o, profile: o.Profile, clients: make(map[string]*wire.Client), urls: make(map[string]string)}
	var err error
	if r.base, err = url.Parse(strings.TrimSuffix(o.Profile.URL, "/")); err != nil {
		return nil, err
	}
	if r.base.Scheme != "http" && r.base.Scheme != "https" || r.base.Host == "" {
		return nil, fmt.Errorf("the URL %q of the Partner is none of http or https", o.Profile.URL)
	}
	if r.identities, err = o.Profile.identities(r.base.Scheme == "https"); err != nil {
		return nil, err
	}
	if r.identities["leader"] == nil {
		return nil, errors.New("the profile has no identity leader")
	}
	r.wire = wire.Options{HTTP: o.Profile.HTTP, ServerName: o.Profile.ServerName}
	if o.Profile.CA != "" {
		if r.wire.CA, err = wire.LoadCA(o.Profile.CA); err != nil {
			return nil, err
		}
	}
	at := o.Profile.Receivers
	r.listening = wire.Listening{Address: at.Address, Host: at.Host}
	if at.Cert != "" {
		pair, err := tls.LoadX509KeyPair(at.Cert, at.Key)
		if err != nil {
			return nil, fmt.Errorf("receivers: %w", err)
		}
		r.listening.Certificate = &pair
	}
	for name, id := range r.identities {
		r.clients[name] = wire.NewClient(id, r.wire)
	}
	return r, nil
}

// Close closes the connections.
func (r *Runner) Close() {
	for _, c := range r.clients {
		c.Close()
	}
}

// client returns the Client of an identity, a new one if fresh is set: for a handshake.
func (r *Runner) client(name string, fresh bool) *wire.Client {
	if fresh {
		return wire.NewClient(r.identities[name], r.wire)
	}
	return r.clients[name]
}

// aic returns the AIC of an identity; one without any says that it is the Leader.
func (r *Runner) aic(id *wire.Identity) string {
	if id.AIC != "" {
		return id.AIC
	}
	return r.identities["leader"].AIC
}

// Run finds out where and how the Partner answers, and carries out the tests.
func (r *Runner) Run(ctx context.Context) (*Report, error) {
	report := &Report{Partner: r.profile.URL, Began: time.Now()}
	if err := r.probe(ctx); err != nil {
		return nil, err
	}
	type job struct {
		document *acts.Document
		test     *acts.Test
		protocol *acts.Protocol
		result   *TestResult
	}
	var jobs []job
	report.Name, report.Version, report.Language = r.product()
	report.Transport = cmp.Or(r.options.Transport, "jsonrpc")
	for _, p := range r.protocols {
		report.SpecVersion = cmp.Or(report.SpecVersion, p.SpecVersion)
		report.Protocols = append(report.Protocols, p.ID)
		for _, d := range r.options.Documents {
			for i := range d.Suites {
				suite := &d.Suites[i]
				var chosen []*acts.Test
				for j := range suite.Tests {
					if test := &suite.Tests[j]; r.chosen(suite, test, p) {
						chosen = append(chosen, test)
					}
				}
				if len(chosen) == 0 {
					continue
				}
				results := make([]TestResult, len(chosen))
				report.Suites = append(report.Suites, SuiteResult{suite.ID, suite.Name, p.ID, results})
				for j, test := range chosen {
					jobs = append(jobs, job{d, test, p, &results[j]})
				}
			}
		}
	}
	limit := make(chan struct{}, max(1, r.profile.Parallel))
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for _, j := range jobs {
		limit <- struct{}{}
		all.Go(func() {
			*j.result = r.one(running, j.document, j.test, j.protocol)
			if r.options.FirstFailure && j.result.Verdict == Fail {
				stop(errFirst)
			}
			<-limit
		})
	}
	all.Wait()
	report.Took = time.Since(report.Began)
	return report, ctx.Err()
}

// errFirst is that another test has failed, and no more are wanted.
var errFirst = errors.New("another test has failed")

var levels = []acts.Level{acts.May, acts.Should, acts.Must}

// chosen reports whether a test is for the protocol, and wanted.
func (r *Runner) chosen(suite *acts.Suite, test *acts.Test, p *acts.Protocol) bool {
	protocols := test.Protocols
	if len(protocols) == 0 {
		protocols = suite.Protocols
	}
	if len(protocols) > 0 && !slices.Contains(protocols, p.ID) {
		return false
	}
	if slices.Index(levels, test.Level) < slices.Index(levels, r.options.Level) {
		return false
	}
	return len(r.options.Only) == 0 || slices.ContainsFunc(r.options.Only, func(only string) bool {
		prefix, many := strings.CutSuffix(only, "*")
		return only == test.ID || many && strings.HasPrefix(test.ID, prefix)
	})
}

// product says which Partner it is, as its card says, or the profile.
func (r *Runner) product() (name, version, language string) {
	p := r.profile.Partner
	text := func(path string) string {
		v, _ := at(r.card, path)
		s, _ := v.(string)
		return s
	}
	return cmp.Or(p.Name, text("name"), r.base.Host), cmp.Or(p.Version, text("version"), "unknown"),
		cmp.Or(p.Language, "unknown")
}
