// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
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
			"let some end, and try again", e.Max).WithData("limit", "memory_per_leader").WithData("max", e.Max)
	}
	return task.Errorf(task.LimitExceeded, "calls and running tasks hold the %d bytes of memory that are for them; "+
		"try again later", e.Max).WithData("limit", "memory").WithData("max", e.Max)
}

// WaitForMemory returns when a lease holds at least n bytes, but waits no longer than for a time. A caller who is refused is
// told the limit.
func WaitForMemory(ctx context.Context, l *quota.Lease, n int64, most time.Duration) error {
	if n <= quota.Free {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, most)
	defer done()
	return MemoryError(l.Wait(ctx, n))
}

// lease returns what counts the memory that the task takes while it is loaded. tk.mu is held.
func (tk *activeTask) lease() *quota.Lease {
	if !tk.leased {
		if p := tk.partner(); p != nil {
			_, leader, _ := logname.Split(tk.log)
			tk.memory, tk.leased = p.Memory.Lease(leader), true
		}
	}
	return &tk.memory
}

// lockWithin locks the task when its caller has room for reading it, and for more bytes. After an error, the task is not
// locked. What the gateway loads for itself, to keep a deadline for one, is counted and never refused.
func (tk *activeTask) lockWithMemory(ctx context.Context, room Room, more int64) error {
	tk.mu.Lock()
	if room == nil {
		return nil
	}
	n, err := tk.size, error(nil)
	if !tk.loaded {
		n, err = tk.storedSize(ctx)
	}
	if n = 2*n + more; err == nil && n <= quota.Free { // what is stored, and what it is decoded to
		return nil
	}
	tk.mu.Unlock()
	if err == nil {
		err = room(ctx, n)
	}
	if err != nil {
		return err
	}
	tk.mu.Lock()
	return nil
}

// stored returns how many bytes the store keeps of the task. tk.mu is held.
func (tk *activeTask) storedSize(ctx context.Context) (int64, error) {
	head, err := tk.engine.store.Head(ctx, tk.log)
	switch {
	case errors.Is(err, replay.ErrNotFound):
		tk.loaded = true
		return 0, nil
	case err != nil:
		return 0, StoreError(err, "the store cannot be read")
	}
	return sizeOf(&head), nil
}

func sizeOf(head *replay.Head) int64 { return head.Bytes + int64(len(head.Metadata)) }
