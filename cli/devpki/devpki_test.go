// SPDX-License-Identifier: Apache-2.0

package devpki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
)

const givenAIC = identity.AIC("10001000011K912345E789ABCDEF2353")

func mustMake(t *testing.T, o Options) *PKI {
	t.Helper()
	p, err := Make(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMakeFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", ".pki")
	p := mustMake(t, Options{Dir: dir})

	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = info.Mode()
	}
	want := map[string]fs.FileMode{
		"ca.pem": 0o644, "ca-key.pem": 0o600,
		"server.pem": 0o644, "server-key.pem": 0o600,
		"leader.pem": 0o644, "leader-key.pem": 0o600,
		"leader-v1.pem": 0o644, "leader-v1-key.pem": 0o600,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	forms := []identity.Form{p.Server.AIC.Form(), p.Leader.AIC.Form(), p.LeaderV1.AIC.Form()}
	if diff := cmp.Diff([]identity.Form{identity.FormV2, identity.FormV2, identity.FormV1}, forms); diff != "" {
		t.Errorf("forms (-want +got):\n%s", diff)
	}
	for _, f := range p.Files()[1:] {
		if _, err := (identity.Checker{Salt: Salt}).Parse(string(f.AIC)); err != nil {
			t.Errorf("%s: %v", f.Cert, err)
		}
	}
}

// The certificates work in a handshake with verification of both sides, for every host, and the guard finds the Leader
// in it.
func TestHandshake(t *testing.T) {
	p := mustMake(t, Options{Dir: t.TempDir(), Hosts: []string{"Agent.example.com", "192.0.2.7"}})
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(p.CA.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if !roots.AppendCertsFromPEM(ca) {
		t.Fatal("no root in the file")
	}
	server := load(t, p.Server)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "agent.example.com", "192.0.2.7"} {
		for _, leader := range []File{p.Leader, p.LeaderV1} {
			client, far := net.Pipe()
			tlsServer := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{server},
				ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
				SessionTicketsDisabled: true}) // nothing reads them from the pipe
			var wg sync.WaitGroup
			var serverErr error
			wg.Go(func() { serverErr = tlsServer.Handshake() })
			tlsClient := tls.Client(client, &tls.Config{RootCAs: roots, ServerName: host,
				Certificates: []tls.Certificate{load(t, leader)}})
			if err := tlsClient.Handshake(); err != nil {
				t.Errorf("%s, %s: %v", host, leader.Cert, err)
			}
			wg.Wait()
			if serverErr != nil {
				t.Errorf("%s, %s: %v", host, leader.Cert, serverErr)
			}
			state := tlsServer.ConnectionState()
			peer, err := (&identity.Guard{}).Check(identity.OfConnection(&state))
			if err != nil || peer.ID != string(leader.AIC) {
				t.Errorf("%s: peer %v, %v", leader.Cert, peer, err)
			}
			client.Close()
			far.Close()
		}
	}
}

// pemOf returns a PEM block without DER as its content.
func pemOf(kind string) []byte {
	return []byte("-----BEGIN " + kind + "-----\nAAAA\n-----END " + kind + "-----\n")
}

