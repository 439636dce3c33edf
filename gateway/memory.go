// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/translate"
)

// A call holds memory three times: for its request, until that is decoded, then for what the Partner does with it, which
// the Partner counts, and for its answer, until that is taken in.

// holdBody takes the memory for a request's body of n bytes, and for what it is decoded to. It is counted for the peer,
// since nobody knows yet for whom the request claims to speak.
func (c *conversation) holdBody(n int) error {
	if n <= quota.Free {
		return nil
	}
	if !c.held {
		leader := quota.Unverified
		if peer, err := c.h.Guard.Peer(c.r.TLS); err == nil && peer.Verified() {
			leader = string(peer.AIC)
		}
		c.memory, c.held = c.h.Memory.Lease(leader), true
	}
	return partner.MemoryError(c.memory.Hold(2 * int64(n)))
}

// release lets go of a request that has been decoded. What it was decoded to is the Partner's to count.
func (c *conversation) release(buf *buffer) {
	if cap(buf.in) > quota.Free {
		c.req = translate.Request{Request: jsonrpc.Request{ID: bytes.Clone(c.req.ID)}}
		buf.in = nil
	}
	c.memory.Release()
}

// room takes the memory for a result of about a size, and for its encoding, and returns dst with the room for that.
func (c *conversation) room(dst []byte, size int64) ([]byte, error) {
	if size <= quota.Free {
		return dst, nil
	}
	c.memory = c.h.Memory.Lease(c.leader)
	if err := c.memory.Hold(2 * size); err != nil {
		return dst, partner.MemoryError(err)
	}
	return slices.Grow(dst, int(size+size/16)), nil
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
