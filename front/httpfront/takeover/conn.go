// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
)

// Conn continues the body of a response on a taken over connection. Its methods are called by one goroutine at a time.
type Conn struct {
	conn    net.Conn
	socket  syscall.RawConn
	server  *http.Server
	drained context.Context
	timeout time.Duration // of the last write
	closes  bool          // the connection is closed after the response, as its head says
	size    int64

	watch *watch
	gone  func()
	left  atomic.Bool // gone was called

	writing sync.Mutex // held while the body is written, by a deadline not to be moved
	reading sync.Mutex // held while the connection is read
	ended   bool
	stray   bool // the caller has sent bytes, and they were dropped
	wakes   int  // number of times the connection could be read
}

// Options are for taking over a connection.
type Options struct {
	// Socket is the caller's socket; nil if it is not known.
	Socket syscall.RawConn
	// Passes reports whether a ResponseWriter passes all its input on unchanged. It is asked of each one between the
	// handler and the connection, but not of a loop's. The last of them is net/http's, or a loop's.
	Passes func(http.ResponseWriter) bool
	// Gone is called once when the caller has closed the connection, or sends data without end. It must not wait.
	Gone func()
	// Timeout is the time for writing the end of the body.
	Timeout time.Duration
	// Drain is done when connections waiting for their next request must be closed; nil for never.
	Drain context.Context
}

// ErrUnable means the connection cannot be taken over. The response continues as it is.
var ErrUnable = errors.New("takeover: the connection cannot be taken over")

// Take takes the connection of a response over. The head of the response must have been sent, and the body of the
// request been read to its end. After an error other than ErrUnable, the response has failed.
func Take(w http.ResponseWriter, r *http.Request, o Options) (*Conn, error) {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	base := o.base(w)
	switch {
	case !supported, base == nil, server == nil, o.Socket == nil, !r.ProtoAtLeast(1, 1), r.Method == http.MethodHead:
		return nil, ErrUnable
	case server.WriteTimeout > 0:
		// Caddy flushes a response longer than this timeout after the return of its handler, and cannot do so without the
		// connection.
		return nil, ErrUnable
	}
	head := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Transfer-Encoding", "Trailer"} {
		if len(head[name]) > 0 { // it is not in chunks, or not as it was written
			return nil, ErrUnable
		}
	}
	c := &Conn{
		socket: o.Socket, server: server, drained: o.Drain, timeout: o.Timeout, gone: o.Gone,
		closes: r.Close || strings.EqualFold(head.Get("Connection"), "close"),
	}
	if c.drained == nil {
		c.drained = context.Background()
	}
	if own, ok := base.(*response); ok {
		own.loop.unwatch()
	}
	var err error
	if c.watch, err = connections.watchSocket(o.Socket, c.leave, c.arrived); err != nil {
		return nil, errors.Join(ErrUnable, err)
	}
	conn, buffered, err := base.Hijack()
	if err != nil {
		c.watch.remove()
		return nil, err
	}
	c.conn = conn
	shareCertificates(conn)
	_, looped := base.(*response)
	_, secure := conn.(overTLS)
	switch c.stray = buffered.Reader.Buffered() > 0; {
	case c.stray:
		c.arrived() // there may be more, not shown by the socket
		return c, nil
	case looped && secure:
		c.read() // likewise: the loop has not looked for the bytes read by TLS
		return c, nil
	}
	if err := c.watch.arm(); err != nil {
		c.End(false, false)
		return nil, err
	}
	return c, nil
}

// base returns the writer of a response that net/http or a loop has made; nil if a writer before it changes its input.
func (o *Options) base(w http.ResponseWriter) http.Hijacker {
	for {
		if own, ok := w.(*response); ok {
			return own
		}
		if !o.Passes(w) {
			return nil
		}
		wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			base, _ := w.(http.Hijacker)
			return base
		}
		w = wrapper.Unwrap()
	}
}

// chunks pools the buffers of chunks.
var chunks = bufpool.Pool{Largest: 128 << 10}

// Write writes a chunk of the body.
func (c *Conn) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // an empty chunk would be the last one
	}
	b := chunks.Get()
	defer chunks.Put(b)
	*b = strconv.AppendUint(*b, uint64(len(p)), 16)
	*b = append(*b, "\r\n"...)
	*b = append(*b, p...)
	*b = append(*b, "\r\n"...)
	c.writing.Lock()
	_, err := c.conn.Write(*b)
	c.writing.Unlock()
	if err != nil {
		return 0, err
	}
	c.size += int64(len(p))
	return len(p), nil
}

// Flush does nothing: a chunk is sent when it is written.
func (c *Conn) Flush() error { return nil }

// SetWriteDeadline sets the deadline of the next writes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }

// Size returns the number of bytes of the body written to the connection.
func (c *Conn) Size() int64 { return c.size }

// End ends the response. If its body is complete, and keep is true, the connection is given back to its server when the
// next request comes; else, the caller sees that the body was cut.
func (c *Conn) End(complete, keep bool) {
	c.watch.remove()
	c.reading.Lock() // a running read ends soon
	c.ended = true
	keep = keep && complete && !c.closes && !c.stray
	c.reading.Unlock()
	if complete {
		_ = c.conn.SetWriteDeadline(time.Now().Add(c.timeout))
		_, err := c.conn.Write([]byte("0\r\n\r\n"))
		keep = keep && err == nil
	}
	if !keep || c.conn.SetDeadline(time.Time{}) != nil {
		_ = c.conn.Close()
		return
	}
	rest(c.server, c.conn, c.socket, c.drained)
}

// Bounds of the bytes from a caller during its response: none, in HTTP/1.1, but the records of TLS.
const (
	readTime = time.Millisecond // for a read to wait for the rest of a record
	maxWakes = 1000             // then a caller sending on and on is cut
)

// leave reports the end of the connection's use.
func (c *Conn) leave() {
	if !c.left.Swap(true) {
		c.gone()
	}
}

// arrived has the arrived bytes read soon.
func (c *Conn) arrived() { streams.have(c.read) }

// read reads the arrived bytes, through TLS, for it to learn of the end of the connection and of new keys.
func (c *Conn) read() {
	if !c.drain() {
		c.leave()
	}
}

// drain drops the arrived bytes. It reports whether the connection is still in use.
func (c *Conn) drain() bool {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.ended {
		return true
	}
	// A read may write: TLS answers a request for new keys. While the stream rests, the deadline of its last write may
	// have passed, and a write failing by it would break TLS.
	if c.writing.TryLock() {
		err := c.conn.SetWriteDeadline(time.Now().Add(c.timeout))
		if c.writing.Unlock(); err != nil {
			return false
		}
	}
	var b [512]byte
	for c.wakes++; c.wakes < maxWakes; c.wakes++ {
		if c.conn.SetReadDeadline(time.Now().Add(readTime)) != nil {
			return false
		}
		n, err := c.conn.Read(b[:])
		c.stray = c.stray || n > 0
		if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() {
			return c.watch.arm() == nil
		}
		if err != nil {
			return false
		}
	}
	return false
}
