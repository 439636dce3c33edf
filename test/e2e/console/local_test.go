// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/browser"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestConsoleAtALocalPort opens the console of caddy aip console, which needs no site: it is live, changes what it may,
// refuses the rest and other hosts, and ends when it is asked to, although a browser follows a stream.
func TestConsoleAtALocalPort(t *testing.T) {
	t.Parallel()
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + site.AskingAgent(t).URL})
	s.Awake()
	address := fmt.Sprintf("127.0.0.1:%d", site.FreePort(t))
	admin := s.AdminAddress()
	served := site.StartProcess(t, t.TempDir(), nil, site.CaddyBinary(t), "aip", "console", "--listen", address,
		"--address", admin, "--allow", "cancel")
	served.WaitForPort(t, address)
	served.WaitFor(t, "\n") // it listens before it says so
	url := "http://" + address + "/aip/console/"
	if said := served.Out.String(); said != "The console is at "+url+"\n" {
		t.Errorf("the command prints %q", said)
	}

	b := browser.Start(t)
	withCredentials := b.Open(1200, 800)
	withCredentials.Go("http://ann:secret@" + address + "/aip/console/#/tasks")
	withCredentials.WaitText("No task yet.")
	p := b.Open(1200, 800)
	p.Go("http://" + address + "/#/tasks")
	p.WaitText("No task yet.")
	leader := site.LeaderOf(t, s.URL())
	leader.Start("a", "ask me")
	p.Wait(`document.querySelectorAll("tbody tr").length === 1`)
	p.Press("j", "Enter")
	p.Click("main button.act")
	p.Click("dialog[open] button[type=submit]")
	p.Wait(`document.querySelector(".facts .badge")?.textContent === "canceled"`)
	if state := leader.Get("a").Status.State; state != "canceled" {
		t.Errorf("the Leader gets %s", state)
	}
	leader.Start("b", "hello")
	p.Press("t")
	p.Wait(`document.querySelectorAll("tbody tr").length === 2`)
	site.WantGoodPage(t, p, url)

	for _, tc := range []struct {
		method, path, host string
		header             string // a name and a value
		status             int
		want               string
	}{
		{"GET", "/aip/tasks", address, "", 200, `"task":"a"`},
		{"GET", "/aip/tasks?state=odd", address, "", 400, "must be pending or a state of AIP"},
		{"POST", "/aip/tasks/cancel", address, "Origin: https://evil.example", 403, "another site"},
		{"GET", "/aip/tasks", address, "Sec-Fetch-Site: cross-site", 403, "another site"},
		{"POST", "/aip/tasks/fail", address, "", 403, "no allow fail"},
		{"POST", "/aip/store/backup", address, "", 200, "<title>AIP console</title>"}, // no route of the page
		{"GET", "/config/", address, "", 200, "<title>AIP console</title>"},           // nor this
		{"GET", "/aip/tasks", "evil.example", "", 421, "that it has printed"},
		{"GET", "/aip/console/", "evil.example:80", "", 421, "that it has printed"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://"+address+tc.path, strings.NewReader("{}"))
		site.NoError(t, err)
		req.Host = tc.host
		if name, value, ok := strings.Cut(tc.header, ": "); ok {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		site.NoError(t, err)
		body, err := io.ReadAll(res.Body)
		site.NoError(t, err, res.Body.Close())
		if res.StatusCode != tc.status || !strings.Contains(string(body), tc.want) {
			t.Errorf("%s %s of %s, %s, is answered with %d %s, want %d %s",
				tc.method, tc.path, tc.host, tc.header, res.StatusCode, body, tc.status, tc.want)
		}
	}

	s.Kill()
	p.WaitText("is the gateway running?")
	s.Run(s.Dir + "/Caddyfile")
	p.Wait(`document.querySelector("main .error") === null`)
	served.Stop(t)
	if served.Err != nil {
		t.Errorf("the command ends with %v", served.Err)
	}

	for args, want := range map[string]string{
		"--allow all":            "must have some of",
		"--listen 0.0.0.0:0":     "must be a loopback address",
		"--listen 203.0.113.1:0": "assign requested address",
	} {
		status, _, stderr := s.Caddy(append([]string{"aip", "console", "--address", admin}, strings.Fields(args)...)...)
		if status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("caddy aip console %s ends with %d and says %q, want %q", args, status, stderr, want)
		}
	}
}
