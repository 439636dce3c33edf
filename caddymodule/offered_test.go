// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// TestOffered: the endpoint in the ACS is the mount point's rpc, below any prefix that was cut off, and the Partner
// takes all that is beside it. acs and health are the Partner's, too, unless the site answers there. What it answers at
// its own /health is not for a mount whose prefix was cut off.
//
// Promise: strangers ask for the health of a Partner
func TestOffered(t *testing.T) {
	s := newSite(t)
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "health"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	input := fmt.Sprintf(`{
	admin off
	auto_https off
	aip {
		store pebble %s
	}
}
http://%s {
	handle_path /stripped/* {
		aip_gateway %s
	}
	handle /uri/* {
		uri strip_prefix /uri
		aip_gateway %s
	}
	handle /base/* {
		aip_gateway %s
	}
	handle_path /both/* {
		aip_gateway %s
	}
	handle_path /cards/* {
		aip_gateway %s
	}
	handle_path /public/* {
		aip_gateway %s
	}
	handle_path /own/* {
		aip_gateway %s
		respond /health "mine" 202
		respond /acs 404
	}
	handle_path /files/* {
		aip_gateway %s
		file_server {
			root %s
		}
	}
	handle_path /rewritten/* {
		route {
			aip_gateway %s
			rewrite * /elsewhere
		}
	}
	respond /health "the site's" 203
}
`, s.dir, s.addr, s.partner(""), s.partner(""), s.partner("base_path /base"), s.partner("base_path /one"),
		s.partner("callers aip/2 a2a/0.3"),
		s.partner("public_url https://agent.example/two/"), s.partner(""), s.partner(""), files, s.partner(""))
	config := adapt(t, string(caddyfile.Format([]byte(input))))
	if strings.HasPrefix(config, "error") {
		t.Fatal(config)
	}
	s.mustLoad([]byte(config))

	type answer struct {
		Status   int
		Type     string
		Body     string // of an ACS or a card, its endpoint
		NoStored bool
	}
	ask := func(method, path string) (a answer) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.addr+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		a = answer{res.StatusCode, res.Header.Get("Content-Type"), string(body),
			res.Header.Get("Cache-Control") == "no-store"}
		for _, at := range gjson.GetManyBytes(body, "endPoints.0.url", "url") {
			if at.Exists() {
				a.Body = at.Str
			}
		}
		return a
	}
	const text = "text/plain; charset=utf-8"
	acs := func(endpoint string) answer { return answer{200, "application/json", endpoint, false} }
	here := func(mount string) answer { return acs("http://" + s.addr + mount + "/rpc") }
	healthy := answer{200, "application/json", `{"status":"ok"}` + "\n", true}
	for path, want := range map[string]answer{
		"/stripped/acs":                   here("/stripped"),
		"/stripped/.well-known/acs.json":  here("/stripped"),
		"/stripped/agent_spec.json":       here("/stripped"),
		"/stripped/health":                healthy,
		"/uri/acs":                        here("/uri"),
		"/uri/.well-known/acs.json":       here("/uri"),
		"/base/acs":                       here("/base"),
		"/base/.well-known/acs.json":      here("/base"),
		"/base/health":                    healthy,
		"/both/one/acs":                   here("/both/one"),
		"/cards/acs":                      here("/cards"),
		"/cards/.well-known/agent.json":   acs("http://" + s.addr + "/cards"),
		"/public/acs":                     acs("https://agent.example/two/rpc"),
		"/public/.well-known/acs.json":    acs("https://agent.example/two/rpc"),
		"/own/acs":                        {404, "", "", false},
		"/own/health":                     {202, text, "mine", false},
		"/own/.well-known/acs.json":       here("/own"),
		"/files/health":                   {200, "", "a file", false},
		"/files/acs":                      here("/files"),
		"/rewritten/health":               healthy,
		"/health":                         {203, text, "the site's", false},
		"/rewritten/acs":                  here("/rewritten"),
		"/rewritten/.well-known/acs.json": here("/rewritten"),
	} {
		if diff := cmp.Diff(want, ask(http.MethodGet, path)); diff != "" {
			t.Errorf("GET %s (-want +got):\n%s", path, diff)
		}
	}
	if got := ask(http.MethodHead, "/base/health"); got != (answer{200, "application/json", "", true}) {
		t.Errorf("HEAD /base/health: %+v", got)
	}
	for _, path := range []string{"acs", "health"} {
		if got := ask(http.MethodPost, "/base/"+path); got.Status != http.StatusNotFound {
			t.Errorf("POST /base/%s: %+v", path, got)
		}
	}
	for _, path := range []string{"rpc", "stream", "group", "group/rpc", "notification/set", "notification/start",
		"notification/get", "notification/delete"} {
		for _, mount := range []string{"stripped", "uri", "base", "both/one"} {
			if got := ask(http.MethodPost, "/"+mount+"/"+path); got.Status != http.StatusOK {
				t.Errorf("POST /%s/%s: %+v", mount, path, got)
			}
		}
	}
	running().Tasks.Process().Drain()
	if got := ask(http.MethodGet, "/base/health"); got != (answer{503, "application/json",
		`{"status":"unavailable"}` + "\n", true}) {
		t.Errorf("while it is drained: %+v", got)
	}
}
