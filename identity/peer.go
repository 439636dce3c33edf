// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Peer is the other end of a connection, and what it has proven of itself. A front makes it from its transport. The
// zero Peer has proven nothing.
type Peer struct {
	Proof Proof
	Kind  Kind   // of ID
	ID    string // who the peer is, in the one form in which it is written; empty where nothing is proven

	// Expires is the last moment at which the proof is valid: of a certificate, that of the longest of its chains.
	// Zero means that it does not expire.
	Expires time.Time

	refused error // why what the peer has shown does not count; nil if it has shown nothing
}

// Proof says how a peer has proven who it is.
type Proof uint8

// The proofs.
const (
	Unproven      Proof = iota // not at all
	ByCertificate              // by the certificate of a TLS connection
	ByToken                    // by a token in its request
	ByBroker                   // to a message broker, which names its user
)

// Kind says what protocol's id a Peer has.
type Kind string

// AICKind is the kind of the ids of AIP. Their canonical form is that of ParseAIC.
const AICKind Kind = "aic"

// Verified reports whether the peer has proven who it is.
func (p Peer) Verified() bool { return p.Proof != Unproven }

// Leader returns the name of the Leader that a verified peer is: an AIC as it is, and every other id behind its kind,
// so that no two kinds share a name.
func (p Peer) Leader() string {
	if p.Kind == AICKind {
		return p.ID
	}
	return string(p.Kind) + ":" + p.ID
}

// Is reports whether the peer is the one that an id names. AICs may be written in either case.
func (p Peer) Is(id string) bool {
	if p.Kind == AICKind {
		return sameAIC(id, AIC(p.ID))
	}
	return id == p.ID
}

// ErrNotVerified is the cause of an error for a peer whose certificate the TLS server did not verify: the operator has
// to enable the verification.
var ErrNotVerified = errors.New("the TLS server does not verify client certificates")

func notVerified() error {
	return task.Errorf(task.AuthenticationRequired, "The client certificate was not verified. "+
		"The operator of this gateway must enable the verification of client certificates.").WithCause(ErrNotVerified)
}

// OfConnection returns the peer of a TLS connection; state is nil where there is no TLS. Only a certificate that TLS
// has verified counts.
func OfConnection(state *tls.ConnectionState) Peer {
	switch {
	case state == nil:
		return Peer{}
	case len(state.VerifiedChains) > 0 && len(state.VerifiedChains[0]) > 0:
		aic, err := aicOf(state.VerifiedChains[0][0])
		if err != nil {
			return Peer{refused: err}
		}
		return Peer{Proof: ByCertificate, Kind: AICKind, ID: string(aic), Expires: expiry(state.VerifiedChains)}
	case len(state.PeerCertificates) > 0:
		return Peer{refused: notVerified()}
	}
	return Peer{}
}

// expiry returns when the longest of the verified chains ends: a chain ends with its first certificate.
func expiry(chains [][]*x509.Certificate) (last time.Time) {
	for _, chain := range chains {
		ends := chain[0].NotAfter
		for _, cert := range chain[1:] {
			if cert.NotAfter.Before(ends) {
				ends = cert.NotAfter
			}
		}
		if ends.After(last) {
			last = ends
		}
	}
	return last
}

// known holds the AICs of the last certificates, because one connection brings the same certificate with every request.
// Each slot has the certificate that was read last: a collision costs one reading of a certificate. Only verified
// certificates are kept, so that a stranger cannot replace those of others.
var known [1024]atomic.Pointer[knownAIC]

type knownAIC struct {
	cert *x509.Certificate
	aic  AIC
}

// aicOf is FromCertificate for a verified certificate, which has mostly been read before.
func aicOf(cert *x509.Certificate) (AIC, error) {
	slot := &known[0]
	if n := len(cert.Raw); n >= 4 {
		// A certificate ends with its signature, which is as good as random.
		slot = &known[binary.LittleEndian.Uint32(cert.Raw[n-4:])%uint32(len(known))]
	}
	if k := slot.Load(); k != nil && (k.cert == cert || bytes.Equal(k.cert.Raw, cert.Raw)) {
		return k.aic, nil
	}
	aic, err := FromCertificate(cert)
	if err != nil {
		return "", err
	}
	slot.Store(&knownAIC{cert, aic})
	return aic, nil
}
