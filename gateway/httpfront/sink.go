// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"syscall"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// sinkOf returns the sink of a stream. A connection that has no other stream says whether it can be written to
// without waiting for the caller.
func sinkOf(ctx context.Context, out *sseproxy.Writer, protocol int) gateway.Sink {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok && protocol == 1 {
		return &trySink{Writer: out, socket: c.socket}
	}
	return out
}

// trySink is the sink of a stream with a connection of its own.
type trySink struct {
	*sseproxy.Writer
	socket syscall.RawConn
	space  int // how much of the socket's buffer is free at least, as it was when the socket was asked
}

// writeCost is how much of a socket's buffer a write takes beside its bytes, and bufferFactor how much a byte of it
// takes, with what chunks and TLS add. Both are more than is needed.
const (
	writeCost    = 4 << 10
	bufferFactor = 2
)

// TryFlush implements gateway.TrySink. The socket is asked only when what is known to be free is used up, so that most
// writes cost no system call but their own.
func (s *trySink) TryFlush() (done bool, err error) {
	cost := writeCost + bufferFactor*s.Buffered()
	if s.space < cost {
		if s.space = sendSpace(s.socket); s.space < cost {
			return false, nil
		}
	}
	s.space -= cost
	return true, s.Flush()
}
