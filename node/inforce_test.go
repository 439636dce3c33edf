// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/kept"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// fail stops and closes a configuration that has started, as a host does when another part of it has not.
func fail(t *testing.T, c *Configuration) {
	t.Helper()
	end(t, c)
}

// limited is a driver of one store in memory, with a greatest size.
type limited struct {
	memory
	max int64
}

func (l limited) Settings() replay.Settings { return replay.Settings{MaxSize: l.max} }

// TestFailedDropsNoTasks: a configuration with a smaller store drops tasks when the one before ends, and none if it is
// taken back.
func TestFailedDropsNoTasks(t *testing.T) {
	p := NewProcess(Host{})
	store := func(most int64) Store { return Store{Driver: limited{max: most}, Name: "memory"} }
	one := start(t, p, store(1<<20), Settings{})
	logs := one.Node().Storage.(replay.Store)
	log := replay.Append{Log: "ended", Records: [][]byte{make([]byte, 1000)}, End: true}
	if err := logs.Append(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	fail(t, start(t, p, store(1), Settings{}))
	if _, err := logs.Head(t.Context(), "ended"); err != nil {
		t.Errorf("after a configuration that failed: %v", err)
	}
	two := start(t, p, store(1), Settings{})
	end(t, one)
	if _, err := logs.Head(t.Context(), "ended"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("after a configuration with a smaller store: %v", err)
	}
	end(t, two)
}

// authority issues certificates and lists.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = a.issue(&x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, IsCA: true,
		KeyUsage: x509.KeyUsageCRLSign | x509.KeyUsageCertSign, BasicConstraintsValid: true})
	return a
}

func (a *authority) issue(of *x509.Certificate) *x509.Certificate {
	a.t.Helper()
	of.NotBefore, of.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent := a.cert
	if parent == nil {
		parent = of
	}
	der, err := x509.CreateCertificate(rand.Reader, of, parent, a.key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// revoking returns a checker by a list with a certificate.
func (a *authority) revoking(cert *x509.Certificate) *revocation.Checker {
	a.t.Helper()
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1),
		ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{
			{SerialNumber: cert.SerialNumber, RevocationTime: time.Now().Add(-time.Minute)}}}, a.cert, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	list := filepath.Join(a.t.TempDir(), "list.crl")
	if err := os.WriteFile(list, der, 0o600); err != nil {
		a.t.Fatal(err)
	}
	c, err := revocation.New(revocation.Config{Log: slog.New(slog.DiscardHandler),
		Sources: []revocation.Source{{Kind: revocation.CRL, Location: list}}})
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(c.Close)
	c.Start()
	return c
}

// TestFailedGivesNoStanding: a Leader with a revoked certificate has its standing again when a configuration without
// revocation is in force, and not by one that is taken back.
func TestFailedGivesNoStanding(t *testing.T) {
	root := newAuthority(t)
	leaf := root.issue(&x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "leader"}})
	p := NewProcess(Host{})
	one := p.NewConfiguration()
	one.Trust.Ask(root.revoking(leaf))
	if err := one.Open(at("a")); err != nil {
		t.Fatal(err)
	}
	leaders := one.Node().Leaders
	err := leaders.Called(t.Context(), "leader", kept.Proof{Chain: []*x509.Certificate{leaf, root.cert}}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Start(Settings{}); err != nil {
		t.Fatal(err)
	}
	if !leaders.Lost("leader") {
		t.Fatal("the Leader has its standing, though its certificate is revoked")
	}
	two := start(t, p, at("a"), Settings{})
	if !leaders.Lost("leader") {
		t.Error("the Leader has its standing by a configuration that is not in force")
	}
	fail(t, two)
	if !leaders.Lost("leader") {
		t.Error("the Leader has its standing by a configuration that failed")
	}
	three := start(t, p, at("a"), Settings{})
	if one.Drain(); leaders.Lost("leader") {
		t.Error("the Leader has no standing, though the configuration in force has no revocation")
	}
	end(t, one, three)
}

