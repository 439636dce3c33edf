// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// closed waits for the end of the connection, and returns its status.
func (c *client) closed() aun.CloseCode {
	c.t.Helper()
	select {
	case <-c.served:
	case <-time.After(2 * time.Minute):
		c.t.Fatal("the connection stays open")
	}
	return c.conn.Err().Code
}

// TestLoginErrors: each error of a login has its code, and its status of the close.
func TestLoginErrors(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx := t.Context()
		id := w.pki.Identity("alice.aid.test")
		token := func() string {
			tokens, err := aun.Login(ctx, w.dial("/aun").conn, id, w.pki.Roots(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return tokens.Access
		}
		auth := func(token string) string { return `{"method":"kite_token","token":"` + token + `"}` }
		connect := func(c *client, nonce, auth, more string) int {
			_, code := c.call("auth.connect", `{"nonce":"`+nonce+`","auth":`+auth+more+`}`)
			return code
		}
		nonceOf := func(c *client) string { return c.next().params.Get("nonce").String() }
		foreign, _ := json.Marshal(map[string]string{"aid": "alice.aid.test", "client_nonce": "x",
			"cert": auntest.NewPKI(t).Identity("alice.aid.test").CertPEM()})
		for _, tc := range []struct {
			name  string
			code  int
			close aun.CloseCode
			do    func(c *client) int
		}{
			{"a method before the login", -32013, aun.CloseAuthFailed, func(c *client) int {
				_, code := c.call("task.list", `{}`)
				return code
			}},
			{"a wrong nonce", -32002, aun.CloseInvalidNonce, func(c *client) int {
				return connect(c, "x", auth(token()), "")
			}},
			{"no token", -32001, aun.CloseAuthFailed, func(c *client) int {
				return connect(c, nonceOf(c), auth("x"), "")
			}},
			{"another version", -32000, aun.CloseProtocol, func(c *client) int {
				return connect(c, nonceOf(c), auth(token()), `,"protocol":{"min":"2.0","max":"3.0"}`)
			}},
			{"a slot without a device", -32602, aun.CloseAuthFailed, func(c *client) int {
				return connect(c, nonceOf(c), auth(token()), `,"client":{"slot_id":"a"}`)
			}},
			{"a certificate of a foreign root", -32002, aun.CloseAuthFailed, func(c *client) int {
				_, code := c.call("auth.aid_login1", string(foreign))
				return code
			}},
			{"a login that was not begun", -32002, aun.CloseAuthFailed, func(c *client) int {
				_, code := c.call("auth.aid_login2", `{"aid":"alice.aid.test","request_id":"r","nonce":"n","signature":"x"}`)
				return code
			}},
		} {
			c := w.dial("/aun")
			if code := tc.do(c); code != tc.code {
				t.Errorf("%s: %d, want %d", tc.name, code, tc.code)
			}
			if code := c.closed(); code != tc.close {
				t.Errorf("%s closes with %d, want %d", tc.name, code, tc.close)
			}
		}
		c := w.dial("/aun")
		if _, code := c.call("auth.create_aid", `{}`); code != -32601 {
			t.Errorf("create_aid: %d", code)
		}
		if c.must("meta.ping", `{}`).Get("pong").Bool() != true {
			t.Error("there is no ping before the login")
		}
		w.stop()
	})
}

// TestLoginTimeout: a client with an unfinished login after 30 seconds is disconnected, however far it is.
func TestLoginTimeout(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		id := w.pki.Identity("alice.aid.test")
		stays := w.connect("bob.aid.test", "d")
		clients := map[string]*client{
			"nothing": w.dial("/aun"), "the first step": w.dial("/aun"), "both steps": w.dial("/aun"),
			"nothing in peer mode": w.dial("/acp"), "initialize": w.dial("/acp"),
		}
		first, _ := json.Marshal(map[string]string{"aid": "alice.aid.test", "client_nonce": "x", "cert": id.CertPEM()})
		clients["the first step"].must("auth.aid_login1", string(first))
		if _, err := aun.Login(t.Context(), clients["both steps"].conn, id, w.pki.Roots(), nil); err != nil {
			t.Fatal(err)
		}
		clients["initialize"].must("initialize", `{"mode":"peer","protocol":{"min":"1.0","max":"1.0"}}`)
		time.Sleep(loginTimeout - time.Second)
		clients["nothing"].must("meta.ping", `{}`) // it gives it no more time
		for after, c := range clients {
			if err := c.conn.Err(); err != nil {
				t.Errorf("after %s: the connection has ended before the time: %v", after, err)
			}
		}
		time.Sleep(time.Second)
		for after, c := range clients {
			if code := c.closed(); code != aun.CloseAuthTimeout {
				t.Errorf("after %s: closed with %d", after, code)
			}
		}
		stays.must("meta.ping", `{}`)
		w.stop()
	})
}

