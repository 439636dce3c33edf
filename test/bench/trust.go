// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// rulesAndQuotas are ten rules, of which the last one has the calls, and two quotas that count each call.
var rulesAndQuotas = func() string {
	var b strings.Builder
	b.WriteString("policy {\n")
	for i := range 9 {
		fmt.Fprintf(&b, "deny r%[1]d {\nvendor 100010000%[1]d\ncertificate organization \"Example Ltd\"\n"+
			"command start get\n}\n", i)
	}
	b.WriteString("allow all command start get\n}\n" +
		"quota share {\ncalls 1000000/s burst 1000000\nstarts 1000000000/day\nbytes 100TiB/day\n}\n" +
		"quota agent {\nof agent\ncalls 1000000/s burst 1000000\n}\n")
	return b.String()
}()

// revokedCertificates is how many a list has.
const revokedCertificates = 100_000

// trusted measures what the checks of a caller cost: starts over mutual TLS, with nothing configured, and with rules
// and quotas, an access token, and a list of revoked certificates, each in turns with nothing. Another site with
// nothing says how much of a ratio is chance. The list is an option of the whole process, so it has one of its own.
func trusted(ctx context.Context, o settings) error {
	issuer, err := newIssuer()
	if err != nil {
		return err
	}
	defer issuer.server.Close()
	token := issuer.block("require")
	sites, err := sitesWith("", "", rulesAndQuotas, token)
	if err != nil {
		return err
	}
	one, err := newSite(ctx, o.caddy, siteConfig{more: sites.config})
	if err != nil {
		return err
	}
	defer one.close()
	both, err := sitesWith("", rulesAndQuotas+token)
	if err != nil {
		return err
	}
	two, err := newSite(ctx, o.caddy, siteConfig{
		store: storeState + "\n\t\trevocation {\n\t\t\tcrl DIR.crl\n\t\t}", more: both.config,
		prepare: func(dir string, pki *devpki.PKI) error { return writeList(filepath.Join(dir, "store.crl"), pki) },
	})
	if err != nil {
		return err
	}
	defer two.close()
	tokens := make([]string, 2) // one for all calls at a site, as callers use it
	for i, s := range []*site{one, two} {
		if tokens[i], err = issuer.sign(string(s.pki.Leader.AIC), "shared"); err != nil {
			return err
		}
	}
	nothing := sites.way(one, 0, nil)
	list := []struct {
		name string
		way
	}{
		{"nothing, at another site", sites.way(one, 1, nil)},
		{"ten rules, two quotas", sites.way(one, 2, nil)},
		{"access token", sites.way(one, 3, always(tokens[0]))},
		{"list of revoked certificates", both.way(two, 0, nil)},
		{"all of them", both.way(two, 1, always(tokens[1]))},
	}
	for _, callers := range []int{1, o.conns} {
		t := o.table("what callers are checked by, to nothing: unary start, mutual TLS, "+plural(callers, "connection"),
			"throughput", "least", "greatest", "CPU", "more µs each")
		for _, c := range list {
			rounds, err := inTurns(ctx, o, callers, c.way, nothing)
			if err != nil {
				return err
			}
			p := pairs{gateway: rounds[0], proxy: rounds[1]}
			var ratios, more []float64 // of the CPU time of a call, round by round
			for i := range rounds[0] {
				a, b := micros(rounds[0][i].cpu), micros(rounds[1][i].cpu)
				ratios, more = append(ratios, a/b), append(more, a-b)
			}
			t.row(c.name, append(spread(p.ratios()), median(ratios), median(more))...)
		}
	}
	return nil
}

// extraSites are sites of aip_gateway over mutual TLS beside those that every site has.
type extraSites struct {
	config string
	ports  []int
}

// sitesWith returns a site for each block of aip_gateway.
func sitesWith(blocks ...string) (e extraSites, err error) {
	for _, block := range blocks {
		port, err := freeport.Take()
		if err != nil {
			return e, err
		}
		e.ports = append(e.ports, port)
		e.config += fmt.Sprintf("https://localhost:%d {\nimport mutual\nimport gateway identity required {\n%s}\n}\n",
			port, block)
	}
	return e, nil
}

// way returns starts at the i-th of the sites, which the process of s has. token returns the access token of the n-th
// call; nil for none.
func (e *extraSites) way(s *site, i int, token func(n int64) string) way {
	t := aipStart(s, mtls1)
	t.addr = fmt.Sprintf("127.0.0.1:%d", e.ports[i])
	if token != nil {
		t.header = func(dst []byte, n int64) []byte {
			return fmt.Appendf(dst, "Authorization: Bearer %s\r\n", token(n))
		}
	}
	return way{target: t, process: s.gateway}
}

// writeList writes a list of revoked certificates of the root, in which the Leader's is not.
func writeList(path string, pki *devpki.PKI) error {
	ca, err := tls.LoadX509KeyPair(pki.CA.Cert, pki.CA.Key)
	if err != nil {
		return err
	}
	now := time.Now()
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now.Add(-time.Hour), NextUpdate: now.Add(24 * time.Hour)}
	for i := range revokedCertificates {
		l.RevokedCertificateEntries = append(l.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: big.NewInt(int64(i) + 1_000_000), RevocationTime: now.Add(-time.Hour)})
	}
	issuer, err := x509.ParseCertificate(ca.Certificate[0])
	if err != nil {
		return err
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, issuer, ca.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		return err
	}
	return os.WriteFile(path, der, 0o600)
}
