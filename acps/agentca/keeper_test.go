// SPDX-License-Identifier: Apache-2.0

package agentca_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

const aic = "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU"

// world is an authority with one agent, and the gateways in front of it.
type world struct {
	ca      *catest.CA
	storage *storage
	eab     atomic.Pointer[[]byte]
	log     *asynctest.Buffer
}

func newWorld(t *testing.T, lifetime time.Duration) *world {
	t.Helper()
	w := &world{ca: catest.New(t), storage: newStorage(), log: new(asynctest.Buffer)}
	w.ca.Add(aic, catest.Agent{DNS: []string{"agent.example.com"}, Lifetime: lifetime})
	w.give(w.ca.EAB(aic))
	return w
}

// give has the operator give an EAB.
func (w *world) give(body []byte) {
	w.eab.Store(&body)
}

// keeper returns a gateway's Keeper.
func (w *world) keeper(trip http.RoundTripper, in agentca.Storage) *agentca.Keeper {
	return agentca.New(agentca.Config{
		AIC: aic, Storage: in, Contact: []string{"mailto:ops@example.org"},
		Client:   &agentca.Client{Directory: w.ca.Directory(), HTTP: &http.Client{Transport: trip}},
		EAB:      func(context.Context) (agentca.EAB, error) { return agentca.ReadEAB(*w.eab.Load()) },
		Inactive: func(context.Context) bool { return !w.ca.Active(aic) },
		Revoked: func(_ context.Context, chain []*x509.Certificate) (bool, error) {
			return w.ca.Revoked(chain[0]), nil
		},
		Log: slog.New(slog.NewTextHandler(w.log, nil)),
	})
}

// start starts a gateway, which ends with the test.
func (w *world) start(t *testing.T) *agentca.Keeper {
	t.Helper()
	k := w.keeper(w.ca, w.storage)
	k.Start()
	t.Cleanup(k.Close)
	synctest.Wait()
	return k
}

// want checks what the authority was made to do.
func (w *world) want(t *testing.T, want catest.Counts) {
	t.Helper()
	if diff := cmp.Diff(want, w.ca.Counts()); diff != "" {
		t.Errorf("the authority was made to do (-want +got):\n%s", diff)
	}
}

// pass lets time pass, and the gateways do what is due until then.
func pass(d time.Duration) {
	bubble.Pass(d)
	synctest.Wait()
}

func issued(n int) map[string]int { return map[string]int{"serverAuth": n, "clientAuth": n} }

// valid checks that both certificates are served, and valid now.
func valid(t *testing.T, w *world, k *agentca.Keeper) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(w.ca.Root())
	for usage, ext := range map[agentca.Usage]x509.ExtKeyUsage{
		agentca.ServerAuth: x509.ExtKeyUsageServerAuth, agentca.ClientAuth: x509.ExtKeyUsageClientAuth,
	} {
		pair := k.Certificate(usage)
		if pair == nil {
			t.Errorf("there is no certificate for %s: %v", usage, k.Status().Err)
			continue
		}
		between := x509.NewCertPool()
		for _, der := range pair.Certificate[1:] {
			cert, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			between.AddCert(cert)
		}
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: time.Now(),
			KeyUsages: []x509.ExtKeyUsage{ext}}); err != nil {
			t.Errorf("%s: %v", usage, err)
		}
		if w.ca.Revoked(pair.Leaf) {
			t.Errorf("%s is served, but revoked", usage)
		}
	}
}

