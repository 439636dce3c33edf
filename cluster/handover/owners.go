// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// service is the name of the service by which calls are executed.
const service = "execute"

// maxRead is how many bytes the calls of other nodes may hold that they have read from the store.
const maxRead = 512 << 20

// Owners hands calls to the owners of their shards. It implements gateway.Owners.
type Owners struct {
	cluster *cluster.Cluster
	find    func(partner string) *gateway.Gateway
	read    atomic.Int64 // bytes that calls of other nodes hold
}

// New returns the owners that a node of a cluster knows, and has the node execute calls of others. find returns the
// gateway of a Partner that is in force in this process; nil for none.
func New(c *cluster.Cluster, find func(partner string) *gateway.Gateway) *Owners {
	o := &Owners{cluster: c, find: find}
	c.Handle(service, o.serve)
	return o
}

// request is a call as it travels.
type request struct {
	Partner string
	Call    *gateway.Call
}

// reply is what has come of it.
type reply struct {
	Result   *gateway.Result
	Missing  bool                // there is no such Partner
	Bound    *partner.BoundError // that has refused a start
	NotBegun bool
	Error    []byte // of ask.AppendError; nil for none
}

// Execute implements gateway.Owners.
func (o *Owners) Execute(
	ctx context.Context, shard int, name string, c *gateway.Call, reserve replay.Reserve,
) (r gateway.Result, err error) {
	data, node, err := o.cluster.CallOwner(ctx, shard, service, encode(nil, &request{name, c}), reserve)
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

// failed returns the error of a call that no node has answered.
func failed(ctx context.Context, err error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if moved, ok := errors.AsType[*cluster.MovedError](err); ok {
		if moved.Begun {
			return partner.Moved()
		}
		return gateway.NotBegun(partner.Moved())
	}
	if busy, ok := errors.AsType[*cluster.BusyError](err); ok {
		return task.Errorf(task.LimitExceeded, "the gateway %q carries out as many calls as it may; try again later",
			busy.Node).WithData("limit", "cluster").WithData(task.RetryAfter, int64(1)).WithCause(err)
	}
	if _, ok := errors.AsType[*task.Error](err); ok {
		return err // of reserve
	}
	return task.Errorf(task.Internal, "the gateway that works on this task could not carry out the request").WithCause(err)
}

// serve executes the call of another node.
func (o *Owners) serve(ctx context.Context, _ int, data []byte) ([]byte, error) {
	var q request
	if _, err := decode(data, &q); err != nil || q.Call == nil {
		return nil, errForm
	}
	g := o.find(q.Partner)
	if g == nil {
		return encode(nil, &reply{Missing: true}), nil
	}
	var held int64
	defer func() { o.read.Add(-held) }()
	r, err := g.ExecuteHere(ctx, q.Call, func(_ context.Context, n int64) error {
		if n == 0 { // nothing is held any more
			o.read.Add(-held)
			held = 0
			return nil
		}
		if o.read.Add(n) > maxRead {
			o.read.Add(-n)
			return task.Errorf(task.LimitExceeded, "calls of other gateways hold as much memory as they may; try again later").
				WithData("limit", "cluster").WithData("max", int64(maxRead))
		}
		held += n
		return nil
	})
	a := reply{Result: &r}
	if err != nil {
		if bound, ok := errors.AsType[*partner.BoundError](err); ok {
			a.Bound = bound
		} else {
			a.NotBegun, a.Error = errors.Is(err, gateway.ErrNotBegun), ask.AppendError(nil, err)
		}
	}
	return encode(nil, &a), nil
}
