// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestCallStream streams as a person would, and kills the gateway meanwhile.
func TestCallStream(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Handle: site.GatewayTo(agent)})
	pki := site.Certificates(t)
	args := []string{"aip", "call", s.URL(), "--cert", pki.Leader.Cert, "--key", pki.Leader.Key, "--ca", pki.CA.Cert}

	p := site.StartProcess(t, s.Dir, nil, site.CaddyBinary(t), append(args, "stream", "--task", "t1", "stream 60 100")...)
	p.WaitFor(t, `chunk-4 `)
	s.Kill()
	s.Run(filepath.Join(s.Dir, "Caddyfile"))
	<-p.Ended
	said := p.Out.String()
	if p.Cmd.ProcessState.ExitCode() != 0 || !strings.Contains(said, "the stream was interrupted; resuming it") ||
		!strings.Contains(said, "awaiting-completion") || !strings.Contains(said, "next      complete") {
		t.Errorf("stream ended with status %d and said\n%s", p.Cmd.ProcessState.ExitCode(), said)
	}
	for _, piece := range strings.Fields(site.Chunks(60)) {
		if strings.Count(said, piece+" ") != 1 {
			t.Errorf("%s was printed %d times:\n%s", piece, strings.Count(said, piece+" "), said)
		}
	}

	status, out, errs := s.Caddy(append(args, "re-stream", "--task", "t1", "--after", "2", "--json")...)
	if status != 0 || !strings.HasPrefix(out, `{"jsonrpc":"2.0"`) || !strings.Contains(out, `"eventSeq":3`) ||
		strings.Contains(out, `"eventSeq":2,`) {
		t.Errorf("re-stream ended with status %d and said\n%s%s", status, out, errs)
	}
	status, out, errs = s.Caddy(append(args, "get", "--task", "t1", "--partner", string(pki.Leader.AIC))...)
	if want := "the server is " + string(pki.Server.AIC) + ", not " + string(pki.Leader.AIC); status != 1 ||
		!strings.Contains(errs, want) {
		t.Errorf("get from another Partner ended with status %d and said\n%s%s", status, out, errs)
	}
	status, out, errs = s.Caddy(append(args, "re-stream", "--task", "none")...)
	if status != 2 || !strings.Contains(errs, "-32001") {
		t.Errorf("re-stream of no task ended with status %d and said\n%s%s", status, out, errs)
	}
}

// TestCallV2 speaks AIP 2, to the Partner whose AIC is meant.
func TestCallV2(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers aip/2\n\t}"})
	pki := site.Certificates(t)
	args := []string{"aip", "call", s.URL(), "--cert", pki.Leader.Cert, "--key", pki.Leader.Key, "--ca", pki.CA.Cert,
		"--partner", string(pki.Server.AIC), "--dialect", "aip/2"}
	for _, tt := range []struct {
		args []string
		want []string // in what is printed
	}{
		{[]string{"start", "--task", "t1", "ask"}, []string{"task      t1", "awaiting-input"}},
		{[]string{"get", "--task", "t1"}, []string{"awaiting-input"}},
		{[]string{"continue", "--task", "t1", "blue"}, []string{"awaiting-completion"}},
		{[]string{"complete", "--task", "t1"}, []string{"completed"}},
		{[]string{"stream", "--task", "t2", "stream 3 10"}, []string{"chunk-2", "awaiting-completion"}},
		{[]string{"re-stream", "--task", "t2", "--json"}, []string{`"type":"task-status-update"`, `"type":"product-chunk"`}},
		{[]string{"cancel", "--task", "t2"}, []string{"canceled"}},
	} {
		status, out, errs := s.Caddy(append(args, tt.args...)...)
		for _, want := range tt.want {
			if status != 0 || !strings.Contains(out, want) {
				t.Errorf("%v ended with status %d and said\n%s%s", tt.args, status, out, errs)
			}
		}
	}
}
