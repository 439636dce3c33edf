// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// ErrStopped is the error of a wait ended by Stop or Abort, or by the time of StopAt.
var ErrStopped = errors.New("http1: the wait was stopped")

// ErrSilent is the error of a server sending nothing for the time of Begin or SetIdleTimeout.
var ErrSilent = errors.New("http1: the server is silent")

// ErrSlow is the error of a server sending something, but not all due within the time of Begin or Renew.
var ErrSlow = errors.New("http1: the server does not end its answer")

// The sizes of the buffer of a connection, in bytes: while little arrives at once, and while much does.
const (
	smallBuffer = 4 << 10
	largeBuffer = 32 << 10
)

// Conn is a connection to a server, and the answer being read from it. It is used by one goroutine at a time. Only Stop
// and Abort may be called by any, at any time, and Write may run beside the reader of the answer.
type Conn struct {
	conn    net.Conn
	below   net.Conn // the connection below TLS, or conn
	records *records // nil without TLS, and if TLS is not by Secure
	socket  socket
	watch   watch
	since   time.Time // idle since
	reused  bool      // it has carried an exchange before this one
	unsound bool      // a write has failed

	// StopFunc and AbortFunc are Stop and Abort as values, made once.
	StopFunc, AbortFunc func()

	patience time.Duration // the server's time, in all or to be silent; 0 for no limit
	bounded  bool          // the server's bytes do not begin that time again
	limit    time.Time     // the end of that time; zero for never
	heard    bool          // the time begins again with the next read
	slow     bool          // the server has sent something since limit was set, and is bounded
	stopAt   time.Time     // zero for never
	reads    deadline
	writes   deadline
	stopped  atomic.Bool // by Stop or Abort, with other deadlines set

	buf        []byte // buf[start:end] has been read from the connection, and not been used
	start, end int
	err        error // of the connection, after the content of buf

	lastType string // the Content-Type of an earlier answer, mostly the same as the next one's
	answer
}

// NewConn returns a just opened connection.
func NewConn(conn net.Conn) *Conn {
	c := &Conn{conn: conn, below: conn, watch: watch{conn: conn}}
	c.StopFunc, c.AbortFunc = c.Stop, c.Abort
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		c.below = t.NetConn()
	}
	if r, ok := c.below.(*records); ok {
		c.records = r
		c.socket.init(r.Conn)
	} else {
		c.socket.init(c.below)
	}
	return c
}

// Reused reports whether the connection has carried an exchange before this one.
func (c *Conn) Reused() bool { return c.reused }

// Close closes the connection. No Write may be running.
func (c *Conn) Close() {
	if c.unsound {
		c.below.Close() // TLS would first try to write its close
	} else {
		c.conn.Close()
	}
	c.watch.wait()
}

// Begin begins an exchange. The request must be written, and the head of the answer must have come, within a time; 0 is
// for no limit. Then Renew or SetIdleTimeout sets the time for the rest.
func (c *Conn) Begin(timeout time.Duration) {
	c.answer = answer{}
	c.SetIdleTimeout(timeout)
	c.bounded = true
	if c.limit.IsZero() || c.writes.at.Before(c.limit.Add(-timeout/8)) {
		c.writes = deadline{} // a write ended too early cannot be begun again
	}
	if c.writes.move(c.limit) {
		c.conn.SetWriteDeadline(c.limit)
	}
}

// Write writes the request, or a part of it. n is the number of bytes the server may have received.
func (c *Conn) Write(p []byte) (n int, err error) {
	if n, err = c.conn.Write(p); err == nil {
		return n, nil
	}
	c.unsound = true
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if err = ErrSilent; c.stopped.Load() {
			err = ErrStopped
		}
	}
	return n, err
}

// WriteSome writes the part of p taken by the system at once, and waits for nothing. n is its length: 0 with TLS, and
// on systems without a way to ask for it. Write follows for the rest.
func (c *Conn) WriteSome(p []byte) (n int) {
	if c.below != c.conn {
		return 0
	}
	return c.socket.writeSome(p)
}

// SetIdleTimeout sets the time for which the server may send nothing from now on, and after whatever it sends; 0 is for
// no limit.
func (c *Conn) SetIdleTimeout(d time.Duration) {
	c.patience, c.bounded, c.limit, c.heard, c.slow = d, false, time.Time{}, false, false
	if d > 0 {
		c.limit = time.Now().Add(d)
	}
}

// Renew begins the time of Begin again: the rest of the answer must come within it, however often the server sends
// something. The time begins when more is needed than has arrived.
func (c *Conn) Renew() { c.heard = c.patience > 0 }

// StopAt sets the time to stop waits, as by Stop; zero is for never. Resume clears it.
func (c *Conn) StopAt(t time.Time) { c.stopAt = t }

// Stop ends the wait for the answer: the method reading now, or the next one to read, returns ErrStopped. After Resume,
// it can be called again.
func (c *Conn) Stop() {
	c.stopped.Store(true) // before the deadline, because another may be set at the same time
	c.conn.SetReadDeadline(past)
}

