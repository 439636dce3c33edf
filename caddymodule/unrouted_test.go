// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestWarnOfUnrouted loads sites that answer every request, and others, and counts the warnings.
func TestWarnOfUnrouted(t *testing.T) {
	const gateway = "aip_gateway /one* http://127.0.0.1:1\n"
	for name, c := range map[string]struct {
		site string
		want int
	}{
		"nothing else":          {gateway, 1},
		"two Partners":          {gateway + "aip_gateway /two* http://127.0.0.1:2\n", 1},
		"a handler that ends":   {gateway + "respond 404\n", 0},
		"other paths":           {gateway + "respond /two 404\nheader X-Site one\nencode gzip\n", 1},
		"a default":             {"handle /one* {\n" + gateway + "}\nhandle {\nrespond 404\n}\n", 0},
		"no default":            {"handle /one* {\n" + gateway + "}\nhandle /two {\nrespond 404\n}\n", 1},
		"at the root":           {"aip_gateway http://127.0.0.1:1\n", 0},
		"below a stripped path": {"handle_path /one/* {\naip_gateway http://127.0.0.1:1\n}\n", 1},
	} {
		s := newSite(t)
		_, out := s.loadLogged("", "http://"+s.addr+" {\n"+c.site+"}\n")
		if got := bytes.Count(out, []byte("respond")); got != c.want {
			t.Errorf("%s: there are %d warnings, want %d:\n%s", name, got, c.want, out)
		}
	}
}

// loadLogged loads sites of a Caddyfile, whose global options have some more. It returns the configuration, and what
// was logged meanwhile.
func (s *site) loadLogged(options, sites string) (config string, log []byte) {
	s.t.Helper()
	config, log, err := s.tryLogged(options, sites)
	if err != nil {
		s.t.Fatal(err)
	}
	return config, log
}

// tryLogged is loadLogged of what may be refused.
func (s *site) tryLogged(options, sites string) (config string, log []byte, refused error) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "log")
	config = adapt(s.t, string(caddyfile.Format(fmt.Appendf(nil,
		"{\nadmin off\n%slog {\noutput file %s\n}\naip {\nstore memory\n}\n}\n%s", options, path, sites))))
	if strings.HasPrefix(config, "error") {
		s.t.Fatalf("%s: of the sites\n%s", config, sites)
	}
	refused = s.load([]byte(config))
	log, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	return config, log, refused
}
