// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"crypto/elliptic"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// as returns a client logged in with an identity, and its tokens.
func (w *world) as(id *aun.Identity, device string) (*client, aun.Tokens) {
	w.t.Helper()
	c := w.dial("/aun")
	nonce := c.next().params.Get("nonce").String()
	tokens, err := aun.Login(context.Background(), c.conn, id, w.pki.Roots(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := aun.Connect(context.Background(), c.conn, nonce, tokens, device, ""); err != nil {
		w.t.Fatal(err)
	}
	return c, tokens
}

// refresh refreshes a token on a connection, and returns the new refresh token.
func (c *client) refresh(token string) string {
	c.t.Helper()
	p, _ := json.Marshal(map[string]string{"refresh_token": token})
	return c.must("auth.refresh_token", string(p)).Get("refresh_token").String()
}

// endsWith waits for the end of a connection after the end of its login, and checks whether the gateway has asked the
// client to stay away: after a token it may log in again.
func (c *client) endsWith(want aun.CloseCode) {
	c.t.Helper()
	got := c.closed()
	last := ""
	for len(c.events) > 0 {
		last = (<-c.events).method
	}
	if informed := last == "event/gateway.disconnect"; got != want || informed != (want != aun.ClosePolicy) {
		c.t.Errorf("the connection is closed with %d after %q, want %d", got, last, want)
	}
}

func (c *client) isOpen() bool {
	synctest.Wait()
	return c.conn.Err() == nil
}

// TestSessionEndsWithItsToken: a connection, and its subscriptions, last as long as the token, or as the tokens of a
// refresh, on whichever connection.
func TestSessionEndsWithItsToken(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice, bob := w.pki.Identity("alice.aid.test"), w.pki.Identity("bob.aid.test")
		late, _ := w.as(alice, "late")
		refreshed, tokens := w.as(alice, "refreshed")
		elsewhere, others := w.as(bob, "elsewhere")
		id := late.create(reviewer, "")
		late.must("task.subscribe", `{"task_ids":["`+id+`"]}`)

		bubble.Pass(50 * time.Minute)
		refreshed.refresh(tokens.Refresh)
		again := w.dial("/aun").refresh(others.Refresh)
		bubble.Pass(11 * time.Minute)
		late.endsWith(aun.ClosePolicy)
		w.say(id, working)
		if !refreshed.isOpen() || !elsewhere.isOpen() {
			t.Fatal("a refreshed token does not prolong its connections")
		}
		if n := w.process.Streams.Total(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
		refreshed.must("task.list", `{}`)
		bubble.Pass(40 * time.Minute)
		w.dial("/aun").refresh(again)
		bubble.Pass(11 * time.Minute)
		refreshed.endsWith(aun.ClosePolicy)
		elsewhere.must("task.list", `{}`)
		w.stop()
	})
}

// TestSessionEndsWithItsCertificate: no token outlives the certificate, and neither does a connection.
func TestSessionEndsWithItsCertificate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		short := w.pki.IdentityFor("alice.aid.test", elliptic.P256(), 10*time.Minute)
		c, tokens := w.as(short, "d")
		peer := w.dial("/acp")
		if _, err := aun.ConnectPeer(t.Context(), peer.conn, short, w.pki.Roots(), host); err != nil {
			t.Fatal(err)
		}
		id := c.create(reviewer, "")
		for _, c := range []*client{c, peer} {
			c.must("task.subscribe", `{"task_ids":["`+id+`"]}`)
		}
		bubble.Pass(5 * time.Minute)
		tokens.Refresh = c.refresh(tokens.Refresh)
		bubble.Pass(5*time.Minute + time.Second)
		c.endsWith(aun.CloseAuthFailed)
		peer.endsWith(aun.CloseAuthFailed)
		p, _ := json.Marshal(map[string]string{"refresh_token": tokens.Refresh})
		if !w.dial("/aun").must("auth.refresh_token", string(p)).Get("relogin_required").Bool() {
			t.Error("a refresh token outlives the certificate")
		}
		w.stop()
	})
}

// TestRevokedAtReload: when a configuration has been replaced, sessions not accepted by the new one end at once, also
// on connections of the old one. Other clients may use these until they are drained.
func TestRevokedAtReload(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.DrainFor = time.Hour
		w.start()
		mallory, alice := w.pki.Identity("mallory.aid.test"), w.pki.Identity("alice.aid.test")
		out, tokens := w.as(mallory, "d")
		stays, others := w.as(alice, "d")
		id := out.create(reviewer, "")
		out.must("task.subscribe", `{"task_ids":["`+id+`"]}`)
		waits, trusted := w.dial("/aun"), w.dial("/aun")
		nonce, another := waits.next().params.Get("nonce").String(), trusted.next().params.Get("nonce").String()

		roots := w.pki.Roots()
		if err := roots.Revoke(w.pki.Revoke(mallory)); err != nil {
			t.Fatal(err)
		}
		authority, err := aun.NewAuthority(aun.AuthorityConfig{Identity: w.own, Roots: roots})
		if err != nil {
			t.Fatal(err)
		}
		drain, stop := context.WithCancel(context.Background())
		defer stop()
		New(Config{Authority: authority, Connections: w.open, Drain: drain, Log: slog.New(slog.DiscardHandler)})
		if !out.isOpen() {
			t.Fatal("a connection ends before its configuration has been replaced")
		}
		w.drain()
		out.endsWith(aun.CloseAuthFailed)
		if n := w.process.Streams.Total(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
		stays.must("task.list", `{}`)
		p, _ := json.Marshal(map[string]string{"refresh_token": tokens.Refresh})
		if !waits.must("auth.refresh_token", string(p)).Get("relogin_required").Bool() {
			t.Error("the token of a revoked certificate is refreshed")
		}
		if _, err := aun.Connect(t.Context(), waits.conn, nonce, tokens, "d", ""); err == nil {
			t.Error("the token of a revoked certificate opens a connection")
		}
		if _, err := aun.Connect(t.Context(), trusted.conn, another, others, "e", ""); err != nil {
			t.Errorf("another client cannot connect any more: %v", err)
		}
		for _, c := range []*client{stays, trusted} {
			c.cut()
		}
	})
}
