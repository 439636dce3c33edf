// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// connection is a caller's TCP connection. While streams and large answers are written to it, the system closes it if
// the caller takes nothing in: a write alone does not tell, since it is done when the system has buffered what it was
// given, and a stream on which little happens fills no buffer for hours. Over HTTP/2 a write that waits for the
// connection cannot even be ended by its own deadline.
type connection struct {
	socket syscall.RawConn

	mu      sync.Mutex
	guards  int
	timeout time.Duration // the longest of those of its guards
}

type connectionKey struct{}

// WithConnection returns the context for the requests of a connection, for http.Server.ConnContext. Without it,
// callers that take nothing in are noticed only by writes that do not end.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	if ctx.Value(connectionKey{}) != nil {
		return ctx // by another handler of the same server
	}
	for {
		switch under := c.(type) {
		case syscall.Conn:
			socket, err := under.SyscallConn()
			if err != nil {
				return ctx
			}
			return context.WithValue(ctx, connectionKey{}, &connection{socket: socket})
		case interface{ NetConn() net.Conn }: // TLS
			c = under.NetConn()
		default:
			return ctx
		}
	}
}

// guardConnection has the connection of a request closed when its caller takes nothing in for the time of a write. It
// returns what ends that.
func guardConnection(ctx context.Context, timeout time.Duration) (end func()) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guards++
	if timeout > c.timeout {
		c.timeout = timeout
		limitUnread(c.socket, timeout)
	}
	return c.leave
}

// leave ends the guard with the last of them: other requests on the connection have time-outs of their own.
func (c *connection) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guards--; c.guards == 0 {
		c.timeout = 0
		limitUnread(c.socket, 0)
	}
}
