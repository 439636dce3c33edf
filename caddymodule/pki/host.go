// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/upstream/callerinfo"
)

// Host is what the modules of this package need of the app in whose configuration they stand.
type Host struct {
	Process *Process
	// Configuration is the app's.
	Configuration *node.Configuration
	// Certificates are those that the app obtains; nil for none.
	Certificates *Certificates
	// Issuer signs tokens; nil for none.
	Issuer *callerinfo.Issuer
	// At returns the AICs of the Partners that a handshake reaches, of those whose certificates are obtained; none where
	// that is not known.
	At func(*tls.ClientHelloInfo) []string
	// Loaded are the certificates of files that are read once. The app sets them before the configuration has started.
	Loaded Validities
	// Current returns those that are renewed without a reload.
	Current func() Validities

	mu          sync.Mutex
	getters     []*CertificateGetter
	revocations []rootRevocation
}

// StartLimit is how long a handshake waits for the app, which may start after the server.
const StartLimit = 10 * time.Second

// hostOf returns the Host of the app of a configuration.
func hostOf(ctx caddy.Context) (*Host, error) {
	app, err := ctx.App("aip")
	if err != nil {
		return nil, err
	}
	return app.(interface{ PKI() *Host }).PKI(), nil
}

// Getters returns the modules get_certificate aip of the configuration.
func (h *Host) Getters() []*CertificateGetter {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.getters
}

// Sites returns the TLS app whose sites show certificates by get_certificate aip; nil if none does.
func (h *Host) Sites() (*caddytls.TLS, error) {
	all := h.Getters()
	if len(all) == 0 {
		return nil, nil
	}
	app, err := all[0].ctx.App("tls")
	if err != nil {
		return nil, err
	}
	return app.(*caddytls.TLS), nil
}

// AgentOf returns the AIC of a certificate; empty for none.
func AgentOf(cert *x509.Certificate) string {
	peer := identity.OfConnection(&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}})
	if peer.Kind != identity.AICKind {
		return ""
	}
	return peer.ID
}
