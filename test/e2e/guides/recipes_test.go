// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// recipe is a section of docs/recipes.md that a reader follows on this machine: hosts are ports, files are those of
// `caddy aip pki`, and the agents are sample agents.
type recipe struct {
	*guide
	port, metrics int
}

// follow runs the Caddyfile of a section.
func follow(t *testing.T, section string, more ...string) *recipe {
	t.Helper()
	r := &recipe{guide: openPage(t, "recipes.md", map[string]int{"9101": site.FreePort(t), "9102": site.FreePort(t)}),
		port: site.FreePort(t), metrics: site.FreePort(t)}
	text := strings.NewReplacer(append(more,
		"{\n\taip {\n", "{\n\tauto_https disable_redirects\n\tskip_install_trust\n\taip {\n",
		"/var/lib/caddy/aip", "store", "10.0.0.5", "127.0.0.1", ":9180", fmt.Sprintf(":%d", r.metrics),
		"agents.example.com {", fmt.Sprintf("https://localhost:%d {", r.port),
		"agent.example.com {", fmt.Sprintf("https://localhost:%d {", r.port),
		"/etc/caddy/partner.pem", ".pki/server.pem", "/etc/caddy/partner-key.pem", ".pki/server-key.pem",
		"/etc/caddy/leaders-ca.pem", ".pki/ca.pem",
	)...).Replace(r.block(section, 0))
	r.enter("./caddy aip pki")
	for _, port := range []string{"9101", "9102"} {
		agent := fmt.Sprintf("127.0.0.1:%d", r.ports[port])
		r.open("./caddy aip sample-agent --listen "+agent).WaitForPort(t, agent)
	}
	r.configure(text)
	r.open("./caddy run").WaitFor(t, "serving initial configuration")
	return r
}

// call returns a command that starts a task.
func (r *recipe) call(path string) string {
	return fmt.Sprintf("./caddy aip call https://localhost:%d%s start hello", r.port, path)
}

func TestRecipeAgents(t *testing.T) {
	t.Parallel()
	r := follow(t, "Several agents")
	for _, name := range []string{"planner", "archive"} {
		r.enter(r.call("/"+name+"/"), "hello")
		r.enter("./caddy aip tasks list --partner "+name, name)
	}
}

func TestRecipeMetrics(t *testing.T) {
	t.Parallel()
	r := follow(t, "Metrics with traces")
	r.enter(r.call(""), "hello")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:%d/metrics", r.metrics), http.NoBody)
	site.NoError(t, err)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := http.DefaultClient.Do(request)
	site.NoError(t, err)
	defer resp.Body.Close()
	var body strings.Builder
	site.NoError(t, resp.Write(&body))
	for _, want := range []string{`aip_calls_total{[^}]*agent="planner"`, `# {[^}]*trace_id="`} {
		if !regexp.MustCompile(want).MatchString(body.String()) {
			t.Errorf("the metrics have no %s:\n%s", want, body.String())
		}
	}
}

func TestRecipeLimits(t *testing.T) {
	t.Parallel()
	r := follow(t, "Rate limits", "calls 10/s burst 20", "calls 1/h burst 2")
	r.enter(r.call("")+"\n"+r.call(""), "hello")
	r.enter("! "+r.call("")+" 2>&1", "leader")
}

// TestRecipeBrowser: a browser may call from the page that the recipe names, and reads what it is answered, also that
// it must prove who it is.
func TestRecipeBrowser(t *testing.T) {
	t.Parallel()
	r := follow(t, "Callers in a browser", "\theader {\n", "\ttls .pki/server.pem .pki/server-key.pem\n\theader {\n")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	for _, c := range []struct {
		method, path string
		status       int
		allowed      string
	}{
		{http.MethodOptions, "/", 204, "GET, POST, DELETE"},
		{http.MethodOptions, "/process", 204, "GET, POST, DELETE"},
		{http.MethodPost, "/", 401, ""},
		{http.MethodPost, "/process", 401, ""},
		{http.MethodGet, "/.well-known/agent-card.json", 200, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method,
			fmt.Sprintf("https://localhost:%d%s", r.port, c.path),
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}`))
		site.NoError(t, err)
		request.Header.Set("Origin", "https://app.example.com")
		request.Header.Set("Authorization", "Bearer ") // as interfaces of the Agent API send it before they have a token
		resp, err := client.Do(request)
		site.NoError(t, err)
		resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != c.status || h.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
			h.Get("Access-Control-Allow-Methods") != c.allowed || !slices.Contains(h["Vary"], "Origin") {
			t.Errorf("%s %s: %d %v", c.method, c.path, resp.StatusCode, h)
		}
	}
}
