// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"syscall"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// sinkOf returns the sink of a stream. A connection without another stream knows whether it can be written to without
// waiting for the caller.
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
	space  int // the least free space of the socket's buffer, at the last question to the socket
}

// writeCost is the space of a write in a socket's buffer beside its bytes, and bufferFactor the space of each byte,
// including the additions of chunks and TLS. Both are more than is needed.
const (
	writeCost    = 4 << 10
	bufferFactor = 2
)

// TryFlush implements gateway.TrySink. The socket is asked only when the known free space is used up, so most writes
// cost no system call but their own.
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
