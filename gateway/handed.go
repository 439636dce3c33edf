// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Handed is a call handed over by another process to this one, the owner of its shard. Everything it holds here counts
// here, for the same Leader as in the other process. It is used by one goroutine at a time.
type Handed struct {
	g      *Gateway
	memory limit.Lease
	stream bool
}

// Handed returns a call handed over. It holds nothing yet. reader is the one of the Call.
func (g *Gateway) Handed(reader string) *Handed { return &Handed{g: g, memory: g.memory.Lease(reader)} }

// Hold waits until there is memory for a request of n bytes, and for its decoded form.
func (h *Handed) Hold(ctx context.Context, n int) error { return h.reserve(ctx, 2*int64(n)) }

// reserve implements replay.Reserve.
func (h *Handed) reserve(ctx context.Context, n int64) error {
	return h.g.holdMemory(ctx, &h.memory, n, h.stream)
}

// Execute is ExecuteHere. There is memory for the result, and for its encoding.
func (h *Handed) Execute(ctx context.Context, c *Call) (r Result, err error) {
	h.stream = c.Stream
	execute := func(c *Call) (Result, error) { return h.g.ExecuteHere(ctx, c, h.reserve) }
	if r, err = execute(c); err != nil {
		return r, err
	}
	if err = fit(c, &r, &h.memory, execute); err != nil {
		return r, err
	}
	h.memory.Take(2 * r.Size())
	return r, nil
}

// Keep gives back everything the call holds but n bytes of its reply.
func (h *Handed) Keep(n int) { h.memory.Take(int64(n)) }

// End gives back everything the call holds.
func (h *Handed) End() { h.memory.Release() }

// Size returns the approximate number of bytes held by the tasks of a result.
func (r *Result) Size() int64 {
	n := r.Task.Size()
	for i := range r.Page.Tasks {
		n += r.Page.Tasks[i].Size()
	}
	return n
}

// fit takes the memory for the task in the answer to a command, and for its encoding. If there is not enough for the
// product of the turn, the task is dropped, and read again once there is.
func fit(c *Call, r *Result, memory *limit.Lease, read func(*Call) (Result, error)) error {
	t := &r.Task
	if c.Op != translate.Command || c.Message.Command == task.Get || c.Stream ||
		t.Size() <= limit.Free || memory.Hold(2*t.Size()) == nil {
		return nil
	}
	get, started := Call{Leader: c.Leader, Reader: c.Reader}, r.New
	get.Message = task.Message{Command: task.Get, TaskID: t.ID}
	*r = Result{}
	again, err := read(&get)
	if *r, r.New = again, started; c.History == 0 {
		t.MessageHistory, t.StatusHistory = nil, nil
	}
	return err
}
