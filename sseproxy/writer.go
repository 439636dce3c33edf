// SPDX-License-Identifier: Apache-2.0

package sseproxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
)

// Writer writes one caller's stream. Frames are gathered, and sent by Flush. If nothing else is sent, a heartbeat, a
// comment, keeps the connection alive. The stream of a caller not reading within the time of a write is cut: its cursor
// lets the caller come back. One goroutine at a time uses a Writer.
type Writer struct {
	w       io.Writer
	control control
	options Options

	begun bool      // the head of the response is sent
	out   *[]byte   // gathered and not sent; nil for nothing, so that an idle stream holds no buffer
	err   error     // of the first failed write; nothing is written after it
	armed time.Time // the deadline of writes; zero for none

	began   time.Time
	sent    atomic.Int64 // the time of the last sending or due heartbeat: nanoseconds since began
	due     atomic.Bool  // a heartbeat is due
	aborted atomic.Bool
	mu      sync.Mutex // guards the fields below
	beat    *time.Timer
	ends    bool
}

// Options are the options of a Writer.
type Options struct {
	Heartbeat time.Duration // the longest silence of a stream before a comment is sent
	Timeout   time.Duration // the longest time for the write of a piece
	Retry     time.Duration // the time for the caller to wait before it comes back; 0 says nothing

	// HeartbeatDue is called when a heartbeat has to be sent. It has a goroutine call Flush, and does not wait.
	HeartbeatDue func()
	// Taken is called when the caller has taken a piece of the bytes of a Flush, and more is to follow. nil: nothing is
	// called.
	Taken func()
	// Lasting is set if a deadline may pass while nothing is written: it is a connection's, as on HTTP/1.1. The deadline
	// of one stream of a connection, as on HTTP/2 and 3, ends the stream.
	Lasting bool
}

// control is an http.ResponseController, or a Connection in its place.
type control interface {
	Flush() error
	SetWriteDeadline(time.Time) error
}

// Connection is a connection for the rest of a response's body; see Writer.Continue.
type Connection interface {
	io.Writer
	control
}

// ErrNotRead is the error of a caller reading nothing.
var ErrNotRead = errors.New("sseproxy: the caller reads nothing")

// largest is the capacity up to which buffers are kept, in bytes.
const largest = 128 << 10

// pieceSize is the most written at a time, in bytes.
const pieceSize = 64 << 10

var frames = bufpool.Pool{Largest: largest}

// beating is the heartbeat. A blank line behind it would be an empty message for some clients.
var beating = []byte(":\n")

// NewWriter begins a stream. The first Flush sends status 200 and the headers, with the first events if there are any:
// a write of its own for them would cost as much as one with events. The caller must call Close.
func NewWriter(w http.ResponseWriter, o Options) *Writer {
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"} // or nginx collects events until its buffer is full
	s := &Writer{w: w, control: http.NewResponseController(w), options: o, began: time.Now()}
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beat = time.AfterFunc(s.options.Heartbeat, s.heartbeat)
	return s
}

// Event gathers an event. build appends its data, one line, and returns it with the event's name; without data there is
// no event. id is its number, 0 for none. It is left out if build returns more: then other events with the same number
// follow, and only the last of them has it.
func (s *Writer) Event(id uint64, build func([]byte) (data []byte, name string, more bool)) {
	b := s.gathered()
	before := len(b)
	b = s.hint(b)
	fields := len(b)
	b = append(b, "id: "...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, '\n')
	numbered := len(b)
	b = append(b, "data: "...)
	data, name, more := build(b)
	if data == nil {
		*s.out = b[:before]
		return
	}
	if more || id == 0 {
		data = append(data[:fields], data[numbered:]...)
	}
	// The name comes last, because it is known last; the order of an event's fields means nothing.
	if name != "" {
		data = append(append(data, "\nevent: "...), name...)
	}
	*s.out = append(data, '\n', '\n')
	s.options.Retry = 0
}

// Data gathers an event without a number.
func (s *Writer) Data(build func([]byte) []byte) {
	b := append(s.hint(s.gathered()), "data: "...)
	*s.out = append(build(b), '\n', '\n')
	s.options.Retry = 0
}

