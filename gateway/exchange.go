// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// exchange is a request and all that is known of it until it is answered. It is a part of the Request: what outlives
// that, such as a stream, keeps no reference to it.
type exchange struct {
	g    *Gateway
	in   *Request
	ctx  context.Context
	span trace.Span
	peer identity.Peer // as the front knows it; after admit, as the guard accepts it

	match   // the dialect and the route; before the request is parsed, the first dialect that has the path
	req     translate.Request
	call    translate.Call
	decoded bool // call is known
	leader  string
	owned   *owned          // the Partner, in the shard of the Leader
	command partner.Request // what partner is asked to do
	task    task.Task       // that answers command
}

// parse parses the envelope, or the params of a request without an envelope.
func (x *exchange) parse() error {
	var req jsonrpc.Request
	var bad *jsonrpc.Error
	var body []byte
	if x.in.Body != nil {
		body = *x.in.Body
	}
	if x.in.Version != "" && !x.route.Unenveloped { // what cannot be read is refused as the version has it
		x.match = x.in.choose(&translate.Request{Version: x.in.Version})
	}
	if c, ok := x.dialect.(translate.ContentChecker); ok && len(body) > 0 &&
		(x.route.Unenveloped || x.in.Version != "" || len(x.in.matches) == 1) {
		if err := c.CheckContent(x.in.Content); err != nil {
			return err
		}
	}
	limits := x.g.config.Limits
	if t, ok := x.dialect.(translate.Transcoder); ok {
		var err error
		if body, err = t.Params(x.route.Method, body); err != nil {
			return err
		}
	}
	if x.route.Unenveloped {
		req.Method = x.route.Method
		if len(body) > 0 && x.in.method != "GET" && x.in.method != "DELETE" {
			req.Params, bad = jsonrpc.ParseValue(body, limits)
		}
	} else {
		req, bad = jsonrpc.Parse(body, limits)
	}
	if bad != nil {
		x.req.ID = bad.ID
		return malformed(bad)
	}
	x.req = translate.Request{
		Request: req, HTTP: x.in.method, Version: x.in.Version, PathParams: x.route.PathParams, Query: x.in.Query,
		NewID: newID, Groups: x.g.config.Groups,
	}
	if len(body) > 0 {
		x.req.Content = x.in.Content
	}
	return nil
}

// malformed returns an error of the envelope as one with a kind.
func malformed(bad *jsonrpc.Error) error {
	kind := task.InvalidRequest
	if bad.Code == jsonrpc.ParseError {
		kind = task.ParseError
	}
	err := task.Errorf(kind, "%s", bad.Detail).WithField(bad.Field)
	if kind == task.ParseError {
		err.WithData("offset", bad.Offset)
	}
	if bad.Limit != "" {
		err.WithData("limit", bad.Limit).WithData("max", bad.Max)
	}
	return err
}

// admit decodes the request, checks its peer, and finds its Leader.
func (x *exchange) admit() error {
	if x.route.Method != "" && x.req.Method != x.route.Method {
		return task.Errorf(task.InvalidRequest,
			"this path takes the method %q; send others to their own path, or to the mount point", x.route.Method).
			WithField("method")
	}
	guard := x.g.config.Guard
	peer, err := guard.Check(x.peer)
	if err != nil {
		return err
	}
	x.peer = peer
	if x.call, err = x.dialect.Decode(&x.req); err != nil {
		if bad := x.req.Check(); bad != nil && !x.route.Unenveloped && task.KindOf(err) == task.MethodNotFound {
			return malformed(bad) // whatever dialects there are
		}
		return err
	}
	x.decoded = true
	if !x.route.Unenveloped {
		// A dialect may report an unknown method or invalid params first, because its callers expect that order.
		if bad := x.req.Check(); bad != nil {
			return malformed(bad)
		}
	}
	if w := x.call.Webhook; w != nil {
		w.Confirm = x.g.config.Confirm
		if s, ok := x.dialect.(translate.StateFilter); ok && len(w.States) == 0 {
			w.States = s.NotifiedStates()
		}
	}
	if x.call.Blocking {
		x.call.Terms.Response = x.g.config.Blocking
	}
	m := &x.call.Message
	switch {
	case x.call.Op == translate.JoinGroup:
		x.leader, err = x.inviter()
	case x.call.Op == translate.Command && m.SenderID != "":
		x.leader, err = guard.Admit(peer, m.SenderID)
	case x.call.Webhook != nil && x.call.Op != translate.Command:
		x.leader, err = guard.Owner(peer)
	default:
		if x.leader, err = guard.Anonymous(peer); err == nil {
			m.SenderID = x.leader
		}
	}
	if m.TaskID == "" && m.Command == task.Start && !x.call.BySession {
		if m.TaskID = x.in.TaskID; m.TaskID == "" {
			var random [17]byte
			_, _ = rand.Read(random[:]) // never fails
			m.TaskID = translate.TaskID(random[:])
		}
		if x.call.Webhook != nil {
			x.call.Webhook.TaskID = m.TaskID
		}
	}
	if x.resumes() {
		x.call.AfterSeq, x.call.Snapshot, x.call.Strict = x.in.After, false, false
	}
	return err
}

