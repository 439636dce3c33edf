// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
)

// fromHeader is the header for the address of a client in these tests.
const fromHeader = "X-From"

// newStrangers returns a world of clients with addresses.
func newStrangers(t *testing.T, l Limits) *world {
	w := newWorld(t)
	w.stop()
	w.config.Limits = l
	w.config.Address = func(r *http.Request) string { return r.Header.Get(fromHeader) }
	w.start()
	return w
}

// from opens a connection from an address.
func (w *world) from(address string) *client {
	w.t.Helper()
	return w.dialWith("/aun", http.Header{fromHeader: {address}})
}

// logIn logs in on a connection, and returns the error.
func (c *client) logIn(aid string) error {
	nonce := c.next().params.Get("nonce").String()
	id := c.w.pki.Identity(aid)
	tokens, err := aun.Login(context.Background(), c.conn, id, c.w.pki.Roots(), nil)
	if err == nil {
		_, err = aun.Connect(context.Background(), c.conn, nonce, tokens, "", "")
	}
	return err
}

// TestStrangersLockNobodyOut: unproven logins with the public certificate of an AID count for their own address, and
// before anything is signed, and not for the AID.
func TestStrangersLockNobodyOut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newStrangers(t, Limits{})
		cert := w.pki.Identity("alice.aid.test").CertPEM()
		stranger := w.from("192.0.2.1:1000")
		begin := func(c *client, i int) int {
			if i >= 16 && i < maxTries { // refused before its certificate is read, and counted
				_, _ = c.call("auth.aid_login1", `{"aid":"alice.aid.test"}`)
				return 0
			}
			_, code := c.call("auth.aid_login1", fmt.Sprintf(
				`{"aid":"alice.aid.test","cert":%q,"client_nonce":"n","request_id":"r%d"}`, cert, i))
			return code
		}
		for i := range maxTries {
			if code := begin(stranger, i); code != 0 {
				t.Fatalf("login %d: %d", i, code)
			}
		}
		if code := begin(stranger, maxTries); code != -32050 {
			t.Errorf("too many logins are answered with %d", code)
		}
		_, code := w.from("192.0.2.1:2000").call("auth.aid_login1", `{"aid":"alice.aid.test","client_nonce":"n"}`)
		if code != -32050 {
			t.Errorf("too many logins of an address, another one without a certificate: %d", code)
		}
		for _, address := range []string{"192.0.2.2:1000", "[2001:db8::1]:1000"} {
			if err := w.from(address).logIn("alice.aid.test"); err != nil {
				t.Errorf("the AID itself, from %s: %v", address, err)
			}
		}
		if err := w.from("192.0.2.1:3000").logIn("bob.aid.test"); err == nil {
			t.Error("the address may try again at once")
		}
		bubble.Pass(tryFor + time.Second)
		if err := w.from("192.0.2.1:3000").logIn("bob.aid.test"); err != nil {
			t.Fatal(err)
		}
		if n := w.open.tries["192.0.2.1"].n; n != 0 {
			t.Errorf("a login that succeeds counts as %d attempts", n)
		}
		w.stop()
	})
}

// TestRefreshesAreNoCredit: a logged-in client takes back no attempts of its address by refreshing its token.
func TestRefreshesAreNoCredit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newStrangers(t, Limits{})
		const address = "192.0.2.1:1000"
		c := w.from(address)
		nonce := c.next().params.Get("nonce").String()
		tokens, err := aun.Login(t.Context(), c.conn, w.pki.Identity("mallory.aid.test"), w.pki.Roots(), nil)
		if err == nil {
			_, err = aun.Connect(t.Context(), c.conn, nonce, tokens, "", "")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.from(address).call("auth.aid_login1", `{"aid":"alice.aid.test"}`)
		tokens.Refresh = c.refresh(tokens.Refresh)
		if n := w.open.tries["192.0.2.1"].n; n != 1 {
			t.Errorf("after one unproven attempt and a refresh, %d attempts are counted", n)
		}
		w.from(address).refresh(tokens.Refresh)
		if n := w.open.tries["192.0.2.1"].n; n != 1 {
			t.Errorf("a refresh before the login counts: %d attempts", n)
		}
		w.stop()
	})
}

// TestManyAddressesLockNobodyOut: whoever comes from more addresses than are counted uses up the attempts of no other.
func TestManyAddressesLockNobodyOut(t *testing.T) {
	var c Connections
	for i := range 3 * maxOrigins {
		if err := c.attempt(fmt.Sprintf("2001:db8:0:%x::/64", i)); err != nil {
			t.Fatalf("address %d: %v", i, err)
		}
	}
	for i := range maxTries {
		if err := c.attempt("192.0.2.1"); err != nil {
			t.Fatalf("attempt %d of another address: %v", i, err)
		}
	}
	if err := c.attempt("192.0.2.1"); err == nil || len(c.tries) > maxOrigins {
		t.Errorf("too many attempts: %v; the attempts of %d addresses are counted", err, len(c.tries))
	}
}

// TestOrigins: addresses of one IPv6 network count together.
func TestOrigins(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3::4]:80": "2001:db8:1::/56", "2001:db8:1:ff::9": "2001:db8:1::/56",
		"2001:db8:1:100::9": "2001:db8:1:100::/56",
		"[fe80::1%eth0]:80": "fe80::/56", "pipe": "pipe", "@": "@",
	} {
		f := &Front{}
		if got := f.originOf(&http.Request{RemoteAddr: address}); got != want {
			t.Errorf("%s counts for %s, want %s", address, got, want)
		}
	}
}

