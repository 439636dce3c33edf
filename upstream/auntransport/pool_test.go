// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
)

// TestPoolShares: configurations share a connection only if they present and accept the same certificates. Connections
// open at the same time have slots of their own.
func TestPoolShares(t *testing.T) {
	pki := auntest.NewPKI(t)
	id, renewed := pki.Identity("alice.aid.test"), pki.Identity("alice.aid.test")
	ca := func(of *auntest.PKI) *x509.CertPool {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(of.RootsPEM())
		return pool
	}
	other := auntest.NewPKI(t)
	config := func(change func(c *aun.ClientConfig, secure *tls.Config)) aun.ClientConfig {
		secure := &tls.Config{RootCAs: ca(pki), ServerName: "gw.test"}
		c := aun.ClientConfig{Identity: id, Roots: pki.Roots(), URL: "wss://gw.test/aun", Peer: "agent.aid.test"}
		change(&c, secure)
		c.HTTP = &http.Client{Transport: &http.Transport{TLSClientConfig: secure}}
		return c
	}
	same := func(*aun.ClientConfig, *tls.Config) {}
	for name, change := range map[string]func(*aun.ClientConfig, *tls.Config){
		"another CA":          func(_ *aun.ClientConfig, s *tls.Config) { s.RootCAs = ca(other) },
		"the system's CAs":    func(_ *aun.ClientConfig, s *tls.Config) { s.RootCAs = nil },
		"another server name": func(_ *aun.ClientConfig, s *tls.Config) { s.ServerName = "other.test" },
		"a client certificate": func(_ *aun.ClientConfig, s *tls.Config) {
			s.Certificates = []tls.Certificate{{Certificate: [][]byte{id.Chain[0].Raw}}}
		},
		"other roots of AUN":    func(c *aun.ClientConfig, _ *tls.Config) { c.Roots = other.Roots() },
		"a renewed certificate": func(c *aun.ClientConfig, _ *tls.Config) { c.Identity = renewed },
		"a revoked certificate": func(c *aun.ClientConfig, _ *tls.Config) {
			if err := c.Roots.Revoke(pki.Revoke(renewed)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var pool Pool
			first := pool.take(config(same), nil)
			if again := pool.take(config(same), nil); again != first {
				t.Error("the same settings have two connections")
			}
			second := pool.take(config(change), nil)
			if second == first || second.config.Slot == first.config.Slot {
				t.Errorf("they share a connection, or the slot %q", first.config.Slot)
			}
			if again := pool.take(config(change), nil); again != second {
				t.Error("the changed settings have two connections")
			}
			if last := pool.take(config(change), first); last != first {
				t.Error("a connection that is open is not used any more")
			}
			for _, l := range []*link{first, first, first, second, second} {
				pool.release(l)
			}
			third := pool.take(config(change), first)
			if third == first || third.config.Slot != "" {
				t.Errorf("after the others have ended, the slot is %q", third.config.Slot)
			}
			if pool.release(third); len(pool.links) != 0 {
				t.Errorf("what is left: %v", pool.links)
			}
		})
	}
	var plain Pool
	c := aun.ClientConfig{Identity: id, Roots: pki.Roots(), Peer: "agent.aid.test"}
	first, again := plain.take(c, nil), plain.take(c, nil)
	if first != again {
		t.Error("the defaults have two connections")
	}
	plain.release(first)
	plain.release(again)
}
