// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// consoleOf serves a gateway in front of an agent, with a console that may do what allow says, and returns it with the
// URL of the console.
func consoleOf(t testing.TB, agent, allow string) (s *site.Site, url string) {
	t.Helper()
	port := site.FreePort(t)
	if allow != "" {
		allow = "{\nallow " + allow + "\n}"
	}
	s = site.Serve(t, site.Config{
		Handle:     "aip_gateway a2a/legacy " + agent,
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nbind 127.0.0.1\naip_console %s\n}", port, allow),
	})
	s.Awake()
	return s, fmt.Sprintf("http://127.0.0.1:%d/aip/console/", port)
}

func TestConsoleShowsTasks(t *testing.T) {
	t.Parallel()
	s, url := consoleOf(t, site.AskingAgent(t).URL, "")
	p := browser.Start(t).Open(1200, 800)
	p.Go(url + "#/tasks")
	p.WaitText("No task yet. Start one with: caddy aip call")

	// What happens is shown without a reload.
	leader := site.LeaderOf(t, s.URL())
	leader.Start("a", "hello")
	p.Wait(`document.querySelectorAll("tbody tr").length === 1`)
	p.WaitText("awaiting-completion")
	leader.Complete("a")
	p.Wait(`document.querySelector("tbody .badge").textContent === "completed"`)
	leader.Start("b", "ask me")
	p.Wait(`document.querySelectorAll("tbody tr").length === 2`)

	// One task by the keyboard: its states, its events, and their contents when they are unfolded.
	p.Press("j", "Enter") // the row that has changed last is the first one
	p.WaitText("awaiting-input")
	p.Wait(`document.querySelector("h1").textContent === "b"`)
	p.Wait(`document.querySelectorAll(".bar").length >= 3`)
	p.Wait(`!document.body.innerText.includes('"dataItems"')`)
	p.Press("j", "Enter")
	p.WaitText(`"stateChangedAt"`)
	leader.Cancel("b")
	p.Wait(`[...document.querySelectorAll(".states .badge")].at(-1).textContent === "canceled"`)
	picture(t, p, "task")

	// The filter.
	p.Press("t")
	p.Wait(`document.querySelectorAll("tbody tr").length === 2`)
	picture(t, p, "tasks")
	p.Eval(`(() => { const s = document.querySelector("select[name=state]"); s.value = "completed";
		s.dispatchEvent(new Event("change", {bubbles: true})) })()`, nil)
	p.Wait(`document.querySelectorAll("tbody tr").length === 1`)
	p.Press("/")
	p.Eval(`document.querySelector("input[name=search]").focus()`, nil)
	p.Type("none")
	p.Press("Enter")
	p.WaitText("No task matches the filter. There are 1 completed, 1 canceled; the agents are 127.0.0.1:")
	p.Go(strings.Replace(url, "console/", "console/#/task?task=none&leader=x&partner=y", 1))
	p.WaitText("there is no such task; it may have ended and been dropped")
	site.WantGoodPage(t, p, url, "404")
}

// TestConsoleIsReadOnly: a console may only read unless its operator allows more, serves no other route of the admin
// API, and takes nothing from other sites.
func TestConsoleIsReadOnly(t *testing.T) {
	t.Parallel()
	_, reading := consoleOf(t, site.AskingAgent(t).URL, "")
	_, changing := consoleOf(t, site.AskingAgent(t).URL, "cancel")
	canceled := `{"partner":"p","leader":"l","task":"t"}`
	for _, tc := range []struct {
		base, method, path, body string
		header                   string // a name and a value
		status                   int
		want                     string
	}{
		{reading, "GET", "", "", "", 200, "<title>AIP console</title>"},
		{reading, "POST", "", "", "", 405, "use GET"},
		{reading, "GET", "console.js", "", "", 200, "import"},
		{reading, "GET", "none.js", "", "", 404, "no such file"},
		{reading, "GET", "../../../etc/passwd", "", "", 200, ""}, // a site without a handler for it
		{reading, "GET", "permissions.json", "", "", 200, "[]"},
		{changing, "GET", "permissions.json", "", "", 200, `["cancel"]`},
		{reading, "GET", "../tasks", "", "", 200, `{"tasks":[]}`},
		{reading, "GET", "../tasks?state=odd", "", "", 400, "must be pending or a state of AIP"},
		{reading, "POST", "../tasks/cancel", canceled, "", 403, "allow cancel"},
		{reading, "POST", "../deliveries/replay?status=dead", "", "", 403, "allow replay"},
		{reading, "POST", "../endpoints/disable", "", "", 403, "allow endpoints"},
		{reading, "POST", "../groups/leave", "", "", 403, "allow leave"},
		{changing, "POST", "../groups/leave", "", "", 403, "allow leave"},
		{changing, "POST", "../try", "", "", 403, "allow try"},
		{changing, "POST", "../tasks/cancel", canceled, "", 404, "there is no such task"},
		{changing, "POST", "../tasks/cancel", canceled, "Sec-Fetch-Site: cross-site", 403, "another site"},
		{changing, "POST", "../tasks/cancel", canceled, "Sec-Fetch-Site: same-site", 403, "another site"},
		{changing, "POST", "../tasks/cancel", canceled, "Sec-Fetch-Site: same-origin", 404, "there is no such task"},
		{changing, "POST", "../tasks/cancel", canceled, "Origin: https://evil.example", 403, "another site"},
		{changing, "POST", "../tasks/cancel", canceled, "Origin: null", 403, "another site"},
		{changing, "GET", "../tasks", "", "Sec-Fetch-Site: cross-site", 403, "another site"},
		{changing, "GET", "../health/live", "", "", 200, ""},           // no route of the page
		{changing, "POST", "../../load", "", "", 200, ""},              // nor of the gateway
		{changing, "GET", "../../config/", "", "", 200, ""},            // nor this
		{changing, "GET", "../../aip/console", "", "", 200, "<title>"}, // redirected
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, tc.base+tc.path, strings.NewReader(tc.body))
		site.NoError(t, err)
		req.URL = req.URL.JoinPath() // as a browser resolves it
		if name, value, ok := strings.Cut(tc.header, ": "); ok {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		site.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		site.NoError(t, err, res.Body.Close())
		if res.StatusCode != tc.status || !strings.Contains(string(body), tc.want) || tc.want == "" && len(body) > 0 {
			t.Errorf("%s %s %s is answered with %d %s, want %d %s",
				tc.method, req.URL, tc.header, res.StatusCode, body, tc.status, tc.want)
		}
		if tc.want == "" {
			continue
		}
		policy := res.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; ") || strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || res.Header.Get("X-Content-Type-Options") != "nosniff" ||
			res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s %s has the header %v", tc.method, req.URL, res.Header)
		}
	}
}

// picture writes a screenshot for the documentation if AIP_PICTURES is set.
func picture(t *testing.T, p *browser.Page, name string) {
	t.Helper()
	if os.Getenv("AIP_PICTURES") == "" {
		return
	}
	site.NoError(t, os.MkdirAll("../../../docs/images", 0o755),
		os.WriteFile(filepath.Join("../../../docs/images", name+".png"), p.Screenshot(), 0o644))
}