// TestCrashes ends the process at each of its steps, before the step has its effect and after. The next process goes
// on: one EAB is spent, one account made, and one certificate issued for each usage.
func TestCrashes(t *testing.T) {
	steps := 0
	for at := 1; steps == 0 || at <= steps; at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d after=%v", at, after), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					w := newWorld(t, 0)
					c := &crasher{storage: w.storage, next: w.ca, at: at, after: after}
					first := w.keeper(c, c)
					first.Start()
					synctest.Wait()
					first.Close()
					if !c.dead {
						steps = c.steps
					}
					before, known := w.ca.Counts(), w.storage.orders()
					k := w.start(t)
					valid(t, w, k)
					got := w.ca.Counts()
					// An order whose URL was not stored is placed again: authorities of ACPs do not list orders.
					if got.Orders -= before.Orders - known; got.Orders != 2 {
						t.Errorf("there are %d orders beside what was lost", got.Orders)
					}
					if diff := cmp.Diff(catest.Counts{EABs: 1, Accounts: 1, Orders: 2, Issued: issued(1)}, got); diff != "" {
						t.Errorf("the authority was made to do (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
	if steps < 15 {
		t.Errorf("there were only %d steps", steps)
	}
}

// TestLifetimes lets three lifetimes pass, with two gateways that share a storage: each certificate is renewed once, in
// time, by the kept account, and served by both.
func TestLifetimes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const lifetime = 24 * time.Hour
		w := newWorld(t, lifetime)
		one, two := w.start(t), w.start(t)
		pass(2 * time.Minute)
		w.want(t, catest.Counts{EABs: 1, Accounts: 1, Orders: 2, Issued: issued(1)})
		for range 3 * 3 * 4 {
			pass(2 * time.Hour)
			valid(t, w, one)
			valid(t, w, two)
		}
		// The first ones, and one at each two thirds of a lifetime.
		w.want(t, catest.Counts{EABs: 1, Accounts: 1, Orders: 10, Issued: issued(5)})
		if strings.Contains(w.log.String(), "level=WARN") {
			t.Errorf("the log warns: %s", w.log)
		}
	})
}

// TestEABIsSpent gives an EAB with a wrong key, which the authority spends. It is not sent again, also not by the next
// process, until a person gives another one.
func TestEABIsSpent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		right := w.ca.EAB(aic)
		w.give(bytes.Replace(right, []byte(`"macKey":"`), []byte(`"macKey":"AAAA`), 1))
		k := w.start(t)
		if s := k.Status(); !s.NeedsEAB || !strings.Contains(fmt.Sprint(s.Err), "get a new one from the registry") {
			t.Errorf("the status is %+v", s)
		}
		w.want(t, catest.Counts{EABs: 1, Issued: map[string]int{}})
		k.Close()
		w.give(right) // the same one, with its right key
		k = w.start(t)
		pass(time.Hour)
		w.want(t, catest.Counts{EABs: 1, Issued: map[string]int{}})
		w.give(w.ca.EAB(aic))
		pass(2 * time.Minute)
		valid(t, w, k)
		w.want(t, catest.Counts{EABs: 2, Accounts: 1, Orders: 2, Issued: issued(1)})
		if s := k.Status(); s.Err != nil || s.NeedsEAB || s.Account == "" {
			t.Errorf("the status is %+v", s)
		}
	})
}

// TestEABIsNotWasted: an EAB that cannot be right is not sent.
func TestEABIsNotWasted(t *testing.T) {
	for name, text := range map[string]string{
		"cut off": `{"keyId":"k","macKey":"c2hvcnQ"}`,
		"other":   `{"keyId":"k","macKey":"bW9yZSB0aGFuIDE2IGJ5dGVz","aic":"1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"}`,
		"expired": `{"keyId":"k","macKey":"bW9yZSB0aGFuIDE2IGJ5dGVz","expiresAt":"1999-01-01T00:00:00Z"}`,
		"no JSON": `k`,
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, 0)
				w.give([]byte(text))
				if k := w.start(t); !k.Status().NeedsEAB {
					t.Errorf("the status is %+v", k.Status())
				}
				w.want(t, catest.Counts{Issued: map[string]int{}})
			})
		})
	}
}

