// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// connection is a caller's TCP connection. While streams and large answers are written to it, the system closes it if
// the caller reads nothing. A write alone does not notice it: it returns when the system has buffered the bytes, and a
// stream with few events fills no buffer for hours. Over HTTP/2, a deadline does not even end a write waiting for the
// connection.
type connection struct {
	socket syscall.RawConn
	bare   bool         // TCP, or TLS over it, with nothing read ahead
	calls  atomic.Int32 // answered over HTTP/1.1

	mu      sync.Mutex
	guards  int
	timeout time.Duration // the longest timeout of its guards
}

type connectionKey struct{}

// WithConnection returns the context for the requests of a connection, for http.Server.ConnContext. Without it, callers
// reading nothing are noticed only when a write blocks.
func WithConnection(ctx context.Context, c net.Conn) context.Context {
	if ctx.Value(connectionKey{}) != nil {
		return ctx // by another handler of the same server
	}
	bare := isBare(c)
	for {
		switch under := c.(type) {
		case syscall.Conn:
			socket, err := under.SyscallConn()
			if err != nil {
				return ctx
			}
			return context.WithValue(ctx, connectionKey{}, &connection{socket: socket, bare: bare})
		case interface{ NetConn() net.Conn }: // TLS
			c = under.NetConn()
		default:
			return ctx
		}
	}
}

// isBare reports whether a connection is of TCP, or of TLS over it. A connection back from a loop is not bare: it would
// come back again.
func isBare(c net.Conn) bool {
	switch c.(type) {
	case *net.TCPConn, *tls.Conn:
		return true
	}
	return false
}

// hasOwnBody reports whether the body of a request over HTTP/1.1 is of the length announced by its caller. Any other
// one is of a handler of the host. Then net/http may not have read the caller's body to its end, and nothing else
// knows: a stream or a loop taking the connection would read the rest of the body as the next request.
func hasOwnBody(r *http.Request) bool {
	switch length := r.Header["Content-Length"]; {
	case len(r.TransferEncoding) > 0:
		return r.ContentLength < 0
	case len(length) == 0:
		return r.ContentLength == 0
	default:
		return len(length) == 1 && length[0] == strconv.FormatInt(r.ContentLength, 10)
	}
}

// guardConnection makes the system close the connection of a request if its caller reads nothing for a time. end ends
// the guard.
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

// leave ends one guard. The limit ends with the last one: the requests on a connection have timeouts of their own.
func (c *connection) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guards--; c.guards == 0 {
		c.timeout = 0
		limitUnread(c.socket, 0)
	}
}
