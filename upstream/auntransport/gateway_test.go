// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/upstream"
)

var quiet = slog.New(slog.DiscardHandler)

// object is a JSON object.
type object = map[string]any

// gateway is a gateway of AUN with one agent. The agent obeys a task's input: "echo x" completes with x, "ask" asks
// once, "reject" and "fail" do so, "slow d" completes after a time.
type gateway struct {
	t         *testing.T
	net       *auntest.Network
	pki       *auntest.PKI
	authority *aun.Authority
	stop      func()
	bubble    chan struct{} // see pause

	process func(url string, change ...func(*upstream.Config)) *upstream.Agent // an agent as another process has it

	// namespaces of auth.connect.
	namespaces []string
	// before is called before a request is carried out. If it returns false, the request is not answered.
	before func(r *aun.Request) bool // guarded by mu

	mu      sync.Mutex
	tasks   map[string]object
	created int
	calls   []string
	subs    map[string]map[*aun.Conn]bool
	conns   map[*aun.Conn]bool
	work    sync.WaitGroup
}

func newGateway(t *testing.T, pki *auntest.PKI, network *auntest.Network) *gateway {
	t.Helper()
	authority, err := aun.NewAuthority(aun.AuthorityConfig{Identity: pki.Identity("gw.aid.test"), Roots: pki.Roots()})
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, pki: pki, net: network, authority: authority, bubble: make(chan struct{}),
		namespaces: []string{"task", "message"}, tasks: make(map[string]object), subs: make(map[string]map[*aun.Conn]bool),
		conns: make(map[*aun.Conn]bool)}
	g.start()
	t.Cleanup(g.work.Wait)
	return g
}

// pause lets a time pass on the clock of the gateway's bubble, as withGateway makes it; no real time passes. Outside
// the bubble it panics, because the channel is the bubble's.
func (g *gateway) pause(d time.Duration) {
	select {
	case <-g.bubble: // it is never closed
	case <-time.After(d):
	}
}

func (g *gateway) start() { g.stop = g.net.Serve("gw.test", g) }

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	nonce, challenge := g.authority.NewChallenge()
	h := &connection{gateway: g, nonce: nonce, peer: aun.NewPeerLogin(g.pki.Identity("agent.aid.test"), g.pki.Roots())}
	c := aun.NewConn(ws, h, aun.Limits{}, quiet)
	g.mu.Lock()
	g.conns[c] = true
	g.mu.Unlock()
	if r.URL.Path != "/acp" {
		g.work.Go(func() { _ = c.Notify(context.Background(), "challenge", challenge) })
	}
	c.Serve(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
	for _, s := range g.subs {
		delete(s, c)
	}
}

// connection is the handler of one connection.
type connection struct {
	*gateway
	nonce string
	peer  *aun.PeerLogin
}

func (c *connection) Event(*aun.Conn, string, gjson.Result) {}

