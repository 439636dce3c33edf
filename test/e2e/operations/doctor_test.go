// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
)

// TestDoctor proves that a set-up is explained beside the gateway that runs it, and that nothing is changed by it.
func TestDoctor(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	doctor := s.Doctor
	sample := legacyagent.New(legacyagent.Options{})
	other := httptest.NewServer(sample)
	t.Cleanup(func() {
		other.Close()
		sample.Close()
	})
	site.Eventually(t, "Caddy has written into its storage", func() bool { // which it does a moment after its start
		_, err := os.Stat(s.InDir("share/caddy/last_clean.json"))
		return err == nil
	})
	before, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	status, found := doctor(site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	answers := "ok agent: it answers requests of a2a/legacy; messages ask for a stream: it shows no card that says " +
		"whether it has them"
	if status != 0 || !slices.Contains(found, answers) ||
		!slices.Contains(found, "ok store: it can be written") {
		t.Errorf("the set-up that runs: %d %q", status, found)
	}
	status, found = doctor(site.Config{Mode: "request", Handle: "aip_gateway a2a/1.0 " + other.URL})
	for _, want := range []string{"error client_auth: identity is required, but ",
		"error agent: it does not speak a2a/1.0 at this URL, but a2a/legacy; write agent a2a/legacy " + other.URL} {
		if status != 1 || !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("a broken set-up: %d %q, want %s", status, found, want)
		}
	}
	after, err := os.ReadDir(s.Dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("the directory has %v, and had %v: %v", after, before, err)
	}
	for _, method := range []string{"tasks/send", "message/send", "SendMessage"} {
		if n := len(agent.Requests(method)); n != 0 {
			t.Errorf("the agent was sent %d requests %s", n, method)
		}
	}
	// The gateway runs on with its own configuration.
	res, err := http.Get(s.AdminURL() + "/aip/health/ready")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	leader := site.LeaderOf(t, s.URL())
	leader.Start("one", "hello")
	if res.StatusCode != http.StatusOK {
		t.Errorf("the gateway is not ready: %d", res.StatusCode)
	}
}

// TestDoctorTry proves that an agent is tried beside the gateway that runs, with the settings of the configuration, and
// that the gateway knows nothing of it.
func TestDoctorTry(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		switch {
		case h.Method == "tasks/cancel":
			site.WriteTask(w, h, "canceled", "")
		case strings.Contains(string(h.Body), "which?"):
			site.WriteTask(w, h, "input-required", "")
		default:
			site.WriteTask(w, h, "completed", "done, said "+h.Header.Get("X-Token"))
		}
	})
	made := site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL + ` {
		agent {
			streams off
			header_up X-Token secret-token
		}
	}`}
	s := site.Serve(t, made)
	status, found := s.Doctor(made, "--try", "plan a day")
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
	if n := len(agent.Requests("tasks/send")); n != 1 || len(agent.Requests("tasks/sendSubscribe")) != 0 {
		t.Errorf("the agent was sent %d messages", n)
	}
	if list := s.TasksCommand(0, "list", "--json"); strings.Contains(list, "completed") {
		t.Errorf("the gateway knows the task: %s", list)
	}
	status, found = s.Doctor(made, "--try", "which?")
	if n := len(agent.Requests("tasks/cancel")); n != 1 || status != 0 || !slices.Contains(found, "ok try: it asks") ||
		!slices.Contains(found, "ok try: the task was canceled") {
		t.Errorf("a question: %d, canceled %d times: %s", status, n, strings.Join(found, "\n"))
	}
}

// TestDoctorOnTokens: the keys of issuers are fetched, and what access logs would show is told.
func TestDoctorOnTokens(t *testing.T) {
	t.Parallel()
	agent, good, other := site.NewFakeAgent(t, nil), tokentest.New(t), tokentest.New(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	s := site.New(t)
	keys := s.InDir("keys")
	if code, out, stderr := s.Caddy("aip", "key", "reports", "--file", keys); code != 0 {
		t.Fatal(out, stderr)
	}
	const tail = "\n\t\taudience us\n\t\tallow_networks 127.0.0.0/8 ::1/128\n\t}\n\t"
	with := func(options, header string) site.Config {
		return site.Config{Mode: "verify_if_given", Options: options, Handle: "log\naip_gateway a2a/legacy " + agent.URL +
			" {\ncallers a2a\nidentity {\n\tmtls\n\toidc " + good.URL + " {" + tail +
			"oidc " + gone.URL + " {" + tail +
			"jwt {\n\t\tissuer " + other.URL + "\n\t\tjwks " + other.JWKS + "\n\t\talgorithms EdDSA" + tail +
			"keys " + keys + header + "\n}\n}"}
	}
	status, found := s.Doctor(with("", " {\n\t\theader X-Api-Key\n\t}"))
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
	_, found = s.Doctor(with("", ""))
	if slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, "warning keys") }) {
		t.Errorf("Caddy hides the header, and doctor says %q", found)
	}
	if _, found = s.Doctor(with("servers {\n\tlog_credentials\n}", "")); !slices.Contains(found, logged) {
		t.Errorf("%q, want %s", found, logged)
	}
}
