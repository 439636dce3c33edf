// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
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
	*site.AUNSite
	me     *aunpeer.Client
	reload func()
}

func (r aunCallerRow) row() wildRow {
	row := wildRow{name: r.name, want: r.want}
	if r.direct {
		row.ways = append(row.ways, wildWay{name: "a client, directly", serve: func(t *testing.T) *wildServed {
			return &wildServed{at: site.ServeBehind(t, func(g *aunpeer.Gateway) { g.Messages, g.Rule = true, echoes }).URL}
		}, call: func(t *testing.T, at string) wildEnd {
			s, me := aunDirectly(t, at)
			return r.call(&aunCalls{AUNSite: s, me: me})
		}})
	}
	var s *site.AUNSite
	var reload func()
	row.ways = append(row.ways, wildWay{name: "a client", serve: func(t *testing.T) *wildServed {
		_, address := site.SampleAgent(t)
		s = site.NewAUN(t)
		c := s.Config("a2a/legacy http://" + address)
		s.Start(c)
		reload = func() {
			if refused := s.Reload(c); refused != "" {
				s.T.Error(refused)
			}
		}
		return &wildServed{}
	}, call: func(t *testing.T, _ string) wildEnd {
		s.T = t
		return r.call(&aunCalls{AUNSite: s, me: s.Client("me.aid.test"), reload: reload})
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
	c.T.Helper()
	site.Must(conn.Call(c.Soon(), "message.send", map[string]any{"to": site.AUNAgent,
		"payload": aunpeer.Payload{Type: "text", Text: text, ThreadID: "th"}}))(c.T)
}

// onlyTexts returns the texts in messages.
func onlyTexts(list []site.AUNMessage) (texts []string) {
	for _, m := range list {
		if m.Payload.Type == "text" {
			texts = append(texts, m.Payload.Text)
		}
	}
	return texts
}

// until returns the messages of a connection up to the next one that says the end of a task.
func (c *aunCalls) until(conn *aunpeer.Conn) (list []site.AUNMessage) {
	c.T.Helper()
	for {
		m := c.Received(conn)
		if list = append(list, m); m.Payload.Event == "task.completed" {
			return list
		}
	}
}

// head returns the status of a document.
func (c *aunCalls) head(url string) int {
	c.T.Helper()
	r := site.Must(http.NewRequestWithContext(c.Soon(), http.MethodHead, url, nil))(c.T)
	res := site.Must(c.me.HTTP.Do(r))(c.T)
	res.Body.Close()
	return res.StatusCode
}

const aunCert = "https://" + site.AUNGateway + "/pki/cert/"

var wildAUNCallers = []wildRow{
	aunCallerRow{
		name: "SDK for Node 0.5.4, which publishes a key, and reads what it has missed by `message.v2.pull`",
		want: wildEnd{Products: []string{"echo: hello", "ok", "echo: again", "ok"}},
		call: func(c *aunCalls) (end wildEnd) {
			sdk := &aunpeer.SDK{Client: c.me}
			site.NoError(c.T, sdk.Start(c.Soon()))
			site.NoError(c.T, sdk.Say(c.Soon(), site.AUNAgent, "hello", "one"))
			site.NoError(c.T, sdk.Until(c.Soon(), "task.completed"))
			heard := len(sdk.Heard)
			site.NoError(c.T, sdk.Say(c.Soon(), site.AUNAgent, "again", "two"))
			sdk.Stop()
			all := sdk.Heard
			sdk.Heard = nil
			site.NoError(c.T, sdk.Start(c.Soon()))
			site.NoError(c.T, sdk.Until(c.Soon(), "task.completed"))
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
			conn := site.Must(c.me.Online(c.Soon()))(c.T)
			_, _ = conn.Call(c.Soon(), "message.e2ee.put_prekey", map[string]any{"prekey_id": "p1", "public_key": "AA=="})
			_, _ = conn.Call(c.Soon(), "message.e2ee.get_prekey", map[string]any{"aid": site.AUNAgent}) // there is none
			var none struct {
				Floor int `json:"server_ack_seq"`
			}
			c.Read(conn, "message.pull", map[string]any{"after_seq": 0, "limit": 50}, &none)
			c.send(conn, "hello")
			heard := c.until(conn)
			if heard[0].Seq-none.Floor < 10 { // one by one
				end.Noted = []string{"few numbers to look for"}
			}
			c.send(conn, "again")
			conn.Cut()
			conn = site.Must(c.me.Online(c.Soon()))(c.T)
			defer conn.Cut()
			// It pulls until there is no more, and again at each message that comes.
			for heard[len(heard)-1].Payload.Event != "task.completed" || len(heard) < 8 {
				var page struct{ Messages []site.AUNMessage }
				c.Read(conn, "message.pull", map[string]any{"after_seq": heard[len(heard)-1].Seq, "limit": 50}, &page)
				if heard = append(heard, page.Messages...); len(page.Messages) == 0 {
					c.Received(conn)
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
			conn := site.Must(c.me.Online(c.Soon()))(c.T)
			defer conn.Cut()
			for _, payload := range []any{map[string]any{"type": "menu.query"}, "hello"} {
				site.Must(conn.Call(c.Soon(), "message.send", map[string]any{"to": site.AUNAgent, "payload": payload}))(c.T)
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
			"the agent: 200, of " + site.AUNAgent, "its agent.md: 200", "none.aid.test: 404"},
			Products: []string{"echo: hello", "ok"}},
		call: func(c *aunCalls) (end wildEnd) {
			note := func(what string, status int) { end.Noted = append(end.Noted, fmt.Sprintf("%s: %d", what, status)) }
			note("another client", c.head(aunCert+"other.aid.test"))
			defer site.Must(c.Client("other.aid.test").Online(c.Soon()))(c.T).Cut()
			note("then it logs in", c.head(aunCert+"other.aid.test"))
			note("its agent.md", c.head("https://other.aid.test/agent.md"))
			_, text, err := c.me.Get(c.Soon(), aunCert+site.AUNAgent)
			site.NoError(c.T, err)
			chain := site.Must(aun.ParseChain(text))(c.T)
			end.Noted = append(end.Noted, fmt.Sprintf("the agent: %d, of %s", c.head(aunCert+site.AUNAgent),
				chain[0].Subject.CommonName))
			note("its agent.md", c.head("https://"+site.AUNAgent+"/agent.md"))
			note("none.aid.test", c.head(aunCert+"none.aid.test"))
			conn := site.Must(c.me.Online(c.Soon()))(c.T)
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
			token := site.Must(c.me.Login(c.Soon()))(c.T).Access
			var both []*aunpeer.Conn
			for pid := 1; pid <= 2; pid++ {
				conn, _, err := c.me.Connect(c.Soon(), token, map[string]any{"extra_info": map[string]int{"pid": pid}})
				site.NoError(c.T, err)
				defer conn.Cut()
				both = append(both, conn)
			}
			f := site.Must(both[0].Event(c.Soon(),
				func(f aunpeer.Frame) bool { return f.Method == "event/gateway.disconnect" }))(c.T)
			var e struct {
				Detail struct {
					By struct {
						AID      string
						DeviceID string `json:"device_id"`
					} `json:"evicted_by"`
					Extra json.RawMessage `json:"new_extra_info"`
				}
			}
			site.NoError(c.T, json.Unmarshal(f.Params, &e))
			code, _, err := both[0].Closed(c.Soon())
			site.NoError(c.T, err)
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
				conn := site.Must(c.me.Online(c.Soon()))(c.T)
				defer conn.Cut()
				c.send(conn, text)
				end.Products = append(end.Products, onlyTexts(c.until(conn))...)
				if n > 0 {
					break
				}
				c.reload()
				code, _, _ := conn.Closed(c.Soon())
				if told := strings.Join(conn.Received(), "\n"); code == 0 && !strings.Contains(told, "gateway.disconnect") {
					end.Noted = append(end.Noted, "no close")
				}
			}
			return end
		},
	}.row(),
}
