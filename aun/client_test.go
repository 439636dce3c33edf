// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/coder/websocket"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestSessionWaitsForItsOwnAttempt: an attempt to connect that was under way when Session was called says nothing about
// the time after the call, so its failure is not the answer.
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
