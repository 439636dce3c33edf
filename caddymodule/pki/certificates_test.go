// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/trust/revocation"
)

// account is one at a registry, which gives the credentials of an authority.
type account struct {
	*catest.CA
	client *registry.Client
	asked  atomic.Int64
}

// Client implements RegistryAccount.
func (a *account) Client() *registry.Client { return a.client }

// EAB implements RegistryAccount.
func (a *account) EAB(_ context.Context, aic string) (*registry.EAB, error) {
	a.asked.Add(1)
	given := new(registry.EAB)
	return given, json.Unmarshal(a.CA.EAB(aic), given)
}

// TestCredentialOfRegistry: an agent without a credential in the configuration gets one from the registry, once. While
// the registry has the agent as inactive, its revoked certificates are not replaced, and that is reported. Both are so
// as soon as the registry tells its followers that it has disabled the agent, and enabled it again.
func TestCredentialOfRegistry(t *testing.T) {
	const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	ca := catest.New(t)
	ca.Serve(t)
	ca.Add(aic, catest.Agent{DNS: []string{"agent.example.com"}})
	status, err := revocation.New(revocation.Config{Agent: AgentOf, Log: slog.New(slog.DiscardHandler),
		Sources: []revocation.Source{{Kind: revocation.ACPS, Location: ca.URL}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(status.Close)
	c := &Certificates{Directory: ca.Directory(), storage: &certmagic.FileStorage{Path: t.TempDir()}, status: status,
		client: &agentca.Client{Directory: ca.Directory(), HTTP: http.DefaultClient}}
	client, err := registry.New(registry.Config{URL: ca.URL})
	if err != nil {
		t.Fatal(err)
	}
	if c.feed, err = new(node.Feeds).Use(ca.URL, nil, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	from := &account{CA: ca, client: client}
	c.Start([]string{aic}, nil, from, slog.New(slog.DiscardHandler))
	t.Cleanup(c.Close)
	if s := c.Of(aic).Status(); len(s.Certificates) != 0 || from.asked.Load() != 0 {
		t.Errorf("certificates are obtained before the work begins: %+v", s)
	}
	work(t, c)
	asynctest.Eventually(t, "there are certificates", func() bool { return len(c.Of(aic).Status().Certificates) == 2 })
	asynctest.Eventually(t, "the registry is followed", func() bool { return c.feed.Agent(aic).Active })
	if n := from.asked.Load(); n != 1 {
		t.Errorf("the registry was asked for a credential %d times", n)
	}
	ca.Disable(aic)
	asynctest.Eventually(t, "the agent is reported as inactive", func() bool { return c.Of(aic).Status().Inactive })
	ca.Enable(aic)
	asynctest.Eventually(t, "the certificates are replaced", func() bool {
		s := c.Of(aic).Status()
		return s.Err == nil && !s.Inactive && ca.Counts().Orders == 4
	})
}

// work has the certificates looked after until the test ends.
func work(t *testing.T, c *Certificates) {
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Work(ctx, slog.New(slog.DiscardHandler)) })
	t.Cleanup(func() {
		end()
		running.Wait()
	})
}

// TestOwnCertificateOnList has an authority say only by its list which certificates are revoked, to the sources of the
// option revocation. While there is no list, and while it is stale, the certificates stay. The next one names one of
// them, though the registry has the agent as active: that one is replaced at once, and the other stays.
func TestOwnCertificateOnList(t *testing.T) {
	const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	ca := catest.New(t)
	ca.Serve(t)
	ca.Add(aic, catest.Agent{DNS: []string{"agent.example.com"}})
	ca.HideStatus()
	eab := filepath.Join(t.TempDir(), "eab.json")
	if err := os.WriteFile(eab, ca.EAB(aic), 0o600); err != nil {
		t.Fatal(err)
	}
	checker := func(of revocation.Source) *revocation.Checker {
		c, err := revocation.New(revocation.Config{Sources: []revocation.Source{of}, Refresh: 50 * time.Millisecond,
			Agent: AgentOf, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	host := checker(revocation.Source{Kind: revocation.CRL, Location: ca.URL + "/acps-atr-v2/crl/current"})
	host.Start()
	c := &Certificates{Directory: ca.Directory(), EAB: []string{"{file." + eab + "}"},
		storage: &certmagic.FileStorage{Path: t.TempDir()},
		client:  &agentca.Client{Directory: ca.Directory(), HTTP: http.DefaultClient},
		status:  checker(revocation.Source{Kind: revocation.ACPS, Location: ca.URL})}
	c.Start([]string{aic}, []*revocation.Checker{host}, nil, slog.New(slog.DiscardHandler))
	work(t, c)

	k := c.Of(aic)
	asynctest.Eventually(t, "there are certificates", func() bool { return len(k.Status().Certificates) == 2 })
	client, server := k.Certificate(agentca.ClientAuth), k.Certificate(agentca.ServerAuth)
	// decides waits for what the list says about a certificate.
	decides := func(want revocation.Reason) {
		t.Helper()
		chain, err := x509.ParseCertificates(slices.Concat(client.Certificate...))
		if err != nil {
			t.Fatal(err)
		}
		asynctest.Eventually(t, string(want), func() bool {
			refusal, is := errors.AsType[*revocation.Refusal](host.Check(t.Context(), chain, nil))
			return is && refusal.Reason == want
		})
		k.Wake()
	}
	decides(revocation.NoAnswer)
	ca.Publish(t, time.Now().Add(-time.Hour))
	decides(revocation.Stale)
	if !k.Certificate(agentca.ClientAuth).Leaf.Equal(client.Leaf) || ca.Counts().Orders != 2 {
		t.Errorf("a certificate was replaced of which nothing is known: %+v", ca.Counts())
	}
	ca.Revoke(client.Leaf)
	ca.Publish(t, time.Now().Add(time.Hour))
	decides(revocation.Revoked)
	asynctest.Eventually(t, "the certificate is replaced", func() bool {
		pair := k.Certificate(agentca.ClientAuth)
		return pair != nil && !pair.Leaf.Equal(client.Leaf)
	})
	// Connections show the new one without a reload.
	if pair, err := c.ClientCert(aic); err != nil || !pair.Leaf.Equal(k.Certificate(agentca.ClientAuth).Leaf) {
		t.Errorf("connections do not show the new certificate: %v", err)
	}
	if !k.Certificate(agentca.ServerAuth).Leaf.Equal(server.Leaf) {
		t.Error("the other certificate was replaced, too")
	}
	want := catest.Counts{EABs: 1, Accounts: 1, Orders: 3, Issued: map[string]int{"serverAuth": 1, "clientAuth": 2}}
	if diff := cmp.Diff(want, ca.Counts()); diff != "" {
		t.Errorf("the authority was made to do (-want +got):\n%s", diff)
	}
}
