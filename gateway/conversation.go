// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// conversation is one request on its way to its answer, in the dialect that it turns out to be of.
type conversation struct {
	h       *Handler
	r       *http.Request
	ctx     context.Context
	span    trace.Span
	path    string           // under the mount point
	caller  translate.Server // so far, the first that has the path
	at      translate.Route
	shared  bool // other dialects have the path, too
	req     translate.Request
	call    translate.Call
	leader  string
	expires time.Time // when the certificate of the caller does; zero without one
	memory  quota.Lease
	held    bool   // memory is in use
	holder  string // the Leader that memory is counted for
	again   bool   // the caller comes back for the events behind one that it names by Last-Event-ID
}

// answer is what a request is answered with: a body, a stream, or, where nobody waits for it any more, nothing.
type answer struct {
	body   []byte
	status int      // of HTTP; 0 means 200
	media  []string // values of the Content-Type field; nil means application/json
	event  bool     // body is a stream of one event
	stream *partner.Stream
}

// route finds the first dialect that has the request's path.
func (c *conversation) route() bool {
	for _, s := range c.h.Callers {
		at, ok := s.Route(c.r.Method, c.path)
		switch {
		case !ok:
		case c.caller == nil || c.at.Allow != "" && at.Allow == "":
			c.caller, c.at = s, at
		case at.Allow == "":
			c.shared = true
		}
	}
	return c.caller != nil
}

// choose finds the dialect of a request whose path is open to several.
func (c *conversation) choose() {
	if !c.shared {
		return
	}
	for _, s := range c.h.Callers {
		if at, ok := s.Route(c.r.Method, c.path); ok && at.Allow == "" && at.Unenveloped == c.at.Unenveloped && s.Matches(&c.req) {
			c.caller, c.at = s, at
			return
		}
	}
}

// answer obeys the request in a buffer. It appends a body to the buffer's other half.
func (c *conversation) answer(buf *buffer) answer {
	dst := *buf.out
	if err := c.parse(*buf.in); err != nil {
		return c.refuse(dst, err)
	}
	c.choose()
	if err := c.admit(); err != nil {
		return c.refuse(dst, err)
	}
	c.release(buf)
	if c.span.IsRecording() {
		c.span.SetAttributes(attribute.String("aip.leader", c.leader), attribute.String("aip.task.id", c.call.Message.TaskID),
			attribute.String("aip.command", string(c.call.Message.Command)), attribute.String("aip.dialect", c.caller.Name()))
	}
	a, err := c.obey(dst)
	if t, ok := c.caller.(translate.ContentTyper); ok {
		a.media = t.ContentType()
	}
	switch {
	case err == nil, c.ctx.Err() != nil && errors.Is(err, c.ctx.Err()):
		return a
	}
	c.h.Log.Log(c.ctx, level(err), "a command was not carried out", "command", string(c.call.Message.Command),
		"task", c.call.Message.TaskID, "leader", c.leader, "error", err)
	return c.refuse(dst, err)
}

// parse reads the envelope, or a bare request's params.
func (c *conversation) parse(body []byte) error {
	var req jsonrpc.Request
	var bad *jsonrpc.Error
	if c.at.Unenveloped {
		req.Method = c.at.Method
		if len(body) > 0 && c.r.Method != http.MethodGet && c.r.Method != http.MethodDelete {
			req.Params, bad = jsonrpc.ParseValue(body, c.h.Limits)
		}
	} else {
		req, bad = jsonrpc.Parse(body, c.h.Limits)
	}
	if bad != nil {
		c.req.ID = bad.ID
		return refusal(bad)
	}
	c.req = translate.Request{Request: req, HTTP: c.r.Method, PathParams: c.at.PathParams}
	if v := c.r.Header["Content-Type"]; len(v) > 0 && len(body) > 0 {
		media, _, _ := strings.Cut(v[0], ";")
		c.req.Content = strings.ToLower(strings.TrimSpace(media))
	}
	if v := c.r.Header["A2a-Version"]; len(v) > 0 {
		c.req.Version = strings.TrimSpace(v[0])
	}
	if c.r.URL.RawQuery != "" {
		c.req.Query = c.r.URL.Query()
		if c.req.Version == "" {
			c.req.Version = c.req.Query.Get("A2A-Version")
		}
	}
	return nil
}

