// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
)

// TestUnservedPaths asks for paths that the handler does not serve, on a site that serves other things as well.
func TestUnservedPaths(t *testing.T) {
	s := newSite(t)
	input := fmt.Sprintf(`{
	admin off
	auto_https off
	aip {
		store pebble %s
	}
}
http://%s {
	aip_gateway /one* %s
	@two path /two /two/*
	aip_gateway @two %s
	handle_path /three/* {
		aip_gateway %s
	}
	handle /four* {
		aip_gateway %s
		rewrite /four/rewritten /four/changed
		respond /four/hello "hello"
		respond /four/empty 204
		error /four/error "broken" 418
	}
	respond /one/file "file"
}
`, s.dir, s.addr, s.partner(""), s.partner("base_path /two\ncallers aip a2a/1.0"), s.partner(""),
		s.partner("base_path /four"))
	config := adapt(t, string(caddyfile.Format([]byte(input))))
	if strings.HasPrefix(config, "error") {
		t.Fatal(config)
	}
	s.mustLoad([]byte(config))

	type answer struct {
		Status int
		Body   string
	}
	missing := func(mount, callers, cards string) answer {
		return answer{404, "nothing is served at this path; the Partner is mounted at " + mount +
			" and takes POST requests there (" + callers + "); by GET it serves " + cards + ", acs, health below it\n"}
	}
	const acs = ".well-known/acs.json, agent_spec.json"
	const all = ".well-known/acs.json, .well-known/agent-card.json, .well-known/agent.json, agent_spec.json"
	for path, want := range map[string]answer{
		"/one/file":       {200, "file"},
		"/one/other":      missing("/one/", "aip/2, aip", acs),
		"/one/rpc/":       {405, "send a request by POST\n"},
		"/onemore":        {200, ""}, // not under the mount point
		"/elsewhere":      {200, ""},
		"/two/other":      missing("/two/", "aip, a2a/1.0, a2a/1.0-rest, a2a/1.0-grpc", all),
		"/three/other":    missing("/three/", "aip/2, aip", acs),
		"/four/hello":     {200, "hello"},
		"/four/empty":     {204, ""},
		"/four/error":     {418, ""},
		"/four/rewritten": missing("/four/", "aip/2, aip", acs),
	} {
		res, err := http.Get("http://" + s.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, answer{res.StatusCode, string(body)}); diff != "" {
			t.Errorf("GET %s (-want +got):\n%s", path, diff)
		}
	}
}
