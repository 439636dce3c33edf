// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"context"
	"crypto/elliptic"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestSessionWaitsForItsOwnAttempt: an attempt to connect under way at the call of Session says nothing about the time
// after the call, so its failure is not the answer.
func TestSessionWaitsForItsOwnAttempt(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki, network := auntest.NewPKI(t), auntest.NewNetwork(t)
		a := newAuthority(t, aun.AuthorityConfig{Identity: pki.Identity("gw.aid.test"), Roots: pki.Roots()})
		refuse := make(chan struct{})
		var attempts atomic.Int64
		network.Serve("gw.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if attempts.Add(1) == 1 {
				<-refuse
				http.Error(w, "not yet", http.StatusServiceUnavailable)
				return
			}
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			nonce, challenge := a.NewChallenge()
			c := aun.NewConn(ws, gateway(a, nonce), aun.Limits{}, quiet)
			go func() { _ = c.Notify(t.Context(), "challenge", challenge) }()
			c.Serve(t.Context())
		}))
		c := aun.NewClient(aun.ClientConfig{Identity: pki.Identity("alice.aid.test"), Roots: pki.Roots(),
			URL: "ws://gw.test/aun", HTTP: network.Client(), Log: quiet})
		defer c.Close()

		type answer struct {
			session *aun.Session
			err     error
		}
		ask := func() <-chan answer {
			got := make(chan answer, 1)
			go func() {
				session, err := c.Session(t.Context())
				got <- answer{session, err}
			}()
			synctest.Wait()
			return got
		}
		first := ask() // begins the attempt
		second := ask()
		close(refuse)
		if got := <-first; got.err == nil {
			t.Error("the attempt that was refused has made a session")
		}
		if got := <-second; got.err != nil {
			t.Errorf("a call during an attempt to connect failed with it: %v", got.err)
		}
		if n := attempts.Load(); n != 2 {
			t.Errorf("there were %d attempts, want 2", n)
		}
	})
}

// TestPeersConnectionEndsWithItsCertificate: a client does not speak on with a peer after the expiry of the peer's
// certificate.
func TestPeersConnectionEndsWithItsCertificate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		pki, network := auntest.NewPKI(t), auntest.NewNetwork(t)
		bob := pki.IdentityFor("bob.aid.test", elliptic.P256(), 10*time.Minute)
		network.Serve("bob.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			login := aun.NewPeerLogin(bob, pki.Roots())
			aun.NewConn(ws, handler{request: func(_ context.Context, r *aun.Request) {
				result, err := []byte("{}"), error(nil)
				switch r.Method {
				case "initialize":
					result, err = login.Initialize(r.Params)
				case "peer.hello":
					result, err = login.Hello(r.Params)
				case "peer.confirm":
					result, _, err = login.Confirm(r.Params)
				}
				if err != nil {
					r.Fail(err)
					return
				}
				_ = r.Reply(result)
			}}, aun.Limits{}, quiet).Serve(t.Context())
		}))
		c := aun.NewClient(aun.ClientConfig{Identity: pki.Identity("alice.aid.test"), Roots: pki.Roots(),
			URL: "ws://bob.test/acp", Peer: "bob.aid.test", HTTP: network.Client(), Log: quiet})
		defer c.Close()
		session, err := c.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bubble.Pass(9 * time.Minute)
		if session.Err() != nil {
			t.Errorf("the connection has ended: %v", session.Err())
		}
		bubble.Pass(2 * time.Minute)
		if session.Err() == nil {
			t.Error("the connection outlives the certificate of the peer")
		}
		if _, err := c.Session(t.Context()); err == nil {
			t.Error("there is a new connection to a peer whose certificate has expired")
		}
	})
}
