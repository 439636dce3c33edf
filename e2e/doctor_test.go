// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
)

// TestDoctor proves that a set-up is explained beside the gateway that runs it, and that nothing is changed by it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	doctor := func(c config) (status int, found []string) {
		t.Helper()
		status, stdout, stderr := s.caddy("aip", "doctor", "--config", s.write(c), "--json")
		if strings.Contains(stderr, `"level"`) {
			t.Errorf("it logs: %s", stderr)
		}
		var out struct {
			Findings []struct{ Check, Status, Text string }
		}
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		for _, f := range out.Findings {
			found = append(found, f.Status+" "+f.Check+": "+f.Text)
		}
		return status, found
	}
	sample := legacyagent.New(legacyagent.Options{})
	other := httptest.NewServer(sample)
	t.Cleanup(func() {
		other.Close()
		sample.Close()
	})
	before, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	status, found := doctor(config{handle: "aip_gateway a2a/legacy " + agent.url})
	if status != 0 || !slices.Contains(found, "ok agent: it answers requests of a2a/legacy") ||
		!slices.Contains(found, "ok store: it can be written") {
		t.Errorf("the set-up that runs: %d %q", status, found)
	}
	status, found = doctor(config{mode: "request", handle: "aip_gateway a2a/1.0 " + other.URL})
	for _, want := range []string{"error client_auth: identity is required, but ",
		"error agent: it does not speak a2a/1.0 at this URL, but a2a/legacy; write agent a2a/legacy " + other.URL} {
		if status != 1 || !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("a broken set-up: %d %q, want %s", status, found, want)
		}
	}
	after, err := os.ReadDir(s.dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("the directory has %v, and had %v: %v", after, before, err)
	}
	for _, method := range []string{"tasks/send", "message/send", "SendMessage"} {
		if n := len(agent.requests(method)); n != 0 {
			t.Errorf("the agent was sent %d requests %s", n, method)
		}
	}
	// The gateway runs on with its own configuration.
	res, err := http.Get(s.adminURL() + "/aip/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	leader := leaderOf(t, s.url())
	leader.start("one", "hello")
	if res.StatusCode != http.StatusOK {
		t.Errorf("the gateway is not ready: %d", res.StatusCode)
	}
}
