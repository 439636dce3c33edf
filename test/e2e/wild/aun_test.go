// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWildAUN has clients of AUN and Leaders of AIP ask agents of AUN that speak by messages, all by rule.
func TestWildAUN(t *testing.T) {
	t.Parallel()
	runWild(t, wildAUN)
}

// aunRow is a row of an agent of AUN that speaks by messages: what a client has from it in a number of turns, a Leader
// has through the gateway.
type aunRow struct {
	name string
	rule func(m aunpeer.Received, say func(map[string]any))
	want []string // the texts, or the names of the files, that the turns end with
	says []string // what it says while it works, which a Leader has in the history
}

func (r aunRow) row() wildRow {
	var far *aunpeer.Gateway
	serve := func(direct bool) func(t *testing.T) *wildServed {
		return func(t *testing.T) *wildServed {
			b := site.ServeBehind(t, func(g *aunpeer.Gateway) { g.Messages, g.Rule, far = true, r.rule, g })
			served := &wildServed{at: b.Site.URL(), told: far.Texts}
			if direct {
				served.at = b.URL
			}
			return served
		}
	}
	return wildRow{name: r.name,
		want: wildEnd{Products: r.want[len(r.want)-1:], Said: r.says, Noted: r.want, Told: wildTurns[:len(r.want)]},
		ways: []wildWay{
			{name: "a client of AUN", serve: serve(true), call: r.byMessages},
			{name: "a Leader", serve: serve(false), call: r.byLeader},
		}}
}

// wildTurns are the texts of the turns.
var wildTurns = []string{"hello", "again"}

// byMessages asks the agent by messages, and takes what each turn ends with.
func (r aunRow) byMessages(t *testing.T, at string) (end wildEnd) {
	s, c := aunDirectly(t, at)
	conn := site.Must(c.Online(s.Soon()))(t)
	defer conn.Cut()
	for n := range r.want {
		site.Must(conn.Call(s.Soon(), "message.send", map[string]any{"to": site.AUNAgent,
			"payload": aunpeer.Payload{Type: "text", Text: wildTurns[n], ThreadID: "th", ChatID: "th"}}))(t)
		for answer := ""; answer == ""; end.Products = []string{answer} {
			switch p := s.Received(conn).Payload; {
			case p.Type == "thought":
				for _, it := range p.Items {
					if it.Kind == "text" {
						end.Said = append(end.Said, it.Text)
					}
				}
			case p.Type == "status" && p.Text != "":
				end.Said = append(end.Said, p.Text)
			case len(p.Attachments) > 0:
				answer = p.Attachments[0].Filename
			default:
				answer = p.Text
			}
		}
		end.Noted = append(end.Noted, end.Products...)
	}
	return end
}

// aunDirectly returns a client at the URL of another gateway of AUN.
func aunDirectly(t *testing.T, at string) (*site.AUNSite, *aunpeer.Client) {
	s := &site.AUNSite{Site: &site.Site{T: t}, PKI: site.Must(site.AUNPKI())(t)}
	c := s.Client("me.aid.test")
	c.URL = at
	ca := devpkitest.KeyPair(t, site.Certificates(t).CA).Leaf
	c.HTTP = aunpeer.To(at[len("wss://"):len(at)-len("/aun")], ca)
	t.Cleanup(c.HTTP.CloseIdleConnections)
	return s, c
}

// byLeader asks the agent as a Leader, and takes the products of each turn.
func (r aunRow) byLeader(t *testing.T, at string) (end wildEnd) {
	c := site.LeaderOf(t, at)
	for n := range r.want {
		if n == 0 {
			c.Start("t", wildTurns[0])
		} else {
			c.GoOn("t", wildTurns[n])
		}
		got := c.Rests("t")
		if len(got.Products) == 0 {
			return wildEnd{Broken: fmt.Sprintf("turn %d is %s without a product: %+v", n+1, got.Status.State,
				got.Status.DataItems)}
		}
		end.Products, end.Said = nil, nil
		for _, p := range got.Products {
			end.Products = append(end.Products, p.DataItems[0].Text+p.DataItems[0].Name)
		}
		for _, m := range got.MessageHistory {
			if m.SenderRole == task.Partner {
				end.Said = append(end.Said, m.DataItems[0].Text)
			}
		}
		end.Noted = append(end.Noted, end.Products...)
	}
	return end
}

// inThread says payloads in the thread of a message.
func inThread(m aunpeer.Received, say func(map[string]any), payloads ...map[string]any) {
	for _, p := range payloads {
		p["thread_id"] = m.Thread
		say(p)
	}
}

var wildAUN = []wildRow{
	aunRow{
		name: "says `task.started`, what it thinks, its answer, `task.completed`, and that status in the next turn",
		rule: func(m aunpeer.Received, say func(map[string]any)) {
			about := func(payload map[string]any, n int) {
				payload["thread_id"], payload["task_id"] = m.Thread, fmt.Sprint("task-", n)
				say(payload)
			}
			if m.N > 1 {
				about(map[string]any{"type": "status", "state": "completed"}, m.N-1)
			}
			about(map[string]any{"type": "event", "event": "task.started"}, m.N)
			about(map[string]any{"type": "status", "state": "started"}, m.N)
			about(map[string]any{"type": "thought", "items": []any{map[string]any{"kind": "tool_call", "name": "Bash"}}}, m.N)
			about(map[string]any{"type": "text", "text": "done: " + m.Text}, m.N)
			about(map[string]any{"type": "event", "event": "task.completed"}, m.N)
		},
		want: []string{"done: hello", "done: again"},
	}.row(),
	aunRow{
		name: "answers with a text without a type and the `chat_id` alone",
		rule: func(m aunpeer.Received, say func(map[string]any)) {
			say(map[string]any{"text": "done: " + m.Text, "chat_id": m.Chat})
		},
		want: []string{"done: hello", "done: again"},
	}.row(),
	aunRow{
		name: "answers without a thread",
		rule: func(m aunpeer.Received, say func(map[string]any)) {
			say(map[string]any{"type": "text", "text": "done: " + m.Text})
		},
		want: []string{"done: hello", "done: again"},
	}.row(),
	aunRow{
		name: "says what it thinks, and a status `processing` with a text, before its answer",
		rule: func(m aunpeer.Received, say func(map[string]any)) {
			inThread(m, say,
				map[string]any{"type": "event", "event": "task.started"},
				map[string]any{"type": "thought",
					"items": []aunpeer.Item{{Kind: "tool_call"}, {Kind: "text", Text: "I think"}}},
				map[string]any{"type": "status", "state": "processing", "text": "I read"},
				map[string]any{"type": "text", "text": "done: " + m.Text},
				map[string]any{"type": "event", "event": "task.completed"})
		},
		want: []string{"done: hello"},
		says: []string{"I think", "I read"},
	}.row(),
	aunRow{
		name: "sends a file as an object of its storage, without a URL",
		rule: func(m aunpeer.Received, say func(map[string]any)) {
			inThread(m, say,
				map[string]any{"type": "event", "event": "task.started"},
				map[string]any{"type": "file", "attachments": []map[string]any{
					{"owner_aid": site.AUNAgent, "object_key": "shared/f.txt", "filename": "f.txt"}}},
				map[string]any{"type": "event", "event": "task.completed"})
		},
		want: []string{"f.txt"},
	}.row(),
}
