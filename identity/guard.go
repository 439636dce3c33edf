// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
)

// Mode is a Guard's requirement of callers.
type Mode string

// The modes of a Guard. An empty Mode is Required.
const (
	Required Mode = "required" // every caller needs a certificate
	Optional Mode = "optional" // a caller may have one; callers without one have Leaders of their own
	Off      Mode = "off"      // certificates are ignored, and senderId is believed
)

// ParseMode parses a mode of a configuration.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Required, Optional, Off:
		return m, nil
	}
	return "", fmt.Errorf("the identity mode is %q, and must be required, optional or off", s)
}

// unverified is the beginning of the name of a Leader without a proof, in mode optional. No AIC begins so: a mere claim
// of an AIC gives no access to the tasks of the AIC's Leader.
const unverified = limit.Unverified

// Guard decides about the peers' right to call, and about their Leaders. It may be used by any number of goroutines at
// once.
type Guard struct {
	Mode  Mode
	Allow []AIC // the only Leaders with the right to call; empty for every Leader
	// Proofs are, by the name of a dialect, the accepted proofs of its callers' identities. A dialect not in it accepts
	// all.
	Proofs map[string][]Proof
}

// CheckIn is Check for a caller of a dialect, with only this dialect's ways of proving its identity.
func (g *Guard) CheckIn(dialect string, peer Peer) (Peer, error) {
	proofs, limited := g.Proofs[dialect]
	if limited && !peer.Verified() && peer.refused == nil && g.Mode != Optional && g.Mode != Off {
		return Peer{}, unproven(proofs)
	}
	accepted, err := g.Check(peer)
	if err != nil || !limited || !accepted.Verified() || peer.Login || peer.Proof == ByBroker ||
		slices.Contains(proofs, peer.Proof) {
		return accepted, err
	}
	return Peer{}, unproven(proofs)
}

// Check returns the peer as the mode accepts it. A proof must not have expired; a connection may last longer. Mode
// required needs a proof; optional accepts a peer without one as the zero Peer; off returns the zero Peer, unless the
// peer has proven an id to a protocol in need of one. An error is a *task.Error of kind AuthenticationRequired.
func (g *Guard) Check(peer Peer) (Peer, error) {
	switch {
	case g.Mode == Off && !peer.loggedIn():
		return Peer{}, nil
	case peer.Verified():
		if !peer.Expires.IsZero() && time.Now().After(peer.Expires) {
			return Peer{}, Expired(peer.Proof)
		}
		return peer, nil
	case peer.refused != nil:
		return Peer{}, peer.refused
	case g.Mode == Optional:
		return Peer{}, nil
	}
	return Peer{}, g.unproven()
}

// ErrNoCertificate is the cause of an error for a peer without a certificate. The peer sends none, or the TLS server
// does not ask for one.
var ErrNoCertificate = errors.New("the peer has sent no client certificate")

// credentials has a name of the caller's credential for each proof.
var credentials = map[Proof]string{ByCertificate: "a client certificate with an AIC",
	ByProxy: "a client certificate with an AIC", ByToken: "a bearer token", ByKey: "a key"}

// unproven is the error for a peer without a proof, by the proofs of all dialects.
func (g *Guard) unproven() error {
	if g.Proofs == nil {
		return unproven([]Proof{ByCertificate})
	}
	return unproven(slices.Concat(slices.Collect(maps.Values(g.Proofs))...))
}

// unproven is the error for a peer with none of some proofs.
func unproven(proofs []Proof) error {
	var send []string
	for _, p := range proofs {
		if !slices.Contains(send, credentials[p]) {
			send = append(send, credentials[p])
		}
	}
	if len(send) == 0 {
		return refuse("No proof of callers of this protocol is accepted here. " +
			"The operator of this gateway must configure one.")
	}
	slices.Sort(send)
	if only := credentials[ByCertificate]; len(send) != 1 || send[0] != only {
		return refuse("Prove who you are. Send " + strings.Join(send, " or ") + ".")
	}
	return task.Errorf(task.AuthenticationRequired, "A client certificate with an AIC is required. "+
		"If you have sent one, the operator of this gateway must enable the verification of client certificates.").
		WithCause(ErrNoCertificate)
}

// Expired is the error for a peer if its proof, a certificate or a token, has expired since it was shown.
func Expired(proof Proof) error {
	if proof == ByToken {
		return refuse("The bearer token has expired. Send one that is valid.")
	}
	return refuse("The client certificate has expired. Open a new connection with one that is valid.")
}