// TestRootsOfFailed: a root that was taken out of its file does not count because a configuration that failed has it in
// another file, or because one did that is gone.
func TestRootsOfFailed(t *testing.T) {
	root, text := newRoot(t, "root")
	_, other := newRoot(t, "other")
	dir := t.TempDir()
	write := func(name string, parts ...[]byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, bytes.Join(parts, []byte("\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	p := NewProcess(Host{})
	use := func(file string) *Pool {
		t.Helper()
		pool, err := p.Roots.Use([]string{file}, readCertificates)
		if err != nil {
			t.Fatal(err)
		}
		return pool
	}
	own, others := write("own.pem", text, other), write("others.pem", text)
	pool := use(others)
	before := start(t, p, at("a"), Settings{})
	leaders := before.Node().Leaders
	proof := kept.Proof{Chain: []*x509.Certificate{root, root}, Pool: rootPool}
	if err := leaders.Called(t.Context(), "leader", proof, true); err != nil {
		t.Fatal(err)
	}
	pools := []*Pool{use(own)}
	one := start(t, p, at("a"), Settings{})
	end(t, before)
	pool.Leave()
	if leaders.Lost("leader") {
		t.Fatal("the Leader has lost its standing, though its root is in a file")
	}
	write("own.pem", other)
	p.Roots.read(slog.New(slog.DiscardHandler))
	for _, step := range []func(){
		func() {},
		func() { pools = append(pools, use(others)) },
		func() { fail(t, start(t, p, at("a"), Settings{})) },
		func() { pools[1].Leave() },
	} {
		step()
		if leaders.Judge(t.Context(), one.Trust.keeps); !leaders.Lost("leader") {
			t.Error("the Leader has its standing by a root that no configuration in force has")
		}
	}
	pools = append(pools, use(others))
	two := start(t, p, at("a"), Settings{})
	end(t, one)
	if leaders.Lost("leader") {
		t.Error("the Leader has lost its standing, though the configuration in force has its root")
	}
	end(t, two)
}

// TestWaitingCalls: calls of a configuration wait until it is in force, and are refused if it fails.
func TestWaitingCalls(t *testing.T) {
	p := NewProcess(Host{})
	one := start(t, p, at("a"), Settings{})
	two := start(t, p, at("a"), Settings{})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := two.Ready(done); !errors.Is(err, context.Canceled) {
		t.Errorf("before it is in force: %v", err)
	}
	two.Enter()
	fail(t, two)
	if err := two.Ready(t.Context()); task.KindOf(err) != task.StoreUnavailable {
		t.Errorf("after it has failed: %v", err)
	}
	two.Leave()
	three := start(t, p, at("a"), Settings{})
	if one.Drain(); three.Ready(done) != nil {
		t.Error("a configuration in force is not ready")
	}
	end(t, one, three)
	if n := p.Users(at("a")); n != 0 {
		t.Errorf("the store has %d users", n)
	}
}

// TestOrder: the work of a configuration begins when it is in force, and the process shows it from then on.
func TestOrder(t *testing.T) {
	p := NewProcess(Host{})
	one := start(t, p, at("a"), Settings{Host: "one"})
	var began []string
	failing, two := p.NewConfiguration(), p.NewConfiguration()
	for name, c := range map[string]*Configuration{"failing": failing, "two": two} {
		c.Go(func(context.Context) { began = append(began, name) })
	}
	shown := func() string { return newestName(p) + " " + p.Running().InForce().Host().(string) }
	var all []string
	for _, step := range []func(){
		func() {},
		func() { begin(t, failing, at("a"), Settings{Host: "failing"}) },
		failing.Stop,
		func() { begin(t, two, at("a"), Settings{Host: "two"}) },
		one.Drain,
		one.Stop,
		two.Drain,
	} {
		step()
		all = append(all, shown())
	}
	want := []string{"one one", "one one", "one one", "one one", "two two", "two two", "two two"}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	two.Stop()
	if diff := cmp.Diff([]string{"two"}, began); diff != "" {
		t.Errorf("work (-want +got):\n%s", diff)
	}
	for _, c := range []*Configuration{failing, one, two} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestClosedWithoutStop: a configuration that ends without a stop is not put in force later.
func TestClosedWithoutStop(t *testing.T) {
	p := NewProcess(Host{})
	one, two := start(t, p, at("a"), Settings{Host: "one"}), start(t, p, at("a"), Settings{Host: "two"})
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	three := start(t, p, at("a"), Settings{Host: "three"})
	end(t, one)
	if got := newestName(p); got != "three" || p.Users(at("a")) != 1 {
		t.Errorf("%s is in force, and the store has %d users", got, p.Users(at("a")))
	}
	end(t, three)
}
