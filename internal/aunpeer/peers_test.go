// SPDX-License-Identifier: Apache-2.0

package aunpeer_test

import (
	"context"
	"crypto/elliptic"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// network is a scripted gateway of AUN, with its clients.
type network struct {
	t       *testing.T
	pki     *aunpeer.PKI
	gateway *aunpeer.Gateway
	server  *httptest.Server
}

func open(t *testing.T, change ...func(*aunpeer.Gateway)) *network {
	t.Helper()
	n := &network{t: t, pki: must(aunpeer.NewPKI("aid.test"))(t)}
	n.gateway = &aunpeer.Gateway{
		PKI: n.pki, ID: must(n.pki.Issue("auth.aid.test"))(t), Agent: "agent.aid.test",
		URL: "wss://gateway.aid.test/aun",
	}
	for _, f := range change {
		f(n.gateway)
	}
	n.gateway.Open()
	n.server = httptest.NewUnstartedServer(n.gateway)
	n.server.StartTLS()
	t.Cleanup(func() {
		n.gateway.Close()
		n.server.Close()
	})
	return n
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// client returns a client with an identity of its own.
func (n *network) client(aid string) *aunpeer.Client {
	n.t.Helper()
	to := aunpeer.To(n.server.Listener.Addr().String(), n.server.Certificate())
	to.Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com" // of httptest's certificate
	n.t.Cleanup(to.CloseIdleConnections)
	return &aunpeer.Client{ID: must(n.pki.Issue(aid))(n.t), PKI: n.pki, HTTP: to}
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func online(t *testing.T, c *aunpeer.Client) *aunpeer.Conn {
	t.Helper()
	conn := must(c.Online(limit(t)))(t)
	t.Cleanup(conn.Cut)
	return conn
}

// TestScripts: each script ends as it says, and its events say so.
func TestScripts(t *testing.T) {
	n := open(t)
	conn := online(t, n.client("alice.aid.test"))
	for script, want := range map[string]struct{ method, status, artifact string }{
		"hello":         {"event/task.completed", "completed", "echo: hello"},
		"fail":          {"event/task.failed", "failed", ""},
		"late-reject 1": {"event/task.updated", "rejected", ""},
		"slow 1":        {"event/task.completed", "completed", "slow done"},
		"stream 3 1":    {"event/task.completed", "completed", "chunk-0 chunk-1 chunk-2 "},
		"ask":           {"event/task.completed", "completed", "you said: blue"},
	} {
		task := must(conn.Create(limit(t), "agent.aid.test", script))(t)
		if task.Status != "submitted" || task.Owner != "alice.aid.test" {
			t.Errorf("%s: created as %+v", script, task)
		}
		if got := must(conn.Subscribe(limit(t), task.TaskID, "task_none"))(t); !slices.Equal(got, []string{task.TaskID}) {
			t.Errorf("%s: subscribed to %v", script, got)
		}
		if script == "ask" {
			for must(conn.Do(limit(t), "task.get", id(task)))(t).Status != "input_required" {
			}
			must(conn.Do(limit(t), "task.send_input", map[string]any{
				"task_id": task.TaskID, "input": aunpeer.Text("blue"),
			}))(t)
		}
		got := must(conn.Do(limit(t), "task.get", id(task)))(t)
		if !aunpeer.Ended(got.Status) { // else the events may be from before the subscription
			must(conn.TaskEvent(limit(t), want.method, task.TaskID, want.status))(t)
			got = must(conn.Do(limit(t), "task.get", id(task)))(t)
		}
		artifact := ""
		if len(got.Artifacts) == 1 {
			artifact, _ = got.Artifacts[0].Content.(string)
		}
		if got.Status != want.status || artifact != want.artifact {
			t.Errorf("%s: it ended as %+v", script, got)
		}
	}
}

func id(t aunpeer.Task) map[string]any { return map[string]any{"task_id": t.TaskID} }

// TestCancel: a task is canceled once, and stays its owner's.
func TestCancel(t *testing.T) {
	n := open(t)
	alice, bob := online(t, n.client("alice.aid.test")), online(t, n.client("bob.aid.test"))
	task := must(alice.Create(limit(t), "agent.aid.test", "slow 60000"))(t)
	if _, err := bob.Do(limit(t), "task.get", id(task)); aunpeer.Code(err) != -32170 {
		t.Errorf("another's task: %v", err)
	}
	if got := must(alice.Do(limit(t), "task.cancel", id(task)))(t); got.Status != "canceled" {
		t.Errorf("canceled: %+v", got)
	}
	if _, err := alice.Do(limit(t), "task.cancel", id(task)); aunpeer.Code(err) != -32173 {
		t.Errorf("canceled again: %v", err)
	}
}

// TestMessages: an agent without task.* answers in the thread of the message.
func TestMessages(t *testing.T) {
	n := open(t, func(g *aunpeer.Gateway) { g.Messages = true })
	conn := online(t, n.client("alice.aid.test"))
	if _, err := conn.Create(limit(t), "agent.aid.test", "hello"); aunpeer.Code(err) != -32601 {
		t.Errorf("task.create: %v", err)
	}
	must(conn.Call(limit(t), "message.send", map[string]any{
		"to": "agent.aid.test", "message_id": "m1",
		"payload": aunpeer.Payload{Type: "text", Text: "hello", ThreadID: "thread-1"},
	}))(t)
	var said []string
	for !slices.Contains(said, "task.completed") {
		f := must(conn.Event(limit(t), nil))(t)
		var p struct{ Payload aunpeer.Payload }
		if err := json.Unmarshal(f.Params, &p); err != nil || p.Payload.ThreadID != "thread-1" {
			t.Fatalf("%s %s", f.Method, f.Params)
		}
		said = append(said, p.Payload.Event+p.Payload.Text)
	}
	if want := []string{"task.started", "echo: hello", "task.completed"}; !slices.Equal(said, want) {
		t.Errorf("it said %q", said)
	}
}

// TestLogins: faults of a login are found.
func TestLogins(t *testing.T) {
	n := open(t)
	c := n.client("alice.aid.test")
	c.ID = must(n.pki.IssueOn(elliptic.P384(), "alice.aid.test"))(t)
	l := must(c.Login1(limit(t)))(t)
	params := must(c.Login2(l))(t)
	token := must(c.SecondStep(limit(t), params))(t)
	if _, err := c.SecondStep(limit(t), params); aunpeer.Code(err) != -32002 {
		t.Errorf("a nonce that is used twice: %v", err)
	}
	renewed := must(c.RefreshToken(limit(t), token.Refresh))(t)
	conn, connected, err := c.Connect(limit(t), renewed.Access, nil)
	if err != nil || connected.Identity.AID != "alice.aid.test" {
		t.Fatalf("connected as %q: %v", connected.Identity.AID, err)
	}
	conn.Cut()
	params = must(c.Login2(must(c.Login1(limit(t)))(t)))(t)
	params["signature"] = must(c.ID.Sign("something else"))(t)
	if _, err := c.SecondStep(limit(t), params); aunpeer.Code(err) != -32003 {
		t.Errorf("a wrong signature: %v", err)
	}
	foreign := must(aunpeer.NewPKI("aid.test"))(t)
	c.ID = must(foreign.Issue("alice.aid.test"))(t)
	if _, err := c.Login1(limit(t)); aunpeer.Code(err) != -32002 {
		t.Errorf("the certificate of a foreign root: %v", err)
	}
	c.PKI = foreign
	if _, err := c.Login1(limit(t)); err == nil || !strings.Contains(err.Error(), "-32002") {
		t.Errorf("%v", err)
	}
	if _, _, err := c.Connect(limit(t), renewed.Refresh, nil); aunpeer.Code(err) != -32001 {
		t.Errorf("an invalid token: %v", err)
	}
}

// TestFaults: calls go wrong as it was asked for.
func TestFaults(t *testing.T) {
	var fault atomic.Int64
	n := open(t, func(g *aunpeer.Gateway) {
		g.Fault = func(method string, _ json.RawMessage) aunpeer.Fault {
			if method == "task.create" {
				return aunpeer.Fault(fault.Load())
			}
			return aunpeer.None
		}
	})
	fault.Store(int64(aunpeer.DropReply))
	c := n.client("alice.aid.test")
	conn := online(t, c)
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := conn.Create(short, "agent.aid.test", "hello"); err == nil {
		t.Error("the call is answered")
	}
	fault.Store(int64(aunpeer.Cut))
	if _, err := conn.Create(limit(t), "agent.aid.test", "hello"); err == nil || aunpeer.Code(err) != 0 {
		t.Errorf("the call: %v", err)
	}
	if got := n.gateway.Tasks(); len(got) != 2 {
		t.Errorf("there are %d tasks", len(got))
	}
	conn = online(t, c)
	n.gateway.Disconnect(4009, "another device")
	if code, reason, err := conn.Closed(limit(t)); code != 4009 || reason != "another device" {
		t.Errorf("%d %q %v", code, reason, err)
	}
}