// hint appends Options.Retry at the beginning of the first event: alone it would be an empty message for some clients,
// and at the end of a stream others do not read it.
func (s *Writer) hint(b []byte) []byte {
	if s.options.Retry == 0 {
		return b
	}
	return fmt.Appendf(b, "retry: %d\n", s.options.Retry.Milliseconds())
}

// Comment gathers a comment of one line. Callers ignore it.
func (s *Writer) Comment(text string) { *s.out = fmt.Appendf(s.gathered(), ": %s\n", text) }

func (s *Writer) gathered() []byte {
	if s.out == nil {
		s.out = frames.Get()
	}
	return *s.out
}

// Continue makes the writer write to a connection taken over from the server. The connection has no deadline.
func (s *Writer) Continue(c Connection) { s.w, s.control, s.armed = c, c, time.Time{} }

// Err returns the error of the first failed write.
func (s *Writer) Err() error { return s.err }

// Buffered returns the number of bytes gathered and not sent.
func (s *Writer) Buffered() int {
	if s.out == nil {
		return 0
	}
	return len(*s.out)
}

// Flush sends the gathered bytes. If nothing was gathered, it sends a heartbeat if one is due, or the head if it is not
// sent. After an error the stream is over.
func (s *Writer) Flush() error {
	if s.Buffered() == 0 {
		s.drop() // an event without data
		switch {
		case s.due.Load():
			return s.send(beating)
		case !s.begun:
			return s.send(nil)
		}
		return s.err
	}
	s.sent.Store(int64(time.Since(s.began)))
	err := s.send(*s.out)
	s.drop()
	return err
}

// drop drops the gathered bytes.
func (s *Writer) drop() {
	if s.out != nil {
		frames.Put(s.out)
		s.out = nil
	}
}

// send writes b and flushes the connection.
func (s *Writer) send(b []byte) error {
	if s.err != nil {
		return s.err
	}
	s.arm()
	if s.due.Load() {
		s.due.Store(false)
	}
	s.begun = true
	s.write(b)
	if s.err == nil {
		s.err = s.control.Flush()
	}
	if errors.Is(s.err, os.ErrDeadlineExceeded) {
		s.err = errors.Join(ErrNotRead, s.err)
	}
	if !s.options.Lasting {
		s.disarm()
	}
	return s.err
}

// write writes b, in pieces. The caller must take each piece in time.
func (s *Writer) write(b []byte) {
	for ; len(b) > pieceSize && s.err == nil; b = b[pieceSize:] {
		if _, s.err = s.w.Write(b[:pieceSize]); s.err == nil {
			if s.options.Taken != nil {
				s.options.Taken()
			}
			s.arm()
		}
	}
	if len(b) > 0 && s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

// arm sets the deadline of a write. A lasting deadline is moved about once a second only. A connection without
// deadlines (a test's recorder) has only the timeouts of the server.
func (s *Writer) arm() {
	now := time.Now()
	if s.armed.Sub(now) >= s.options.Timeout-min(s.options.Timeout/4, time.Second) {
		return
	}
	if at := now.Add(s.options.Timeout); s.control.SetWriteDeadline(at) == nil {
		s.armed = at
	}
	if s.aborted.Load() { // Abort may have come before the deadline was set
		_ = s.control.SetWriteDeadline(longAgo)
	}
}

func (s *Writer) disarm() {
	if !s.armed.IsZero() {
		_ = s.control.SetWriteDeadline(time.Time{})
		s.armed = time.Time{}
	}
}

// heartbeat has a comment sent if nothing else was sent for the time of a heartbeat.
func (s *Writer) heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends {
		return
	}
	now := time.Since(s.began)
	if rest := s.options.Heartbeat - (now - time.Duration(s.sent.Load())); rest > 0 {
		s.beat.Reset(rest)
		return
	}
	s.sent.Store(int64(now))
	s.beat.Reset(s.options.Heartbeat)
	s.due.Store(true)
	s.options.HeartbeatDue()
}

// Abort has a Flush fail if it waits for the caller. It is called by any goroutine while Flush runs.
func (s *Writer) Abort() {
	s.aborted.Store(true)
	_ = s.control.SetWriteDeadline(longAgo)
}

// longAgo is a deadline in the past.
var longAgo = time.Unix(1, 0)

// Close ends the heartbeat, and takes back the deadline of writes.
func (s *Writer) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = true
	s.beat.Stop()
	s.disarm()
	s.drop()
}