// Admit checks the senderId of a request against its peer, and returns the name of the Leader owning the request's
// task: the id of the peer; in mode off, senderId itself; in mode optional for a peer without a proof, senderId after a
// prefix unknown to AICs. Errors are *task.Error: AuthorizationFailed if senderId is not the peer's id, or the Leader
// is not in the list; InvalidParams if it is no valid name of a sender.
func (g *Guard) Admit(peer Peer, senderID string) (leader string, err error) {
	if peer.Verified() && g.Mode != Off {
		if !peer.Is(senderID) {
			return "", task.Errorf(task.AuthorizationFailed, "senderId is not the AIC of the client certificate.").
				WithField("senderId")
		}
		return g.Owner(peer)
	}
	if err := checkSender(senderID); err != nil {
		return "", err
	}
	switch {
	case g.Mode == Off:
		if !Claimable(senderID) {
			return "", task.Errorf(task.InvalidParams, "senderId must not begin with %q, as the names of other callers do; "+
				"use an AIC.", senderID[:strings.IndexByte(senderID, ':')+1]).WithField("senderId")
		}
		if !g.allows(AICKind, normalise(senderID)) {
			return "", notAllowed()
		}
		return senderID, nil
	case g.Mode == Optional && len(g.Allow) == 0:
		return unverified + senderID, nil
	default:
		return "", g.unproven()
	}
}

// reserved begin the names of Leaders beyond the reach of a senderId: those of peers of other kinds, and of callers in
// mode optional.
var reserved = []string{string(AIDKind) + ":", string(JWTKind) + ":", string(KeyKind) + ":", string(OperatorKind) + ":",
	unverified}

// Claimable reports whether a caller in mode off may claim a Leader's name by its senderId. Tasks of other Leaders are
// not for such callers.
func Claimable(leader string) bool {
	return !slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(leader, prefix) })
}

// Owner is Admit for a request without a senderId, such as notification/set: the Leader is the peer. In mode off it is
// "": the request acts for the Leader of the task it names, if the Leader's name is Claimable.
func (g *Guard) Owner(peer Peer) (leader string, err error) {
	switch {
	case g.Mode == Off:
		return "", nil
	case !peer.Verified():
		if g.Proofs != nil {
			return "", g.unproven()
		}
		return "", refuse("A client certificate with an AIC is required, because this request carries no senderId.")
	case !g.allows(peer.Kind, peer.ID):
		return "", notAllowed()
	default:
		return peer.Leader(), nil
	}
}

// anonymous is the name of the Leader of peers without a proof or a name.
const anonymous = "anonymous"

// Anonymous is Admit for a dialect without senderIds: the Leader is the peer. Peers without a proof are one Leader
// together, if the mode admits them.
func (g *Guard) Anonymous(peer Peer) (leader string, err error) {
	switch {
	case peer.loggedIn():
		if !g.allows(peer.Kind, peer.ID) {
			return "", notAllowed()
		}
		return peer.Leader(), nil
	case g.Mode == Off && len(g.Allow) == 0:
		return anonymous, nil
	case g.Mode == Optional && !peer.Verified() && len(g.Allow) == 0:
		return unverified + anonymous, nil
	case !peer.Verified():
		return "", g.unproven()
	}
	return g.Owner(peer)
}

// Knows reports whether a Leader may call by a name, as far as the guard knows. When it may not, everything it has
// going on without a call ends.
func (g *Guard) Knows(leader string) bool {
	kind, id := SplitLeader(leader)
	switch {
	case strings.HasPrefix(leader, string(OperatorKind)+":"):
		return true
	case strings.HasPrefix(leader, unverified):
		return g.Mode == Optional && len(g.Allow) == 0
	case g.Mode == Off && kind != AIDKind && !Claimable(leader):
		return false
	}
	return g.allows(kind, id)
}

// allows reports whether a Leader may call. A list admits only AICs, and the operator, with power over the list.
func (g *Guard) allows(kind Kind, id string) bool {
	return len(g.Allow) == 0 || kind == OperatorKind || kind == AICKind && slices.Contains(g.Allow, AIC(id))
}

func notAllowed() error {
	return task.Errorf(task.AuthorizationFailed, "This Leader is not allowed to call this Partner.")
}

func checkSender(s string) error {
	switch {
	case s == "":
		return task.Errorf(task.InvalidParams, "senderId is empty.").WithField("senderId")
	case len(s) > maxSender:
		return task.Errorf(task.InvalidParams, "senderId has %d bytes, and at most %d are allowed.", len(s), maxSender).
			WithField("senderId")
	case strings.ContainsFunc(s, unicode.IsControl):
		return task.Errorf(task.InvalidParams, "senderId has a control character.").WithField("senderId")
	}
	return nil
}

// sameAIC reports whether s, normalised, is aic. It allocates nothing.
func sameAIC(s string, aic AIC) bool {
	if s = trimmed(s); len(s) != len(aic) {
		return false
	}
	for i := range len(s) {
		if upper(s[i]) != aic[i] {
			return false
		}
	}
	return true
}