// admit reads a request and finds out whose it is.
func (c *conversation) admit() error {
	if c.at.Method != "" && c.req.Method != c.at.Method {
		return task.Errorf(task.InvalidRequest,
			"this path takes the method %q; send others to their own path, or to the mount point", c.at.Method).WithField("method")
	}
	peer, err := c.h.Guard.Check(identity.OfConnection(c.r.TLS))
	if err != nil {
		return err
	}
	c.expires = peer.Expires
	if c.call, err = c.caller.Decode(&c.req); err != nil {
		return err
	}
	if !c.at.Unenveloped {
		// Dialects say first which method or params they do not take, because their callers expect that, or they
		// have looked at this themselves.
		if bad := c.req.Check(); bad != nil {
			return refusal(bad)
		}
	}
	if w := c.call.Webhook; w != nil {
		w.Confirm = c.h.Confirm
		if s, ok := c.caller.(translate.StateFilter); ok && len(w.States) == 0 {
			w.States = s.NotifiedStates()
		}
	}
	if c.call.Blocking {
		c.call.Terms.Response = c.h.Blocking
	}
	m := &c.call.Message
	switch {
	case c.call.Op == translate.Command && m.SenderID != "":
		c.leader, err = c.h.Guard.Admit(peer, m.SenderID)
	case c.call.Webhook != nil && c.call.Op != translate.Command:
		c.leader, err = c.h.Guard.Owner(peer)
	default:
		if c.leader, err = c.h.Guard.Anonymous(peer); err == nil {
			m.SenderID = c.leader
		}
	}
	if m.TaskID == "" && m.Command == task.Start {
		var random [17]byte
		_, _ = rand.Read(random[:]) // never fails
		m.TaskID = translate.TaskID(random[:])
		if c.call.Webhook != nil {
			c.call.Webhook.TaskID = m.TaskID
		}
	}
	if last := c.r.Header.Get("Last-Event-Id"); last != "" && m.Command == task.ReStream {
		if n, bad := strconv.ParseUint(last, 10, 63); bad == nil {
			c.call.AfterSeq, c.call.Snapshot, c.call.Strict = n, false, false
			c.again = true
		}
	}
	return err
}

// obey has the Partner, or who keeps its webhooks, carry a call out.
func (c *conversation) obey(dst []byte) (a answer, err error) {
	p, err := c.h.Partner(c.ctx)
	if err != nil {
		return a, err
	}
	switch c.call.Op {
	case translate.SetWebhook, translate.GetWebhooks, translate.DeleteWebhooks:
		hooks, err := c.webhooks(p)
		if err != nil {
			return a, err
		}
		a.body = c.caller.AppendWebhooks(dst, c.req.ID, &c.call, hooks)
		return a, nil
	case translate.ListTasks:
		lister, ok := c.caller.(translate.Lister)
		if !ok {
			return a, task.Errorf(task.MethodNotFound, "tasks cannot be listed in %s", c.caller.Name())
		}
		page, err := p.List(c.ctx, c.leader, c.call.List, c.room)
		if err != nil {
			return a, err
		}
		var size int64
		for i := range page.Tasks {
			size += page.Tasks[i].Size()
		}
		a.body = lister.AppendTasks(c.grow(dst, size), c.req.ID, &c.call, &page)
		return a, nil
	case translate.ExtendedCard:
		var card []byte
		d, ok := c.caller.(translate.CardServer)
		if ok && c.h.ExtendedCard != nil {
			card, err = c.h.ExtendedCard(c.ctx, c.h.public(c.r), c.caller.Name())
		}
		switch {
		case err != nil:
			return a, err
		case card == nil:
			return a, task.Errorf(task.UnsupportedOperation, "there is no card but the public one")
		}
		a.body = d.AppendCard(dst, c.req.ID, card)
		return a, nil
	}
	call := partner.Request{Call: c.call.Call, Policy: c.call.Policy, Histories: c.call.History != 0 && !c.call.Stream,
		Accept: c.accept(p), Room: c.room}
	if c.call.Stream {
		a.stream, err = c.open(p, &call)
		return a, err
	}
	t, err := c.do(p, &call)
	if err != nil {
		return a, err
	}
	a.body = c.caller.AppendTask(c.grow(dst, t.Size()), c.req.ID, &c.call, &t)
	return a, nil
}

