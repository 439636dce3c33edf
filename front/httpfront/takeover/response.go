// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
)

// The sizes of the buffers of net/http, in bytes.
const (
	beforeChunks = 2 << 10 // of a body: a longer one is sent in chunks, unless its length is given
	beforeSend   = 4 << 10 // of an answer
)

// response answers one call of a loop. The caller is sent the same bytes as by net/http.
type response struct {
	loop     *loop
	hijacked atomic.Bool
	header   http.Header
	status   int // 0 before WriteHeader

	frozen   http.Header   // the header as of WriteHeader, until the head is written
	length   int64         // of the body; -1 if it is not known
	written  int64         // of the body
	body     *bufio.Writer // bytes not in chunks yet; nil if the head is written at once
	began    bool          // the head is written
	chunked  bool
	closes   bool // the connection
	done     bool // the handler has returned
	trailers []string

	out *[]byte // bytes not sent yet; nil when the response has ended
	err error   // of the connection

	mu       sync.Mutex
	deadline time.Time // of the next writes
	set      time.Time // the deadline of the connection
	sending  bool
}

func newResponse(l *loop) *response {
	return &response{loop: l, header: make(http.Header), length: -1, out: chunks.Get()}
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	switch {
	case w.hijacked.Load() || w.out == nil:
		w.loop.logf("http: response.WriteHeader on a connection that is no longer the handler's")
		return
	case w.status != 0:
		w.loop.logf("http: superfluous response.WriteHeader call with status %d after %d", status, w.status)
		return
	case status < 100 || status > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	case status < 200 && status != http.StatusSwitchingProtocols:
		w.statusLine(status)
		_ = w.header.WriteSubset(w.buffer(), withoutLength)
		w.add("\r\n")
		w.send()
		return
	}
	w.status = status
	if s := w.header.Get("Content-Length"); s != "" {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
			w.length = n
		} else {
			w.loop.logf("http: invalid Content-Length of %q", s)
			w.frozen = w.header.Clone()
			w.header.Del("Content-Length")
		}
	}
	if w.length >= 0 && len(w.header["Content-Type"]) > 0 && len(w.header["Transfer-Encoding"]) == 0 {
		w.writeHead(w.header, nil)
		return
	}
	if w.frozen == nil {
		w.frozen = w.header.Clone()
	}
	w.body = bufio.NewWriterSize(pieces{w}, beforeChunks)
}

var withoutLength = map[string]bool{"Content-Length": true, "Transfer-Encoding": true}

// hasBody reports whether a response with a status has a body.
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	if w.hijacked.Load() || w.out == nil {
		return 0, http.ErrHijacked
	}
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case !hasBody(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(p))
	if w.length >= 0 && w.written > w.length {
		return 0, http.ErrContentLength
	}
	if w.body != nil {
		return w.body.Write(p)
	}
	return pieces{w}.Write(p)
}

// pieces writes pieces of the body, in chunks if the head says so.
type pieces struct{ w *response }

// Write implements io.Writer.
func (b pieces) Write(p []byte) (int, error) {
	w := b.w
	if !w.began {
		w.writeHead(w.frozen, p)
	}
	if w.err != nil {
		return 0, w.err
	}
	if w.chunked {
		*w.out = strconv.AppendUint(*w.out, uint64(len(p)), 16)
		w.add("\r\n")
	}
	*w.out = append(*w.out, p...)
	if w.chunked {
		w.add("\r\n")
	}
	if len(*w.out) > beforeSend {
		w.send()
	}
	return len(p), w.err
}

// send sends the bytes written.
func (w *response) send() {
	if w.err != nil || len(*w.out) == 0 {
		return
	}
	w.mu.Lock()
	if w.deadline != w.set {
		w.set, w.err = w.deadline, w.loop.conn.SetWriteDeadline(w.deadline)
	}
	w.sending = true
	w.mu.Unlock()
	if w.err == nil {
		_, w.err = w.loop.conn.Write(*w.out)
	}
	*w.out = (*w.out)[:0]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sending = false
}

// SetWriteDeadline is for http.ResponseController. The deadline is set when something is sent, and most deadlines never
// are.
func (w *response) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = t
	if !w.sending {
		return nil
	}
	w.set = t
	return w.loop.conn.SetWriteDeadline(t)
}

// SetReadDeadline is for http.ResponseController. It does nothing: the request has been read.
func (w *response) SetReadDeadline(time.Time) error { return nil }

// EnableFullDuplex is for http.ResponseController. It does nothing: the request has been read.
func (w *response) EnableFullDuplex() error { return nil }

// Flush implements http.Flusher.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController.
func (w *response) FlushError() error {
	if w.hijacked.Load() || w.out == nil {
		return http.ErrHijacked
	}
	w.flush()
	w.send()
	return w.err
}

// flush writes the head, and the bytes of the body so far.
func (w *response) flush() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.body != nil {
		_ = w.body.Flush()
	}
	if !w.began {
		w.writeHead(w.frozen, nil)
	}
}

// Hijack implements http.Hijacker.
func (w *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.out == nil || w.hijacked.Swap(true) {
		return nil, nil, http.ErrHijacked
	}
	if w.status != 0 { // the head is sent, and bytes not in chunks yet are not
		if !w.began {
			w.writeHead(w.frozen, nil)
		}
		w.send()
	}
	conn, read, err := w.loop.hijack()
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(readAgain(conn, read))
	if len(read) > 0 {
		_, _ = in.Peek(1)
	}
	return conn, bufio.NewReadWriter(in, bufio.NewWriter(conn)), nil
}

// finish ends the response. It reports whether the connection is of further use.
func (w *response) finish() bool {
	w.done = true
	w.flush()
	if w.chunked {
		w.add("0\r\n")
		_ = w.trailer().Write(w.buffer())
		w.add("\r\n")
	}
	w.send()
	if !w.set.IsZero() {
		_ = w.loop.conn.SetWriteDeadline(time.Time{})
	}
	chunks.Put(w.out)
	w.out = nil
	short := w.length >= 0 && hasBody(w.status) && w.length != w.written
	return !w.closes && !short && w.err == nil
}

// trailer returns the fields after the body.
func (w *response) trailer() http.Header {
	t := make(http.Header)
	for name, v := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			t[name] = v
		}
	}
	for _, name := range w.trailers {
		for _, v := range w.header[name] {
			t.Add(name, v)
		}
	}
	return t
}

// declare adds the trailers of a field Trailer.
func (w *response) declare(names string) {
	for name := range strings.SplitSeq(names, ",") {
		name = http.CanonicalHeaderKey(strings.Trim(name, " \t"))
		if httpguts.ValidTrailerHeader(name) && name != "" {
			w.trailers = append(w.trailers, name)
		}
	}
}