// newID returns an id that cannot be guessed.
func newID() string {
	var random [17]byte
	_, _ = rand.Read(random[:]) // never fails
	return translate.ID(random[:])
}

// resumes reports whether the caller resumes a stream after an event that its body does not name.
func (x *exchange) resumes() bool { return x.in.Resumes && x.call.Message.Command == task.ReStream }

// execute executes the call.
func (x *exchange) execute() (Answer, error) {
	err := x.g.ready(x.ctx)
	if err == nil && x.leader == "" && x.call.Webhook != nil { // identity is off, and the request names no sender
		x.leader, err = x.g.leaderOf(x.ctx, x.call.Webhook.TaskID)
	}
	if err == nil {
		x.owned, err = x.g.owner(x.leader)
	}
	if err != nil {
		return Answer{}, err
	}
	p := x.owned.partner
	switch x.call.Op {
	case translate.SetWebhook, translate.GetWebhooks, translate.DeleteWebhooks:
		hooks, err := x.webhooks()
		if err != nil {
			return Answer{}, err
		}
		return x.reply(x.dialect.AppendWebhooks(*x.in.reply, x.req.ID, &x.call, hooks)), nil
	case translate.ListTasks:
		return x.list(p)
	case translate.ExtendedCard:
		return x.extendedCard()
	case translate.JoinGroup:
		return x.joinGroup()
	}
	if err := x.checkGroup(); err != nil {
		return Answer{}, err
	}
	if x.call.SessionOf != "" {
		if err := x.findSession(p); err != nil {
			return Answer{}, err
		}
	}
	r := &x.command
	*r = partner.Request{
		Call: x.call.Call, Policy: x.call.Policy, Histories: x.call.History != 0 && !x.call.Stream,
		Accept: x.accept(), AgentTask: x.in.TaskID, Reserve: x.reserve,
	}
	if x.call.Stream {
		return x.stream(p, r)
	}
	if x.task, err = x.do(p, r); err != nil {
		return Answer{}, err
	}
	return x.reply(x.dialect.AppendTask(x.grow(x.task.Size()), x.req.ID, &x.call, &x.task)), nil
}

// findSession sets the session of a message that names it by a task.
func (x *exchange) findSession(p *partner.Partner) error {
	session, err := p.SessionOf(x.ctx, x.leader, x.call.SessionOf)
	if err != nil {
		return err
	}
	m := &x.call.Message
	is := m.SessionID == session
	if d, ok := x.dialect.(translate.Sessions); ok {
		is = d.IsInSession(m.SessionID, session)
	}
	if m.SessionID != "" && !is {
		return task.Errorf(task.InvalidParams, "the task and the session of the message do not belong together").
			WithField("session_id")
	}
	m.SessionID = session
	return nil
}

// list answers with a page of the Leader's tasks.
func (x *exchange) list(p *partner.Partner) (Answer, error) {
	lister, ok := x.dialect.(translate.Lister)
	if !ok {
		return Answer{}, task.Errorf(task.MethodNotFound, "tasks cannot be listed in %s", x.dialect.Name())
	}
	list := p.List
	if x.call.Tentative {
		list = p.ListTentative
	}
	page, err := list(x.ctx, x.leader, x.call.List, x.reserve)
	if err != nil {
		return Answer{}, err
	}
	var size int64
	for i := range page.Tasks {
		size += page.Tasks[i].Size()
	}
	return x.reply(lister.AppendTasks(x.grow(size), x.req.ID, &x.call, &page)), nil
}

// extendedCard answers with the extended card. The gateway gets it with its own credentials, and the agent has it for
// callers that it knows, so it is for callers that have proven who they are (A2A 1.0 §13.3).
func (x *exchange) extendedCard() (Answer, error) {
	d, ok := x.dialect.(translate.CardServer)
	if !ok {
		return Answer{}, errNoExtendedCard
	}
	if x.g.cards.identified && !x.peer.Verified() {
		return Answer{}, errUnknownCaller
	}
	card, err := x.g.cards.extendedCard(x.ctx, x.g.URL(x.in.TLS, x.in.Host), x.dialect.Name())
	switch {
	case err != nil:
		return Answer{}, err
	case card == nil:
		return Answer{}, errNoExtendedCard
	}
	return x.reply(d.AppendCard(*x.in.reply, x.req.ID, card)), nil
}

var (
	errNoExtendedCard = task.Errorf(task.UnsupportedOperation, "there is no card but the public one")
	errUnknownCaller  = task.Errorf(task.AuthenticationRequired,
		"the extended card is for callers with a client certificate; connect with one, or use the public card")
)