// TestShareOfStrangers: connections before their login have a share of their own, and each address has one. The oldest
// makes room, and the logged-in ones are not touched.
func TestShareOfStrangers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newStrangers(t, Limits{Connections: 2, Logins: 4, LoginsPerAddress: 2})
		alice := w.from("192.0.2.9:1")
		if err := alice.logIn("alice.aid.test"); err != nil {
			t.Fatal(err)
		}
		flood := func(addresses int) (open []*client) {
			for i := range 5 * addresses {
				open = append(open, w.from(fmt.Sprintf("192.0.2.%d:%d", i%addresses, i)))
				synctest.Wait()
			}
			return open
		}
		count := func(list []*client) (n int) {
			synctest.Wait()
			for _, c := range list {
				if c.conn.Err() == nil {
					n++
				}
			}
			return n
		}
		first := flood(1)
		if n := count(first); n != 2 || first[4].conn.Err() != nil {
			t.Errorf("%d connections of one address are left", n)
		}
		other := w.from("198.51.100.1:1")
		if n := count(first); n != 2 {
			t.Errorf("an address takes from the share of another: %d are left", n)
		}
		if n := count(flood(10)); n != 4 {
			t.Errorf("%d connections are left", n)
		}
		if n := count(append(first, other)); n != 0 {
			t.Errorf("%d older ones are left", n)
		}
		bob := w.from("198.51.100.2:1")
		if err := bob.logIn("bob.aid.test"); err != nil {
			t.Errorf("a client between strangers: %v", err)
		}
		flood(10)
		alice.must("task.list", `{}`)
		bob.must("task.list", `{}`)
		w.stop()
		if n := w.open.waiting.Len() + len(w.open.ofOrigin) + w.open.in + w.open.open; n != 0 {
			t.Errorf("%d are still counted", n)
		}
	})
}

// TestStrangersTakeMemory: the memory of connections before their login is counted, and given back.
func TestStrangersTakeMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Memory = limit.Budget{Counter: &w.process.Memory,
			Limits: limit.Limits{Total: 6 * strangerBytes, PerLeader: 3 * strangerBytes}}
		w.start()
		var list []*client
		for range 5 {
			list = append(list, w.dial("/aun"))
			synctest.Wait()
		}
		if n := w.process.Memory.Total(); n != 3*strangerBytes {
			t.Errorf("%d bytes are counted", n)
		}
		if err := w.process.Memory.Take(limit.Unverified, 3*strangerBytes, w.config.Memory.Limits); err != nil {
			t.Fatal(err)
		}
		list = append(list, w.dial("/aun")) // unverified callers have their own share
		synctest.Wait()
		if list[2].conn.Err() == nil || list[5].conn.Err() != nil {
			t.Error("there is no room while callers who are not verified have all of theirs")
		}
		w.process.Memory.Give(limit.Unverified, 3*strangerBytes)
		if list[1].conn.Err() == nil || list[3].conn.Err() != nil {
			t.Error("it is not the oldest that made room")
		}
		if err := list[4].logIn("alice.aid.test"); err != nil {
			t.Error(err)
		}
		if n := w.process.Memory.Total(); n != 2*strangerBytes {
			t.Errorf("%d bytes are counted after a login", n)
		}
		w.stop()
	})
}

// TestLargeFramesNeedALogin: the frames of a client may be large once it has logged in.
func TestLargeFramesNeedALogin(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.connect("alice.aid.test", "d")
		c.must("meta.ping", `{"x":"`+strings.Repeat("x", aun.MaxFrame-100)+`"}`)
		c = w.dial("/aun")
		_, err := c.conn.Call(t.Context(), "meta.ping", []byte(`{"x":"`+strings.Repeat("x", aun.MaxLoginFrame)+`"}`))
		if err == nil {
			t.Error("a large frame is answered before the login")
		}
		w.stop()
	})
}

// TestTooManyLoginsEndTheConnection: a refused login costs the client its connection, so it cannot go on at once.
func TestTooManyLoginsEndTheConnection(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newStrangers(t, Limits{})
		c := w.from("192.0.2.1:1000")
		for range maxTries {
			_, _ = c.call("auth.aid_login1", `{"aid":"alice.aid.test"}`)
		}
		if _, code := c.call("auth.aid_login1", `{"aid":"alice.aid.test"}`); code != -32050 {
			t.Errorf("one login too many is answered with %d", code)
		}
		if code := c.closed(); code != aun.CloseTryLater {
			t.Errorf("the connection is closed with %d", code)
		}
		w.stop()
	})
}

// TestStrangersHaveMemory: the memory held by callers of other fronts without a proof keeps no client from logging in.
func TestStrangersHaveMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newStrangers(t, Limits{})
		w.stop()
		w.config.Memory = limit.Budget{Counter: new(limit.Counter), Limits: limit.Limits{Total: 8 << 20, PerLeader: 4 << 20}}
		w.start()
		lease := w.config.Memory.Lease(limit.Unverified)
		if err := lease.Hold(4 << 20); err != nil {
			t.Fatal(err)
		}
		if err := w.from("192.0.2.1:1000").logIn("alice.aid.test"); err != nil {
			t.Error(err)
		}
		lease.Release()
		w.stop()
	})
}
