// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"golang.org/x/crypto/ocsp"
)

// responder is an OCSP responder for the certificates of one issuer.
type responder struct {
	*httptest.Server
	issuer *authority

	mu       sync.Mutex
	revoked  map[string]bool // by serial number
	delegate *authority      // signs in place of the issuer; nil for none
	delay    time.Duration
	asked    int
}

func newResponder(t testing.TB, issuer *authority) *responder {
	r := &responder{issuer: issuer, revoked: make(map[string]bool)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *responder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	asked, err := ocsp.ParseRequest(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	delay := r.delay
	r.asked++
	r.mu.Unlock()
	select { // it is slow
	case <-time.After(delay):
	case <-request.Context().Done(): // the gateway waits no longer
	}
	w.Write(r.answer(&x509.Certificate{SerialNumber: asked.SerialNumber}))
}

// answer returns the answer about a certificate.
func (r *responder) answer(cert *x509.Certificate) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	says := ocsp.Response{SerialNumber: cert.SerialNumber, Status: ocsp.Good, ThisUpdate: time.Now().Add(-time.Minute),
		NextUpdate: time.Now().Add(time.Hour)}
	if r.revoked[cert.SerialNumber.String()] {
		says.Status, says.RevokedAt = ocsp.Revoked, time.Now().Add(-time.Minute)
	}
	signer := r.issuer
	if r.delegate != nil {
		signer, says.Certificate = r.delegate, r.delegate.cert
	}
	raw, err := ocsp.CreateResponse(r.issuer.cert, signer.cert, says, signer.key)
	if err != nil {
		panic(err)
	}
	return raw
}

func (r *responder) revoke(cert *x509.Certificate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revoked[cert.SerialNumber.String()] = true
}

func (r *responder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// delegated makes a signer of OCSP responses.
func (a *authority) delegated(usage x509.ExtKeyUsage) *authority {
	a.t.Helper()
	d := &authority{t: a.t}
	d.cert, d.key = a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "responder"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage}})
	return d
}

// isRefused reports whether a call was refused with -32008.
func isRefused(err error) bool { return err != nil && strings.Contains(err.Error(), "-32008") }

// TestOCSP asks a responder: before a call, and again while streams are open. What it said outlives a restart.
func TestOCSP(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	root := newRoot(t, "root")
	issuer := root.intermediate("issuer")
	alice, bob := issuer.leader(aliceAIC), issuer.leader(bobAIC)
	says := newResponder(t, issuer)
	says.delegate = issuer.delegated(x509.ExtKeyUsageOCSPSigning)
	s := site.New(t)
	s.Start(revoking(s, root, agent, "ocsp query "+says.URL, "rate 600/m", "max_age 20s"))
	_, err := connect(t, s, &tls.Config{Certificates: []tls.Certificate{alice}})
	if err != nil || says.count() != 0 {
		t.Errorf("a handshake has asked %d times, %v", says.count(), err)
	}
	kept, calls := openEach(t, s, alice)
	streams, refused := openEach(t, s, bob)
	says.revoke(bob.Leaf)
	endWith(t, streams, refused, "is revoked")
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("a new connection by the certificate that was revoked: %v", err)
	}
	goesOn(t, s, alice, kept, calls)
	site.Eventually(t, "the answers are kept", func() bool { // a moment after they are in use
		return keptOCSP(s, alice, ocsp.Good) && keptOCSP(s, bob, ocsp.Revoked)
	})
	says.Close()
	s.Kill()
	s.Run(s.InDir("Caddyfile"))
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("a start without the responder, the certificate that was revoked: %v", err)
	}
	if err := handshake(t, s, alice); err != nil {
		t.Errorf("a start without the responder, by the answer that was kept: %v", err)
	}
	if err := handshake(t, s, issuer.leader(carolAIC)); !isRefused(err) {
		t.Errorf("a start without the responder, a certificate that it was not asked about: %v", err)
	}
}

