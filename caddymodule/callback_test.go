// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
)

// TestPushesAreMasked: the access log of a site shows pushes of agents without the address and the token of the turn.
// Promise: secrets in logs
func TestPushesAreMasked(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(s.dir, "access.log")
	s.mustLoad([]byte(adapt(t, string(caddyfile.Format(fmt.Appendf(nil, `{
	admin off
	auto_https off
	servers {
		log_credentials
	}
	aip {
		store memory
	}
}
http://%s {
	log {
		output file %s
	}
	aip_callback /agents/*
	aip_gateway a2a/legacy %s {
		identity off
	}
}
`, s.addr, file, s.agent))))))
	const secret = "a-secret"
	send := func(path string, fields ...string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.addr+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range fields {
			r.Header.Set(name, secret)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	send("/agents/"+secret+"?validationToken="+secret, append(callback.TokenFields, "Authorization")...)
	send("/other")
	var lines []string
	asynctest.Eventually(t, "both requests are logged", func() bool {
		content, _ := os.ReadFile(file)
		lines = strings.Split(strings.TrimSpace(string(content)), "\n")
		return len(lines) == 2
	})
	var line struct {
		Msg     string
		Status  int
		Request struct {
			Method, URI string
			Headers     map[string][]string
		}
	}
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(lines[0], secret) || line.Msg != "handled request" || line.Status != http.StatusNotFound ||
		line.Request.Method != "POST" || line.Request.URI != "/agents/REDACTED" ||
		len(line.Request.Headers["X-A2a-Notification-Token"]) != 1 {
		t.Errorf("the push is logged as %s", lines[0])
	}
	if !strings.Contains(lines[1], `"uri":"/other"`) {
		t.Errorf("another request is logged as %s", lines[1])
	}
}
