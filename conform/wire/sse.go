// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ReadEvents calls yield for each event of a stream (WHATWG HTML 9.2), until its end. It returns io.EOF at a regular
// end. An event without its empty line is none.
func ReadEvents(r io.Reader, yield func(Event) error) error {
	return readEvents(r, limits{maxStream, maxBody, maxEvents}, yield)
}

// limits are of a stream: its bytes, those of an event or a line, and its events.
type limits struct{ stream, event, events int }

func readEvents(r io.Reader, most limits, yield func(Event) error) error {
	lines := &lineReader{Reader: bufio.NewReaderSize(&bounded{r: r, left: most.stream}, 16<<10), most: most.event}
	var e Event
	has, first := false, true
	for count := 0; ; {
		line, err := lines.next()
		if err != nil {
			return err
		}
		if first {
			line, first = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")), false
		}
		if len(line) == 0 {
			if has {
				if count++; count > most.events {
					return fmt.Errorf("the stream has more than %d events", most.events)
				}
				if err := yield(e); err != nil {
					return err
				}
			}
			e, has = Event{ID: e.ID}, false
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if has {
				e.Data = append(e.Data, '\n')
			}
			if e.Data, has = append(e.Data, value...), true; len(e.Data) > most.event {
				return fmt.Errorf("an event has more than %d bytes", most.event)
			}
		case "event":
			e.Name = string(value)
		case "id":
			e.ID = string(value)
		}
	}
}

// lineReader reads lines that end in CR LF, LF, or CR.
type lineReader struct {
	*bufio.Reader
	most     int  // bytes of a line
	returned bool // the last line ended in CR: an LF now belongs to it
}

// next returns a line without its end. It does not wait for the LF behind a CR.
func (r *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		c, err := r.ReadByte()
		if err != nil {
			return nil, err
		}
		after := r.returned
		r.returned = c == '\r'
		switch {
		case c == '\n' && after && len(line) == 0:
			continue
		case c == '\n', c == '\r':
			return line, nil
		}
		if line = append(line, c); len(line) > r.most {
			return nil, fmt.Errorf("a line of the stream has more than %d bytes", r.most)
		}
	}
}

var errStream = errors.New("the stream has too many bytes")

type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errStream
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
