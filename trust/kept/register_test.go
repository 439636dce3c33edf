// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// world is a store, a clock, and what is revoked.
type world struct {
	*testing.T
	store   replay.Store
	now     time.Time
	revoked []*x509.Certificate
	away    bool // what is revoked is not known
	r       *Register
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, store: replay.NewMemory(replay.Settings{}), now: time.Now()}
	w.open()
	return w
}

// open opens the register, as the next process does.
func (w *world) open() {
	w.Helper()
	r, err := Open(shard.One(w.store), func() time.Time { return w.now }, slog.New(slog.DiscardHandler))
	if err != nil {
		w.Fatal(err)
	}
	w.r = r
}

// certificate makes a certificate that is valid for a time.
func (w *world) certificate(lasts time.Duration) []*x509.Certificate {
	w.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		w.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "leader"},
		NotBefore: w.now.Add(-time.Hour), NotAfter: w.now.Add(lasts)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		w.Fatal(err)
	}
	return []*x509.Certificate{cert, cert}
}

func (w *world) called(leader string, chain []*x509.Certificate, lasts bool) {
	w.Helper()
	if err := w.r.Called(w.Context(), leader, Proof{chain, "test"}, lasts); err != nil {
		w.Errorf("a call of %s: %v", leader, err)
	}
}

func (w *world) judge(want ...string) {
	w.Helper()
	w.r.Judge(w.Context(), func(p Proof, did bool) bool {
		if w.away {
			return did
		}
		return p.Pool == "test" && !slices.ContainsFunc(w.revoked, p.Chain[0].Equal)
	})
	got := w.r.AllLost()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("without standing (-want +got):\n%s", diff)
	}
	for _, leader := range []string{"alice", "bob", "carol"} {
		if lost := w.r.Lost(leader); lost != slices.Contains(want, leader) {
			w.Errorf("%s has lost its standing: %t", leader, lost)
		}
	}
}

func TestStanding(t *testing.T) {
	w := newWorld(t)
	alice, bob, carol := w.certificate(time.Hour), w.certificate(time.Hour), w.certificate(time.Hour)
	w.called("alice", alice, true)
	w.called("bob", bob, true)
	w.called("carol", carol, false) // has nothing that lasts
	w.judge()
	w.revoked = append(w.revoked, alice[0], carol[0])
	w.judge("alice")
	w.open()
	w.judge("alice")
	w.called("alice", w.certificate(time.Hour), false) // is renewed
	if w.r.Lost("alice") {
		t.Error("alice has no standing, though it calls by another certificate")
	}
	w.judge()
	w.open()
	w.judge()
	w.revoked = append(w.revoked, bob[0])
	w.judge("bob")
	w.revoked = w.revoked[:2] // it was a mistake
	w.judge()
}

// TestManyCertificates: a Leader that has more certificates than are kept keeps its standing while one of them counts.
func TestManyCertificates(t *testing.T) {
	w := newWorld(t)
	var all [][]*x509.Certificate
	for range maxCertificates + 2 {
		all = append(all, w.certificate(time.Hour))
		w.called("alice", all[len(all)-1], true)
	}
	for _, chain := range all[:len(all)-1] {
		w.revoked = append(w.revoked, chain[0])
	}
	w.judge("alice") // which does not know the last one
	w.called("alice", all[len(all)-1], false)
	w.judge()
	if n := len(w.r.homes.Of(0).leaders["alice"].certificates); n != maxCertificates {
		t.Errorf("%d certificates are kept, want %d", n, maxCertificates)
	}
}

// TestTwoTrusts: a Leader whose certificate is verified by one trust and by another in turns is stored once for each,
// and the one that may judge otherwise later is kept.
func TestTwoTrusts(t *testing.T) {
	w := newWorld(t)
	chain := w.certificate(time.Hour)
	for n := range 10 {
		pool := []string{"", "test"}[n%2]
		if err := w.r.Called(w.Context(), "alice", Proof{chain, pool}, true); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.r.homes.Of(0).leaders["alice"].revision; got != 2 {
		t.Errorf("its log was written %d times, want 2", got)
	}
	w.judge()
	w.revoked = append(w.revoked, chain[0])
	w.judge("alice")
}

// TestExpiry: a certificate that has expired says nothing while there is another one. It is kept for some time, and
// that of a Leader that has lost its standing for good: else its webhooks would go on.
//
// Promise: a Leader whose certificate was revoked goes on
func TestExpiry(t *testing.T) {
	w := newWorld(t)
	before, after := w.certificate(time.Hour), w.certificate(3*time.Hour)
	w.called("alice", before, true)
	w.called("alice", after, true)
	w.called("bob", w.certificate(time.Hour), true)
	w.now = w.now.Add(2 * time.Hour)
	w.judge()
	w.revoked = append(w.revoked, after[0])
	w.judge("alice")
	w.now = w.now.Add(2 * time.Hour) // its issuer's list need not name it any more
	w.revoked = nil
	w.judge("alice")
	w.now = w.now.Add(keepExpired)
	w.judge("alice")
	w.open()
	w.judge("alice")
	var kept []string
	for entry, err := range w.store.List(context.Background(), "c", "") {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, entry.Log[1:])
	}
	if diff := cmp.Diff([]string{"alice"}, kept); diff != "" || len(w.r.homes.Of(0).leaders) != 1 {
		t.Errorf("%d Leaders are known, and of the logs (-want +got):\n%s", len(w.r.homes.Of(0).leaders), diff)
	}
	w.called("alice", w.certificate(time.Hour), false)
	w.judge()
}

// TestRestart: a Leader that has lost its standing gets it back neither by a restart, nor by one that knows nothing.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.certificate(time.Hour), w.certificate(time.Hour)
	w.called("alice", alice, true)
	w.called("bob", bob, true)
	w.revoked = append(w.revoked, alice[0])
	w.judge("alice")
	w.away = true
	w.open()
	if !w.r.Lost("alice") || w.r.Lost("bob") {
		t.Errorf("before it is judged, alice has lost its standing: %t, and bob: %t", w.r.Lost("alice"), w.r.Lost("bob"))
	}
	w.judge("alice")
	w.now = w.now.Add(2 * time.Hour) // the certificates expire
	w.open()
	w.judge("alice")
}

// TestLostWrongly: a Leader has its standing again when it calls by the same certificate, and that counts.
func TestLostWrongly(t *testing.T) {
	w := newWorld(t)
	alice := w.certificate(time.Hour)
	if err := w.r.Called(t.Context(), "alice", Proof{alice, "another pool"}, true); err != nil {
		t.Fatal(err)
	}
	w.judge("alice")
	before := w.r.Gained()
	w.called("alice", alice, false)
	if w.r.Lost("alice") {
		t.Error("alice has no standing, though it calls by a certificate that counts")
	}
	if w.r.Gained() == before {
		t.Error("alice is not judged again soon, though its certificate may have been revoked meanwhile")
	}
	w.judge()
	if n := len(w.r.homes.Of(0).leaders["alice"].certificates); n != 1 {
		t.Errorf("%d certificates are kept, want 1", n)
	}
}
