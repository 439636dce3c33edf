// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestRepair kills a gateway and flips a bit in its journal. The gateway does not start, and says what to do; verify
// ends with 1. After a repair all tasks are there but the one that was hit, and no agent is sent a message again.
func TestRepair(t *testing.T) {
	t.Parallel()
	agent := askingAgent(t)
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	s.awake()
	leader := leaderOf(t, s.url())
	ids := []string{"first", "second", "third"}
	for _, id := range ids {
		leader.start(id, "ask me "+id)
	}
	s.kill()
	store := filepath.Join(s.dir, "store")
	segments, err := filepath.Glob(filepath.Join(store, "*.journal"))
	noError(t, err)
	last := segments[len(segments)-1]
	data, err := os.ReadFile(last)
	noError(t, err)
	at := bytes.LastIndex(data, []byte("ask me first"))
	if at < 0 {
		t.Fatalf("%s does not have the message", last)
	}
	data[at] ^= 0x10
	noError(t, os.WriteFile(last, data, 0o600))

	way := "caddy aip store repair --accept-loss --store " + store
	if got := s.storeCommand(1, false, "verify", "--store", store); !strings.Contains(got, way) {
		t.Errorf("verify says %q", got)
	}
	if status, stdout, stderr := s.caddy("run", "--config", s.dir+"/Caddyfile"); status == 0 ||
		!strings.Contains(stdout+stderr, way) {
		t.Errorf("the gateway ends with %d and says %s%s", status, stdout, stderr)
	}
	if got := s.storeCommand(1, false, "repair", "--store", store); !strings.Contains(got, "--accept-loss") {
		t.Errorf("a repair that accepts no loss says %q", got)
	}
	if got := s.storeCommand(0, false, "repair", "--accept-loss", "--store", store); !strings.Contains(got,
		filepath.Base(last)+".damaged") {
		t.Errorf("repair says %q", got)
	}
	if got := s.storeCommand(0, false, "repair", "--accept-loss", "--store", store); !strings.Contains(got,
		"left as it is") {
		t.Errorf("a second repair says %q", got)
	}
	s.run(s.dir + "/Caddyfile")
	s.awake()
	for _, id := range ids[1:] {
		if got := leader.get(id); got.Status.State != task.AwaitingInput {
			t.Errorf("the task %s is %s after the repair", id, got.Status.State)
		}
		if got := leader.goOn(id, "an answer"); got.Status.State != task.AwaitingCompletion {
			t.Errorf("a continue of %s is answered with %s", id, got.Status.State)
		}
	}
}

// TestStopWhileSampleStreams ends a gateway while the sample agent, in the same process, streams for longer than
// anyone waits.
func TestStopWhileSampleStreams(t *testing.T) {
	t.Parallel()
	sample := fmt.Sprint("http://127.0.0.1:", freePort(t))
	s := newSite(t)
	text := s.text(config{handle: "aip_gateway a2a/legacy " + sample, otherSites: sample + " {\n\taip_sample_agent\n}"})
	path := filepath.Join(s.dir, "Caddyfile")
	noError(t, os.WriteFile(path, []byte(strings.Replace(text, "grace_period 10s", "", 1)), 0o600))
	s.run(path)
	res, err := http.Post(sample, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,`+
		`"method":"tasks/sendSubscribe","params":{"id":"t","message":{"parts":[{"type":"text","text":"slow 3600"}]}}}`))
	noError(t, err)
	defer res.Body.Close()
	if leader := leaderOf(t, s.url()); leader.start("slow", "slow 3600").Status.State != task.Working {
		t.Error("the agent does not work")
	}
	s.stop(t)
}
