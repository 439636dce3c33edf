// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// exchange is a request, and all that is known of it, until it is answered. It is a part of the Request: anything
// outliving the Request, such as a stream, keeps no reference to it.
type exchange struct {
	g    *Gateway
	in   *Request
	ctx  context.Context
	span trace.Span
	peer identity.Peer // as the front knows it; after admit, as the guard accepts it

	match   // the dialect and the route; before the request is parsed, the first dialect with this path
	req     translate.Request
	call    Call
	decoded bool    // call is known
	made    *string // the first id that was made for the call; nil where the call is not compared
	policed policy.Call
	token   *identity.Claims // of the access token beside the certificate; nil for none
	use     policy.Use       // the call's use of quotas
	noMore  error            // the reason why a start may continue no task, if its dialect has it do so; nil if it may
	result  Result
}

// parse parses the envelope, or the params of a request without an envelope, and chooses the dialect.
func (x *exchange) parse() error {
	var req jsonrpc.Request
	var bad *jsonrpc.Error
	var body []byte
	if x.in.Body != nil {
		body = *x.in.Body
	}
	if x.in.Version != "" && !x.route.Unenveloped { // an unreadable request is refused as the version has it
		x.match = x.in.choose(&translate.Request{Version: x.in.Version})
	}
	if c, ok := x.dialect.(translate.ContentChecker); ok && len(body) > 0 &&
		(x.route.Unenveloped || x.in.Version != "" || len(x.in.matches) == 1) {
		if err := c.CheckContent(x.in.Content); err != nil {
			return err
		}
	}
	if _, ok := x.dialect.(translate.Marked); ok {
		body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
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
			if req.Params, bad = jsonrpc.ParseValue(body, limits); req.Params.Raw == "null" {
				req.Params = jsonrpc.Request{}.Params // so clients write an empty body
			}
		}
	} else {
		req, bad = jsonrpc.Parse(body, limits)
	}
	if bad != nil {
		x.req.ID = bad.ID
		if bad.Limit == "bytes" {
			x.chooseUnread()
		}
		return malformed(bad)
	}
	x.req = translate.Request{
		Request: req, HTTP: x.in.method, Version: x.in.Version, PathParams: x.route.PathParams, Query: x.in.Query,
		Activated: x.in.Activated, NewID: newID, Groups: x.g.config.Groups,
	}
	if len(body) > 0 {
		x.req.Content = x.in.Content
	}
	if x.in.Asked != nil {
		x.made = new(string)
	}
	if x.made != nil {
		x.req.NewID = x.newID
	}
	x.choose()
	return nil
}