// large returns a request of a size.
func large(size int) string {
	const head, tail = `{"jsonrpc":"2.0","id":1,"method":"meta.ping","params":{"x":"`, `"}}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// TestBadFrames: anything but a frame of AUN ends the connection.
func TestBadFrames(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, tc := range []struct {
			name string
			kind websocket.MessageType
			data string
			want websocket.StatusCode
		}{
			{"binary", websocket.MessageBinary, "{}", 1003},
			{"no JSON", websocket.MessageText, "{", 1007},
			{"large", websocket.MessageText, large(aun.MaxLoginFrame + 1), 1009},
		} {
			ws, _, err := websocket.Dial(t.Context(), "ws://"+host+"/aun", &websocket.DialOptions{HTTPClient: w.net.Client()})
			if err != nil {
				t.Fatal(err)
			}
			_ = ws.Write(t.Context(), tc.kind, []byte(tc.data))
			for err = nil; err == nil; {
				_, _, err = ws.Read(t.Context())
			}
			var closed websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != tc.want {
				t.Errorf("%s: %v, want %d", tc.name, err, tc.want)
			}
		}
		w.stop()
	})
}

// TestReplaced: of the connections of one device and slot, the newest stays.
func TestReplaced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.connect("alice.aid.test", "d1")
		other, legacy := w.connect("alice.aid.test", "d2"), w.connect("alice.aid.test", "")
		second := w.connect("alice.aid.test", "d1")
		if e := first.next(); e.method != "event/gateway.disconnect" || e.params.Get("code").Int() != 4009 {
			t.Errorf("%s %s", e.method, e.params.Raw)
		}
		if code := first.closed(); code != aun.CloseReplaced {
			t.Errorf("closed with %d", code)
		}
		for _, c := range []*client{other, legacy, second} {
			if got := c.must("meta.status", `{}`).Get("aid").String(); got != "alice.aid.test" {
				t.Errorf("the AID is %q", got)
			}
		}
		n := len(w.open.Of("alice.aid.test"))
		if n != 3 || !w.open.Online("alice.aid.test") || w.open.Online("bob.aid.test") {
			t.Errorf("%d connections", n)
		}
		w.stop()
		if code := second.closed(); code != aun.CloseAbnormal {
			t.Errorf("a reload closes with %d", code)
		}
		synctest.Wait()
		if w.open.Online("alice.aid.test") || w.open.open != 0 {
			t.Error("connections are left")
		}
	})
}

// TestConnectionLimits: of all clients, and of one AID.
func TestConnectionLimits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Limits.Connections, w.config.Limits.ConnectionsPerAID = 3, 2
		w.start()
		w.connect("alice.aid.test", "d1")
		w.connect("alice.aid.test", "d2")
		third := w.dial("/aun")
		nonce := third.next().params.Get("nonce").String()
		tokens, err := aun.Login(t.Context(), third.conn, w.pki.Identity("alice.aid.test"), w.pki.Roots(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aun.Connect(t.Context(), third.conn, nonce, tokens, "d3", ""); err == nil {
			t.Error("there is a third connection of an AID")
		}
		if code := third.closed(); code != aun.CloseQuota {
			t.Errorf("closed with %d", code)
		}
		synctest.Wait()
		w.connect("bob.aid.test", "d1")
		fourth := w.dial("/aun")
		nonce = fourth.next().params.Get("nonce").String()
		if _, err := aun.Connect(t.Context(), fourth.conn, nonce, tokens, "d1", ""); err != nil {
			t.Errorf("a connection in the place of an older one: %v", err)
		}
		fifth := w.dial("/aun")
		_ = fifth.next()
		tokens, err = aun.Login(t.Context(), fifth.conn, w.pki.Identity("carol.aid.test"), w.pki.Roots(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sixth := w.dial("/aun")
		nonce = sixth.next().params.Get("nonce").String()
		if _, err := aun.Connect(t.Context(), sixth.conn, nonce, tokens, "d", ""); err == nil {
			t.Error("there is a fourth connection")
		}
		if code := sixth.closed(); code != aun.CloseTryLater {
			t.Errorf("closed with %d", code)
		}
		w.stop()
	})
}

// TestOrigin: a script of a foreign page cannot connect.
func TestOrigin(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Origins = []string{"*.friend.test"}
		w.start()
		for origin, want := range map[string]bool{
			"": true, "https://" + host: true, "https://app.friend.test": true, "https://evil.test": false,
		} {
			header := http.Header{}
			if origin != "" {
				header.Set("Origin", origin)
			}
			ws, _, err := websocket.Dial(t.Context(), "ws://"+host+"/aun",
				&websocket.DialOptions{HTTPClient: w.net.Client(), HTTPHeader: header})
			if (err == nil) != want {
				t.Errorf("from %q: %v", origin, err)
			}
			if err == nil {
				_ = ws.CloseNow()
			}
		}
		w.stop()
	})
}

// TestPeer: a client in peer mode gets no challenge, and calls the same methods after its login.
func TestPeer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.dial("/acp")
		proof, err := aun.ConnectPeer(t.Context(), c.conn, w.pki.Identity("alice.aid.test"), w.pki.Roots(), host)
		if err != nil || proof.AID != host {
			t.Fatalf("%v, %v", proof, err)
		}
		id := c.create(reviewer, "")
		c.subscribe(id)
		w.say(id, finished)
		for range 2 {
			c.next()
		}
		if e := c.next(); e.String() != "completed completed" {
			t.Errorf("the event is %s", e)
		}
		bad := w.dial("/acp")
		if _, code := bad.call("auth.connect", `{}`); code != -32013 || bad.closed() != aun.CloseAuthFailed {
			t.Errorf("gateway mode in peer mode: %d", code)
		}
		w.stop()
	})
}

// TestSilentClient: a client gone without a word is found out.
func TestSilentClient(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.connect("alice.aid.test", "d1")
		time.Sleep(5 * silence)
		if c.conn.Err() != nil {
			t.Fatalf("a client that answers pings is cut: %v", c.conn.Err())
		}
		ws, _, err := websocket.Dial(context.Background(), "ws://"+host+"/aun",
			&websocket.DialOptions{HTTPClient: w.net.Client()})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		_, _, _ = ws.Read(t.Context()) // the challenge; then it reads nothing, and no ping either
		time.Sleep(3 * silence)
		synctest.Wait()
		if n := w.open.open; n != 1 {
			t.Errorf("%d connections are open", n)
		}
		w.stop()
	})
}
