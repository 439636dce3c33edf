// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/node"
)

// NoteHandshake logs, at the end of a connection of a site, that its handshake has ended because the client's
// certificate is not accepted. To the client that is an alert, and the server's own log has neither its name nor its
// issuer.
func (p *Process) NoteHandshake(conn net.Conn, state http.ConnState) {
	secure, ok := conn.(*tls.Conn)
	if !ok || state != http.StateClosed || secure.ConnectionState().HandshakeComplete {
		return
	}
	// A handshake that has failed is not begun again: its error is returned.
	refused, ok := errors.AsType[*tls.CertificateVerificationError](secure.Handshake())
	if !ok || len(refused.UnverifiedCertificates) == 0 || strings.Contains(refused.Error(), node.ErrRootRemoved.Error()) {
		return
	}
	p.node.RefusedHandshakes.NoteAs(refusalOf(refused.Err), refused.UnverifiedCertificates, refused.Err)
}

// refusalOf returns why a certificate could not be verified.
func refusalOf(err error) string {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return node.WrongRoot
	case ok && invalid.Reason == x509.Expired:
		return node.Expired
	case ok && invalid.Reason == x509.IncompatibleUsage:
		return node.WrongUsage
	}
	return node.NotVerified
}
