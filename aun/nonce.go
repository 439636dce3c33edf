// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// nonceLife is how long a nonce of a login is valid. It is valid once.
const nonceLife = time.Minute

// How many logins may be between their two steps.
const (
	maxLogins    = 10_000
	maxLoginsAID = 8 // of one AID
)

// NewNonce returns a random text that cannot be guessed.
func NewNonce() string { return rand.Text() }

// login is a login between its two steps.
type login struct {
	aid     AID
	nonce   string
	cert    *Certificate
	expires time.Time
}

// logins are the logins between their two steps, by AID and request id. They belong to no connection, because clients
// take each step on a connection of its own.
type logins struct {
	mu    sync.Mutex
	open  map[string]login
	ofAID map[AID]int
}

func loginKey(aid AID, request string) string { return string(aid) + "\x00" + request }

// begin adds a login. It returns an error where there are too many.
func (l *logins) begin(request string, in login) error {
	now := time.Now()
	in.expires = now.Add(nonceLife)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open, l.ofAID = make(map[string]login), make(map[AID]int)
	}
	key := loginKey(in.aid, request)
	if _, again := l.open[key]; again {
		return Errorf(codes.InvalidParams, "The request_id is in use")
	}
	if len(l.open) >= maxLogins || l.ofAID[in.aid] >= maxLoginsAID {
		for key, old := range l.open {
			if now.After(old.expires) {
				l.drop(key, old.aid)
			}
		}
	}
	if len(l.open) >= maxLogins || l.ofAID[in.aid] >= maxLoginsAID {
		return Errorf(codes.LimitExceeded, "Too many logins are under way; finish them, or try again in a minute")
	}
	l.open[key] = in
	l.ofAID[in.aid]++
	return nil
}

// finish removes the login with a nonce, and returns it. A login can be finished once, also if that fails.
func (l *logins) finish(aid AID, request, nonce string) (login, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := loginKey(aid, request)
	in, ok := l.open[key]
	if !ok || in.nonce != nonce {
		return login{}, Errorf(codes.CertificateInvalid, "The nonce is unknown, or has been used")
	}
	l.drop(key, aid)
	if time.Now().After(in.expires) {
		return login{}, Errorf(codes.CertificateInvalid, "The nonce has expired")
	}
	return in, nil
}

func (l *logins) drop(key string, aid AID) {
	delete(l.open, key)
	if l.ofAID[aid]--; l.ofAID[aid] <= 0 {
		delete(l.ofAID, aid)
	}
}
