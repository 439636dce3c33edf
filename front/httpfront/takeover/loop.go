// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

const (
	// maxRequest is the most bytes of a request in a loop, with its head and its body: the size of net/http's buffers for
	// a connection.
	maxRequest = 8 << 10

	// bodyPatience is the time for which a loop waits for the rest of a body, before net/http does.
	bodyPatience = time.Second

	// lastPatience is the time for which it waits while its server shuts down: net/http takes no connection back then.
	lastPatience = 30 * time.Second
)

// loop serves the calls of one connection, by one goroutine.
type loop struct {
	loops   *loops
	server  *http.Server
	conn    net.Conn
	base    context.Context // of the connection
	address string
	tls     *tls.ConnectionState

	buffer    []byte
	in        []byte // of the buffer: read, and not used yet
	pipelined bool   // in has bytes from before the last answer was sent
	head      head
	length    int // of the body after the head

	watch *watch
	timer *time.Timer // has the caller watched, once a call has taken some time

	mu      sync.Mutex
	calling bool // the head of a call has arrived, and its answer is not sent
	waiting bool // for the rest of the call's body; only the loop's goroutine changes it
	over    bool // the connection is closed, or another owner's
	listens bool // a leaving caller is noticed
	armed   bool
	leave   context.CancelFunc // of the call

	// Held while the connection is read during a call. A caller may make the reading wait, by records of TLS in need of an
	// answer: so only the goroutine of its own call waits for it.
	looking sync.Mutex
	early   []byte // arrived during the call
}

// LoopOptions are for serving the calls of a connection.
type LoopOptions struct {
	// Socket is the caller's socket.
	Socket syscall.RawConn
	// Passes is as in Options.
	Passes func(http.ResponseWriter) bool
}

// Serve has a loop serve the next calls on the connection of a response, from the return of this one's handler on. The
// response must have been written to its end, and the body of the request been read to its end. After an error other
// than ErrUnable, the connection is lost.
func Serve(w http.ResponseWriter, r *http.Request, o LoopOptions) error {
	server, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
	base := (&Options{Passes: o.Passes}).base(w)
	if _, looped := base.(*response); looped || !supported || base == nil || server == nil || !canLoop(server) ||
		r.Method != http.MethodPost || r.ProtoMajor != 1 || r.ProtoMinor != 1 || r.Close || !isWhole(w.Header()) ||
		r.Context().Done() == nil || r.Context().Err() != nil {
		return ErrUnable
	}
	l := &loop{server: server, loops: loopsOf(server)}
	var err error
	look := func() { go l.look() }
	if l.watch, err = connections.watchSocket(o.Socket, look, look); err != nil {
		return errors.Join(ErrUnable, err)
	}
	if !l.loops.add(l) {
		l.watch.remove()
		return ErrUnable
	}
	if err = http.NewResponseController(w).Flush(); err == nil {
		err = l.take(base, r)
	}
	if err != nil {
		l.loops.remove(l)
		l.watch.remove()
		return err
	}
	context.AfterFunc(r.Context(), l.run) // other handlers still use the connection
	return nil
}

// canLoop reports whether the connections of a server may be looped. Time-outs of whole requests are left to net/http.
func canLoop(s *http.Server) bool {
	return s.ReadTimeout <= 0 && s.WriteTimeout <= 0 && s.BaseContext == nil && s.Handler != nil
}

// isWhole reports whether a response with a header is complete once its body is written.
func isWhole(h http.Header) bool {
	return len(h["Content-Length"]) == 1 && len(h["Connection"]) == 0 && len(h["Transfer-Encoding"]) == 0 &&
		len(h["Trailer"]) == 0
}

// take takes the connection.
func (l *loop) take(base http.Hijacker, r *http.Request) error {
	conn, buffered, err := base.Hijack()
	if err != nil {
		return err
	}
	l.buffer = make([]byte, maxRequest)
	sent, _ := buffered.Peek(buffered.Reader.Buffered())
	l.in = l.buffer[:copy(l.buffer, sent)] // net/http has a smaller one
	l.tls = shareCertificates(conn)
	l.address = conn.RemoteAddr().String()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over { // the server is shutting down
		_ = conn.Close()
		return http.ErrServerClosed
	}
	l.conn = conn
	return nil
}

