// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"runtime"
	"sync"
	"weak"
)

// certificates has one copy of each caller's certificate, for as long as a connection holds it. crypto/tls shares the
// certificates of servers this way, but not those of clients.
var certificates sync.Map // string of Certificate.Raw to weak.Pointer[x509.Certificate]

// shareCertificates makes a connection hold shared copies of its caller's certificates: the slices of a state are those
// of its connection. Nothing else may read them meanwhile, and over HTTP/1.1 nothing does during a handler. It returns
// the state; a handler cannot have changed it, unlike a request's state; nil without TLS.
func shareCertificates(c net.Conn) *tls.ConnectionState {
	secure, ok := c.(overTLS)
	if !ok {
		return nil
	}
	s := secure.ConnectionState()
	for i, c := range s.PeerCertificates {
		s.PeerCertificates[i] = shared(c)
	}
	for _, chain := range s.VerifiedChains {
		for i := range len(chain) - 1 { // the last one is shared by all chains already
			chain[i] = shared(chain[i])
		}
	}
	return &s
}

// shared returns the shared copy of a certificate for all connections.
func shared(c *x509.Certificate) *x509.Certificate {
	key := string(c.Raw)
	for {
		own := weak.Make(c)
		first, loaded := certificates.LoadOrStore(key, own)
		if !loaded {
			runtime.AddCleanup(c, func(w weak.Pointer[x509.Certificate]) { certificates.CompareAndDelete(key, w) }, own)
			return c
		}
		if c := first.(weak.Pointer[x509.Certificate]).Value(); c != nil {
			return c
		}
		certificates.CompareAndDelete(key, first)
	}
}
