// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// TestWildAUNCallers has clients of AUN ask an agent through the gateway, and an agent of AUN directly where the client
// does nothing but send and read messages, all by rule.
func TestWildAUNCallers(t *testing.T) {
	t.Parallel()
	runWild(t, wildAUNCallers)
}

// aunCallerRow is a row of a client of AUN.
type aunCallerRow struct {
	name   string
	direct bool // it can ask an agent of AUN that speaks by messages
	want   wildEnd
	call   func(c *aunCalls) wildEnd
}

// aunCalls is a client that calls, and the gateway that it calls at.
type aunCalls struct {
	*aunSite
	me     *aunpeer.Client
	reload func()
}

func (r aunCallerRow) row() wildRow {
	row := wildRow{name: r.name, want: r.want}
	if r.direct {
		row.ways = append(row.ways, wildWay{name: "a client, directly", serve: func(t *testing.T) *wildServed {
			return &wildServed{at: serveBehind(t, func(g *aunpeer.Gateway) { g.Messages, g.Rule = true, echoes }).url}
		}, call: func(t *testing.T, at string) wildEnd {
			s, me := aunDirectly(t, at)
			return r.call(&aunCalls{aunSite: s, me: me})
		}})
	}
	var s *aunSite
	var reload func()
	row.ways = append(row.ways, wildWay{name: "a client", serve: func(t *testing.T) *wildServed {
		_, address := sampleAgent(t)
		s = newAUN(t)
		c := s.config("a2a/legacy http://" + address)
		s.start(c)
		reload = func() {
			if refused := s.reload(c); refused != "" {
				s.t.Error(refused)
			}
		}
		return &wildServed{}
	}, call: func(t *testing.T, _ string) wildEnd {
		s.t = t
		return r.call(&aunCalls{aunSite: s, me: s.client("me.aid.test"), reload: reload})
	}})
	return row
}

// echoes is an agent that answers as the sample agent does.
func echoes(m aunpeer.Received, say func(map[string]any)) {
	if m.Type == "menu.query" {
		say(map[string]any{"type": "menu.response", "items": []any{}})
		return
	}
	inThread(m, say,
		map[string]any{"type": "event", "event": "task.started"},
		map[string]any{"type": "text", "text": "echo: " + m.Text},
		map[string]any{"type": "text", "text": "ok"},
		map[string]any{"type": "event", "event": "task.completed"})
}

// send sends a text to the agent.
func (c *aunCalls) send(conn *aunpeer.Conn, text string) {
	c.t.Helper()
	must(conn.Call(c.soon(), "message.send", map[string]any{"to": aunAgent,
		"payload": aunpeer.Payload{Type: "text", Text: text, ThreadID: "th"}}))(c.t)
}

// aunMessage is a message that a client has received.
type aunMessage struct {
	Seq     int
	Payload aunpeer.Payload
}

// received returns the next message of a connection.
func (s *aunSite) received(conn *aunpeer.Conn) (m aunMessage) {
	s.t.Helper()
	f := must(conn.Event(s.soon(), func(f aunpeer.Frame) bool { return f.Method == "event/message.received" }))(s.t)
	noError(s.t, json.Unmarshal(f.Params, &m))
	return m
}

// onlyTexts returns the texts in messages.
func onlyTexts(list []aunMessage) (texts []string) {
	for _, m := range list {
		if m.Payload.Type == "text" {
			texts = append(texts, m.Payload.Text)
		}
	}
	return texts
}

// until returns the messages of a connection up to the next one that says the end of a task.
func (c *aunCalls) until(conn *aunpeer.Conn) (list []aunMessage) {
	c.t.Helper()
	for {
		m := c.received(conn)
		if list = append(list, m); m.Payload.Event == "task.completed" {
			return list
		}
	}
}

// head returns the status of a document.
func (c *aunCalls) head(url string) int {
	c.t.Helper()
	r := must(http.NewRequestWithContext(c.soon(), http.MethodHead, url, nil))(c.t)
	res := must(c.me.HTTP.Do(r))(c.t)
	res.Body.Close()
	return res.StatusCode
}

