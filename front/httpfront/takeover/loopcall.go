// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// call has the received request answered. It reports whether another one may follow on the connection.
func (l *loop) call() (again bool) {
	ctx, cancel := context.WithCancel(l.base)
	defer cancel()
	l.beginListening(cancel)
	r := l.head.request(ctx, l.length)
	r.RemoteAddr, r.TLS, r.Body = l.address, l.tls, http.NoBody
	sent := &requestBody{rest: l.in[:l.length]}
	if l.length > 0 {
		r.Body = sent
	}
	l.in = l.in[l.length:]
	w := newResponse(l)
	returned := l.handle(w, r)
	sent.end()
	cancel()
	l.endListening()
	switch {
	case w.hijacked.Load():
		return false
	case !returned:
		w.send()
		return false
	}
	again = w.finish()
	if r.MultipartForm != nil {
		_ = r.MultipartForm.RemoveAll()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calling = false
	return again && !l.loops.ended.Load()
}

// handle has the handler of the server answer a request. It reports whether it has returned, and logs its panic.
func (l *loop) handle(w *response, r *http.Request) (returned bool) {
	defer func() {
		if returned {
			return
		}
		if err := recover(); err != nil && err != http.ErrAbortHandler {
			stack := make([]byte, 64<<10)
			l.logf("http: panic serving %v: %v\n%s", l.address, err, stack[:runtime.Stack(stack, false)])
		}
	}()
	l.server.Handler.ServeHTTP(w, r)
	return true
}

// logf logs as net/http does.
func (l *loop) logf(format string, args ...any) {
	if l.server.ErrorLog != nil {
		l.server.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}

// listenAfter is the age of a call from which on a leaving caller is noticed. Watching each call would cost a good part
// of a loop's savings.
const listenAfter = 20 * time.Millisecond

// beginListening has a caller noticed if it leaves during a call.
func (l *loop) beginListening(leave context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listens, l.leave = true, leave
	l.timer.Reset(listenAfter)
}

// listen watches the caller, until something arrives from it.
func (l *loop) listen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listens {
		l.armed = l.watch.arm() == nil
	}
}

// endListening ends the listening. Bytes sent by the caller meanwhile are pipelined.
func (l *loop) endListening() {
	l.timer.Stop()
	l.mu.Lock()
	l.listens = false
	if l.armed {
		l.watch.disarm()
		l.armed = false
	}
	l.mu.Unlock()
	l.looking.Lock()
	defer l.looking.Unlock()
	if len(l.early) > 0 {
		l.in = append(l.buffer[:copy(l.buffer, l.in)], l.early...)
		l.early = nil
	}
	l.pipelined = len(l.in) > 0
}

// look reads one byte of those arrived during a call, through TLS, for it to learn of the end of the connection and of
// new keys. As by net/http, a caller is not watched any longer once it has sent more.
func (l *loop) look() {
	l.looking.Lock()
	defer l.looking.Unlock()
	if !l.isListening() || len(l.early) > 0 || l.conn.SetReadDeadline(time.Now().Add(readTime)) != nil {
		return
	}
	var b [1]byte
	n, err := l.conn.Read(b[:])
	late, _ := errors.AsType[net.Error](err)
	switch {
	case n > 0:
		l.early = append(l.early, b[0])
	case late != nil && late.Timeout():
		l.listen()
	default:
		l.leave()
	}
}

func (l *loop) isListening() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listens
}

// unwatch ends the watch for good: the next owner of the connection may watch it.
func (l *loop) unwatch() {
	l.endListening()
	l.watch.remove()
}

// hijack gives the connection to a handler, with the bytes read.
func (l *loop) hijack() (net.Conn, []byte, error) {
	l.unwatch()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return nil, nil, http.ErrHijacked
	}
	l.over = true
	return l.conn, l.in, l.conn.SetDeadline(time.Time{})
}

// requestBody is the body of a request. It ends with the call: the buffer is used for the next one.
type requestBody struct {
	mu    sync.Mutex
	rest  []byte
	ended bool
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, http.ErrBodyReadAfterClose
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (b *requestBody) Close() error {
	b.end()
	return nil
}

func (b *requestBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended, b.rest = true, nil
}