// run serves the calls of the connection.
func (l *loop) run() {
	defer l.loops.remove(l)
	defer l.watch.remove()
	defer l.close()
	ctx := context.WithValue(context.Background(), http.ServerContextKey, l.server)
	if f := l.server.ConnContext; f != nil {
		ctx = f(ctx, l.conn)
	}
	l.base = context.WithValue(ctx, http.LocalAddrContextKey, l.conn.LocalAddr())
	l.timer = time.AfterFunc(time.Hour, l.listen)
	defer l.timer.Stop()
	for {
		switch err := l.receive(); {
		case errors.Is(err, errForeign):
			l.giveBack()
			return
		case err != nil, !l.call():
			return
		}
	}
}

// errForeign leaves the received bytes to net/http.
var errForeign = errors.New("takeover: the request is left to net/http")

// receive waits for the next request and receives it, with the time-outs of the server.
func (l *loop) receive() error {
	if err := l.conn.SetReadDeadline(after(idleTimeout(l.server))); err != nil {
		return err
	}
	for len(l.in) < lineEnds {
		if err := l.read(); errors.Is(err, errForeign) {
			return io.EOF // net/http closes the connection, too
		} else if err != nil {
			return err
		}
	}
	// Old callers send the end of a line after a body, and net/http skips it after POST.
	for n := 0; n < lineEnds && len(l.in) > 0 && (l.in[0] == '\r' || l.in[0] == '\n'); n++ {
		l.in = l.in[1:]
	}
	if l.pipelined {
		return errForeign
	}
	waitsForHead := false
	for {
		size, length, is := l.head.read(l.in)
		switch {
		case is == foreign, is == whole && size+length > maxRequest:
			return errForeign
		case is == whole && !l.begin():
			return http.ErrServerClosed
		case is == whole && len(l.in) >= size+length:
			l.in, l.length = l.in[size:], length
			if l.waiting {
				l.endWaiting()
			}
			return nil
		case is == partial && !waitsForHead:
			if err := l.conn.SetReadDeadline(after(headTimeout(l.server))); err != nil {
				return err
			}
			waitsForHead = true
		case is == whole && !l.waiting:
			if err := l.waitForBody(); err != nil {
				return err
			}
		}
		if err := l.read(); err != nil {
			if late, ok := errors.AsType[net.Error](err); ok && late.Timeout() && l.waiting {
				return errForeign
			}
			return err
		}
	}
}

// waitForBody sets the time for waiting for the rest of a body.
func (l *loop) waitForBody() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = true
	if l.loops.ended.Load() {
		return l.conn.SetReadDeadline(after(lastPatience))
	}
	return l.conn.SetReadDeadline(after(bodyPatience))
}

func (l *loop) endWaiting() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = false
}

// lineEnds is the number of bytes before a request among which net/http looks for ends of lines.
const lineEnds = 4

// read reads more.
func (l *loop) read() error {
	l.in = l.buffer[:copy(l.buffer, l.in)]
	if len(l.in) == len(l.buffer) {
		return errForeign
	}
	n, err := l.conn.Read(l.buffer[len(l.in):])
	l.in = l.buffer[:len(l.in)+n]
	switch {
	case n > 0:
		return nil
	case err == io.EOF && len(l.in) > 0:
		return errForeign // net/http answers a request ending too early
	}
	return err
}

// begin reports whether a call may begin. From then on, its server waits for it.
func (l *loop) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calling = l.calling || !l.over && !l.loops.ended.Load()
	return l.calling
}

// close closes the connection, if it is the loop's.
func (l *loop) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closeLocked()
}

func (l *loop) closeLocked() {
	if !l.over && l.conn != nil {
		_ = l.conn.Close()
	}
	l.over = true
}

// stop closes the connection, or has it closed at the end of its call.
func (l *loop) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.calling {
		l.closeLocked()
	} else if l.waiting {
		_ = l.conn.SetReadDeadline(after(lastPatience)) // a failed read ends the loop
	}
}

// giveBack gives the connection back to its server, with the bytes read.
func (l *loop) giveBack() {
	l.watch.remove() // a stream may be watched there
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	if l.conn.SetDeadline(time.Time{}) != nil || !giveBack(l.server, readAgain(l.conn, l.in)) {
		_ = l.conn.Close()
	}
}

// after returns the deadline of a time-out; none for 0.
func after(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// headTimeout is the time for which a server waits for the rest of a head; 0 is for no limit.
func headTimeout(s *http.Server) time.Duration {
	if s.ReadHeaderTimeout != 0 {
		return s.ReadHeaderTimeout
	}
	return s.ReadTimeout
}
