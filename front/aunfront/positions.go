// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"math"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// maxPositions is the number of positions kept for an AID, at most. Beyond it, a device is sent events again after a
// cut, or begins now.
const maxPositions = 4096

var (
	positionLimits = limit.Limits{Total: math.MaxInt64, PerLeader: maxPositions}
	noLimits       = limit.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64}
)

// follower names a device and a slot of an AID.
type follower struct{ aid, device, slot string }

// creator is a follower as an entry has it.
func (f follower) creator() string { return f.aid + " " + f.device + " " + f.slot }

// cursor returns a follower's position in the events of a log's task. It is not stored if the follower has never
// followed the task.
func (x *Index) cursor(ctx context.Context, taskID, log string, f follower) (follow.Cursor, error) {
	c, err := follow.Read(ctx, x.set.Logs(x.shardOf(log)), logname.AUNPosition(taskID, f.aid, f.device, f.slot), nil)
	if err != nil {
		return c, partner.StoreError(err, "the store cannot be read")
	}
	c.Log = log
	return c, nil
}

// countPositions counts the positions from an earlier process.
func (h *home) countPositions(ctx context.Context) {
	defer close(h.counted)
	for e, err := range h.store.List(ctx, string(logname.AUN), "") {
		if err != nil {
			h.log.WarnContext(ctx, "the positions of subscriptions could not be counted", "error", err)
			return
		}
		if aid := logname.FollowerOf(e.Log); aid != "" && e.Head.Ended.IsZero() {
			_ = h.positions.Take(aid, 1, noLimits) // never fails
		}
	}
}

// awaitCounted waits until the positions of an earlier process are counted, so each is counted once.
func (h *home) awaitCounted(ctx context.Context) error {
	select {
	case <-h.counted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// write stores a cursor, unless its AID has too many.
func (h *home) write(ctx context.Context, c *follow.Cursor) error {
	if err := h.awaitCounted(ctx); err != nil {
		return err
	}
	aid, isNew := logname.FollowerOf(c.Name), !c.Stored()
	if isNew && h.positions.Take(aid, 1, positionLimits) != nil {
		return nil
	}
	c.DueAt = time.Now().Add(recheck)
	created, err := c.Write(ctx, h.store) // the device may have two connections
	switch {
	case isNew && !created:
		h.positions.Give(aid, 1)
	case !isNew && created: // the other one has dropped it
		_ = h.positions.Take(aid, 1, noLimits)
	}
	return err
}

// write stores a cursor, unless its AID has too many.
func (x *Index) write(ctx context.Context, c *follow.Cursor) error {
	shard := x.shardOf(c.Log)
	if h := x.homes.Of(shard); h != nil {
		return h.write(ctx, c)
	}
	_, err := x.owners.Of(ctx, shard, writing{Kind: putPosition, Log: c.Log, Name: c.Name, Position: c.Position})
	if err == nil {
		*c, err = follow.Read(ctx, x.set.Logs(shard), c.Name, nil)
	}
	return err
}

// end records a follower's receipt of the last event of a task. The creating device of the task does not begin with the
// first event any more.
func (x *Index) end(ctx context.Context, taskID string, f follower, c *follow.Cursor) error {
	if c.Stored() {
		w := writing{Kind: dropPosition, Log: c.Log, Name: c.Name}
		if _, err := x.owners.Of(ctx, x.shardOf(c.Log), w); err != nil {
			return err
		}
	}
	return x.change(ctx, taskID, false, func(e *entry) (bool, error) {
		if e == nil || e.Creator != f.creator() {
			return false, nil
		}
		e.Creator = ""
		return true, nil
	})
}

// dropCursor drops a cursor.
func (h *home) dropCursor(ctx context.Context, c *follow.Cursor) error {
	if err := h.awaitCounted(ctx); err != nil {
		return err
	}
	dropped, err := c.Drop(ctx, h.store)
	if dropped {
		h.positions.Give(logname.FollowerOf(c.Name), 1)
	}
	return err
}
