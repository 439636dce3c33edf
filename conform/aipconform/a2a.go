// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/checks"
	"github.com/aip-gateway/aip-gateway/conform/report"
	"github.com/aip-gateway/aip-gateway/conform/run"
)

// agent tests an agent of A2A with the tests in a folder. With --through it does so at two addresses, and reports what
// differs.
func agent(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	s := newSettings("aipconform a2a", stderr)
	corpus := s.flags.String("corpus", "", "the `folder` with A2A's tests: tests/acts of its repository")
	through := s.flags.String("through", "", "another `url` of the same agent: the differences are reported")
	transport := s.flags.String("transport", "jsonrpc", "the `binding`, jsonrpc or rest")
	others, err := s.parse(args)
	if err != nil {
		return 0, err
	}
	if *corpus == "" || len(others) != 1 {
		return 0, errors.New("give --corpus and one URL of an agent")
	}
	documents, err := acts.Load(os.DirFS(*corpus), "suite.acts.yaml")
	if err != nil {
		return 0, err
	}
	if s.list {
		return exitPassed, report.List(stdout, documents)
	}
	file := map[string]string{"jsonrpc": "a2a-1.0.yaml", "rest": "a2a-1.0-rest.yaml"}[*transport]
	if file == "" {
		return 0, fmt.Errorf("the binding is %q, want jsonrpc or rest", *transport)
	}
	protocol, err := acts.LoadProtocol(checks.Files, path.Join("protocols", file))
	if err != nil {
		return 0, err
	}
	options := func(url string) (run.Options, error) {
		p := run.DefaultProfile()
		if err := s.load(p, url); err != nil {
			return run.Options{}, err
		}
		given := p.Variables
		p.Protocols, p.Variables = []string{protocol.ID}, map[string]any{"SUT_BASE_URL": p.URL, "baseUrl": p.URL}
		maps.Copy(p.Variables, given)
		return run.Options{Profile: p, Documents: documents, Protocols: []*acts.Protocol{protocol},
			Transport: *transport, Card: "/.well-known/agent-card.json"}, nil
	}
	o, err := options(others[0])
	if err != nil {
		return 0, err
	}
	if *through == "" {
		return s.run(ctx, o, stdout)
	}
	direct, err := s.execute(ctx, o)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", others[0], err)
	}
	if o, err = options(*through); err != nil {
		return 0, err
	}
	after, err := s.execute(ctx, o)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", *through, err)
	}
	if err := s.write(after, stdout); err != nil {
		return 0, err
	}
	worse, err := report.Differences(stdout, direct, after)
	if err != nil || worse == 0 {
		return exitPassed, err
	}
	return exitMust, nil
}
