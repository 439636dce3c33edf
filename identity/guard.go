// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
)

// Peer is the authenticated other end of a connection. The zero Peer is one that nobody has verified.
type Peer struct {
	AIC         AIC
	Fingerprint string // SHA-256 of the certificate, in lower-case hex

	// Expires is the last moment at which its certificate, or the longest of its chains, is valid. Zero without one.
	Expires time.Time
}

// Verified reports whether p showed a certificate that counts.
func (p Peer) Verified() bool { return p.AIC != "" }

// Mode says how much a Guard asks of a caller.
type Mode string

// The modes of a Guard. An empty Mode is Required.
const (
	Required Mode = "required" // every caller needs a certificate
	Optional Mode = "optional" // a caller may have one; what it claims without one is kept apart
	Off      Mode = "off"      // certificates are not looked at, and senderId is believed
)

// ParseMode reads a mode as it stands in a configuration.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Required, Optional, Off:
		return m, nil
	}
	return "", fmt.Errorf("the identity mode is %q, and must be required, optional or off", s)
}

// unverified begins the Leader's name where a Guard is Optional and nobody has verified the caller. No AIC
// begins so: whoever merely claims an AIC does not come by the tasks of the one who has it.
const unverified = quota.Unverified

// Guard decides who may call, and as whom. It may be used by any number of goroutines at once.
type Guard struct {
	Mode  Mode
	Allow []AIC // the only Leaders to admit; none means every Leader
}

// Peer returns the other end of a connection. Only a certificate that TLS has verified counts, and only as long as it is
// valid: TLS looks at it when the connection is opened, and the connection may last for longer. With mode required
// there must be one; with optional, none gives the zero Peer; with off, the zero Peer is all there is. An error is a
// *task.Error of kind AuthenticationRequired.
func (g *Guard) Peer(state *tls.ConnectionState) (Peer, error) {
	switch {
	case g.Mode == Off:
		return Peer{}, nil
	case state != nil && len(state.VerifiedChains) > 0 && len(state.VerifiedChains[0]) > 0:
		peer, err := peerOf(state.VerifiedChains[0][0])
		if err != nil {
			return Peer{}, err
		}
		if peer.Expires = expiry(state.VerifiedChains); time.Now().After(peer.Expires) {
			return Peer{}, Expired()
		}
		return peer, nil
	case state != nil && len(state.PeerCertificates) > 0 && g.Mode == Optional:
		return Peer{}, refuse("The client certificate was not verified. The operator of this gateway has to set " +
			"`mode verify_if_given` in the tls client_auth of the site.")
	case state != nil && len(state.PeerCertificates) > 0:
		return Peer{}, refuse("The client certificate was not verified. The operator of this gateway has to set " +
			"`mode require_and_verify` in the tls client_auth of the site.")
	case g.Mode == Optional:
		return Peer{}, nil
	default:
		return Peer{}, refuse("A client certificate with an AIC is required.")
	}
}

// Expired is the error for a peer whose certificate has expired since its connection was opened.
func Expired() error {
	return refuse("The client certificate has expired. Open a new connection with one that is valid.")
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

// Admit binds the senderId of a request to its peer, and returns the name of the Leader that the request's
// task belongs to: the AIC of the certificate; with mode off, senderId itself; with mode optional and no
// certificate, senderId behind a mark that no AIC has. Errors are *task.Error: AuthorizationFailed where
// senderId is not the peer's AIC, or the Leader is not on the list.
func (g *Guard) Admit(peer Peer, senderID string) (leader string, err error) {
	if peer.Verified() && g.Mode != Off {
		if !sameAIC(senderID, peer.AIC) {
			return "", task.Errorf(task.AuthorizationFailed, "senderId is not the AIC of the client certificate.").WithField("senderId")
		}
		return g.Owner(peer)
	}
	if err := checkSender(senderID); err != nil {
		return "", err
	}
	switch {
	case g.Mode == Off:
		if !g.allows(AIC(normalise(senderID))) {
			return "", notAllowed()
		}
		return senderID, nil
	case g.Mode == Optional && len(g.Allow) == 0:
		return unverified + senderID, nil
	default:
		return "", refuse("A client certificate with an AIC is required.")
	}
}

// Owner is Admit for a request that carries no senderId, such as notification/set: the Leader is the peer. With
// mode off it is "", which means that the request acts for the Leader of the task that it names.
func (g *Guard) Owner(peer Peer) (leader string, err error) {
	switch {
	case g.Mode == Off:
		return "", nil
	case !peer.Verified():
		return "", refuse("A client certificate with an AIC is required, because this request carries no senderId.")
	case !g.allows(peer.AIC):
		return "", notAllowed()
	default:
		return string(peer.AIC), nil
	}
}

// anonymous is the Leader of those that nobody has verified and that do not say who they are.
const anonymous = "anonymous"

// Anonymous is Admit for a request of a dialect whose callers do not name themselves: the Leader is the peer.
// Those without a certificate, where the mode lets them in, are one Leader together.
func (g *Guard) Anonymous(peer Peer) (leader string, err error) {
	switch {
	case g.Mode == Off && len(g.Allow) == 0:
		return anonymous, nil
	case g.Mode == Optional && !peer.Verified() && len(g.Allow) == 0:
		return unverified + anonymous, nil
	case !peer.Verified():
		return "", refuse("A client certificate with an AIC is required.")
	}
	return g.Owner(peer)
}

func (g *Guard) allows(aic AIC) bool { return len(g.Allow) == 0 || slices.Contains(g.Allow, aic) }

func notAllowed() error {
	return task.Errorf(task.AuthorizationFailed, "This Leader is not allowed to call this Partner.")
}

func checkSender(s string) error {
	switch {
	case s == "":
		return task.Errorf(task.InvalidParams, "senderId is empty.").WithField("senderId")
	case len(s) > maxSender:
		return task.Errorf(task.InvalidParams, "senderId has %d bytes, and at most %d are allowed.", len(s), maxSender).WithField("senderId")
	case strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }):
		return task.Errorf(task.InvalidParams, "senderId has a control character.").WithField("senderId")
	}
	return nil
}

// sameAIC reports whether s is aic, as normalise would write it. It allocates nothing.
func sameAIC(s string, aic AIC) bool {
	s = strings.Trim(s, " \t\r\n")
	if len(s) != len(aic) {
		return false
	}
	for i := range len(s) {
		if upper(s[i]) != aic[i] {
			return false
		}
	}
	return true
}
