// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
)

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

// Check returns what counts of a peer. A proof counts only as long as it is valid: a connection may last for longer.
// With mode required there must be one; with optional, none gives the zero Peer; with off, the zero Peer is all there
// is. An error is a *task.Error of kind AuthenticationRequired.
func (g *Guard) Check(peer Peer) (Peer, error) {
	switch {
	case g.Mode == Off:
		return Peer{}, nil
	case peer.Verified():
		if !peer.Expires.IsZero() && time.Now().After(peer.Expires) {
			return Peer{}, Expired()
		}
		return peer, nil
	case peer.refused != nil:
		return Peer{}, peer.refused
	case g.Mode == Optional:
		return Peer{}, nil
	}
	return Peer{}, refuse("A client certificate with an AIC is required.")
}

// Expired is the error for a peer whose certificate has expired since its connection was opened.
func Expired() error {
	return refuse("The client certificate has expired. Open a new connection with one that is valid.")
}

// Admit binds the senderId of a request to its peer, and returns the name of the Leader that the request's
// task belongs to: the AIC of the certificate; with mode off, senderId itself; with mode optional and no
// certificate, senderId behind a mark that no AIC has. Errors are *task.Error: AuthorizationFailed where
// senderId is not the peer's AIC, or the Leader is not on the list.
func (g *Guard) Admit(peer Peer, senderID string) (leader string, err error) {
	if peer.Verified() && g.Mode != Off {
		if !peer.Is(senderID) {
			return "", task.Errorf(task.AuthorizationFailed, "senderId is not the AIC of the client certificate.").WithField("senderId")
		}
		return g.Owner(peer)
	}
	if err := checkSender(senderID); err != nil {
		return "", err
	}
	switch {
	case g.Mode == Off:
		if !g.allows(AICKind, normalise(senderID)) {
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
	case !g.allows(peer.Kind, peer.ID):
		return "", notAllowed()
	default:
		return peer.Leader(), nil
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

// allows reports whether a Leader may call. A list admits none but AICs.
func (g *Guard) allows(kind Kind, id string) bool {
	return len(g.Allow) == 0 || kind == AICKind && slices.Contains(g.Allow, AIC(id))
}

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
