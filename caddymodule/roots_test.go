// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
)

// TestRoots changes the file of a pool: what is taken out counts no more, what is put back does again, and what cannot
// be read changes nothing.
func TestRoots(t *testing.T) {
	var pem [2][]byte
	for i := range pem {
		var err error
		if pem[i], err = os.ReadFile(makePKI(t, devpki.Options{}).CA.Cert); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "roots.pem")
	write := func(parts ...[]byte) {
		t.Helper()
		if err := os.WriteFile(file, bytes.Join(parts, []byte("\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := new(RootPool).Provision(caddy.Context{}); err == nil {
		t.Error("a pool without files is taken")
	}
	write(pem[0])
	p := &RootPool{Files: []string{file}}
	if err := p.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Cleanup() })
	chains := [][]*x509.Certificate{{p.roots[0].cert}}
	for _, step := range []struct {
		name   string
		change func()
		counts bool
		log    string // one of its lines; empty for none
	}{
		{"nothing", func() {}, true, ""},
		{"another root", func() { write(pem[0], pem[1]) }, true, "not in use yet"},
		{"another root, again", func() {}, true, ""},
		{"taken out", func() { write(pem[1]) }, false, "taken out of its file, and"},
		{"put back", func() { write(pem[0]) }, true, "there again"},
		{"empty", func() { write(nil) }, true, "cannot be read again"},
		{"missing", func() { os.Remove(file) }, true, "cannot be read again"},
		{"taken out after that", func() { write(pem[1]) }, false, "taken out of its file, and"},
	} {
		var log bytes.Buffer
		step.change()
		roots.read(slog.New(slog.NewTextHandler(&log, nil)))
		if err := (&trust{new(App)}).Check(t.Context(), chains, nil); (err == nil) != step.counts {
			t.Errorf("%s: the certificate is judged %v", step.name, err)
		}
		if (step.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), step.log) {
			t.Errorf("%s: the log is %q, want %q", step.name, log.String(), step.log)
		}
	}
}
