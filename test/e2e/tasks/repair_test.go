// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestRepair kills a gateway and flips a bit in its journal. The gateway does not start, and says what to do; verify
// ends with 1. After a repair all tasks are there but the one that was hit, and no agent is sent a message again.
func TestRepair(t *testing.T) {
	t.Parallel()
	agent := site.AskingAgent(t)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	s.Awake()
	leader := site.LeaderOf(t, s.URL())
	ids := []string{"first", "second", "third"}
	for _, id := range ids {
		leader.Start(id, "ask me "+id)
	}
	s.Kill()
	store := filepath.Join(s.Dir, "store")
	segments, err := filepath.Glob(filepath.Join(store, "*.journal"))
	site.NoError(t, err)
	last := segments[len(segments)-1]
	data, err := os.ReadFile(last)
	site.NoError(t, err)
	at := bytes.LastIndex(data, []byte("ask me first"))
	if at < 0 {
		t.Fatalf("%s does not have the message", last)
	}
	data[at] ^= 0x10
	site.NoError(t, os.WriteFile(last, data, 0o600))

	way := "caddy aip store repair --accept-loss --store " + store
	if got := s.StoreCommand(1, false, "verify", "--store", store); !strings.Contains(got, way) {
		t.Errorf("verify says %q", got)
	}
	if status, stdout, stderr := s.Caddy("run", "--config", s.Dir+"/Caddyfile"); status == 0 ||
		!strings.Contains(stdout+stderr, way) {
		t.Errorf("the gateway ends with %d and says %s%s", status, stdout, stderr)
	}
	if got := s.StoreCommand(1, false, "repair", "--store", store); !strings.Contains(got, "--accept-loss") {
		t.Errorf("a repair that accepts no loss says %q", got)
	}
	if got := s.StoreCommand(0, false, "repair", "--accept-loss", "--store", store); !strings.Contains(got,
		filepath.Base(last)+".damaged") {
		t.Errorf("repair says %q", got)
	}
	if got := s.StoreCommand(0, false, "repair", "--accept-loss", "--store", store); !strings.Contains(got,
		"left as it is") {
		t.Errorf("a second repair says %q", got)
	}
	s.Run(s.Dir + "/Caddyfile")
	s.Awake()
	for _, id := range ids[1:] {
		if got := leader.Get(id); got.Status.State != task.AwaitingInput {
			t.Errorf("the task %s is %s after the repair", id, got.Status.State)
		}
		if got := leader.GoOn(id, "an answer"); got.Status.State != task.AwaitingCompletion {
			t.Errorf("a continue of %s is answered with %s", id, got.Status.State)
		}
	}
}

// TestStopWhileSampleStreams ends a gateway while the sample agent, in the same process, streams for longer than
// anyone waits.
func TestStopWhileSampleStreams(t *testing.T) {
	t.Parallel()
	sample := fmt.Sprint("http://127.0.0.1:", site.FreePort(t))
	s := site.New(t)
	text := s.Text(site.Config{Handle: "aip_gateway a2a/legacy " + sample,
		OtherSites: sample + " {\n\taip_sample_agent\n}"})
	path := filepath.Join(s.Dir, "Caddyfile")
	site.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, "grace_period 10s", "", 1)), 0o600))
	s.Run(path)
	res, err := http.Post(sample, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,`+
		`"method":"tasks/sendSubscribe","params":{"id":"t","message":{"parts":[{"type":"text","text":"slow 3600"}]}}}`))
	site.NoError(t, err)
	defer res.Body.Close()
	if leader := site.LeaderOf(t, s.URL()); leader.Start("slow", "slow 3600").Status.State != task.Working {
		t.Error("the agent does not work")
	}
	s.Stop(t)
}
