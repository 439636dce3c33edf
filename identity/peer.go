// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Peer is the other end of a connection, with its proven identity. Each front makes it from its transport. The zero
// Peer has proven nothing.
type Peer struct {
	Proof Proof
	Kind  Kind   // of ID
	ID    string // in its canonical form; empty if nothing is proven

	// Expires is the last moment of the proof's validity; zero for no end. The longest of a certificate's chains counts.
	Expires time.Time

	// Login is true if the peer has logged in by a protocol in which every caller has an id, so no Mode of a Guard makes
	// it an unknown one.
	Login bool

	CommonName string // of the peer's certificate, accepted or not, for the log

	// Chains are the verified chains of the certificate of the proof; nil for another proof.
	Chains [][]*x509.Certificate
	// Staple is the peer's OCSP response about its certificate (TLS 1.3); nil for none.
	Staple []byte
	// Claims are the content of the token of the proof; nil for another proof.
	Claims *Claims

	refused error // the reason for refusing the peer's certificate; nil if it has none
}

// Proof is a peer's way of proving its identity.
type Proof uint8

// The proofs.
const (
	Unproven      Proof = iota // not at all
	ByCertificate              // by a certificate, to the TLS server
	ByToken                    // by a token in the request
	ByBroker                   // to a message broker, by its statement of the user id
	ByHost                     // to the host of the gateway, as its operator
	ByProxy                    // by a certificate, to a proxy handing it on
	ByKey                      // by a key in the request
)

var proofNames = [...]string{"", "certificate", "token", "broker", "host", "proxy", "key"}

// String returns the name of the proof, for logs; empty for none.
func (p Proof) String() string { return proofNames[p] }

// Kind is the protocol of a peer's id.
type Kind string

// The kinds of ids.
const (
	AICKind Kind = "aic" // of AIP; its canonical form is ParseAIC's
	AIDKind Kind = "aid" // of AUN: a host name in lower case
	JWTKind Kind = "jwt" // of an issuer of tokens: <issuer>|<sub>
	KeyKind Kind = "key" // of a key: its name

	OperatorKind Kind = "operator" // of the gateway's host
)

// Verified reports whether the peer has proven its identity.
func (p Peer) Verified() bool { return p.Proof != Unproven }

// loggedIn reports whether the peer has proven its identity by a login.
func (p Peer) loggedIn() bool { return p.Login && p.Verified() }

// Leader returns the name of a verified peer as a Leader: an AIC itself, or another id after its kind, so ids of two
// kinds are never the same name.
func (p Peer) Leader() string {
	if p.Kind == AICKind {
		return p.ID
	}
	return string(p.Kind) + ":" + p.ID
}

// SplitLeader returns the kind and the id of a Leader's peer, from a name as Leader makes it.
func SplitLeader(leader string) (kind Kind, id string) {
	for _, kind := range []Kind{AIDKind, JWTKind, KeyKind} {
		if id, ok := strings.CutPrefix(leader, string(kind)+":"); ok {
			return kind, id
		}
	}
	return AICKind, leader
}

// Is reports whether an id is the peer's. An AIC may be in either case. The holder of a token or a key is named as its
// Leader.
func (p Peer) Is(id string) bool {
	switch p.Kind {
	case AICKind:
		return sameAIC(id, AIC(p.ID))
	case JWTKind, KeyKind:
		return id == p.Leader()
	}
	return id == p.ID
}

// Refused returns the peer of a refused credential. err is a *task.Error of kind AuthenticationRequired.
func Refused(err error) Peer { return Peer{refused: err} }

// Refusal returns the reason for refusing the peer's credential; nil if it is accepted, or if it has shown none.
func (p Peer) Refusal() error { return p.refused }

// Causes of errors for credentials in a request, for a front's choice of the status and the challenge (RFC 6750, §3).
var (
	ErrMalformed = errors.New("the credential has no valid form, or there are several")
	ErrInvalid   = errors.New("the credential is not accepted")
)

// ScopeError is the cause of an error for a token without a needed scope.
type ScopeError struct{ Needed []string }

// Error implements error.
func (e *ScopeError) Error() string {
	return "the token lacks one of the scopes " + strings.Join(e.Needed, " ")
}

// ErrNotVerified is the cause of an error for a peer with a certificate not verified by the TLS server: the operator
// has to enable the verification.
var ErrNotVerified = errors.New("the TLS server does not verify client certificates")

func notVerified() error {
	return task.Errorf(task.AuthenticationRequired, "The client certificate was not verified. "+
		"The operator of this gateway must enable the verification of client certificates.").WithCause(ErrNotVerified)
}

// OfConnection returns the peer of a connection; state is nil without TLS. Only a certificate verified by TLS is a
// proof.
func OfConnection(state *tls.ConnectionState) Peer {
	switch {
	case state == nil:
		return Peer{}
	case len(state.VerifiedChains) > 0 && len(state.VerifiedChains[0]) > 0:
		aic, err := aicOf(state.VerifiedChains[0][0])
		if err != nil {
			return Peer{CommonName: state.VerifiedChains[0][0].Subject.CommonName, refused: err}
		}
		return Peer{Proof: ByCertificate, Kind: AICKind, ID: string(aic), Expires: expiry(state.VerifiedChains),
			CommonName: state.VerifiedChains[0][0].Subject.CommonName, Chains: state.VerifiedChains,
			Staple: state.OCSPResponse}
	case len(state.PeerCertificates) > 0:
		return Peer{CommonName: state.PeerCertificates[0].Subject.CommonName, refused: notVerified()}
	}
	return Peer{}
}

// expiry returns when the longest valid chain expires. A chain expires with the first of its certificates.
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

// known caches the AICs of certificates, because a connection has the same certificate in every request. Each slot
// holds one certificate: after a collision, a certificate is parsed again. Only verified certificates are cached, so
// strangers cannot evict others.
var known [1024]atomic.Pointer[knownAIC]

type knownAIC struct {
	cert *x509.Certificate
	aic  AIC
}

// aicOf is FromCertificate for a verified certificate, with the cache.
func aicOf(cert *x509.Certificate) (AIC, error) {
	slot := &known[0]
	if n := len(cert.Raw); n >= 4 {
		// A certificate ends with its signature, and this is as good as random.
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