// Abort is Stop for writes as well. The connection cannot be used afterwards.
func (c *Conn) Abort() {
	c.stopped.Store(true)
	c.conn.SetDeadline(past)
}

// Resume takes a Stop back. No call of Stop may be running.
func (c *Conn) Resume() {
	c.stopAt = time.Time{}
	if c.stopped.Load() {
		c.stopped.Store(false)
		c.reads = deadline{}
	}
}

// reusable reports whether the connection can carry another exchange after this one.
func (c *Conn) reusable() bool {
	return c.ended && !c.closes && c.start == c.end && c.err == nil && !c.unsound && c.nothingAhead()
}

// nothingAhead reports whether TLS has read nothing unasked. The system knows nothing of it.
func (c *Conn) nothingAhead() bool {
	if c.records == nil {
		return c.below == c.conn
	}
	return c.records.empty(c.conn)
}

// rest begins the idle time of the connection.
func (c *Conn) rest() {
	c.reused, c.since, c.limit = true, time.Now(), time.Time{}
	if len(c.buf) > smallBuffer {
		c.buf = nil
	}
	if !c.socket.known() {
		c.reads = deadline{}
		c.watch.begin()
	}
}

// leave ends the idle time of the connection, and reports whether the server has neither closed it nor sent anything
// meanwhile.
func (c *Conn) leave() bool {
	if c.socket.known() {
		return c.socket.quiet() && c.nothingAhead()
	}
	return c.watch.end() && c.nothingAhead()
}

// past is a deadline in the past.
var past = time.Unix(1, 0)

// until returns when a wait ends; zero for never.
func (c *Conn) until() time.Time {
	if !c.stopAt.IsZero() && (c.limit.IsZero() || c.stopAt.Before(c.limit)) {
		return c.stopAt
	}
	return c.limit
}

// read reads from the connection once. An error coming with bytes is returned by the next call.
func (c *Conn) read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.heard {
		c.heard, c.slow, c.limit = false, false, time.Now().Add(c.patience)
	}
	for {
		if until := c.until(); c.reads.move(until) {
			c.conn.SetReadDeadline(until)
		}
		if c.stopped.Load() { // perhaps before the deadline was set
			return 0, ErrStopped
		}
		n, err := c.conn.Read(p)
		late := err != nil && errors.Is(err, os.ErrDeadlineExceeded)
		if err != nil && !late {
			c.err = err
		}
		switch {
		case n > 0:
			c.heard, c.slow = c.patience > 0 && !c.bounded, c.bounded
			return n, nil
		case !late && err != nil:
			return 0, err
		case err == nil:
			return 0, io.ErrNoProgress
		case c.stopped.Load():
			return 0, ErrStopped
		}
		now := time.Now()
		if !c.limit.IsZero() && !now.Before(c.limit) {
			if c.slow {
				return 0, ErrSlow
			}
			return 0, ErrSilent
		}
		if !c.stopAt.IsZero() && !now.Before(c.stopAt) {
			return 0, ErrStopped
		}
		c.reads = deadline{} // it was set for an earlier wait
	}
}

// fill reads into the buffer once, behind its content.
func (c *Conn) fill() error {
	switch used := c.end - c.start; {
	case used == 0:
		c.start, c.end = 0, 0
		if c.buf == nil {
			c.buf = make([]byte, smallBuffer)
		}
	case c.end < len(c.buf):
	case c.start > 0:
		copy(c.buf, c.buf[c.start:c.end])
		c.start, c.end = 0, used
	default:
		grown := make([]byte, 2*len(c.buf))
		copy(grown, c.buf)
		c.buf = grown
	}
	free := len(c.buf) - c.end
	n, err := c.read(c.buf[c.end:])
	c.end += n
	// Only content read in small pieces needs a large buffer: of an answer with a length, the rest is read to its place.
	if c.complete && c.framing != sized && c.start == 0 && c.end == n { // it was empty
		switch {
		case n == free && free < largeBuffer:
			c.resize(largeBuffer)
		case n <= smallBuffer/4 && free > smallBuffer:
			c.resize(smallBuffer)
		}
	}
	return err
}

// resize changes the buffer to a size not exceeded by its content.
func (c *Conn) resize(size int) {
	other := make([]byte, size)
	c.end = copy(other, c.buf[c.start:c.end])
	c.start, c.buf = 0, other
}

// line returns the next line without its end, CR LF. It is valid until the buffer is filled again. max is the most
// bytes of it, with its end.
func (c *Conn) line(max int) ([]byte, error) {
	for seen := 0; ; {
		rest := c.buf[c.start:c.end]
		i := indexLF(rest, seen)
		switch {
		case i > 0 && rest[i-1] == '\r' && i < max:
			c.start += i + 1
			return rest[:i-1], nil
		case i >= max || i < 0 && len(rest) >= max:
			return nil, errTooLarge
		case i >= 0:
			return nil, malformed("a line does not end with CR LF")
		}
		seen = len(rest)
		if err := c.fill(); err != nil {
			return nil, unexpected(err)
		}
	}
}

// unexpected returns the error of a connection ending within an answer.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