// TestOCSPWithoutAnswer has a responder whose answers do not count, or which is slow or asked too often.
func TestOCSPWithoutAnswer(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	root := newRoot(t, "root")
	issuer := root.intermediate("issuer")
	start := func(t *testing.T, lines ...string) (*site.Site, *responder) {
		t.Helper()
		s, says := site.New(t), newResponder(t, issuer)
		s.Start(revoking(s, root, agent.URL, append(lines, "ocsp query "+says.URL)...))
		return s, says
	}
	refused := func(t *testing.T, s *site.Site) {
		t.Helper()
		if err := handshake(t, s, issuer.leader(aliceAIC)); !isRefused(err) {
			t.Errorf("the call: %v", err)
		}
	}
	t.Run("a delegate without the usage", func(t *testing.T) {
		s, says := start(t)
		says.delegate = issuer.delegated(x509.ExtKeyUsageClientAuth)
		refused(t, s)
		s.WaitFor(t, "the certificate of the responder is not for OCSP")
	})
	t.Run("a delegate of another issuer", func(t *testing.T) {
		s, says := start(t)
		says.delegate = root.intermediate("other").delegated(x509.ExtKeyUsageOCSPSigning)
		refused(t, s)
	})
	t.Run("slow", func(t *testing.T) {
		s, says := start(t)
		says.mu.Lock()
		says.delay = site.Patience
		says.mu.Unlock()
		refused(t, s)
	})
	t.Run("asked too often", func(t *testing.T) {
		s, says := start(t, "rate 3/m")
		in := 0
		for range 5 {
			if err := handshake(t, s, issuer.leader(aliceAIC)); err == nil {
				in++
			} else if !isRefused(err) {
				t.Error(err)
			}
		}
		if in != 3 || says.count() != 3 {
			t.Errorf("%d new certificates are let in by %d requests, want 3 by 3", in, says.count())
		}
	})
}

// TestStaples has callers that bring the OCSP response about their certificate.
func TestStaples(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	root := newRoot(t, "root")
	issuer := root.intermediate("issuer")
	says := newResponder(t, issuer)
	s := site.New(t)
	s.Start(revoking(s, root, agent.URL, "ocsp staple"))
	alice, bob := issuer.leader(aliceAIC), issuer.leader(bobAIC)
	if err := handshake(t, s, alice); !isRefused(err) {
		t.Errorf("without a staple: %v", err)
	}
	alice.OCSPStaple = says.answer(bob.Leaf)
	if err := handshake(t, s, alice); !isRefused(err) {
		t.Errorf("with the staple of another: %v", err)
	}
	alice.OCSPStaple = says.answer(alice.Leaf)
	if err := handshake(t, s, alice); err != nil {
		t.Errorf("with a staple: %v", err)
	}
	says.revoke(bob.Leaf)
	bob.OCSPStaple = says.answer(bob.Leaf)
	if err := handshake(t, s, bob); !isRefused(err) {
		t.Errorf("with a staple that it is revoked: %v", err)
	}
	if err := handshake(t, s, bob); !isShut(err) {
		t.Errorf("again: %v", err)
	}
	if n := says.count(); n != 0 {
		t.Errorf("the responder was asked %d times", n)
	}
}

// TestRegistry follows which agents a registry of ACPs has as active.
func TestRegistry(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	root := newRoot(t, "root")
	alice, bob, carol := root.leader(aliceAIC), root.leader(bobAIC), root.leader(carolAIC)
	entry := func(aic string, active bool) string {
		raw, _ := json.Marshal(site.Object{"seq": 1, "op": "upsert", "type": "acs", "id": aic,
			"payload": site.Object{"aic": aic, "active": active}})
		return string(raw) + "\n"
	}
	disabled := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/acps-dsp-v2/snapshots" {
			w.Header().Set("X-Snapshot-Id", "snap")
			w.Header().Set("X-Snapshot-Seq", "1")
			w.Header().Set("X-Snapshot-Chunk-Total", "1")
			fmt.Fprint(w, entry(aliceAIC, true), entry(bobAIC, true), entry(carolAIC, false))
			return
		}
		w.Header().Set("X-Next-Seq", "2")
		if r.URL.Query().Get("seq") == "1" {
			select {
			case <-disabled:
				fmt.Fprint(w, entry(bobAIC, false))
				return
			case <-r.Context().Done():
				return
			}
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	s := site.New(t)
	s.Start(revoking(s, root, agent, "registry "+server.URL))
	site.Eventually(t, "the registry is followed", func() bool { return handshake(t, s, alice) == nil })
	if err := handshake(t, s, carol); !isShut(err) {
		t.Errorf("an agent that is not active: %v", err)
	}
	if err := handshake(t, s, root.leader(strangerAIC)); !isShut(err) {
		t.Errorf("an agent that the registry does not know: %v", err)
	}
	kept, calls := openEach(t, s, alice)
	streams, refused := openEach(t, s, bob)
	close(disabled)
	endWith(t, streams, refused, "is revoked")
	goesOn(t, s, alice, kept, calls)
}