// open counts a stream and lets the Partner begin it. After an error or a panic it is not counted.
func (c *conversation) open(p *partner.Partner, call *partner.Request) (opened *partner.Stream, err error) {
	if err := c.h.Streaming.Open.add(c.leader, &c.h.Streaming); err != nil {
		return nil, err
	}
	defer func() {
		if opened == nil {
			c.h.Streaming.Open.remove(c.leader)
		}
	}()
	s, err := p.Stream(c.ctx, c.leader, call)
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// stream returns the stream that answers a request. It holds nothing of the request's body. After a panic it is not
// counted.
func (c *conversation) stream(w http.ResponseWriter, a *answer) (made *stream) {
	defer func() {
		if made == nil {
			c.h.Streaming.Open.remove(c.leader)
		}
	}()
	s := &stream{h: c.h, w: w, ctx: c.ctx, span: c.span, caller: c.caller, id: bytes.Clone(c.req.ID), events: a.stream,
		leader: c.leader, expires: c.expires, last: a.stream.After}
	call := c.call
	s.frames = c.caller.NewStream(s.id, &call, &s.events.Task)
	if t := &s.events.Task; !call.Snapshot {
		// A dialect's stream that has ended stays so for who comes back to its end.
		s.over = c.again && a.stream.After == a.stream.Last && !t.Status.State.Terminal() && s.frames.Snapshot(nil, t).End
		s.forgetTask()
	}
	c.holdFor(c.leader)
	s.memory, c.memory = c.memory, quota.Lease{}
	if !call.Snapshot {
		s.memory.Release()
	}
	s.snapshot = call.Snapshot && !(call.Message.Command == task.Start && a.stream.After == 0)
	return s
}

// refuse makes the response that says what went wrong.
func (c *conversation) refuse(dst []byte, err error) answer {
	kind := task.KindOf(err)
	if c.span.IsRecording() {
		c.span.SetAttributes(attribute.String("error.type", kind.String()))
		c.span.SetStatus(codes.Error, kind.String())
	}
	if kind == task.AuthenticationRequired || kind == task.AuthorizationFailed {
		c.h.Log.Warn("a caller was turned away", "address", c.r.RemoteAddr, "error", err)
	}
	var a answer
	if s, ok := c.caller.(translate.Statuser); ok {
		a.status = s.Status(err)
	}
	if s, ok := c.caller.(translate.ErrorStreamer); ok && s.StreamsErrors() && (a.status == 0 || a.status == http.StatusOK) && c.wantsEvents() {
		a.event = true
		a.body = append(c.caller.AppendError(append(dst, "data: "...), c.req.ID, err), "\n\n"...)
		return a
	}
	a.body = c.caller.AppendError(dst, c.req.ID, err)
	return a
}

// wantsEvents reports whether the caller takes nothing but a stream.
func (c *conversation) wantsEvents() bool {
	accept := strings.Join(c.r.Header["Accept"], ",")
	return strings.Contains(accept, "text/event-stream") && !strings.Contains(accept, "json") && !strings.Contains(accept, "*/*")
}
