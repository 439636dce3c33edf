// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// resting is a connection waiting for its next request, as net/http has it wait between two requests. To its server it
// is a new connection when it is given back: the first request must come within ReadHeaderTimeout.
type resting struct {
	server *http.Server
	conn   net.Conn

	mu      sync.Mutex
	watch   *watch
	idle    *time.Timer // nil for no limit
	undrain func() bool
	over    bool
}

// rest gives a connection back to its server when the next request comes. It closes the connection when it has been
// idle for too long, when drain is done, and if the server is shutting down.
func rest(server *http.Server, conn net.Conn, socket syscall.RawConn, drain context.Context) {
	r := &resting{server: server, conn: conn}
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.watch, err = connections.watchSocket(socket, func() { go r.end(false) }, func() { go r.end(true) }); err != nil {
		if !giveBack(server, conn) {
			_ = conn.Close()
		}
		return
	}
	r.undrain = context.AfterFunc(drain, func() { r.end(false) })
	if d := idleTimeout(server); d > 0 {
		r.idle = time.AfterFunc(d, func() { r.end(false) })
	}
	if isShutDown(server) || r.watch.arm() != nil {
		r.endLocked(false)
	}
}

// end ends the wait, because the next request comes or not.
func (r *resting) end(comes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.endLocked(comes)
	}
}

func (r *resting) endLocked(comes bool) {
	r.over = true
	r.watch.remove()
	r.undrain()
	if r.idle != nil {
		r.idle.Stop()
	}
	if !comes || !giveBack(r.server, r.conn) {
		_ = r.conn.Close()
	}
}

// idleTimeout is a server's limit of a connection's idle time; 0 is for no limit.
func idleTimeout(s *http.Server) time.Duration {
	if s.IdleTimeout != 0 {
		return s.IdleTimeout
	}
	return s.ReadTimeout
}

func isShutDown(s *http.Server) bool { return errors.Is(s.Serve(new(returned)), http.ErrServerClosed) }

// giveBack has a server serve a connection. It returns false if the server is shutting down.
func giveBack(server *http.Server, conn net.Conn) bool {
	l := returned{conn: conn}
	_ = server.Serve(&l) // returns after the one connection is accepted
	return l.conn == nil
}

// returned is a listener of one connection.
type returned struct{ conn net.Conn }

func (l *returned) Accept() (net.Conn, error) {
	conn := l.conn
	if conn == nil {
		return nil, io.EOF
	}
	l.conn = nil
	return conn, nil
}

func (l *returned) Close() error   { return nil }
func (l *returned) Addr() net.Addr { return nil }
