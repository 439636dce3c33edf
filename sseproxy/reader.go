// SPDX-License-Identifier: Apache-2.0

// Package sseproxy is the wire of server-sent events: a reader of an agent's stream, and a writer of a
// caller's stream.
package sseproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Event is one event of a stream, as https://html.spec.whatwg.org/multipage/server-sent-events.html reads it.
type Event struct {
	Name string // "message" if the stream gave none
	ID   []byte // the last id of the stream, with this event or before it. Valid until the next call of Next
	Data []byte // the data lines joined by LF. Valid until the next call of Next
}

// Limits bound the memory of a Reader, in bytes. Zero means the default.
type Limits struct {
	Line  int // one line without its end; default DefaultLimit
	Event int // all data of one event; default DefaultLimit
}

// DefaultLimit is the default of both limits, in bytes.
const DefaultLimit = 16 << 20

// ErrTooLarge says that a line or an event is larger than the limit.
var ErrTooLarge = errors.New("sseproxy: too large")

// keep is the most memory for the data of an event, in bytes, kept by a Reader for the next one, and the most of an
// event searched again when more of it has come in.
const keep = 16 << 10

// Reader reads the events of one stream. It is used by one goroutine.
//
// It does not check for UTF-8, since a reader of the data must do so anyway.
type Reader struct {
	src    io.Reader
	limits Limits

	buf        []byte // buf[start:end] has been read from src and not been used
	start, end int
	scanned    int   // so much behind start has no end of a line
	last       int   // bytes brought by the last read
	err        error // of src; the bytes in buf come first
	resumed    bool  // src failed for a time in the middle of an event; that event goes on
	begun      bool  // the place of a byte order mark has been passed
	skipLF     bool  // the last line ended with CR; an LF may complete it

	next     usual  // the place of the next event, if found by Ready
	lastName string // of the last event with a name; mostly the next one's name, too

	data    []byte // the data lines so far, each with its LF
	name    string
	pending bool // fields of an event not dispatched yet
	id      []byte
	retry   time.Duration
}

// NewReader returns a Reader of src.
func NewReader(src io.Reader, limits Limits) *Reader {
	if limits.Line <= 0 {
		limits.Line = DefaultLimit
	}
	if limits.Event <= 0 {
		limits.Event = DefaultLimit
	}
	return &Reader{src: src, limits: limits}
}

// Retry is the last reconnection time of the stream, zero if it gave none.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next returns the next event. The error is io.EOF if the stream ends between two events, io.ErrUnexpectedEOF if it
// ends within one, ErrTooLarge if a limit is exceeded, and else the error of the source. An event without its end is
// discarded. After an error, every call returns it again.
func (r *Reader) Next() (Event, error) {
	if r.resumed {
		r.resumed = false
	} else {
		r.reset()
	}
	if cap(r.data) > keep && !r.pending {
		r.data = nil
	}
	if r.next.size > 0 {
		return r.take(r.next), nil
	}
	for {
		if !r.pending {
			switch u, found := r.find(); {
			case found == whole:
				return r.take(u), nil
			case found == cut && r.err == nil && r.end-r.start <= keep:
				r.fill()
				continue
			}
		}
		line, ok, err := r.line()
		switch {
		case err != nil:
			return Event{}, err
		case !ok:
			continue
		case len(line) > 0:
			if err := r.field(line); err != nil {
				r.err, r.start, r.end, r.scanned = err, 0, 0, 0
				return Event{}, err
			}
			continue
		case len(r.data) == 0:
			r.reset()
			continue
		}
		ev := Event{Name: r.name, ID: r.id, Data: r.data[:len(r.data)-1]}
		if ev.Name == "" {
			ev.Name = "message"
		}
		return ev, nil
	}
}

// Ready reports whether another event has come in already, so that Next gives it without waiting. It may miss one with
// unusual ends of lines.
func (r *Reader) Ready() bool {
	if r.next.size > 0 {
		return true
	}
	u, found := r.find()
	if found == whole {
		r.next = u
	}
	return found == whole || found == unusual && r.complete()
}

// Resume has the Reader read on after its source has failed for a time only, with the error passed.
func (r *Reader) Resume(passed error) {
	if r.err != nil && errors.Is(r.err, passed) {
		r.err, r.resumed = nil, true
	}
}

// Close gives the memory back. Neither the Reader nor anything returned by it may be used afterwards.
func (r *Reader) Close() {
	r.release()
	r.buf, r.data, r.err = nil, nil, io.ErrClosedPipe
	r.start, r.end, r.next = 0, 0, usual{}
}

func (r *Reader) reset() { r.data, r.name, r.pending = r.data[:0], "", false }

// field takes in one line. The line is not empty.
func (r *Reader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(name) == 0 {
		return nil // a comment
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		if len(r.data)+len(value) > r.limits.Event {
			return fmt.Errorf("%w: an event of more than %d bytes", ErrTooLarge, r.limits.Event)
		}
		r.data = append(append(r.data, value...), '\n')
	case "event":
		r.name = r.known(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id = append(r.id[:0], value...)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			r.retry = time.Duration(ms) * time.Millisecond
		}
	default:
		return nil
	}
	r.pending = true
	return nil
}

// known returns a name as a string.
func (r *Reader) known(name []byte) string {
	if string(name) != r.lastName {
		r.lastName = string(name)
	}
	return r.lastName
}

// line returns the next line without its end: LF, CR or both. It is valid until the next call. ok is false if there was
// none, and more has been read.
func (r *Reader) line() (line []byte, ok bool, err error) {
	if r.ready() {
		rest := r.buf[r.start:r.end]
		if i := lineEnd(rest[r.scanned:]); i >= 0 {
			if i += r.scanned; i > r.limits.Line {
				return nil, false, r.tooLong()
			}
			r.skipLF = rest[i] == '\r' // dispatch must not wait for the byte after a CR
			r.start, r.scanned = r.start+i+1, 0
			return rest[:i], true, nil
		}
		if r.scanned = len(rest); r.scanned > r.limits.Line {
			return nil, false, r.tooLong()
		}
	}
	if r.err != nil {
		if r.err == io.EOF && (r.pending || r.start < r.end) {
			r.err, r.start, r.end, r.scanned = io.ErrUnexpectedEOF, 0, 0, 0
		}
		return nil, false, r.err
	}
	r.fill()
	return nil, false, nil
}

func (r *Reader) tooLong() error {
	r.err, r.start, r.end, r.scanned = fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, r.limits.Line), 0, 0, 0
	return r.err
}

var bom = []byte("\ufeff")

// ready takes away bytes outside any line, and reports whether it could see that far.
func (r *Reader) ready() bool {
	if !r.begun {
		if rest := r.buf[r.start:r.end]; len(rest) < len(bom) && bytes.HasPrefix(bom, rest) && r.err == nil {
			return false
		}
		if bytes.HasPrefix(r.buf[r.start:r.end], bom) {
			r.start += len(bom)
		}
		r.begun = true
	}
	if r.skipLF && r.start < r.end {
		if r.buf[r.start] == '\n' {
			r.start++
		}
		r.skipLF = false
	}
	return true
}

func lineEnd(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i >= 0 {
		b = b[:i]
	}
	if j := bytes.IndexByte(b, '\r'); j >= 0 {
		return j
	}
	return i
}
