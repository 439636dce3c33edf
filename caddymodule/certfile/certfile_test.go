// SPDX-License-Identifier: Apache-2.0

package certfile

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
)

// TestFiles: what is wrong with a file is said in the words of its option.
func TestFiles(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	dir, repl := t.TempDir(), caddy.NewReplacer()
	t.Setenv("CERTFILE_TEST", filepath.Dir(pki.CA.Cert))
	named := "{env.CERTFILE_TEST}/" + filepath.Base(pki.CA.Cert)
	empty, damaged := filepath.Join(dir, "empty.pem"), filepath.Join(dir, "damaged.pem")
	for file, text := range map[string]string{
		empty: "none", damaged: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := filepath.Join(dir, "none.pem")
	readAll := func(file string) error { _, err := ReadAll(repl, []string{file}); return err }
	readPool := func(file string) error { _, err := ReadPool(repl, []string{file}); return err }
	readRoots := func(file string) error { _, err := ReadRoots([]string{file}); return err }
	readOne := func(file string) error { _, err := Read(file); return err }
	readLists := func(file string) error { _, err := ReadLists(file); return err }
	for _, tt := range []struct {
		read       func(string) error
		file, want string // empty for no error
	}{
		{readOne, named, ""}, {readAll, named, ""}, {readPool, named, ""}, {readRoots, named, ""},
		{readOne, none, "it cannot be read (open " + none},
		{readOne, empty, "it holds no certificate in PEM; name the right file"},
		{readOne, damaged, "it holds a damaged certificate ("},
		{readRoots, empty, "ca: " + empty + ": it holds no certificate in PEM; name the right file"},
		{readAll, "{env.CERTFILE_NONE}", "the name of a file has a placeholder without a value: {env.CERTFILE_NONE}"},
		{readAll, empty, empty + ": "},
		{readPool, none, "tls ca: open " + none},
		{readLists, none, "it cannot be read (open " + none},
		{readLists, named, "it holds no list of revoked certificates ("},
	} {
		err := tt.read(tt.file)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.file, err, tt.want)
		}
	}
	if pool, err := ReadPool(repl, nil); pool != nil || err != nil {
		t.Errorf("without files: %v, %v", pool, err)
	}
}

// TestPresent: a certificate is read for each connection, and needs its key.
func TestPresent(t *testing.T) {
	pki := devpkitest.Make(t, devpki.Options{})
	repl, c := caddy.NewReplacer(), new(tls.Config)
	if err := Present(c, repl, "", ""); err != nil || c.GetClientCertificate != nil {
		t.Errorf("without a certificate: %v", err)
	}
	if err := Present(c, repl, pki.Leader.Cert, ""); err != ErrNoPair {
		t.Errorf("without a key: %v", err)
	}
	if err := Present(c, repl, pki.Leader.Cert, pki.CA.Key); err == nil ||
		!strings.HasPrefix(err.Error(), "tls client_cert: ") || strings.Contains(err.Error(), "tls: ") {
		t.Errorf("with the key of another: %v", err)
	}
	if err := Present(c, repl, pki.Leader.Cert, pki.Leader.Key); err != nil {
		t.Fatal(err)
	}
	if pair, err := c.GetClientCertificate(nil); err != nil || len(pair.Certificate) == 0 {
		t.Errorf("the certificate is not presented: %v", err)
	}
	if err := os.Remove(pki.Leader.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetClientCertificate(nil); err == nil {
		t.Error("a key that is gone is presented")
	}
}

// TestEndsSoon: 14 days, or a sixth of a short life.
func TestEndsSoon(t *testing.T) {
	const day = 24 * time.Hour
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for life, soon := range map[time.Duration]time.Duration{365 * day: 351 * day, 6 * day: 5 * day} {
		for at, want := range map[time.Duration]bool{soon - 1: false, soon: true, life + day: true} {
			if got := EndsSoon(from, from.Add(life), from.Add(at)); got != want {
				t.Errorf("of %s, after %s: %v", life, at, got)
			}
		}
	}
}
