// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// wildPartner is a Partner of AIP by rule: it does what the reference's does, in both versions, and no more.
type wildPartner struct {
	wildPartnerRule
	*wildWork
	aic     string
	changed *sync.Cond // of wildWork.mu, below which all tasks are
	tasks   map[string]*wildTask
	ids     atomic.Int64
}

// wildPartnerRule is in what Partners differ.
type wildPartnerRule struct {
	inStart   bool // does the work before it answers, as some do; others answer "accepted" at once
	completes bool // completes its tasks itself
	nulls     bool // writes null for each optional member that has no value
	late      bool // rejects after it has accepted
	forever   bool // never gets done
}

// wildTask is a task, as it is published at each change of its state.
type wildTask struct {
	id, version string
	session     any
	done        wildDone
	published   []site.Object // whole results; the number of an event is its place
	webhooks    []wildWebhook
	configs     map[string]wildWebhook // that are not started yet
}

type wildWebhook struct{ ID, URL, Token, TaskID string }

// partnerBy serves a Partner by rule: over mTLS for Leaders, and over plain HTTP for a gateway.
func partnerBy(rule wildPartnerRule) func(*testing.T) *wildServed {
	return func(t *testing.T) *wildServed {
		pki := site.Certificates(t)
		p := &wildPartner{wildPartnerRule: rule, wildWork: newWildWork(), aic: string(pki.Server.AIC),
			tasks: make(map[string]*wildTask)}
		p.changed = sync.NewCond(&p.mu)
		at := p.serve(t, &tls.Config{Certificates: []tls.Certificate{devpkitest.KeyPair(t, pki.Server)},
			ClientCAs:  site.Trusted(t),
			ClientAuth: tls.RequireAndVerifyClientCert}, p.ServeHTTP)
		plain := p.serve(t, nil, p.ServeHTTP)
		return &wildServed{at: at, as: "aip/2 " + plain + "/rpc", told: p.told}
	}
}

// wildCommand is a command of a Leader, in either version.
type wildCommand struct {
	Type, Command, TaskID string
	SessionID             any
	CommandParams         map[string]any
	DataItems             []wildItem
}

func (c *wildCommand) text() string { return textOf(c.DataItems) + payload(c.CommandParams) }

func (p *wildPartner) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/health":
		io.WriteString(w, `{"status":"ok"}`)
		return
	case "/acs":
		json.NewEncoder(w).Encode(site.Object{"aic": p.aic, "active": true, "name": "Worker",
			"endPoints":    []site.Object{{"url": "https://" + r.Host + "/rpc", "transport": "JSONRPC"}},
			"capabilities": site.Object{"streaming": true, "notification": true},
			"skills":       []site.Object{{"id": "work", "name": "Work"}}})
		return
	}
	var q struct {
		ID     json.RawMessage
		Params struct {
			Command, Message *wildCommand
			wildWebhook
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		p.refuse(w, r, nil, http.StatusBadRequest, -32700, "Parse error")
		return
	}
	c := q.Params.Command
	if c == nil {
		c = q.Params.Message
	}
	switch r.URL.Path {
	case "/rpc":
		p.rpc(w, r, q.ID, c)
	case "/stream":
		p.stream(w, r, q.ID, c)
	case "/notification/set":
		hook := q.Params.wildWebhook
		hook.ID = fmt.Sprint("notification-", p.ids.Add(1))
		p.mu.Lock()
		p.task(hook.TaskID).configs[hook.ID] = hook
		p.mu.Unlock()
		p.answer(w, q.ID, hook)
	case "/notification/start":
		p.subscribe(w, r, q.ID, c)
	default:
		http.NotFound(w, r)
	}
}

// answer answers with a result; with nulls, it names the error that there is none of.
func (p *wildPartner) answer(w http.ResponseWriter, id json.RawMessage, result any) {
	o := site.Object{"jsonrpc": "2.0", "id": id, "result": result}
	if p.nulls {
		o["error"] = nil
	}
	json.NewEncoder(w).Encode(o)
}

// refuse refuses a request: with 200 where it came by rpc, otherwise by an HTTP status.
func (p *wildPartner) refuse(w http.ResponseWriter, r *http.Request, id json.RawMessage, status, code int, why string) {
	if reason := (site.Object{"code": code, "message": why}); r.URL.Path == "/rpc" {
		json.NewEncoder(w).Encode(site.Object{"jsonrpc": "2.0", "id": id, "error": reason})
	} else {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(site.Object{"detail": reason})
	}
}

// task returns a task, which may not have begun. The lock must be held, as by all that follow but rpc and stream.
func (p *wildPartner) task(id string) *wildTask {
	if p.tasks[id] == nil {
		p.tasks[id] = &wildTask{id: id, configs: make(map[string]wildWebhook)}
	}
	return p.tasks[id]
}