// TestNonces: a nonce that ends at once is replaced, and when all end, it is tried again.
func TestNonces(t *testing.T) {
	for _, n := range []int{1, 2, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, 0)
				w.ca.EndNonces(n)
				k := w.start(t)
				pass(30 * time.Minute)
				valid(t, w, k)
				w.want(t, catest.Counts{EABs: 1, Accounts: 1, Orders: 2, Issued: issued(1)})
			})
		})
	}
}

// TestDisabled disables an agent, which revokes its certificates, and enables it again: it gets new ones by itself.
func TestDisabled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		k := w.start(t)
		valid(t, w, k)
		w.ca.Disable(aic)
		pass(time.Hour)
		if s := k.Status(); !s.Inactive || !s.Certificates[0].Revoked {
			t.Errorf("the status is %+v", s)
		}
		w.want(t, catest.Counts{EABs: 1, Accounts: 1, Orders: 2, Issued: issued(1)})
		w.ca.Enable(aic)
		pass(2 * time.Minute)
		valid(t, w, k)
		w.want(t, catest.Counts{EABs: 1, Accounts: 1, Orders: 4, Issued: issued(2)})
	})
}

// TestRevokedForEver: an authority that revokes whatever it issues is not asked more than a few times an hour.
func TestRevokedForEver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		k := w.start(t)
		for range 120 {
			w.ca.Revoke(k.Certificate(agentca.ClientAuth).Leaf)
			pass(time.Minute)
		}
		if n := w.ca.Counts().Issued["clientAuth"]; n < 3 || n > 15 {
			t.Errorf("%d certificates were issued", n)
		}
	})
}

// TestRetired revokes what there is; nothing is ordered any more, until the operator says so.
func TestRetired(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		one, two := w.start(t), w.start(t)
		pass(2 * time.Minute)
		if err := one.Retire(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(24 * time.Hour)
		if one.Certificate(agentca.ServerAuth) != nil || two.Certificate(agentca.ServerAuth) != nil {
			t.Error("a retired certificate is served")
		}
		retired := catest.Counts{EABs: 1, Accounts: 1, Orders: 2, Issued: issued(1), Revoked: 2}
		w.want(t, retired)
		if err := two.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		valid(t, w, one)
		valid(t, w, two)
		retired.Orders, retired.Issued = 4, issued(2)
		w.want(t, retired)
	})
}

// TestNotRenewed: while the authority does not answer, the log warns at 30, 7 and 1 days.
func TestNotRenewed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, 93*24*time.Hour)
		w.start(t).Close()
		pass(62 * 24 * time.Hour)
		away := &absent{next: w.ca, gone: true}
		k := w.keeper(away, w.storage)
		k.Start()
		t.Cleanup(k.Close)
		pass(30*24*time.Hour + time.Hour)
		for _, days := range []string{"days=30 ", "days=7 ", "days=1 "} {
			if n := strings.Count(w.log.String(), days); n != 2 { // one for each usage
				t.Errorf("the log warns %d times of %s", n, days)
			}
		}
		away.set(false)
		pass(2 * time.Hour)
		valid(t, w, k)
	})
}

// TestDoneByAnother: a gateway whose attempts fail reports that no more once another gateway has the certificates.
func TestDoneByAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		k := w.keeper(&absent{next: w.ca, gone: true}, w.storage)
		k.Start()
		t.Cleanup(k.Close)
		pass(6 * time.Hour)
		if s := k.Status(); s.Err == nil || s.Retry.IsZero() {
			t.Errorf("the status is %+v", s)
		}
		w.start(t)
		pass(2 * time.Minute)
		valid(t, w, k)
		if s := k.Status(); s.Err != nil || !s.Retry.IsZero() {
			t.Errorf("the status is %+v", s)
		}
	})
}

// absent is an authority that may not answer.
type absent struct {
	next http.RoundTripper
	mu   sync.Mutex
	gone bool
}

func (a *absent) set(gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = gone
}

func (a *absent) RoundTrip(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	gone := a.gone
	a.mu.Unlock()
	if gone {
		return nil, errors.New("connection refused")
	}
	return a.next.RoundTrip(req)
}
