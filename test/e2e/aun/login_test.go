// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"crypto/elliptic"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/coder/websocket"
)

// TestAUNLogin logs in as SDKs do, and in each way that is wrong.
func TestAUNLogin(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	alice := s.Client("alice.aid.test")

	t.Run("right", func(t *testing.T) {
		for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384()} {
			c := s.Client("alice.aid.test")
			c.ID = site.Must(s.PKI.IssueOn(curve, "alice.aid.test"))(t)
			token := site.Must(c.Login(s.Soon()))(t)
			conn, got, err := c.Connect(s.Soon(), token.Access, nil)
			if err != nil || got.Identity.AID != "alice.aid.test" || got.Connection.DeviceID != "device-1" {
				t.Fatalf("connected as %+v: %v", got, err)
			}
			site.Must(conn.Call(s.Soon(), "meta.ping", nil))(t)
			status := site.Must(conn.Call(s.Soon(), "meta.status", nil))(t)
			if !strings.Contains(string(status), `"aid":"alice.aid.test"`) {
				t.Errorf("meta.status answers %s", status)
			}
			renewed := site.Must(c.RefreshToken(s.Soon(), token.Refresh))(t)
			conn.Cut()
			conn, _, err = c.Connect(s.Soon(), renewed.Access, nil)
			if err != nil {
				t.Fatal(err)
			}
			conn.Cut()
		}
	})
	t.Run("the first step", func(t *testing.T) {
		for what, id := range map[string]*aunpeer.Identity{
			"a certificate of a foreign root": site.Must(site.Must(aunpeer.NewPKI(site.AUNIssuer))(t).Issue("alice.aid.test"))(
				t),
			"the certificate of another AID": rename(site.Must(s.PKI.Issue("bob.aid.test"))(t), "alice.aid.test"),
			"a certificate that has expired": site.Must(s.PKI.Issue("alice.aid.test", func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
			}))(t),
			"a certificate of the future": site.Must(s.PKI.Issue("alice.aid.test", func(c *x509.Certificate) {
				c.NotBefore = time.Now().Add(time.Hour)
			}))(t),
		} {
			c := s.Client("alice.aid.test")
			c.ID = id
			_, err := c.Login1(s.Soon())
			s.Fails(what, err, -32002)
		}
	})
	t.Run("the second step", func(t *testing.T) {
		for what, c := range map[string]struct {
			change func(params map[string]any)
			want   int
		}{
			"the signature of another text": {func(p map[string]any) {
				p["signature"] = site.Must(alice.ID.Sign("another text"))(t)
			}, -32003},
			"another time than that which was signed": {func(p map[string]any) {
				p["client_time"] = "1795203089.876438"
			}, -32003},
			"a signature that is none": {func(p map[string]any) { p["signature"] = "AAAA" }, -32003},
			"another nonce":            {func(p map[string]any) { p["nonce"] = "another" }, -32002},
			"another login":            {func(p map[string]any) { p["request_id"] = "another" }, -32002},
			"another AID":              {func(p map[string]any) { p["aid"] = "bob.aid.test" }, -32002},
		} {
			params := site.Must(alice.Login2(site.Must(alice.Login1(s.Soon()))(t)))(t)
			c.change(params)
			_, err := alice.SecondStep(s.Soon(), params)
			s.Fails(what, err, c.want)
		}
		params := site.Must(alice.Login2(site.Must(alice.Login1(s.Soon()))(t)))(t)
		site.Must(alice.SecondStep(s.Soon(), params))(t)
		_, err := alice.SecondStep(s.Soon(), params)
		s.Fails("a nonce that is used twice", err, -32002)
	})
	t.Run("tokens", func(t *testing.T) {
		own := site.Must(alice.Login(s.Soon()))(t)
		forge := func(key *aunpeer.Identity, aid string, change map[string]any) string {
			return site.Must(aunpeer.JWT(key.Key, site.AUNIssuer, aid, change))(t)
		}
		past := time.Now().Add(-time.Hour).Unix()
		for what, c := range map[string]struct {
			token string
			want  int
		}{
			"no token":              {"", -32001},
			"text":                  {"a.b.c", -32001},
			"a refresh token":       {own.Refresh, -32001},
			"an expired token":      {forge(s.Foreign, "alice.aid.test", map[string]any{"exp": past}), -32005},
			"a token without end":   {forge(s.Foreign, "alice.aid.test", map[string]any{"exp": nil}), -32001},
			"for another audience":  {forge(s.Foreign, "alice.aid.test", map[string]any{"aud": "other"}), -32001},
			"for no AID":            {forge(s.Foreign, "", nil), -32001},
			"an unknown key":        {forge(alice.ID, "alice.aid.test", nil), -32001},
			"a signature cut off":   {own.Access[:strings.LastIndex(own.Access, ".")+1], -32001},
			"a token with no proof": {unsigned(own.Access), -32001},
		} {
			conn, _, err := alice.Connect(s.Soon(), c.token, nil)
			s.Fails(what, err, c.want)
			if conn != nil {
				endsWith(s, what, conn, 4001)
			}
		}
		conn, got, err := alice.Connect(s.Soon(), forge(s.Foreign, "alice.aid.test", nil), nil)
		if err != nil || got.Identity.AID != "alice.aid.test" {
			t.Fatalf("with the token of the other service: %+v, %v", got, err)
		}
		conn.Cut()
	})
}