const aunCert = "https://" + aunGateway + "/pki/cert/"

var wildAUNCallers = []wildRow{
	aunCallerRow{
		name: "SDK for Node 0.5.4, which publishes a key, and reads what it has missed by `message.v2.pull`",
		want: wildEnd{Products: []string{"echo: hello", "ok", "echo: again", "ok"}},
		call: func(c *aunCalls) (end wildEnd) {
			sdk := &aunpeer.SDK{Client: c.me}
			noError(c.t, sdk.Start(c.soon()))
			noError(c.t, sdk.Say(c.soon(), aunAgent, "hello", "one"))
			noError(c.t, sdk.Until(c.soon(), "task.completed"))
			heard := len(sdk.Heard)
			noError(c.t, sdk.Say(c.soon(), aunAgent, "again", "two"))
			sdk.Stop()
			all := sdk.Heard
			sdk.Heard = nil
			noError(c.t, sdk.Start(c.soon()))
			noError(c.t, sdk.Until(c.soon(), "task.completed"))
			for _, p := range append(all[:heard:heard], sdk.Heard...) {
				if p.Type == "text" {
					end.Products = append(end.Products, p.Text)
				}
			}
			return end
		},
	}.row(),
	aunCallerRow{
		name:   "SDK for Node 0.2.20, which asks for prekeys, and reads what it has missed by `message.pull`",
		direct: true,
		want: wildEnd{Products: []string{"echo: hello", "ok", "echo: again", "ok"},
			Noted: []string{"few numbers to look for"}},
		call: func(c *aunCalls) (end wildEnd) {
			conn := must(c.me.Online(c.soon()))(c.t)
			_, _ = conn.Call(c.soon(), "message.e2ee.put_prekey", map[string]any{"prekey_id": "p1", "public_key": "AA=="})
			_, _ = conn.Call(c.soon(), "message.e2ee.get_prekey", map[string]any{"aid": aunAgent}) // there is none
			var none struct {
				Floor int `json:"server_ack_seq"`
			}
			c.read(conn, "message.pull", map[string]any{"after_seq": 0, "limit": 50}, &none)
			c.send(conn, "hello")
			heard := c.until(conn)
			if heard[0].Seq-none.Floor < 10 { // one by one
				end.Noted = []string{"few numbers to look for"}
			}
			c.send(conn, "again")
			conn.Cut()
			conn = must(c.me.Online(c.soon()))(c.t)
			defer conn.Cut()
			// It pulls until there is no more, and again at each message that comes.
			for heard[len(heard)-1].Payload.Event != "task.completed" || len(heard) < 8 {
				var page struct{ Messages []aunMessage }
				c.read(conn, "message.pull", map[string]any{"after_seq": heard[len(heard)-1].Seq, "limit": 50}, &page)
				if heard = append(heard, page.Messages...); len(page.Messages) == 0 {
					c.received(conn)
				}
			}
			end.Products = onlyTexts(heard)
			return end
		},
	}.row(),
	aunCallerRow{
		name:   "a command line, which asks for a menu, sends strings, and waits for `task.started`",
		direct: true,
		want: wildEnd{Noted: []string{"menu.response", "task.started", "text", "text", "task.completed"},
			Products: []string{"echo: hello", "ok"}},
		call: func(c *aunCalls) (end wildEnd) {
			conn := must(c.me.Online(c.soon()))(c.t)
			defer conn.Cut()
			for _, payload := range []any{map[string]any{"type": "menu.query"}, "hello"} {
				must(conn.Call(c.soon(), "message.send", map[string]any{"to": aunAgent, "payload": payload}))(c.t)
			}
			for _, m := range c.until(conn) {
				switch p := m.Payload; p.Type {
				case "status":
				case "text":
					end.Products = append(end.Products, p.Text)
					fallthrough
				default:
					end.Noted = append(end.Noted, cmp.Or(p.Event, p.Type))
				}
			}
			return end
		},
	}.row(),
	aunCallerRow{
		name: "SDKs 0.5.4 for Node and Go, and a command line, which look whether an AID exists before they write to it",
		want: wildEnd{Noted: []string{"another client: 404", "then it logs in: 200", "its agent.md: 200",
			"the agent: 200, of " + aunAgent, "its agent.md: 200", "none.aid.test: 404"},
			Products: []string{"echo: hello", "ok"}},
		call: func(c *aunCalls) (end wildEnd) {
			note := func(what string, status int) { end.Noted = append(end.Noted, fmt.Sprintf("%s: %d", what, status)) }
			note("another client", c.head(aunCert+"other.aid.test"))
			defer must(c.client("other.aid.test").Online(c.soon()))(c.t).Cut()
			note("then it logs in", c.head(aunCert+"other.aid.test"))
			note("its agent.md", c.head("https://other.aid.test/agent.md"))
			_, text, err := c.me.Get(c.soon(), aunCert+aunAgent)
			noError(c.t, err)
			chain := must(aun.ParseChain(text))(c.t)
			end.Noted = append(end.Noted, fmt.Sprintf("the agent: %d, of %s", c.head(aunCert+aunAgent),
				chain[0].Subject.CommonName))
			note("its agent.md", c.head("https://"+aunAgent+"/agent.md"))
			note("none.aid.test", c.head(aunCert+"none.aid.test"))
			conn := must(c.me.Online(c.soon()))(c.t)
			defer conn.Cut()
			c.send(conn, "hello")
			end.Products = onlyTexts(c.until(conn))
			return end
		},
	}.row(),
	aunCallerRow{
		name: "SDK for Go 0.5.4 with `ExtraInfo`, which learns whose connection has taken its place",
		want: wildEnd{Noted: []string{`by {"pid":2}`, "at me.aid.test device-1", "closed with 4009"}},
		call: func(c *aunCalls) (end wildEnd) {
			token := must(c.me.Login(c.soon()))(c.t).Access
			var both []*aunpeer.Conn
			for pid := 1; pid <= 2; pid++ {
				conn, _, err := c.me.Connect(c.soon(), token, map[string]any{"extra_info": map[string]int{"pid": pid}})
				noError(c.t, err)
				defer conn.Cut()
				both = append(both, conn)
			}
			f := must(both[0].Event(c.soon(), func(f aunpeer.Frame) bool { return f.Method == "event/gateway.disconnect" }))(c.t)
			var e struct {
				Detail struct {
					By struct {
						AID      string
						DeviceID string `json:"device_id"`
					} `json:"evicted_by"`
					Extra json.RawMessage `json:"new_extra_info"`
				}
			}
			noError(c.t, json.Unmarshal(f.Params, &e))
			code, _, err := both[0].Closed(c.soon())
			noError(c.t, err)
			end.Noted = []string{fmt.Sprintf("by %s", e.Detail.Extra), "at " + e.Detail.By.AID + " " + e.Detail.By.DeviceID,
				fmt.Sprintf("closed with %d", code)}
			return end
		},
	}.row(),
	aunCallerRow{
		name: "SDKs 0.2.20 to 0.5.4 at a reload, which come back soon after a break alone",
		want: wildEnd{Noted: []string{"no close"}, Products: []string{"echo: hello", "ok", "echo: again", "ok"}},
		call: func(c *aunCalls) (end wildEnd) {
			for n, text := range wildTurns {
				conn := must(c.me.Online(c.soon()))(c.t)
				defer conn.Cut()
				c.send(conn, text)
				end.Products = append(end.Products, onlyTexts(c.until(conn))...)
				if n > 0 {
					break
				}
				c.reload()
				code, _, _ := conn.Closed(c.soon())
				if told := strings.Join(conn.Received(), "\n"); code == 0 && !strings.Contains(told, "gateway.disconnect") {
					end.Noted = append(end.Noted, "no close")
				}
			}
			return end
		},
	}.row(),
}