func load(t *testing.T, f File) tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMakeKeepsValidCertificates(t *testing.T) {
	start := time.Date(2025, 9, 1, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	keep := []string{"", "", "", ""}
	anew := func(because string) []string {
		return []string{"made: " + because, "made: " + because, "made: " + because, "made: " + because}
	}
	for _, tt := range []struct {
		name    string
		again   Options
		after   time.Duration
		want    []string // of ca, server, leader, leader-v1
		newAICs bool
	}{
		{name: "nothing changed", want: keep},
		{name: "hosts that are there", again: Options{Hosts: []string{"localhost", "a.example.com"}}, want: keep},
		{name: "another host", again: Options{Hosts: []string{"b.example.com"}},
			want: []string{"", "made: it lacked the host b.example.com", "", ""}},
		{name: "expires soon", after: 340 * day, want: []string{"", "expires", "expires", "expires"}},
		{name: "leaves have expired", after: 366 * day,
			want: []string{
				"", "made: it expired on 2026-09-01", "made: it expired on 2026-09-01", "made: it expired on 2026-09-01",
			}},
		{name: "root has expired", after: 3651 * day,
			want: []string{
				"made: it expired on 2035-08-30", "made: the root is new", "made: the root is new", "made: the root is new",
			}},
		{name: "force", again: Options{Force: true}, want: anew(""), newAICs: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			first := mustMake(t, Options{Dir: dir, Hosts: []string{"a.example.com"}, Now: start})
			o := tt.again
			o.Dir, o.Now = dir, start.Add(tt.after)
			second := mustMake(t, o)

			var got []string
			for i, f := range second.Files() {
				switch {
				case f.Made:
					got = append(got, "made: "+f.Because)
				case f.Expires:
					got = append(got, "expires")
				default:
					got = append(got, "")
				}
				if same := f.AIC == first.Files()[i].AIC; same == tt.newAICs && i > 0 {
					t.Errorf("%s: AIC %s, before %s", f.Cert, f.AIC, first.Files()[i].AIC)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			third := mustMake(t, o)
			if !tt.again.Force && third.CA.Made {
				t.Error("the third time makes a root again")
			}
		})
	}
}

func TestMakeGivenLeader(t *testing.T) {
	dir := t.TempDir()
	first := mustMake(t, Options{Dir: dir})
	p := mustMake(t, Options{Dir: dir, Leader: givenAIC})
	if p.Leader.AIC != givenAIC || p.LeaderV1.AIC != givenAIC {
		t.Errorf("Leaders %s and %s, want %s", p.Leader.AIC, p.LeaderV1.AIC, givenAIC)
	}
	if want := "it was issued for " + string(first.Leader.AIC); p.Leader.Because != want {
		t.Errorf("because %q, want %q", p.Leader.Because, want)
	}
	if p.CA.Made || p.Server.Made {
		t.Error("the root or the server was made again")
	}
	if again := mustMake(t, Options{Dir: dir}); again.Leader.AIC != givenAIC || again.Leader.Made {
		t.Errorf("without an AIC in the options: %+v", again.Leader)
	}
}

func TestMakeKeepsForeignFiles(t *testing.T) {
	other := mustMake(t, Options{Dir: t.TempDir()})
	for _, tt := range []struct {
		name, file string
		content    []byte
		want       string
	}{
		{"no PEM", "leader.pem", []byte("hello"), `leader.pem has no PEM block "CERTIFICATE" at its beginning`},
		{"no certificate", "ca.pem", pemOf("CERTIFICATE"), "ca.pem: x509: malformed certificate"},
		{"no key", "ca-key.pem", pemOf("PRIVATE KEY"), "ca-key.pem cannot be read as a private key"},
		{"another key", "server-key.pem", read(t, other.Server.Key), "server-key.pem is not the key of"},
		{"too large", "server.pem", make([]byte, maxPEM+1), "server.pem has 65537 bytes, too many for a PEM file"},
		{"missing half", "server-key.pem", nil, "no such file or directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			mustMake(t, Options{Dir: dir})
			path := filepath.Join(dir, tt.file)
			if tt.content == nil {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, tt.content, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Make(Options{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasSuffix(err.Error(), "use --force") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if tt.content != nil && !cmp.Equal(tt.content, read(t, path)) {
				t.Error("the file was changed")
			}
			if _, err := Make(Options{Dir: dir, Force: true}); err != nil {
				t.Errorf("forced: %v", err)
			}
		})
	}

	t.Run("another root", func(t *testing.T) {
		dir := t.TempDir()
		p := mustMake(t, Options{Dir: dir})
		for _, path := range []string{"server.pem", "server-key.pem"} {
			if err := os.WriteFile(filepath.Join(dir, path), read(t, filepath.Join(filepath.Dir(other.CA.Cert), path)),
				0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Make(Options{Dir: dir})
		if want := p.Server.Cert + " is not signed by the root in its folder"; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	})

	t.Run("a leaf as the root", func(t *testing.T) {
		dir := t.TempDir()
		for from, to := range map[string]string{other.Leader.Cert: "ca.pem", other.Leader.Key: "ca-key.pem"} {
			if err := os.WriteFile(filepath.Join(dir, to), read(t, from), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Make(Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "ca.pem is not the certificate of a CA") {
			t.Errorf("error %v", err)
		}
	})
}

func TestMakeRefusesHosts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".pki")
	for _, host := range []string{"", "https://a.example.com", "a.example.com:443", "a..b", "a b", "例.com",
		strings.Repeat("a.", 127) + "a"} {
		if _, err := Make(Options{Dir: dir, Hosts: []string{host}}); err == nil {
			t.Errorf("the host %q was taken", host)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder was made nevertheless")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
