// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// route is the destination of calls of a shard, as far as it is known. The mutex of the cluster guards it.
type route struct {
	owner   Owner         // may be old
	problem error         // reason it is not known
	asked   time.Duration // time the answer came; 0 if it must be asked for again
	flight  *flight       // nil while it is not asked for
}

// flight is a question for the owner of a shard, for all callers waiting for the answer.
type flight struct {
	done  chan struct{} // closed when the answer is there
	owner Owner
	err   error
}

// routeAge is the time calls use the answer "no owner" for a shard, or "this node": an answer may come after the news
// of a move. Any other node says itself that the shard is not its own. failedAge is the part of a lease in which they
// use the error of a question without an answer.
const (
	routeAge  = 10 * time.Millisecond
	failedAge = 10 // a tenth of a lease
)

// forget has the owner asked for again.
func (r *route) forget() { r.owner, r.problem, r.asked = Owner{}, nil, 0 }

// known returns the owner, or the reason it is not known, if this is an answer now. c.mu is held.
func (c *Cluster) known(r *route) (o Owner, known bool, err error) {
	switch now := c.config.Clock(); {
	case r.asked == 0:
		return o, false, nil
	case r.problem != nil:
		return o, now < r.asked+c.config.Lease/failedAge, r.problem
	case r.owner.Node == "" || r.owner.Incarnation == c.incarnation: // a shard of this node has no call to be sent
		return r.owner, now < r.asked+routeAge, nil
	default:
		return r.owner, true, nil
	}
}

// route returns the owner of a shard: the known one, or else the present one. One question is asked at a time for all
// callers, and each waits for it until its own ctx is done.
func (c *Cluster) route(ctx context.Context, shard int) (Owner, error) {
	c.mu.Lock()
	r := &c.shards[shard].route
	if o, ok, err := c.known(r); ok {
		c.mu.Unlock()
		return o, err
	}
	if r.flight == nil {
		f := &flight{done: make(chan struct{})}
		if !c.spawn(func() { c.find(shard, f) }) {
			c.mu.Unlock()
			return Owner{}, replay.ErrClosed
		}
		r.flight = f
	}
	f := r.flight
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.owner, f.err
	case <-ctx.Done():
		return Owner{}, ctx.Err()
	}
}

// find asks for the owner of a shard.
func (c *Cluster) find(shard int, f *flight) {
	ctx, cancel := context.WithTimeout(c.ctx, c.config.Lease/3)
	defer cancel()
	f.owner, f.err = c.config.Streams.Owner(ctx, shard)
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[f.owner.Node]; m != nil && (m.Incarnation != f.owner.Incarnation || !m.living()) {
		f.owner = Owner{} // it is asked for again
	}
	c.shards[shard].route = route{owner: f.owner, problem: f.err, asked: c.config.Clock()}
	close(f.done)
}

// forget has the owner of a shard asked for again.
func (c *Cluster) forget(shard int, was Owner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := &c.shards[shard].route; r.owner == was {
		r.forget()
	}
}