// CheckParams returns an error if the params of a request, parsed by a front with the default limits of jsonrpc, are
// beyond those of the gateway.
func (g *Gateway) CheckParams(params string) error {
	if bad := g.config.Limits.Check(params); bad != nil {
		return malformed(bad)
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

// receive decodes the request, unless the front has, checks its peer, and finds its Leader.
func (x *exchange) receive() error {
	if !x.decoded {
		if err := x.inTurn(x.parse); err != nil {
			return err
		}
		if err := x.checkPath(); err != nil {
			return err
		}
	}
	shown := x.peer
	peer, err := x.g.config.Guard.CheckIn(x.call.Dialect, x.peer)
	if err != nil {
		return err
	}
	x.peer = peer
	if err := x.checkRevoked(); err != nil {
		return err
	}
	if err := x.g.config.Inactive(); err != nil {
		return err
	}
	if !x.decoded {
		if err := x.inTurn(x.decode); err != nil {
			return err
		}
		if err := x.checkAsked(); err != nil {
			return err
		}
	}
	if err := x.admit(); err != nil {
		return err
	}
	if err := x.authorize(); err != nil {
		return err
	}
	if err := x.checkOutlived(shown); err != nil {
		return err
	}
	return x.called()
}

// largeBody is the least size of a body waiting for its turn, in bytes.
const largeBody = 256 << 10

// inTurn calls parse or decode. Large requests wait for one another: each needs a processor for many milliseconds, and
// many of them would leave none to the small ones.
func (x *exchange) inTurn(f func() error) error {
	if body := x.in.Body; body != nil && len(*body) >= largeBody {
		x.g.config.Process.decoding.Lock()
		defer x.g.config.Process.decoding.Unlock()
	}
	return f()
}

// choose chooses the dialect of the parsed request.
func (x *exchange) choose() {
	x.match = x.in.choose(&x.req)
	if s, ok := x.dialect.(translate.VersionedServer); ok && x.req.Version != "" {
		x.dialect = s.Named()
	}
	x.call.Dialect = x.dialect.Name()
}

// BeginOfBody is the size of the kept begin of an unreceived body, for Refuse, in bytes.
const BeginOfBody = 4 << 10

// chooseUnread finds the id and the method of a request with an unparsed body, and chooses its dialect, if they stand
// at its begin, as most callers write them: the form of an error depends on them.
func (x *exchange) chooseUnread() {
	if x.in.Body == nil || x.route.Unenveloped {
		return
	}
	req := jsonrpc.ReadBegin((*x.in.Body)[:min(len(*x.in.Body), BeginOfBody)])
	x.req.ID, x.req.Method = req.ID, req.Method
	if req.Method != "" && x.in.Version == "" && len(x.in.matches) > 1 {
		x.match = x.in.choose(&translate.Request{Request: req})
		x.call.Dialect = x.dialect.Name()
	}
}

// checkPath refuses a method sent to the path of another one. Decode refuses an unknown method, at any path.
func (x *exchange) checkPath() error {
	if x.route.Method == "" || x.req.Method == x.route.Method {
		return nil
	}
	if _, known := x.dialect.Route("POST", x.req.Method); known {
		return task.Errorf(task.InvalidRequest,
			"this path takes the method %q; send others to their own path, or to the mount point", x.route.Method).
			WithField("method")
	}
	return nil
}

// decode has the dialect decode the request.
func (x *exchange) decode() (err error) {
	if x.call.Call, err = x.dialect.Decode(&x.req); err != nil {
		if bad := x.req.Check(); bad != nil && !x.route.Unenveloped && task.KindOf(err) == task.MethodNotFound {
			return malformed(bad) // whatever dialects there are
		}
		return err
	}
	x.decoded = true
	if !x.route.Unenveloped {
		// A dialect may report an unknown method or invalid params first, because its callers expect this order.
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
	return nil
}

// admit finds the Leader of the call, and adds the gateway's own knowledge of it.
func (x *exchange) admit() (err error) {
	guard := x.g.config.Guard
	if caller := x.in.Caller; caller != nil && !x.in.OfAgent {
		if _, err := guard.Anonymous(*caller); err != nil {
			return err
		}
	}
	x.call.Proof = x.caller().Proof.String()
	x.call.Reader = x.in.Reader
	if x.call.Blocking {
		x.call.Terms.Response = x.g.config.Blocking
	}
	m := &x.call.Message
	switch {
	case x.call.Op == translate.JoinGroup:
		x.call.Leader, err = x.inviter()
	case x.call.Op == translate.Command && m.SenderID != "":
		x.call.Leader, err = guard.Admit(x.peer, m.SenderID)
	case x.call.Webhook != nil && x.call.Op != translate.Command:
		if m.SenderID != "" {
			if _, err := guard.Admit(x.peer, m.SenderID); err != nil {
				return err
			}
		}
		x.call.Leader, err = guard.Owner(x.peer)
	default:
		if x.call.Leader, err = guard.Anonymous(x.peer); err == nil {
			m.SenderID = x.call.Leader
		}
	}
	if m.TaskID == "" && m.Command == task.Start && !x.call.BySession {
		var random [17]byte
		_, _ = rand.Read(random[:]) // never fails
		m.TaskID = translate.TaskID(random[:])
		if x.call.Webhook != nil {
			x.call.Webhook.TaskID = m.TaskID
		}
	}
	if x.resumes() {
		x.call.AfterSeq, x.call.Snapshot, x.call.Strict = x.in.After, false, false
	}
	x.call.Adopt = guard.Mode == identity.Off && m.Command == task.Start && identity.Claimable(x.call.Leader)
	return err
}

// newID returns an unguessable id.
func newID() string {
	var random [17]byte
	_, _ = rand.Read(random[:]) // never fails
	return translate.ID(random[:])
}

// newID is newID, and keeps the first one.
func (x *exchange) newID() string {
	id := newID()
	*x.made = cmp.Or(*x.made, id)
	return id
}

// resumes reports whether the caller resumes a stream after an event not named in its body.
func (x *exchange) resumes() bool { return x.in.Resumes && x.call.Message.Command == task.ReStream }

// respond executes the call, and encodes the answer.
func (x *exchange) respond() (Answer, error) {
	lister, lists := x.dialect.(translate.Lister)
	inviter, invites := x.dialect.(translate.GroupServer)
	switch op := x.call.Op; {
	case op == translate.ExtendedCard:
		return x.extendedCard()
	case op == translate.ListTasks && !lists:
		return Answer{}, task.Errorf(task.MethodNotFound, "tasks cannot be listed in %s", x.call.Dialect)
	case op == translate.JoinGroup && !invites:
		return Answer{}, errNoGroups
	case x.call.Stream:
		return x.stream()
	}
	if err := x.execute(); err != nil {
		return Answer{}, err
	}
	r, dst, c := &x.result, *x.in.reply, &x.call.Call
	switch c.Op {
	case translate.SetWebhook, translate.GetWebhooks, translate.DeleteWebhooks:
		if c.Subscribe && r.Task.ID != "" {
			dst = x.dialect.AppendTask(x.grow(r.Task.Size()), x.req.ID, c, &r.Task)
		} else {
			dst = x.dialect.AppendWebhooks(dst, x.req.ID, c, r.Webhooks)
		}
	case translate.ListTasks:
		var size int64
		for i := range r.Page.Tasks {
			size += r.Page.Tasks[i].Size()
		}
		dst = lister.AppendTasks(x.grow(size), x.req.ID, c, &r.Page)
	case translate.JoinGroup:
		dst = inviter.AppendMembership(dst, x.req.ID, c, &r.Membership)
	default:
		dst = x.dialect.AppendTask(x.grow(r.Task.Size()), x.req.ID, c, &r.Task)
	}
	return x.reply(dst), nil
}

// complete adds the store's knowledge to the call: the Leader of a task named by its id alone, and the session of a
// message naming it by a task.
func (x *exchange) complete() error {
	if x.call.Leader != "" && x.call.SessionOf == "" {
		return nil
	}
	if err := x.g.ready(x.ctx); err != nil {
		return err
	}
	if w := x.call.Webhook; x.call.Leader == "" && w != nil { // identity is off, and the request names no sender
		var err error
		if x.call.Leader, err = x.g.leaderOf(x.ctx, w.TaskID); err != nil {
			return err
		}
		if sender := x.call.Message.SenderID; sender != "" && x.call.Leader != sender && x.call.Leader != partner.Anyone {
			return partner.NotFound(w.TaskID)
		}
	}
	if x.call.SessionOf == "" {
		return nil
	}
	return x.findSession()
}

// findSession sets the session of a message naming it by a task.
func (x *exchange) findSession() error {
	of, err := x.g.Head(x.ctx, x.g.LogOf(x.call.Leader, x.call.SessionOf))
	if err != nil {
		return err
	}
	m := &x.call.Message
	is := m.SessionID == of.Session
	if d, ok := x.dialect.(translate.Sessions); ok {
		is = d.IsInSession(m.SessionID, of.Session)
	}
	if m.SessionID != "" && !is { // the caller must not learn that another one has it
		return partner.NotFound(x.call.SessionOf)
	}
	m.SessionID = of.Session
	return nil
}

// extendedCard answers with the extended card. The gateway gets it with its own credentials, and the agent has it for
// callers it knows, so it is only for callers with a proof of their identity (A2A 1.0 §13.3).
func (x *exchange) extendedCard() (Answer, error) {
	d, ok := x.dialect.(translate.CardServer)
	if !ok {
		return Answer{}, errNoExtendedCard
	}
	if x.g.cards.identified && !x.peer.Verified() {
		return Answer{}, errUnknownCaller
	}
	card, err := x.g.cards.extendedCard(x.ctx, x.g.URL(x.in.TLS, x.in.Host, x.in.Stripped), x.dialect.Name())
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
