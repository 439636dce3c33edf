// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestMountBelowACutPath: where handlers before the Partner cut off the begin of the path, its mount point has it, in
// cards as in what health, the overview and the console show.
func TestMountBelowACutPath(t *testing.T) {
	for name, tc := range map[string]struct{ block, path string }{
		"handle_path":  {"handle_path /x/* {\naip_gateway BODY\n}", "/x"},
		"strip_prefix": {"handle /x/y/* {\nuri strip_prefix /x\nuri strip_prefix /y/\naip_gateway BODY\n}", "/x/y"},
		"nested":       {"handle_path /x/* {\nhandle_path /y/* {\naip_gateway BODY\n}\n}", "/x/y"},
		"of another":   {"handle_path /y/* {\nrespond 404\n}\nhandle /x/* {\naip_gateway /x* BODY\n}", "/x"},
		"with a base":  {"handle_path /x/* {\naip_gateway /y* BODY\n}", "/x/y"},
		"at the root":  {"aip_gateway BODY", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			body := "{\nagent a2a/legacy " + s.agent + "\ncallers aip a2a\nidentity off\n}"
			config := adapt(t, string(caddyfile.Format(fmt.Appendf(nil,
				"{\nadmin off\nauto_https off\naip {\nstore memory\n}\n}\nhttp://%s {\naip_health\n%s\n}\n", s.addr,
				strings.Replace(tc.block, "BODY", body, 1)))))
			if strings.HasPrefix(config, "error") {
				t.Fatal(config)
			}
			s.mustLoad([]byte(config))
			mount := "http://" + s.addr + tc.path
			if _, h := s.health(adminapi.HealthReady); len(h.Agents) != 1 || h.Agents[0].URL != mount {
				t.Errorf("health has %+v, want the URL %s", h.Agents, mount)
			}
			res, err := http.Get(mount + "/.well-known/agent-card.json")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if card, _ := io.ReadAll(res.Body); !strings.Contains(string(card), `"url":"`+mount+`"`) {
				t.Errorf("the card, by %d: %s", res.StatusCode, card)
			}
		})
	}
}
