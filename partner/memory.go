// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// MemoryError returns the error for a caller, if its call needs more memory than its limit.Budget has.
func MemoryError(err error) error {
	e, ok := errors.AsType[*limit.ExceededError](err)
	switch {
	case !ok:
		return err
	case e.PerLeader:
		return task.Errorf(task.LimitExceeded,
			"your calls and running tasks hold the %d bytes of memory that a Leader may have; try again when some have ended",
			e.Max).
			WithData("limit", "memory_per_leader").WithData("max", e.Max)
	}
	return task.Errorf(task.LimitExceeded,
		"calls and running tasks hold the %d bytes of memory that are for them; try again later", e.Max).
		WithData("limit", "memory").WithData("max", e.Max)
}

// WaitForMemory waits until a lease holds at least n bytes, for at most a time. If it gets none, the error names the
// limit.
func WaitForMemory(ctx context.Context, l *limit.Lease, n int64, most time.Duration) error {
	if n <= limit.Free {
		return nil
	}
	ctx, done := context.WithTimeout(ctx, most)
	defer done()
	return MemoryError(l.Wait(ctx, n))
}

// lease returns the lease for the memory of the task while it is loaded. tk.mu is held.
func (tk *activeTask) lease() *limit.Lease {
	if !tk.leased {
		if p := tk.partner(); p != nil {
			_, leader, _ := logname.Split(tk.log)
			tk.memory, tk.leased = p.Memory.Lease(leader), true
		}
	}
	return &tk.memory
}

// lockWithMemory returns the task of a log, locked and in use, when the caller has memory to read it, and more bytes.
// It does not use the task while it waits: a task in use is counted, and may be the cause of the wait. The gateway's
// own loads, for example at a deadline, are counted and never refused.
func (e *Engine) lockWithMemory(
	ctx context.Context, log string, reserve replay.Reserve, more int64,
) (*activeTask, error) {
	tk := e.acquire(log)
	tk.mu.Lock()
	if reserve == nil {
		return tk, nil
	}
	n, err := tk.size, error(nil)
	var head replay.Head
	if !tk.loaded {
		if head, err = tk.head(ctx); err == nil {
			n = sizeOf(&head)
		}
	}
	if n = 2*n + more; err == nil && n <= limit.Free { // the stored form, and the decoded one
		tk.reuse(&head)
		return tk, nil
	}
	tk.mu.Unlock()
	tk.release()
	if err == nil {
		err = reserve(ctx, n)
	}
	if err != nil {
		return nil, err
	}
	tk = e.acquire(log)
	tk.mu.Lock()
	return tk, nil
}

// head returns the head of the task's log, and the zero Head if there is none. tk.mu is held.
func (tk *activeTask) head(ctx context.Context) (replay.Head, error) {
	head, err := tk.stored().Head(ctx)
	switch {
	case errors.Is(err, replay.ErrNotFound):
		tk.invalidate()
		tk.loaded = true
		return head, nil
	case err != nil:
		return head, StoreError(err, "the store cannot be read")
	}
	return head, nil
}

// sizeOf returns the number of bytes of a log in the store.
func sizeOf(head *replay.Head) int64 { return head.Bytes + int64(len(head.Metadata)) }
