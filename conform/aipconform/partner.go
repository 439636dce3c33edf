// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/checks"
	"github.com/aip-gateway/aip-gateway/conform/report"
	"github.com/aip-gateway/aip-gateway/conform/run"
)

// settings are the flags that all runs have.
type settings struct {
	flags            *flag.FlagSet
	profile          string
	ca, cert, key    string
	otherCert        string
	otherKey         string
	http             string
	level, suite     string
	json, junit, tap string
	protocols, only  words
	list             bool
	timeout          time.Duration
	parallel         int
}

type words []string

func (w *words) String() string { return strings.Join(*w, ",") }

func (w *words) Set(s string) error {
	*w = append(*w, strings.Split(s, ",")...)
	return nil
}

func newSettings(name string, stderr io.Writer) *settings {
	s := &settings{flags: flag.NewFlagSet(name, flag.ContinueOnError)}
	f := s.flags
	f.SetOutput(stderr)
	f.Usage = func() {
		fmt.Fprint(stderr, usage)
		f.PrintDefaults()
	}
	f.StringVar(&s.profile, "profile", "", "a `file` over the default profile")
	f.StringVar(&s.ca, "ca", "", "a `file` with the authorities of the Partner's certificate")
	f.StringVar(&s.cert, "cert", "", "the Leader's certificate, a `file`")
	f.StringVar(&s.key, "key", "", "its key, a `file`")
	f.StringVar(&s.otherCert, "other-cert", "", "the certificate of another Leader, a `file`")
	f.StringVar(&s.otherKey, "other-key", "", "its key, a `file`")
	f.StringVar(&s.http, "http", "", "the `version` of HTTP, 1 or 2 (default: as agreed)")
	f.StringVar(&s.suite, "suite", "", "a `file` with tests in place of those of aipconform")
	f.Var(&s.protocols, "protocol", "an `id` of a protocol (default: all that the Partner speaks)")
	f.Var(&s.only, "only", "an `ID` of a test, or its beginning and a *")
	f.StringVar(&s.level, "level", "", "the lowest `level`: must, should or may")
	f.StringVar(&s.json, "json", "", "write the report of ACTS §13 to a `file`; - for the standard output")
	f.StringVar(&s.junit, "junit", "", "write it as JUnit to a `file`")
	f.StringVar(&s.tap, "tap", "", "write it as TAP to a `file`")
	f.BoolVar(&s.list, "list", false, "list the tests and end")
	f.DurationVar(&s.timeout, "timeout", 10*time.Minute, "the `time` of the run")
	f.IntVar(&s.parallel, "parallel", 0, "the most tests at a time (default: the profile's)")
	return s
}

// parse reads flags before and behind other arguments, which it returns.
func (s *settings) parse(args []string) ([]string, error) {
	var others []string
	for {
		if err := s.flags.Parse(args); err != nil {
			return nil, err
		}
		if s.flags.NArg() == 0 {
			break
		}
		others, args = append(others, s.flags.Arg(0)), s.flags.Args()[1:]
	}
	if s.level != "" && !slices.Contains([]string{"must", "should", "may"}, s.level) {
		return nil, fmt.Errorf("the level is %q, want must, should or may", s.level)
	}
	return others, nil
}

// load makes the profile for a URL.
func (s *settings) load(p *run.Profile, url string) error {
	if s.profile != "" {
		if err := p.Load(s.profile); err != nil {
			return err
		}
	}
	for _, set := range []struct{ to, from *string }{{&p.URL, &url}, {&p.CA, &s.ca}, {&p.HTTP, &s.http}} {
		if *set.from != "" {
			*set.to = *set.from
		}
	}
	if len(s.protocols) > 0 {
		p.Protocols = s.protocols
	}
	if s.parallel > 0 {
		p.Parallel = s.parallel
	}
	if p.Identities == nil {
		p.Identities = make(map[string]*run.ProfileIdentity)
	}
	if s.cert != "" {
		p.Identities["leader"] = &run.ProfileIdentity{Cert: s.cert, Key: s.key}
	}
	if s.otherCert != "" {
		p.Identities["other"] = &run.ProfileIdentity{Cert: s.otherCert, Key: s.otherKey}
	}
	if p.URL == "" {
		return errors.New("give the URL of the Partner")
	}
	return nil
}

