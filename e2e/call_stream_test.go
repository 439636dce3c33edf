// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCallStream streams as a person would, and kills the gateway meanwhile.
func TestCallStream(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := serve(t, config{handle: gatewayTo(agent)})
	pki := certificates(t)
	args := []string{"aip", "call", s.url(), "--cert", pki.Leader.Cert, "--key", pki.Leader.Key, "--ca", pki.CA.Cert}

	p := startProcess(t, s.dir, nil, caddyBinary(t), append(args, "stream", "--task", "t1", "stream 20 100")...)
	p.waitFor(t, `chunk-4 `)
	s.kill()
	s.run(filepath.Join(s.dir, "Caddyfile"))
	<-p.ended
	said := p.out.String()
	if p.cmd.ProcessState.ExitCode() != 0 || !strings.Contains(said, "the stream was interrupted; resuming it") ||
		!strings.Contains(said, "awaiting-completion") || !strings.Contains(said, "next      complete") {
		t.Errorf("stream ended with status %d and said\n%s", p.cmd.ProcessState.ExitCode(), said)
	}
	for i := range 20 {
		piece := strings.Fields(chunks(20))[i]
		if strings.Count(said, piece+" ") != 1 {
			t.Errorf("%s was printed %d times:\n%s", piece, strings.Count(said, piece+" "), said)
		}
	}

	status, out, errs := s.caddy(append(args, "re-stream", "--task", "t1", "--after", "2", "--json")...)
	if status != 0 || !strings.HasPrefix(out, `{"jsonrpc":"2.0"`) || !strings.Contains(out, `"eventSeq":3`) ||
		strings.Contains(out, `"eventSeq":2,`) {
		t.Errorf("re-stream ended with status %d and said\n%s%s", status, out, errs)
	}
	status, out, errs = s.caddy(append(args, "re-stream", "--task", "none")...)
	if status != 2 || !strings.Contains(errs, "-32001") {
		t.Errorf("re-stream of no task ended with status %d and said\n%s%s", status, out, errs)
	}
}