func (c *connection) Request(ctx context.Context, r *aun.Request) {
	g := c.gateway
	g.mu.Lock()
	g.calls = append(g.calls, r.Method)
	before := g.before
	g.mu.Unlock()
	if before != nil && !before(r) {
		<-ctx.Done() // it is not answered
		return
	}
	var result []byte
	var err error
	switch r.Method {
	case "auth.aid_login1":
		result, err = g.authority.Login1(r.Params)
	case "auth.aid_login2":
		result, err = g.authority.Login2(r.Params)
	case "auth.refresh_token":
		result, _, err = g.authority.Refresh(r.Params)
	case "auth.connect":
		if _, err = g.authority.Authenticate(r.Params.Get("auth")); err == nil && r.Params.Get("nonce").String() != c.nonce {
			err = aun.Errorf(codes.CertificateInvalid, "wrong nonce")
		}
		result = marshal(object{"status": "ok", "capabilities": object{"namespaces": g.namespaces}})
	case "initialize":
		result, err = c.peer.Initialize(r.Params)
	case "peer.hello":
		result, err = c.peer.Hello(r.Params)
	case "peer.confirm":
		result, _, err = c.peer.Confirm(r.Params)
	case "meta.ping":
		result = []byte(`{"pong":true}`)
	default:
		result, err = g.task(r)
	}
	if err != nil {
		r.Fail(err)
		return
	}
	_ = r.Reply(result)
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// task carries out a method of task.*.
func (g *gateway) task(r *aun.Request) ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := r.Params.Get("task_id").String()
	t := g.tasks[id]
	if t == nil && r.Params.Get("task_id").Exists() {
		return nil, aun.Errorf(codes.TaskNotFound, "Task not found")
	}
	switch r.Method {
	case "task.create":
		g.created++
		id := fmt.Sprintf("task_%d", g.created)
		t := object{"task_id": id, "status": "submitted", "owner": "alice.aid.test", "assignee": r.Params.Get("to").String(),
			"created_at": now(), "updated_at": now(), "input": r.Params.Get("input").Value(), "artifacts": []any{}}
		g.tasks[id] = t
		g.work.Go(func() { g.carryOut(id, r.Params.Get("input.content").String(), "") })
		return marshal(object{"task_id": id, "status": "submitted", "created_at": t["created_at"]}), nil
	case "task.get":
		return marshal(t), nil
	case "task.send_input":
		t["status"], t["updated_at"] = "working", now()
		g.work.Go(func() {
			g.carryOut(id, t["input"].(object)["content"].(string), r.Params.Get("input.content").String())
		})
		return marshal(object{"task_id": id, "status": "working"}), nil
	case "task.cancel":
		t["status"], t["updated_at"] = "canceled", now()
		g.emit("updated", id, object{"task_id": id, "status": "canceled", "updated_at": t["updated_at"]})
		return marshal(object{"task_id": id, "status": "canceled"}), nil
	case "task.list":
		var list []any
		for _, t := range g.tasks {
			list = append(list, object{"task_id": t["task_id"], "status": t["status"], "assignee": t["assignee"],
				"created_at": t["created_at"]})
		}
		return marshal(object{"tasks": list, "has_more": false}), nil
	case "task.subscribe", "task.unsubscribe":
		id := r.Params.Get("task_ids.0").String()
		if g.tasks[id] == nil {
			return nil, aun.Errorf(codes.TaskNotFound, "Task not found")
		}
		if g.subs[id] == nil {
			g.subs[id] = make(map[*aun.Conn]bool)
		}
		if r.Method == "task.unsubscribe" {
			delete(g.subs[id], r.Conn)
			return []byte(`{"unsubscribed":[]}`), nil
		}
		g.subs[id][r.Conn] = true
		return marshal(object{"subscribed": []string{id}}), nil
	}
	return nil, aun.Errorf(codes.MethodNotFound, "Method not found")
}

func now() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// carryOut obeys the input of a task, or continues it with more input.
func (g *gateway) carryOut(id, text, more string) {
	g.pause(10 * time.Millisecond)
	verb, rest, _ := strings.Cut(text, " ")
	if more == "" && verb != "reject" {
		g.change(id, "updated", object{"status": "working"})
		g.pause(10 * time.Millisecond)
	}
	switch {
	case verb == "reject":
		g.change(id, "updated", object{"status": "rejected", "reason": "unsupported_scope"})
	case verb == "fail":
		g.change(id, "failed", object{"status": "failed", "reason": "missing_required_context"})
	case verb == "ask" && more == "":
		g.change(id, "updated", object{"status": "input_required", "message": object{"type": "text", "content": "which?"}})
	case verb == "ask":
		g.finish(id, more)
	case verb == "slow":
		d, _ := time.ParseDuration(rest)
		g.pause(d)
		g.finish(id, rest)
	default:
		g.finish(id, rest)
	}
}

// finish completes a task with an artifact.
func (g *gateway) finish(id, text string) {
	artifact := object{"id": "a", "type": "text", "name": "result", "content": text}
	g.mu.Lock()
	if t := g.tasks[id]; t["status"] == "working" {
		t["artifacts"] = []any{artifact}
		g.emit("artifact", id, object{"task_id": id, "artifact": artifact})
	}
	g.mu.Unlock()
	g.change(id, "completed", object{"status": "completed"})
}

// change changes a task, unless it has ended, and sends an event of it.
func (g *gateway) change(id, event string, change object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.tasks[id]
	switch t["status"] {
	case "completed", "failed", "canceled", "rejected":
		return
	}
	t["status"], t["updated_at"] = change["status"], now()
	change["task_id"], change["updated_at"] = id, t["updated_at"]
	g.emit(event, id, change)
}

// emit sends an event to the subscribers of a task. g.mu is held.
func (g *gateway) emit(event, id string, params object) {
	for c := range g.subs[id] {
		_ = c.Notify(context.Background(), "event/task."+event, marshal(params))
	}
}

// intercept sets the function called before each request.
func (g *gateway) intercept(before func(r *aun.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = before
}

// tasksCreated returns the number of tasks created.
func (g *gateway) tasksCreated() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.created
}

// count returns the number of calls of a method.
func (g *gateway) count(method string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.calls {
		if c == method {
			n++
		}
	}
	return n
}

// closeAll closes all connections with a status.
func (g *gateway) closeAll(code aun.CloseCode) {
	g.mu.Lock()
	var list []*aun.Conn
	for c := range g.conns {
		list = append(list, c)
	}
	g.mu.Unlock()
	for _, c := range list {
		c.Close(code, "")
	}
}
