// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// site is a gateway of its own, in a directory of its own.
type site struct {
	t           testing.TB
	dir         string
	port, admin int
	env         []string
	files       int      // how many files the process may open; 0 for as many as the system lets it
	wrap        []string // the command that runs Caddy's, where there is one
	*process             // the one that was started last
}

// config is a Caddyfile as far as tests differ in it.
type config struct {
	store      string // what stands in the aip option; default: pebble in the site's directory
	notify     string // the settings of the aip option's notify
	mode       string // of client_auth; default require_and_verify
	trust      string // what follows the mode; default: the trust_pool of the shared root
	handle     string // the directives of the site
	otherSites string // further sites
	options    string // further global options
}

func newSite(t testing.TB) *site {
	t.Helper()
	return &site{t: t, dir: t.TempDir(), port: freePort(t), admin: freePort(t)}
}

// serve starts a gateway with a configuration, and waits until all of its sites listen.
func serve(t testing.TB, c config) *site {
	t.Helper()
	s := newSite(t)
	s.start(c)
	return s
}

func (s *site) url() string      { return fmt.Sprintf("https://localhost:%d", s.port) }
func (s *site) adminURL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.admin) }

// withoutLoops are global options by which net/http reads all calls.
const withoutLoops = "\tservers {\n\t\ttimeouts {\n\t\t\tread_body 10m\n\t\t}\n\t}\n"

// text returns the Caddyfile.
func (s *site) text(c config) string {
	pki := certificates(s.t)
	if c.store == "" {
		c.store = "store pebble " + filepath.Join(s.dir, "store")
	}
	if os.Getenv("AIP_E2E_LOOP") == "off" && !strings.Contains(c.options, "servers {") {
		c.options += withoutLoops
	}
	if c.notify != "" {
		c.store += "\n\t\tnotify {\n" + c.notify + "\n\t\t}"
	}
	if c.mode == "" {
		c.mode = "require_and_verify"
	}
	if c.trust == "" {
		c.trust = "trust_pool file " + pki.CA.Cert
	}
	return fmt.Sprintf(`{
	admin 127.0.0.1:%d
	default_bind 127.0.0.1
	auto_https off
	grace_period 10s
	%s
	aip {
		%s
	}
}

https://localhost:%d {
	tls %s %s {
		client_auth {
			mode %s
			%s
		}
	}
	%s
}

%s
`, s.admin, c.options, c.store, s.port, pki.Server.Cert, pki.Server.Key, c.mode, c.trust, c.handle, c.otherSites)
}

// write writes the Caddyfile and returns its path.
func (s *site) write(c config) string {
	s.t.Helper()
	path := filepath.Join(s.dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(s.text(c)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *site) start(c config) {
	s.t.Helper()
	s.run(s.write(c))
}

func (s *site) run(path string) {
	s.t.Helper()
	command := []string{caddyBinary(s.t), "run", "--config", path, "--adapter", "caddyfile"}
	if s.files > 0 {
		command = append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, s.files)}, command...)
	}
	command = append(slices.Clone(s.wrap), command...)
	s.process = startProcess(s.t, s.dir, s.env, command[0], command[1:]...)
	s.waitFor(s.t, "serving initial configuration") // all of its sites listen, and not only the first
}

// caddy runs a command of Caddy's in the site's directory.
func (s *site) caddy(args ...string) (status int, stdout, stderr string) {
	s.t.Helper()
	return runProcess(s.t, s.dir, s.env, caddyBinary(s.t), args...)
}

// reload replaces the configuration. It returns what Caddy has against it, or nothing. With every configuration Caddy
// replaces its own admin endpoint, too, and a reload that reaches the old one at that very moment is cut before it is
// read: it is sent again, as its operator would.
func (s *site) reload(c config) string {
	s.t.Helper()
	path := s.write(c)
	var status int
	var stderr string
	for range 5 {
		status, _, stderr = s.caddy("reload", "--config", path, "--adapter", "caddyfile", "--force",
			"--address", strings.TrimPrefix(s.adminURL(), "http://"))
		cut := strings.Contains(stderr, `/load\": EOF`) || strings.Contains(stderr, "connection reset by peer")
		if status == 0 || !cut {
			break
		}
	}
	if status == 0 {
		return ""
	}
	if stderr == "" {
		s.t.Errorf("a reload failed without a word, with status %d", status)
	}
	return stderr
}
