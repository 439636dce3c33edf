// SPDX-License-Identifier: Apache-2.0

package sseproxy

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
)

// Writer writes one caller's stream. Events are gathered by Event and sent by Flush; between them a comment keeps the
// connection alive. The stream of a caller that does not read within the time of a write is cut: its cursor lets the
// caller come back. Event and Flush are called by one goroutine.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
	options Options

	mu   sync.Mutex
	out  *[]byte // gathered and not sent; nil where there is nothing, so that an idle stream holds no buffer
	err  error   // of the first write that failed; nothing is written after it
	busy bool    // something was sent since the last beat
	beat *time.Timer
	ends bool
}

// Options are how a stream is written.
type Options struct {
	Heartbeat time.Duration // how long a stream may be silent before a comment is sent
	Timeout   time.Duration // how long one write may take

	// Cut is called with ErrNotRead when a heartbeat cannot be sent, so that the stream ends while it waits for events.
	Cut func(cause error)
}

// ErrNotRead says that the caller reads nothing.
var ErrNotRead = errors.New("sseproxy: the caller reads nothing")

// maxGathered is how many bytes are gathered before they are sent whether Flush is called or not.
const maxGathered = 64 << 10

var frames = bufpool.Pool{Largest: 2 * maxGathered}

// NewWriter begins a stream: status 200 and its headers, at once. The caller must call Close.
func NewWriter(w http.ResponseWriter, o Options) (*Writer, error) {
	h := w.Header()
	h["Content-Type"] = []string{"text/event-stream"}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"} // or nginx collects events until its buffer is full
	s := &Writer{w: w, control: http.NewResponseController(w), options: o}
	w.WriteHeader(http.StatusOK)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.send(nil); err != nil {
		return nil, err
	}
	s.beat = time.AfterFunc(s.options.Heartbeat, s.heartbeat)
	return s, nil
}

// Event gathers an event. build appends its data, which must be one line, and returns it with the event's name; without
// data there is no event. id is its number, which is left out where build returns more: then other events with the same
// number follow, and only the last of them has it.
func (s *Writer) Event(id uint64, build func([]byte) (data []byte, name string, more bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.gathered()
	before := len(b)
	b = append(b, "id: "...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, '\n')
	numbered := len(b)
	b = append(b, "data: "...)
	data, name, more := build(b)
	if data == nil {
		s.keep(b[:before])
		return
	}
	if more {
		data = append(data[:before], data[numbered:]...)
	}
	// The name comes last, because it is known last; the order of an event's fields means nothing.
	if name != "" {
		data = append(append(data, "\nevent: "...), name...)
	}
	s.keep(append(data, '\n', '\n'))
}

// Data gathers an event that has no number.
func (s *Writer) Data(build func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := append(s.gathered(), "data: "...)
	b = append(build(b), '\n', '\n')
	s.keep(b)
}

// Comment gathers a comment, which callers ignore. It must be one line.
func (s *Writer) Comment(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(fmt.Appendf(s.gathered(), ": %s\n\n", text))
}

// Retry gathers a hint how long a caller should wait before it comes back.
func (s *Writer) Retry(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(fmt.Appendf(s.gathered(), "retry: %d\n\n", d.Milliseconds()))
}

func (s *Writer) gathered() []byte {
	if s.out == nil {
		s.out = frames.Get()
	}
	return *s.out
}

func (s *Writer) keep(b []byte) {
	*s.out = b
	if len(b) >= maxGathered {
		s.flush()
	}
}

// Flush sends what was gathered. After an error the stream is over.
func (s *Writer) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flush()
}

func (s *Writer) flush() error {
	if s.out == nil {
		return s.err
	}
	b := s.out
	s.out = nil
	err := s.send(*b)
	frames.Put(b)
	return err
}

// send writes b and flushes the connection. s.mu is held.
func (s *Writer) send(b []byte) error {
	if s.err != nil {
		return s.err
	}
	// Where a connection has no deadlines (a test's recorder), its own timeouts are all there is. On HTTP/2 a
	// deadline that passes while nothing is written ends the stream, so it is taken back.
	if err := s.control.SetWriteDeadline(time.Now().Add(s.options.Timeout)); err == nil {
		defer s.control.SetWriteDeadline(time.Time{})
	}
	s.busy = true
	if len(b) > 0 {
		_, s.err = s.w.Write(b)
	}
	if s.err == nil {
		s.err = s.control.Flush()
	}
	return s.err
}

// heartbeat sends a comment if nothing else was sent since the last one.
func (s *Writer) heartbeat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends {
		return
	}
	if !s.busy && s.send([]byte(":\n\n")) != nil {
		s.options.Cut(ErrNotRead)
		return
	}
	s.busy = false
	s.beat.Reset(s.options.Heartbeat)
}

// Close ends the heartbeat. Nothing is written after it returns.
func (s *Writer) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = true
	s.beat.Stop()
	if s.out != nil {
		frames.Put(s.out)
		s.out = nil
	}
}
