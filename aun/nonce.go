// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"container/list"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// nonceLife is the time for which a nonce of a login is valid. It is valid once.
const nonceLife = time.Minute

// maxLogins is the number of logins between their two steps, at most. Of more, the oldest is given up: an unproven
// login takes nothing from the AID it names.
const maxLogins = 10_000

// NewNonce returns a random, unguessable text.
func NewNonce() string { return rand.Text() }

// A private key of an AID signs nonces chosen by others, so its signatures must not mean anything elsewhere. A nonce
// has the alphabet of hex, base64 or base64url, so it is neither a token, which has dots, nor the signed text of a
// login's second step, which has a colon. And neither end signs a nonce of one purpose for the other: a service's
// signature for any client is not one by which its AID logs in at a peer.
const (
	maxNonce      = 128        // bytes
	servicePrefix = "service-" // of this end's nonces for a service, or the server of a peer, to prove itself
	peerPrefix    = "peer-"    // of this end's nonces for a client of peer mode to prove itself
)

func serviceNonce() string { return servicePrefix + NewNonce() }

func peerNonce() string { return peerPrefix + NewNonce() }

// isNonce reports whether a text has the form of a nonce.
func isNonce(text string) bool {
	letters := strings.TrimRight(text, "=")
	return letters != "" && len(text) <= maxNonce && len(text)-len(letters) <= 2 &&
		!strings.ContainsFunc(letters, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+/-_", r))
		})
}

// asksService reports whether a nonce may be signed by a service, or by the server of a peer.
func asksService(nonce string) bool { return isNonce(nonce) && !strings.HasPrefix(nonce, peerPrefix) }

// asksPeer reports whether a nonce may be signed by a client of peer mode.
func asksPeer(nonce string) bool { return isNonce(nonce) && !strings.HasPrefix(nonce, servicePrefix) }

func badNonce(name string) *Error {
	return Errorf(codes.InvalidParams, "%s must be random, in hex, base64 or base64url, and have 1 to %d characters",
		name, maxNonce)
}

// login is a login between its two steps.
type login struct {
	aid     AID
	request string
	nonce   string
	cert    *Certificate
	expires time.Time
}

// logins are the logins between their two steps, by nonce. They belong to no connection, because clients take each step
// on a connection of its own.
type logins struct {
	mu    sync.Mutex
	open  map[string]*list.Element // of order
	order list.List                // of login, the oldest first
}

// begin adds a login.
func (l *logins) begin(in login) {
	now := time.Now()
	in.expires = now.Add(nonceLife)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[string]*list.Element)
	}
	for e := l.order.Front(); e != nil && (len(l.open) >= maxLogins || now.After(e.Value.(login).expires)); {
		l.drop(e)
		e = l.order.Front()
	}
	l.open[in.nonce] = l.order.PushBack(in)
}

// take removes the login with a nonce, and returns it; nil for none.
func (l *logins) take(nonce string) *login {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open[nonce]
	if e == nil {
		return nil
	}
	in := l.drop(e)
	return &in
}

// check checks the second step of a login against the first one. in is nil for a login without a first step.
func (in *login) check(aid AID, request string) error {
	switch {
	case in == nil:
		return Errorf(codes.CertificateInvalid, "The nonce is unknown, or has been used")
	case in.aid != aid || in.request != request:
		return Errorf(codes.CertificateInvalid, "The nonce is that of another login")
	case time.Now().After(in.expires):
		return Errorf(codes.CertificateInvalid, "The nonce has expired")
	}
	return nil
}

func (l *logins) drop(e *list.Element) login {
	in := l.order.Remove(e).(login)
	delete(l.open, in.nonce)
	return in
}
