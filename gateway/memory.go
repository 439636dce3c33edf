// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// A call holds memory for its request, until that is decoded, then for its message and the task as it was read, while the
// Partner obeys it, and for its answer, until that is taken in. It waits for memory before it reads what takes it.

// holdBody takes the memory for a request's body of n bytes, and for what it is decoded to. It is counted for the peer,
// since the Leader for whom the request claims to speak is not known yet.
func (c *conversation) holdBody(n int) error {
	if n <= quota.Free {
		return nil
	}
	if !c.held {
		leader := quota.Unverified
		if peer, err := c.h.Guard.Check(identity.OfConnection(c.r.TLS)); err == nil && peer.Verified() {
			leader = peer.Leader()
		}
		c.holdFor(leader)
	}
	return c.wait(2 * int64(n))
}

// holdFor has memory counted for a Leader from now on.
func (c *conversation) holdFor(leader string) {
	if !c.held || quota.Key(c.holder) != quota.Key(leader) {
		c.memory.Release()
		c.memory, c.held, c.holder = c.h.Memory.Lease(leader), true, leader
	}
}

// wait waits until the call holds n bytes of memory, unless the caller leaves, or the configuration is replaced.
func (c *conversation) wait(n int64) error {
	ctx, done := context.WithCancel(c.ctx)
	defer done()
	defer context.AfterFunc(c.h.Streaming.Drain, done)()
	most := c.h.Memory.Patience
	if c.call.Stream {
		most = c.h.Streaming.Patience
	}
	err := partner.WaitForMemory(ctx, &c.memory, n, most)
	if err != nil && c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return err
}

// room implements partner.Room.
func (c *conversation) room(_ context.Context, n int64) error {
	switch {
	case n == 0:
		c.memory.Release()
	case n > quota.Free:
		c.holdFor(c.leader)
		return c.wait(n)
	}
	return nil
}

// release lets go of a request that has been decoded, but for its message.
func (c *conversation) release(buf *buffer) {
	if cap(*buf.in) > quota.Free {
		c.req = translate.Request{Request: jsonrpc.Request{ID: bytes.Clone(c.req.ID)}}
		*buf.in = nil
	}
	c.memory.Take(c.call.Message.Size())
}

// do has the Partner carry out a command, and takes the memory for the task that answers it and for its encoding. If there
// is none for what a turn has made, the task is let go of, and read again when there is.
func (c *conversation) do(p *partner.Partner, call *partner.Request) (task.Task, error) {
	t, err := p.Do(c.ctx, c.leader, call)
	if err != nil || call.Message.Command == task.Get {
		return t, err
	}
	c.holdFor(c.leader)
	if t.Size() <= quota.Free || c.memory.Hold(2*t.Size()) == nil {
		return t, nil
	}
	t = task.Task{}
	get := task.Message{Command: task.Get, TaskID: c.call.Message.TaskID}
	again := partner.Request{Call: task.Call{Message: get}, Room: c.room}
	if t, err = p.Do(c.ctx, c.leader, &again); c.call.History == 0 {
		t.MessageHistory, t.StatusHistory = nil, nil
	}
	return t, err
}

// grow takes the memory for a result of about a size, and for its encoding, which the call has waited for, and returns dst
// with the room for that.
func (c *conversation) grow(dst []byte, size int64) []byte {
	if size <= quota.Free {
		return dst
	}
	c.holdFor(c.leader)
	c.memory.Take(2 * size)
	return slices.Grow(dst, int(size+size/16))
}

// sent keeps nothing of a call but its answer, of n bytes.
func (c *conversation) sent(n int) {
	c.call, c.req = translate.Call{}, translate.Request{}
	c.memory.Take(int64(n))
}

// pieceSize is how much of an answer is written at a time, in bytes.
const pieceSize = 64 << 10

// writeAnswer writes an answer. A large one is written in pieces, each of which its caller must take in in time, so that
// a caller that reads nothing does not hold memory for ever.
func writeAnswer(ctx context.Context, w http.ResponseWriter, body []byte, timeout time.Duration) error {
	if len(body) <= pieceSize {
		_, err := w.Write(body)
		return err
	}
	defer guardConnection(ctx, timeout)()
	control := http.NewResponseController(w)
	defer control.SetWriteDeadline(time.Time{})
	for piece := range slices.Chunk(body, pieceSize) {
		// Where the connection has no deadlines (a test's recorder), the server's own timeouts are all there is.
		_ = control.SetWriteDeadline(time.Now().Add(timeout))
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}