// strangerAIC is an AIC that no test has registered.
const strangerAIC = "10001000011K912345E789ABCDEF2353"

// TestGroupsOfRevoked revokes the certificate of a Leader whose group a member has joined: it is left, and that of
// another Leader is not. Its task goes on.
func TestGroupsOfRevoked(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	ends := make(chan struct{}) // closed when the agent has finished the first tasks
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		state := "completed"
		select {
		case <-ends:
		default:
			state = "working"
		}
		site.WriteTask(w, h, state, "done")
	})
	root := newRoot(t, "root")
	one, other := root.intermediate("one"), root.intermediate("other")
	m := site.MakeMember(t)
	lists := []string{m.InDir("one.crl"), m.InDir("other.crl")}
	one.writeCRL(lists[0], time.Hour)
	other.writeCRL(lists[1], time.Hour)
	c := m.Fronting("a2a/legacy "+agent.URL, "localhost")
	r := revoking(m.Site, root, agent.URL, "crl "+strings.Join(lists, " "))
	c.Store, c.Trust = r.Store, r.Trust
	m.Start(c)
	alice, bob := one.leader(aliceAIC), other.leader(bobAIC)
	kept := site.NewGroup(t, b, "kept", m.WritePair("alice", alice))
	left := site.NewGroup(t, b, "left", m.WritePair("bob", bob))
	for _, g := range []*site.GroupLeader{kept, left} {
		g.Join(m)
		g.Say("start", "first of "+g.ID, "hello")
		g.WaitForState(m.AIC, "first of "+g.ID, "working")
	}
	other.revoke(bob.Leaf)
	other.writeCRL(lists[1], time.Hour)
	m.WaitFor(t, `its webhooks stop, and its groups are left.*"leader":"`+bobAIC+`"`)
	site.Eventually(t, "one group is left", func() bool { return len(m.Groups()) == 1 })
	left.NoQueue(m)
	close(ends)
	for _, heard := range left.Of(m.AIC, "first of left") {
		if heard.Status.State == string(task.Canceled) {
			t.Error("its task was canceled")
		}
	}
	kept.WaitForState(m.AIC, "first of kept", "awaiting-completion")
	kept.Say("start", "second", "hello")
	kept.WaitForState(m.AIC, "second", "awaiting-completion")
	again := site.NewGroup(t, b, "again", m.WritePair("renewed", other.leader(bobAIC)))
	again.Join(m)
	again.Say("start", "third", "hello")
	again.WaitForState(m.AIC, "third", "awaiting-completion")
	bobAgain := m.CalledBy(again.Certificate)
	site.Eventually(t, "the task of the group that was left goes on to its end", func() bool {
		return bobAgain.Get("first of left").Status.State == task.AwaitingCompletion
	})
}

// keptOCSP reports whether an answer about a certificate is kept on disk, and has a status.
func keptOCSP(s *site.Site, pair tls.Certificate, status int) bool {
	s.T.Helper()
	sum := sha256.Sum256(pair.Leaf.Raw)
	files, err := filepath.Glob(s.InDir(fmt.Sprintf("share/caddy/aip-revocation/%x-*.ocsp", sum[:16])))
	if site.NoError(s.T, err); len(files) != 1 {
		return false
	}
	raw, err := os.ReadFile(files[0])
	site.NoError(s.T, err)
	kept, err := ocsp.ParseResponse(raw, nil)
	return err == nil && kept.Status == status
}
