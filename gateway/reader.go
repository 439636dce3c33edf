// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
)

// Reader reads requests ahead of the Gateway answering them: for handlers deciding about requests, or counting them, in
// front of it. It neither admits nor executes them. It may be used by any number of goroutines at once.
type Reader struct{ g *Gateway }

// NewReader returns a Reader. Of the Config, Process, Callers, Guard, Revocation, Limits, Memory, MemoryPatience and
// Streaming.Drain count.
func NewReader(c Config) *Reader {
	c.Groups = true // an invitation is read, also if the Gateway takes no part in groups
	return &Reader{&Gateway{config: c,
		memory: limit.Budget{Counter: &c.Process.Memory, Limits: c.Memory, Patience: c.MemoryPatience}}}
}

// Asked is the operation of a request. It is comparable.
type Asked struct {
	Method  string // as its dialect has it; empty if it cannot be read
	Command string // as in a Summary; Unread if the request cannot be decoded
	Task    string // the id of the task that it names; empty for none
	Session string // likewise, of the session
}

// Match is Gateway.Match.
func (r *Reader) Match(q *Request, method, path string) bool { return r.g.Match(q, method, path) }

// Accepts returns the peer of a request as the Guard accepts it, and the zero Peer for a refused one.
func (r *Reader) Accepts(ctx context.Context, peer identity.Peer) identity.Peer {
	peer, err := r.g.config.Guard.Check(peer)
	if v := r.g.config.Revocation; err == nil && v != nil && len(peer.Chains) > 0 {
		err = v.Check(ctx, peer.Chains, peer.Staple)
	}
	if err != nil {
		return identity.Peer{}
	}
	return peer
}

// maxStranger is the most bytes of the body of a caller without a proof, for handlers deciding about requests before
// the Gateway does: strangers are to hold little there.
const maxStranger = 64 << 10

// MaxBody returns the most bytes of the body of a peer's request.
func (r *Reader) MaxBody(peer identity.Peer) int {
	if peer.Verified() {
		return r.g.MaxBody()
	}
	return min(r.g.MaxBody(), maxStranger)
}

// Hold is Gateway.Hold.
func (r *Reader) Hold(ctx context.Context, peer identity.Peer, q *Request, n int) error {
	return r.g.Hold(ctx, peer, q, n)
}

// TooLarge is the error for a body larger than MaxBody in a peer's request.
func (r *Reader) TooLarge(peer identity.Peer) error {
	most := r.MaxBody(peer)
	err := task.Errorf(task.LimitExceeded, "the body has more than the %d bytes that are read before a call is admitted",
		most).WithData("limit", "bytes").WithData("max", most)
	if most < r.g.MaxBody() {
		err.Detail += " of a caller that has not proven who it is"
	}
	return err
}

// Ask returns the operation of a matched request. Its body is kept as it is.
func (r *Reader) Ask(q *Request) Asked {
	x := &exchange{g: r.g, in: q, match: q.matches[0], made: new(string)}
	err := x.inTurn(x.parse)
	if err == nil {
		if err = x.checkPath(); err == nil {
			err = x.inTurn(x.decode)
		}
	}
	a := x.asked()
	if err != nil {
		a = Asked{Method: a.Method, Command: Unread}
	}
	a.Method, a.Task, a.Session = strings.Clone(a.Method), strings.Clone(a.Task), strings.Clone(a.Session) // of the body
	return a
}

// Unread is the command of an undecodable request.
const Unread = "unknown"

// RoutedMethod returns the method of a matched request if its path names one, and otherwise the empty string.
func (q *Request) RoutedMethod() string { return q.matches[0].route.Method }

// asked returns the operation of the request, as far as it was read.
func (x *exchange) asked() Asked {
	c := &x.call
	a := Asked{Method: x.method(), Command: methodNames[methodOf(&c.Call)], Task: cmp.Or(c.Message.TaskID, c.SessionOf),
		Session: c.Message.SessionID}
	if made := *x.made; made != "" && strings.Contains(a.Session, made) {
		a.Session = "" // of this call alone
	}
	if c.Webhook != nil {
		a.Task = cmp.Or(a.Task, c.Webhook.TaskID)
	}
	if c.List != nil {
		a.Session = cmp.Or(a.Session, c.List.SessionID)
	}
	return a
}

// ErrReadOtherwise is the cause of an error for a request read otherwise by a Reader in front of the Gateway than by
// the Gateway: the decision there was about something else.
var ErrReadOtherwise = errors.New("the request was read otherwise before")

// checkAsked refuses a request read otherwise by a Reader.
func (x *exchange) checkAsked() error {
	if x.in.Asked == nil || *x.in.Asked == x.asked() {
		return nil
	}
	err := task.Errorf(task.Internal, "this call was read otherwise before it came here").WithCause(ErrReadOtherwise)
	// What to do: see `advice`.
	x.g.config.Log.ErrorContext(x.ctx, "a call was read otherwise before",
		"address", x.in.Address, "method", x.method(), "error", err)
	return err
}
