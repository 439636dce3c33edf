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
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
)

// doctor examines a configuration, and returns the status of the command and what it has found.
func (s *site) doctor(c config, more ...string) (status int, found []string) {
	s.t.Helper()
	status, stdout, stderr := s.caddy(append([]string{"aip", "doctor", "--config", s.write(c), "--json"}, more...)...)
	if strings.Contains(stderr, `"level"`) {
		s.t.Errorf("it logs: %s", stderr)
	}
	var out struct {
		Findings []struct{ Check, Status, Text string }
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		s.t.Fatalf("%v: %s", err, stdout)
	}
	for _, f := range out.Findings {
		found = append(found, f.Status+" "+f.Check+": "+f.Text)
	}
	return status, found
}

// TestDoctor proves that a set-up is explained beside the gateway that runs it, and that nothing is changed by it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	doctor := s.doctor
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
	answers := "ok agent: it answers requests of a2a/legacy; messages ask for a stream: it shows no card that says " +
		"whether it has them"
	if status != 0 || !slices.Contains(found, answers) ||
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

// TestDoctorTry proves that an agent is tried beside the gateway that runs, with the settings of the configuration, and
// that the gateway knows nothing of it.
func TestDoctorTry(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		switch {
		case h.Method == "tasks/cancel":
			writeTask(w, h, "canceled", "")
		case strings.Contains(string(h.body), "which?"):
			writeTask(w, h, "input-required", "")
		default:
			writeTask(w, h, "completed", "done, said "+h.header.Get("X-Token"))
		}
	})
	made := config{handle: "aip_gateway a2a/legacy " + agent.url + ` {
		agent {
			streams off
			header_up X-Token secret-token
		}
	}`}
	s := serve(t, made)
	status, found := s.doctor(made, "--try", "plan a day")
	for _, want := range []string{
		"ok try: it was sent a message that asks for no stream: streams is off",
		`ok try: its states were "completed"`,
		`ok try: it delivered an artifact "result" with a text of 23 bytes: "done, said REDACTED"`,
		"ok try: it has completed the task",
		`ok try: it knows the task afterwards, as "completed"`,
	} {
		if status != 0 || !slices.Contains(found, want) {
			t.Errorf("%d %s, want %s", status, strings.Join(found, "\n"), want)
		}
	}
	if n := len(agent.requests("tasks/send")); n != 1 || len(agent.requests("tasks/sendSubscribe")) != 0 {
		t.Errorf("the agent was sent %d messages", n)
	}
	if list := s.tasksCommand(0, "list", "--json"); strings.Contains(list, "completed") {
		t.Errorf("the gateway knows the task: %s", list)
	}
	status, found = s.doctor(made, "--try", "which?")
	if n := len(agent.requests("tasks/cancel")); n != 1 || status != 0 || !slices.Contains(found, "ok try: it asks") ||
		!slices.Contains(found, "ok try: the task was canceled") {
		t.Errorf("a question: %d, canceled %d times: %s", status, n, strings.Join(found, "\n"))
	}
}

// TestDoctorOnTokens: the keys of issuers are fetched, and what access logs would show is told.
func TestDoctorOnTokens(t *testing.T) {
	t.Parallel()
	agent, good, other := newFakeAgent(t, nil), tokentest.New(t), tokentest.New(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	s := newSite(t)
	keys := s.inDir("keys")
	if code, out, stderr := s.caddy("aip", "key", "reports", "--file", keys); code != 0 {
		t.Fatal(out, stderr)
	}
	const tail = "\n\t\taudience us\n\t\tallow_networks 127.0.0.0/8 ::1/128\n\t}\n\t"
	with := func(options, header string) config {
		return config{mode: "verify_if_given", options: options, handle: "log\naip_gateway a2a/legacy " + agent.url +
			" {\ncallers a2a\nidentity {\n\tmtls\n\toidc " + good.URL + " {" + tail +
			"oidc " + gone.URL + " {" + tail +
			"jwt {\n\t\tissuer " + other.URL + "\n\t\tjwks " + other.JWKS + "\n\t\talgorithms EdDSA" + tail +
			"keys " + keys + header + "\n}\n}"}
	}
	status, found := s.doctor(with("", " {\n\t\theader X-Api-Key\n\t}"))
	for _, want := range []string{"ok issuer: it publishes 1 keys",
		"error issuer: its keys cannot be fetched, so its tokens are refused: GET " + gone.URL +
			"/.well-known/openid-configuration is answered with 404 Not Found",
		"error issuer: none of the 1 keys that it publishes is for EdDSA, so its tokens are refused; set algorithms",
		"warning keys: callers send keys or tokens in the header X-Api-Key, which the access log of the site shows; "} {
		if status != 1 || !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("%d %q, want %s", status, found, want)
		}
	}
	const logged = "warning keys: callers send keys or tokens in the header Authorization, which the access log of the " +
		"site shows; take log_credentials out of the global option servers"
	_, found = s.doctor(with("", ""))
	if slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "warning keys") }) {
		t.Errorf("Caddy hides the header, and doctor says %q", found)
	}
	if _, found = s.doctor(with("servers {\n\tlog_credentials\n}", "")); !slices.Contains(found, logged) {
		t.Errorf("%q, want %s", found, logged)
	}
}