// partner tests a Partner of AIP.
func partner(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	s := newSettings("aipconform", stderr)
	others, err := s.parse(args)
	if err != nil {
		return 0, err
	}
	if s.list {
		return list(ctx, nil, stdout, stderr)
	}
	if len(others) > 1 {
		return 0, fmt.Errorf("%s is one argument too many", others[1])
	}
	p := run.DefaultProfile()
	if err := s.load(p, strings.Join(others, "")); err != nil {
		return 0, err
	}
	documents, protocols, err := embedded()
	if err == nil && s.suite != "" {
		documents, err = acts.Load(os.DirFS(filepath.Dir(s.suite)), filepath.Base(s.suite))
	}
	if err != nil {
		return 0, err
	}
	return s.run(ctx, run.Options{Profile: p, Documents: documents, Protocols: protocols}, stdout)
}

// run carries out a run and writes its reports.
func (s *settings) run(ctx context.Context, o run.Options, stdout io.Writer) (int, error) {
	r, err := s.execute(ctx, o)
	if r == nil {
		return 0, err
	}
	// If the time was over, the report says which tests are without a result.
	if err := s.write(r, stdout); err != nil {
		return 0, err
	}
	return status(r), err
}

// execute carries out a run.
func (s *settings) execute(ctx context.Context, o run.Options) (*run.Report, error) {
	o.Only, o.Level = s.only, acts.Level(s.level)
	runner, err := run.New(o)
	if err != nil {
		return nil, err
	}
	defer runner.Close()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := runner.Run(ctx)
	if err == nil && len(r.All()) == 0 {
		return nil, errors.New("no test is chosen")
	}
	return r, err
}

func (s *settings) write(r *run.Report, stdout io.Writer) error {
	if s.json != "-" {
		if err := report.Table(stdout, r); err != nil {
			return err
		}
	}
	for _, to := range []struct {
		file  string
		write func(io.Writer, *run.Report) error
	}{{s.json, report.JSON}, {s.junit, report.JUnit}, {s.tap, report.TAP}} {
		if to.file == "" {
			continue
		}
		if err := save(stdout, to.file, func(w io.Writer) error { return to.write(w, r) }); err != nil {
			return err
		}
	}
	return nil
}

// save writes to a file; - is the standard output.
func save(stdout io.Writer, file string, write func(io.Writer) error) error {
	if file == "-" {
		return write(stdout)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// status is by the highest level that failed.
func status(r *run.Report) int {
	bad := func(level acts.Level) bool {
		count := r.Count(level)
		return count[run.Fail]+count[run.Error] > 0
	}
	switch {
	case bad(acts.Must):
		return exitMust
	case bad(""):
		return exitLower
	}
	return exitPassed
}

// embedded loads the checks of AIP.
func embedded() ([]*acts.Document, []*acts.Protocol, error) {
	documents, err := acts.Load(checks.Files, "aip/suite.acts.yaml")
	if err != nil {
		return nil, nil, err
	}
	entries, err := checks.Files.ReadDir("protocols")
	if err != nil {
		return nil, nil, err
	}
	var protocols []*acts.Protocol
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "aip-") {
			continue
		}
		p, err := acts.LoadProtocol(checks.Files, path.Join("protocols", e.Name()))
		if err != nil {
			return nil, nil, err
		}
		protocols = append(protocols, p)
	}
	return documents, protocols, nil
}

// list lists the tests.
func list(_ context.Context, _ []string, stdout, _ io.Writer) (int, error) {
	documents, _, err := embedded()
	if err != nil {
		return 0, err
	}
	return exitPassed, report.List(stdout, documents)
}