func (p *wildPartner) rpc(w http.ResponseWriter, r *http.Request, id json.RawMessage, c *wildCommand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.task(c.TaskID)
	switch state := x.done.state; {
	case c.Command == "start" && state == "":
		p.start(x, c)
	case state == "":
		p.refuse(w, r, id, http.StatusNotFound, -32001, "Task not found")
		return
	case c.Command == "continue" && strings.HasPrefix(state, "awaiting-") && c.text() != "":
		p.enter(x, wildDone{state: "working"})
		go p.work(x, c.text())
	case c.Command == "complete" && state == "awaiting-completion":
		p.enter(x, wildDone{state: "completed", product: x.done.product})
	case c.Command == "cancel" && !ended(state):
		p.enter(x, wildDone{state: "canceled"})
	}
	p.answer(w, id, x.published[len(x.published)-1])
}

// start begins a task, and where the Partner does its work in the answer, waits for what comes of it.
func (p *wildPartner) start(x *wildTask, c *wildCommand) {
	x.session, x.version = c.SessionID, c.Type
	if p.late || c.text() != "reject" {
		p.enter(x, wildDone{state: "accepted"})
	}
	go p.work(x, c.text())
	for (p.inStart || len(x.published) == 0) && !settled(x.done.state) {
		p.changed.Wait()
	}
}

func settled(state string) bool { return strings.HasPrefix(state, "awaiting-") || ended(state) }

func ended(state string) bool {
	return slices.Contains([]string{"completed", "failed", "rejected", "canceled"}, state)
}

func (p *wildPartner) work(x *wildTask, text string) {
	p.mu.Lock()
	if p.late || text != "reject" {
		p.enter(x, wildDone{state: "working"})
	}
	p.mu.Unlock()
	done := p.do(text)
	if p.completes && done.state == "awaiting-completion" {
		done.state = "completed"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.forever && !ended(x.done.state) {
		p.enter(x, done)
	}
}

// enter publishes a state: the whole task, to streams and webhooks.
func (p *wildPartner) enter(x *wildTask, done wildDone) {
	x.done = done
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000+00:00")
	status := site.Object{"state": done.state, "stateChangedAt": now}
	result := site.Object{"type": "task-result", "id": fmt.Sprint("msg-", p.ids.Add(1)), "taskId": x.id, "sentAt": now,
		"senderRole": "partner", "senderId": p.aic, "sessionId": x.session, "status": status}
	if x.version == "message" {
		result["type"], result["id"] = "task", x.id
	}
	items := func(text string) []site.Object { return []site.Object{{"type": "text", "text": text}} }
	if done.said != "" {
		status["dataItems"] = items(done.said)
	}
	if done.product != "" {
		result["products"] = []site.Object{{"id": "product-1", "name": "answer", "dataItems": items(done.product)}}
	}
	if p.nulls {
		result = withNulls(result, "groupId", "mentions", "products", "commandHistory", "statusHistory")
		result["status"] = withNulls(status, "dataItems")
	}
	x.published = append(x.published, result)
	p.changed.Broadcast()
	for _, hook := range x.webhooks {
		p.notify(hook, result)
	}
}

func withNulls(o site.Object, names ...string) site.Object {
	full := maps.Clone(o)
	for _, name := range names {
		if _, ok := full[name]; !ok {
			full[name] = nil
		}
	}
	return full
}

// notify sends a notification, once. They are in line, behind the lock.
func (p *wildPartner) notify(hook wildWebhook, result site.Object) {
	body, err := json.Marshal(result)
	if err != nil {
		return
	}
	q, err := http.NewRequest(http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-ACPS-AIP-Notification-Token", hook.Token)
	if res, err := http.DefaultClient.Do(q); err == nil {
		res.Body.Close()
	}
}

// subscribe starts a webhook that was set. It starts no task.
func (p *wildPartner) subscribe(w http.ResponseWriter, r *http.Request, id json.RawMessage, c *wildCommand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.task(c.TaskID)
	name, _ := c.CommandParams["notificationConfigId"].(string)
	hook, ok := x.configs[name]
	if !ok {
		p.refuse(w, r, id, http.StatusNotFound, -32001, "Task not found")
		return
	}
	x.webhooks = append(x.webhooks, hook)
	p.answer(w, id, true)
}

func (p *wildPartner) stream(w http.ResponseWriter, r *http.Request, id json.RawMessage, c *wildCommand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.task(c.TaskID)
	from := 0
	if last, ok := c.CommandParams["lastEventSeq"].(float64); ok {
		from = int(last)
	}
	switch {
	case c.Command == "start" && x.done.state == "":
		p.start(x, c)
	case c.Command != "re-stream" || x.done.state == "":
		p.refuse(w, r, id, http.StatusNotFound, -32001, "Task not found")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	gone := false
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		gone = true
		p.changed.Broadcast()
	}()
	for !gone {
		for ; from < len(x.published); from++ {
			event, _ := json.Marshal(site.Object{"jsonrpc": "2.0", "id": id,
				"result": site.Object{"eventSeq": from + 1, "eventData": x.published[from]}})
			fmt.Fprintf(w, "data: %s\n\n", event)
			w.(http.Flusher).Flush()
		}
		if ended(x.done.state) {
			return
		}
		p.changed.Wait()
	}
}