// rename returns an identity that claims to be another.
func rename(id *aunpeer.Identity, aid string) *aunpeer.Identity {
	id.AID = aid
	return id
}

// unsigned returns a token with the algorithm none, without a signature.
func unsigned(token string) string {
	parts := strings.Split(token, ".")
	return "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + "."
}

// TestAUNFrames holds connections to what a frame may be, and clients to a login before anything else.
func TestAUNFrames(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	c := s.Client("alice.aid.test")
	token := site.Must(c.Login(s.Soon()))(t)
	ping := func(size int) []byte {
		const head, tail = `{"jsonrpc":"2.0","id":7,"method":"meta.ping","params":{"x":"`, `"}}`
		return []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
	}
	for what, frame := range map[string]struct {
		kind websocket.MessageType
		data []byte
		want int
	}{
		"a binary frame":           {websocket.MessageBinary, []byte(`{"jsonrpc":"2.0","id":1}`), 1003},
		"text that is no UTF-8":    {websocket.MessageText, []byte("{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"), 1007},
		"text that is no JSON":     {websocket.MessageText, []byte(`{"jsonrpc":"2.0",`), 1007},
		"a frame too large":        {websocket.MessageText, ping(aunpeer.MaxFrame + 1), 1009},
		"too large for a stranger": {websocket.MessageText, ping(16<<10 + 1), 1009},
	} {
		for when, open := range map[string]func() *aunpeer.Conn{
			"before the login": func() *aunpeer.Conn {
				conn, _, err := c.Open(s.Soon())
				if err != nil {
					t.Fatal(err)
				}
				return conn
			},
			"after it": func() *aunpeer.Conn {
				conn, _, err := c.Connect(s.Soon(), token.Access, nil)
				if err != nil {
					t.Fatal(err)
				}
				return conn
			},
		} {
			if stranger := when == "before the login"; stranger == (what == "a frame too large") && len(frame.data) > 16<<10 {
				continue // the other one is for this moment
			}
			conn := open()
			_ = conn.Write(s.Soon(), frame.kind, frame.data) // it may be closed before all is written
			endsWith(s, what+" "+when, conn, frame.want)
			conn.Cut()
		}
	}
	conn, _, err := c.Connect(s.Soon(), token.Access, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Cut()
	if err := conn.Write(s.Soon(), websocket.MessageText, ping(aunpeer.MaxFrame)); err != nil {
		t.Error(err)
	}
	site.Must(conn.Call(s.Soon(), "meta.ping", nil))(t)

	for _, method := range aunMethods {
		conn, _, err := c.Open(s.Soon())
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Call(s.Soon(), method, map[string]any{"task_id": "t1"})
		s.Fails(method+" before the login", err, -32013)
		endsWith(s, method+" before the login", conn, 4001)
		conn.Cut()
	}
}

// aunMethods are the methods that need a login.
var aunMethods = []string{
	"task.create", "task.get", "task.accept", "task.reject", "task.send_input", "task.delegate", "task.complete",
	"task.fail", "task.cancel", "task.children", "task.list", "task.subscribe", "task.unsubscribe",
	"search.query", "search.get_agent", "search.suggest", "search.ap_info", "search.snapshot", "search.changes",
	"message.send", "message.pull", "message.ack", "message.recall", "message.query_online",
	"meta.status", "meta.trust_roots",
}

// TestAUNConnect: the rules of auth.connect.
func TestAUNConnect(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	c := s.Client("alice.aid.test")
	token := site.Must(c.Login(s.Soon()))(t)

	conn, _, err := c.Connect(s.Soon(), token.Access, map[string]any{"nonce": "another"})
	if aunpeer.Code(err) == 0 {
		t.Errorf("the nonce of another challenge: %v", err)
	}
	endsWith(s, "the nonce of another challenge", conn, 4010)

	conn, _, err = c.Connect(s.Soon(), token.Access, map[string]any{
		"protocol": map[string]any{"min": "2.0", "max": "3.0"},
	})
	s.Fails("another version", err, -32000)
	if _, _, err := conn.Closed(s.Soon()); err != nil {
		t.Errorf("another version: %v", err)
	}

	older, _, err := c.Connect(s.Soon(), token.Access, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := s.Client("alice.aid.test")
	other.Device = "device-2"
	elsewhere := site.Must(other.Online(s.Soon()))(t)
	defer elsewhere.Cut()
	newer, _, err := c.Connect(s.Soon(), token.Access, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Cut()
	if _, err := older.Event(s.Soon(), func(f aunpeer.Frame) bool {
		return f.Method == "event/gateway.disconnect"
	}); err != nil {
		t.Errorf("the older connection: %v", err)
	}
	endsWith(s, "the older connection", older, 4009)
	for _, conn := range []*aunpeer.Conn{newer, elsewhere} {
		site.Must(conn.Call(s.Soon(), "meta.ping", nil))(t)
	}

	_, err = newer.Call(s.Soon(), "auth.connect", map[string]any{"nonce": "x"})
	if aunpeer.Code(err) == 0 {
		t.Errorf("auth.connect again: %v", err)
	}
	for _, method := range []string{"group.list_my", "group.v2.bootstrap", "message.thought.get", "x"} {
		_, err = elsewhere.Call(s.Soon(), method, nil)
		s.Fails(method, err, -32601)
	}
	site.Must(elsewhere.Call(s.Soon(), "meta.ping", nil))(t)

	url := fmt.Sprintf("wss://%s:%d/aun", site.AUNGateway, s.Port)
	if conn, err := aunpeer.Dial(s.Soon(), s.HTTP(), url, http.Header{"Origin": {"https://evil.example"}}); err == nil {
		t.Error("a page of another origin may connect")
		conn.Cut()
	}
}

// TestAUNPeerMode: both sides authenticate each other by certificates.
func TestAUNPeerMode(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	url := fmt.Sprintf("wss://%s:%d/acp", site.AUNGateway, s.Port)
	c := s.Client("alice.aid.test")
	conn := site.Must(c.Peer(s.Soon(), url, site.AUNGateway))(t)
	defer conn.Cut()
	created := site.Must(conn.Create(s.Soon(), site.AUNAgent, "hello"))(t)
	if created.Owner != "alice.aid.test" {
		t.Errorf("created: %+v", created)
	}
	c.ID = site.Must(site.Must(aunpeer.NewPKI(site.AUNIssuer))(t).Issue("alice.aid.test"))(t)
	_, err := c.Peer(s.Soon(), url, site.AUNGateway)
	s.Fails("a certificate of a foreign root", err, -32002)
	c.ID = rename(site.Must(s.PKI.Issue("bob.aid.test"))(t), "alice.aid.test")
	_, err = c.Peer(s.Soon(), url, site.AUNGateway)
	s.Fails("the certificate of another", err, -32002)
}
