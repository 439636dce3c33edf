// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// service is the name of the service that executes calls.
const service = "execute"

// A Leader has a share of the calls made by one node, and of those executed by it for others. Their totals are the
// cluster's for one service.
var (
	maxAsked  = limit.Limits{Total: 1 << 15, PerLeader: 1 << 13}
	maxServed = limit.Limits{Total: 1 << 13, PerLeader: 1 << 11}
)

// Owners hands calls to the owners of their shards. It implements gateway.Owners.
type Owners struct {
	cluster *cluster.Cluster
	find    func(partner string) *gateway.Gateway
	asked   limit.Counter // calls executed by other nodes
	served  limit.Counter // calls of others
}

// New returns the owners for a node of a cluster, and has the node execute calls of others. find returns the gateway in
// force in this process for a Partner; nil for none.
func New(c *cluster.Cluster, find func(partner string) *gateway.Gateway) *Owners {
	o := &Owners{cluster: c, find: find}
	c.HandleRequests(service, o.serve)
	return o
}

// request is a call as it travels. The fields for counting it come first, so they are there before the rest.
type request struct {
	Partner string
	Reader  string // the Leader the call counts for; empty from a node of a former version: its calls count together
	Call    *gateway.Call
}

// reply is the outcome of a request.
type reply struct {
	Result   *gateway.Result
	Missing  bool                // there is no such Partner
	Bound    *partner.BoundError // the refusal of a start
	NotBegun bool
	Error    []byte // of ask.AppendError; nil for none
}

// Execute implements gateway.Owners.
func (o *Owners) Execute(
	ctx context.Context, shard int, name string, c *gateway.Call, reserve replay.Reserve,
) (r gateway.Result, err error) {
	reader := c.ReadBy()
	if err := o.asked.Take(reader, 1, maxAsked); err != nil {
		return r, full(o.cluster.Name(), err)
	}
	defer o.asked.Give(reader, 1)
	hold := reserve
	if reserve != nil { // the reply, and its decoded form
		hold = func(ctx context.Context, n int64) error { return reserve(ctx, 2*n) }
	}
	data, node, err := o.cluster.CallOwner(ctx, shard, service, encode(nil, &request{name, reader, c}), hold)
	if err != nil {
		return r, failed(ctx, err)
	}
	var got reply
	if _, err := decode(data, &got); err != nil {
		return r, task.Errorf(task.Internal, "the answer of node %q cannot be read", node).WithCause(err)
	}
	if got.Result != nil {
		r = *got.Result
	}
	switch {
	case got.Missing:
		return r, task.Errorf(task.StoreUnavailable, "the gateway %q works on the tasks of this caller, and has no Partner "+
			"%q in its configuration; try again when all gateways have the same configuration", node, name).
			WithData("reason", "PARTNER_MISSING").WithData("node", node).
			WithCause(errors.Join(replay.ErrFenced, gateway.ErrNotBegun))
	case got.Bound != nil:
		return r, got.Bound
	case got.Error != nil:
		if err := ctx.Err(); err != nil {
			return r, err
		}
		err := ask.ReadError(got.Error)
		if got.NotBegun {
			err = gateway.NotBegun(err)
		}
		return r, err
	}
	return r, nil
}

// failed returns the error of a call without an answer.
func failed(ctx context.Context, err error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if moved, ok := errors.AsType[*cluster.MovedError](err); ok {
		if moved.Begun {
			return partner.Moved().WithCause(errors.Join(replay.ErrFenced, &gateway.SilentError{For: moved.Silent}))
		}
		return gateway.NotBegun(partner.Moved())
	}
	if busy, ok := errors.AsType[*cluster.BusyError](err); ok {
		return full(busy.Node, err)
	}
	if _, ok := errors.AsType[*task.Error](err); ok {
		return err // of reserve
	}
	return task.Errorf(task.Internal, "the gateway that works on this task could not carry out the request").WithCause(err)
}

// full returns the error of a call to a node without calls left: for its Leader, or at all.
func full(node string, err error) error {
	e, name := task.Errorf(task.LimitExceeded, "the gateway %q carries out as many calls as it may; try again later",
		node), "cluster"
	if exceeded, ok := errors.AsType[*limit.ExceededError](err); ok && exceeded.PerLeader {
		e, name = task.Errorf(task.LimitExceeded, "the gateway %q carries out %d of your calls, as many as it may; try "+
			"again when some have ended", node, exceeded.Max).WithData("max", exceeded.Max), "cluster_per_leader"
	}
	return e.WithData("limit", name).WithData(task.RetryAfter, int64(1)).WithCause(err)
}

// serve executes the call of another node. It is counted for its Leader before the rest of it comes, and until the
// reply was sent.
func (o *Owners) serve(ctx context.Context, in *cluster.Request) ([]byte, error) {
	var q request
	_, err := decode(in.Head, &q) // of a large one, only the first part
	whole := in.Size == len(in.Head)
	if whole && (err != nil || q.Call == nil) {
		return nil, errForm
	}
	g := o.find(q.Partner)
	if g == nil {
		return encode(nil, &reply{Missing: true}), nil
	}
	reader := q.Reader
	if err := o.served.Take(reader, 1, maxServed); err != nil {
		return encode(nil, failure(full(o.cluster.Name(), err))), nil
	}
	h := g.Handed(reader)
	in.AtEnd(func() {
		h.End()
		o.served.Give(reader, 1)
	})
	if !whole {
		if err := h.Hold(ctx, in.Size); err != nil {
			return encode(nil, failure(err)), nil
		}
		data, err := in.Body(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := decode(data, &q); err != nil || q.Call == nil {
			return nil, errForm
		}
	}
	r, err := h.Execute(ctx, q.Call)
	a, size := &reply{Result: &r}, int(r.Size())
	if err != nil {
		a = failure(err)
		a.Result = &r
	}
	data := encode(make([]byte, 0, size+size/16), a)
	h.Keep(len(data))
	return data, nil
}

// failure returns the reply with an error.
func failure(err error) *reply {
	if bound, ok := errors.AsType[*partner.BoundError](err); ok {
		return &reply{Bound: bound}
	}
	return &reply{NotBegun: errors.Is(err, gateway.ErrNotBegun), Error: ask.AppendError(nil, err)}
}
