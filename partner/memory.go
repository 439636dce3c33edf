// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// MemoryError returns what a caller is told whose call needs more memory than a quota.Budget has.
func MemoryError(err error) error {
	e, ok := errors.AsType[*quota.ExceededError](err)
	switch {
	case !ok:
		return err
	case e.PerLeader:
		return task.Errorf(task.LimitExceeded, "your calls and running tasks hold the %d bytes of memory that a Leader may have; "+
			"let some end, and try again", e.Max).With("limit", "memory_per_leader").With("max", e.Max)
	}
	return task.Errorf(task.LimitExceeded, "calls and running tasks hold the %d bytes of memory that are for them; "+
		"try again later", e.Max).With("limit", "memory").With("max", e.Max)
}

// lease returns what counts the memory that the task takes while it is loaded. lv.mu is held.
func (lv *live) lease() *quota.Lease {
	if !lv.leased {
		if p := lv.partner(); p != nil {
			_, leader, _ := splitLogName(lv.log)
			lv.memory, lv.leased = p.Memory.Lease(leader), true
		}
	}
	return &lv.memory
}

// reserve takes the memory that loading the task for a caller will need, or refuses. What the gateway loads for itself,
// to keep a deadline for one, is counted and never refused. lv.mu is held.
func (lv *live) reserve(ctx context.Context) error {
	if lv.loaded {
		return nil
	}
	head, err := lv.engine.store.Head(ctx, lv.log)
	switch {
	case errors.Is(err, replay.ErrNotFound):
		lv.loaded = true
		return nil
	case err != nil:
		return StoreError(err, "the store cannot be read")
	}
	return MemoryError(lv.lease().Hold(2 * head.Bytes)) // the records, and what they are decoded to
}

// grow takes the memory for n more bytes of a task that is loaded, or refuses. lv.mu is held.
func (lv *live) grow(n int64) error { return MemoryError(lv.lease().Hold(lv.size + n)) }
