// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Site is a gateway of its own, in a directory of its own.
type Site struct {
	T           testing.TB // of the site's test
	Dir         string     // with all of the site's files
	Port, Admin int        // of the site
	Env         []string   // more variables of the process
	Files       int        // how many files the process may open; 0 for as many as the system lets it
	wrap        []string   // the command that runs Caddy's, where there is one
	*Process               // the one that was started last
}

// Config is a Caddyfile as far as tests differ in it.
type Config struct {
	Store      string // what stands in the aip option; default: pebble in the site's directory
	Notify     string // the settings of the aip option's notify
	Mode       string // of client_auth; default require_and_verify
	Trust      string // what follows the mode; default: the trust_pool of the shared root
	Handle     string // the directives of the site
	OtherSites string // further sites
	Options    string // further global options
}

// New returns a site with a directory and ports of its own, not started.
func New(t testing.TB) *Site {
	t.Helper()
	return &Site{T: t, Dir: t.TempDir(), Port: FreePort(t), Admin: FreePort(t)}
}

// Serve starts a gateway with a configuration, and waits until all of its sites listen.
func Serve(t testing.TB, c Config) *Site {
	t.Helper()
	s := New(t)
	s.Start(c)
	return s
}

// URL returns the URL of the site.
func (s *Site) URL() string { return fmt.Sprintf("https://localhost:%d", s.Port) }

// AdminAddress returns the address of the admin API.
func (s *Site) AdminAddress() string { return fmt.Sprintf("127.0.0.1:%d", s.Admin) }

// AdminURL returns the URL of the admin API.
func (s *Site) AdminURL() string { return "http://" + s.AdminAddress() }

// InDir names a file in the directory of a site.
func (s *Site) InDir(name string) string { return filepath.Join(s.Dir, name) }

// WithoutLoops are global options by which net/http reads all calls.
const WithoutLoops = "\tservers {\n\t\ttimeouts {\n\t\t\tread_body 10m\n\t\t}\n\t}\n"

// Text returns the Caddyfile.
func (s *Site) Text(c Config) string {
	pki := Certificates(s.T)
	if c.Store == "" {
		c.Store = "store pebble " + filepath.Join(s.Dir, "store")
	}
	if os.Getenv("AIP_E2E_LOOP") == "off" && !strings.Contains(c.Options, "servers {") {
		c.Options += WithoutLoops
	}
	if c.Notify != "" {
		c.Store += "\n\t\tnotify {\n" + c.Notify + "\n\t\t}"
	}
	if c.Mode == "" {
		c.Mode = "require_and_verify"
	}
	if c.Trust == "" {
		c.Trust = "trust_pool file " + pki.CA.Cert
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
`, s.Admin, c.Options, c.Store, s.Port, pki.Server.Cert, pki.Server.Key, c.Mode, c.Trust, c.Handle, c.OtherSites)
}

// Write writes the Caddyfile and returns its path.
func (s *Site) Write(c Config) string {
	s.T.Helper()
	path := filepath.Join(s.Dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(s.Text(c)), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return path
}

// Start writes the Caddyfile of a configuration, and starts the gateway with it.
func (s *Site) Start(c Config) {
	s.T.Helper()
	s.Run(s.Write(c))
}

// Run starts the gateway with a Caddyfile, and waits until all of its sites listen.
func (s *Site) Run(path string) {
	s.T.Helper()
	command := []string{CaddyBinary(s.T), "run", "--config", path, "--adapter", "caddyfile"}
	if s.Files > 0 {
		command = append([]string{"/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, s.Files)}, command...)
	}
	command = append(slices.Clone(s.wrap), command...)
	s.Process = StartProcess(s.T, s.Dir, s.Env, command[0], command[1:]...)
	s.WaitFor(s.T, "serving initial configuration") // all of its sites listen, and not only the first
}

// Caddy runs a command of Caddy's in the site's directory.
func (s *Site) Caddy(args ...string) (status int, stdout, stderr string) {
	s.T.Helper()
	return RunProcess(s.T, s.Dir, s.Env, CaddyBinary(s.T), args...)
}

// Command runs a command of caddy aip, demands its exit status, and returns what it prints.
func (s *Site) Command(want int, args ...string) (stdout, stderr string) {
	s.T.Helper()
	status, stdout, stderr := s.Caddy(append([]string{"aip"}, args...)...)
	if status != want {
		s.T.Errorf("caddy aip %q ends with %d, want %d: %s%s", args, status, want, stdout, stderr)
	}
	return stdout, stderr
}

// LiveCommand is Command with the address of the gateway's admin API.
func (s *Site) LiveCommand(want int, args ...string) (stdout, stderr string) {
	s.T.Helper()
	return s.Command(want, append(args, "--address", s.AdminAddress())...)
}

// Reload replaces the configuration. It returns what Caddy has against it, or nothing. With every configuration Caddy
// replaces its own admin endpoint, too, and a reload that reaches the old one at that very moment is cut before it is
// read: it is sent again, as its operator would.
func (s *Site) Reload(c Config) string {
	s.T.Helper()
	path := s.Write(c)
	var status int
	var stderr string
	for range 5 {
		status, _, stderr = s.Caddy("reload", "--config", path, "--adapter", "caddyfile", "--force",
			"--address", s.AdminAddress())
		cut := strings.Contains(stderr, `/load\": EOF`) || strings.Contains(stderr, "connection reset by peer")
		if status == 0 || !cut {
			break
		}
	}
	if status == 0 {
		return ""
	}
	if stderr == "" {
		s.T.Errorf("a reload failed without a word, with status %d", status)
	}
	return stderr
}
