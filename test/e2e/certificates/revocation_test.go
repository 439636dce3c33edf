// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

const carolAIC = "1.2.156.3088.1.1.34C2.478BDF.3GF548.0P65"

// revoking returns a configuration with lists of revoked certificates, and with further lines of the option.
func revoking(s *site.Site, root *authority, agent string, lines ...string) site.Config {
	s.T.Helper()
	file := s.InDir("root.pem")
	writeRoots(s.T, file, root)
	return site.Config{
		Store: "store pebble " + s.InDir("store") + "\n\t\trevocation {\n" + strings.Join(lines, "\n") + "\n\t\t}",
		Trust: "trust_pool file " + file + "\n\t\t\tverifier aip_revocation",
		Handle: "aip_gateway a2a/legacy http://" + strings.TrimPrefix(agent, "http://") +
			" {\n\t\tcallers aip a2a\n\t}",
	}
}

// TestRevoked revokes a certificate while streams are open, and another one before.
//
// Promise: a Leader whose certificate was revoked goes on
func TestRevoked(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	root := newRoot(t, "root")
	one, other := root.intermediate("one"), root.intermediate("other")
	alice, bob, carol := one.leader(aliceAIC), other.leader(bobAIC), other.leader(carolAIC)
	s := site.New(t)
	lists := []string{s.InDir("one.crl"), s.InDir("other.crl")}
	one.writeCRL(lists[0], time.Hour)
	other.revoke(carol.Leaf)
	other.writeCRL(lists[1], time.Hour)
	s.Start(revoking(s, root, agent, "crl "+strings.Join(lists, " ")))
	if err := handshake(t, s, carol); !isShut(err) {
		t.Errorf("a certificate that was revoked before: %v", err)
	}
	s.WaitFor(t, `a handshake was refused.*"certificate":"`+carolAIC+`".*"issuer":"CN=other","reason":"revoked"`)
	kept, calls := openEach(t, s, alice)
	streams, refused := openEach(t, s, bob)
	other.revoke(bob.Leaf)
	other.writeCRL(lists[1], time.Hour)
	endWith(t, streams, refused, "is revoked")
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("a new connection by the certificate that was revoked: %v", err)
	}
	goesOn(t, s, alice, kept, calls)

	// What an operator sees.
	var health adminapi.Health
	if s.AdminCall("GET", "/aip/health/ready", "", &health); len(health.Revocation) != 2 {
		t.Fatalf("the health is %+v", health)
	}
	for i, want := range []adminapi.SourceHealth{
		{Location: lists[0], Issuer: "CN=one"}, {Location: lists[1], Issuer: "CN=other", Entries: 2},
	} {
		got := health.Revocation[i]
		if got.Location != want.Location || got.Issuer != want.Issuer || got.Entries != want.Entries || got.Reason != "" ||
			time.Until(got.NextUpdate) < 50*time.Minute {
			t.Errorf("a source is %+v", got)
		}
	}
	site.ReplaceFile(t, lists[1], []byte("a list"))
	site.Eventually(t, "doctor finds the broken list, and that the gateway keeps the good one", func() bool {
		status, stdout, _ := s.Caddy("aip", "doctor", "--config", s.InDir("Caddyfile"))
		return status == 1 && strings.Contains(stdout, "one.crl: 0 certificates of CN=one are revoked") &&
			strings.Contains(stdout, "other.crl: it holds no list of revoked certificates") &&
			strings.Contains(stdout, "other.crl: the gateway that runs has nothing newer: ")
	})
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("a broken list has replaced the good one: %v", err)
	}
}

