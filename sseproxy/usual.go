// SPDX-License-Identifier: Apache-2.0

package sseproxy

import "bytes"

// usual is the place of an event of the usual form in the buffer of a Reader. The usual form is one line of data, after
// a name and an id or without them, and a blank line, all of them ended by LF or CRLF. Such an event is given without a
// copy. The places are relative to Reader.start.
type usual struct {
	name, id, data span
	hasID          bool
	size           int // of the event, with the blank line; 0 for no event
}

type span struct{ from, to int }

// found is a result of Reader.find.
type found uint8

const (
	unusual found = iota // the event must be read line by line
	cut                  // the beginning of an event of the usual form, or nothing
	whole                // an event
)

// find returns the place of the next event, if the buffer has all of it in the usual form.
func (r *Reader) find() (u usual, _ found) {
	if !r.ready() || r.scanned > keep {
		return u, unusual
	}
	b := r.buf[r.start:r.end]
	hasName, hasData := false, false
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			if bytes.IndexByte(b[at:], '\r') >= 0 { // it may be the end of a line
				return u, unusual
			}
			return u, cut
		}
		line, from := b[at:at+i], at
		at += i + 1
		if i > 0 && line[i-1] == '\r' {
			line = line[:i-1]
		}
		if len(line) == 0 {
			switch {
			case hasData:
				u.size = at
				return u, whole
			case hasName || u.hasID:
				return u, unusual
			}
			continue
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 0 || len(line) > r.limits.Line || bytes.IndexByte(line, '\r') >= 0 {
			return u, unusual
		}
		value := span{from + colon + 1, from + len(line)}
		if value.from < value.to && b[value.from] == ' ' {
			value.from++
		}
		switch name := line[:colon]; {
		case string(name) == "data" && !hasData && value.to-value.from <= r.limits.Event:
			u.data, hasData = value, true
		case string(name) == "event" && !hasName:
			u.name, hasName = value, true
		case string(name) == "id" && !u.hasID && bytes.IndexByte(b[value.from:value.to], 0) < 0:
			u.id, u.hasID = value, true
		default:
			return u, unusual
		}
	}
}

// complete reports whether the buffer has all of an event, in whatever form.
func (r *Reader) complete() bool {
	hasData := false
	for rest := r.buf[r.start:r.end]; ; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if !ended || bytes.IndexByte(line, '\r') >= 0 {
			return false
		}
		switch name, _, _ := bytes.Cut(line, []byte{':'}); {
		case len(line) > 0:
			hasData = hasData || string(name) == "data"
		case hasData:
			return true
		}
		rest = after
	}
}

// take returns an event found by find.
func (r *Reader) take(u usual) Event {
	b := r.buf[r.start:r.end]
	if u.hasID {
		r.id = append(r.id[:0], b[u.id.from:u.id.to]...)
	}
	ev := Event{Name: "message", ID: r.id, Data: b[u.data.from:u.data.to:u.data.to]}
	if u.name.from < u.name.to {
		ev.Name = r.known(b[u.name.from:u.name.to])
	}
	r.next = usual{}
	r.start, r.scanned = r.start+u.size, 0
	return ev
}
