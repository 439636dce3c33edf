// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Owners hands calls to the processes that own the shards which this one does not. Its methods may be called by any
// number of goroutines at once.
type Owners interface {
	// Execute has the owner of a shard execute a call of a Partner, by Gateway.ExecuteHere. The error is that of
	// partner.Moved if the shard has no owner now, or another one. reserve is called in this process.
	Execute(ctx context.Context, shard int, partner string, c *Call, reserve replay.Reserve) (Result, error)
}

// HandOver has calls handed to the owners of other shards. It is called before a gateway is registered.
func (t *Tasks) HandOver(to Owners) { t.owners = to }

// While a shard moves it has no owner: its calls are tried again, until handOverLimit. A new owner reads what is under
// way before it answers.
const (
	handOverFirst = 5 * time.Millisecond // until the next try; it doubles each time
	handOverMost  = 250 * time.Millisecond
	handOverLimit = 15 * time.Second
)

// handOver executes a call wherever its shard is owned. A command that was stored by an owner which has lost the shard
// since is a repeated one for the next owner. Only a message without an id that continues a task, or may, is a new one
// each time, so it is not tried again: an owner may have had it.
func (g *Gateway) handOver(ctx context.Context, c *Call, reserve replay.Reserve) (r Result, err error) {
	m, limit := &c.Message, time.Now().Add(handOverLimit)
	once := m.ID == "" && (m.Command == task.Continue || m.Command == task.Start && c.Continues())
	for wait := handOverFirst; ; wait = min(2*wait, handOverMost) {
		if g.in(c.Leader) != nil {
			r, err = g.executeHere(ctx, c, reserve)
		} else {
			r, err = g.tasks.owners.Execute(ctx, g.shardOf(c.Leader), g.config.Partner.Name, c, reserve)
		}
		if !errors.Is(err, replay.ErrClosed) || once || !time.Now().Before(limit) {
			return r, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}