// TestRevocationWithoutAnswer has lists that are missing, or have ended.
func TestRevocationWithoutAnswer(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	root := newRoot(t, "root")
	issuer := root.intermediate("issuer")
	alice, bob := issuer.leader(aliceAIC), issuer.leader(bobAIC)
	issuer.revoke(bob.Leaf)
	for name, tt := range map[string]struct {
		lines []string
		write func(list string)
		lets  bool
		log   string
	}{
		"missing": {nil, func(string) {}, false, `"reason":"no_answer"`},
		"of another issuer": {nil, func(list string) { root.intermediate("stranger").writeCRL(list, time.Hour) }, false,
			`"reason":"no_answer"`},
		"broken": {nil, func(list string) { site.ReplaceFile(t, list, []byte("a list")) }, false, `"reason":"no_answer"`},
		"ended":  {nil, func(list string) { issuer.writeCRL(list, -time.Second) }, false, `"reason":"stale"`},
		"ended, in its grace": {[]string{"grace 1h"},
			func(list string) { issuer.writeCRL(list, -time.Second) }, true, ""},
		"ended, after its grace": {[]string{"grace 10s"},
			func(list string) { issuer.writeCRL(list, -20*time.Second) }, false, `"reason":"stale"`},
		"too old": {[]string{"max_age 30s"}, func(list string) { issuer.writeCRL(list, time.Hour) }, false,
			`"reason":"stale"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := site.New(t)
			list := s.InDir("list.crl")
			tt.write(list)
			s.Start(revoking(s, root, agent.URL, append(tt.lines, "crl "+list)...))
			if err := handshake(t, s, alice); (err == nil) != tt.lets {
				t.Errorf("the call: %v", err)
			}
			if err := handshake(t, s, bob); err == nil {
				t.Error("the certificate that was revoked is let in")
			}
			if tt.log != "" {
				s.WaitFor(t, tt.log)
			}
			if tt.lets || name == "too old" {
				return
			}
			issuer.writeCRL(list, time.Hour) // it is there at last
			site.Eventually(t, "the call is let in by the list that has come",
				func() bool { return handshake(t, s, alice) == nil })
		})
	}
}

// TestRevocationURL has the list from a server, which is gone at the next start.
func TestRevocationURL(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	root := newRoot(t, "root")
	issuer := root.intermediate("issuer")
	alice, bob := issuer.leader(aliceAIC), issuer.leader(bobAIC)
	var list atomic.Pointer[[]byte]
	publish := func() {
		der := issuer.crl(time.Hour)
		list.Store(&der)
	}
	publish()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(*list.Load()) }))
	t.Cleanup(server.Close)
	s := site.New(t)
	s.Start(revoking(s, root, agent.URL, "crl "+server.URL+"/list.crl", "max_age 20s"))
	site.Eventually(t, "the list was fetched", func() bool { return handshake(t, s, bob) == nil })
	issuer.revoke(bob.Leaf)
	publish()
	site.Eventually(t, "the certificate is refused that was revoked", func() bool { return isShut(handshake(t, s, bob)) })
	site.Eventually(t, "the list was kept", func() bool { // a moment after it is in use
		files, err := filepath.Glob(s.InDir("share/caddy/aip-revocation/*.crl"))
		if err != nil || len(files) != 1 {
			t.Fatalf("kept are %q, %v", files, err)
		}
		kept, err := os.ReadFile(files[0])
		site.NoError(t, err)
		return bytes.HasPrefix(kept, *list.Load())
	})
	server.Close()
	s.Kill()
	s.Run(s.InDir("Caddyfile"))
	if err := handshake(t, s, alice); err != nil {
		t.Errorf("a start without the server, by the list that was kept: %v", err)
	}
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("a start without the server, the certificate that was revoked: %v", err)
	}
}

// TestRevocationAsked asks an authority of ACPs, when a call is made and not in the handshake.
func TestRevocationAsked(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	root := newRoot(t, "root")
	issuer := root.intermediate("issuer")
	alice, bob := issuer.leader(aliceAIC), issuer.leader(bobAIC)
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		serial, status := path.Base(r.URL.Path), "good"
		if serial == strings.ToUpper(bob.Leaf.SerialNumber.Text(16)) {
			status = "revoked"
		}
		json.NewEncoder(w).Encode(map[string]any{"serialNumber": serial, "certificateStatus": status,
			"thisUpdate": time.Now().Add(-time.Minute), "nextUpdate": time.Now().Add(time.Hour)})
	}))
	t.Cleanup(server.Close)
	s := site.New(t)
	s.Start(revoking(s, root, agent.URL, "acps "+server.URL, "rate 10/m"))
	_, err := connect(t, s, &tls.Config{Certificates: []tls.Certificate{alice}})
	if err != nil || asked.Load() != 0 {
		t.Errorf("a handshake has asked %d times, %v", asked.Load(), err)
	}
	if err := handshake(t, s, alice); err != nil {
		t.Errorf("a call by a certificate that is good: %v", err)
	}
	if err := handshake(t, s, bob); err == nil || !strings.Contains(err.Error(), "-32008") {
		t.Errorf("the first call by a certificate that is revoked: %v", err)
	}
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("the next handshake by it: %v", err)
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the authority was asked %d times, want twice", n)
	}
}

// TestNoResumption: with client_auth, no TLS session is resumed, so that each connection is judged by the certificate
// that it shows.
func TestNoResumption(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	root := newRoot(t, "root")
	alice := root.leader(aliceAIC)
	s := site.New(t)
	list := s.InDir("list.crl")
	root.writeCRL(list, time.Hour)
	s.Start(revoking(s, root, agent.URL, "crl "+list))
	cache := tls.NewLRUClientSessionCache(8)
	again := func(version uint16) error {
		state, err := connect(t, s, &tls.Config{Certificates: []tls.Certificate{alice}, ClientSessionCache: cache,
			MinVersion: version, MaxVersion: version})
		if state.DidResume {
			t.Errorf("a session was resumed, version %x", version)
		}
		return err
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for range 3 {
			if err := again(version); err != nil {
				t.Fatal(err)
			}
		}
	}
	root.revoke(alice.Leaf)
	root.writeCRL(list, time.Hour)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		site.Eventually(t, "no connection is accepted", func() bool { return again(version) != nil })
	}
}

// TestRevocationValidate: a configuration is valid though its lists are not there, and nothing is written.
func TestRevocationValidate(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	path := s.Write(revoking(s, newRoot(t, "root"), "http://127.0.0.1:1", "crl "+s.InDir("none.crl")))
	before, _ := os.ReadDir(s.Dir)
	if status, _, stderr := s.Caddy("validate", "--config", path, "--adapter", "caddyfile"); status != 0 {
		t.Errorf("validate: %d %s", status, stderr)
	}
	if after, _ := os.ReadDir(s.Dir); len(after) != len(before) {
		t.Errorf("the directory has %v, and had %v", after, before)
	}
	if status, _, stderr := s.Caddy("validate", "--config", s.Write(site.Config{Trust: "verifier aip_revocation",
		Handle: "aip_gateway a2a/legacy http://127.0.0.1:1"}), "--adapter", "caddyfile"); status == 0 ||
		!strings.Contains(stderr, "aip_revocation needs sources") {
		t.Errorf("validate without sources: %d %s", status, stderr)
	}
}
