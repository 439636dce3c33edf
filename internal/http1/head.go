// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bytes"
	"errors"
)

// The bounds of an answer's parts beside its content.
const (
	maxHead    = 64 << 10 // bytes of its head, with those of interim answers
	maxInterim = 5        // interim answers (1xx)
	maxTrailer = 2 << 10  // bytes of its trailer
	maxType    = 200      // bytes of its Content-Type; the rest is cut off
)

// malformed is the error of an answer breaking a rule of RFC 9112, or readable in two ways.
type malformed string

func (e malformed) Error() string { return "http1: malformed answer: " + string(e) }

var errTooLarge = errors.New("http1: a head, a line or a trailer of the answer is too large")

// answer is the answer being read.
type answer struct {
	Status      int    // its status
	ContentType string // its first Content-Type; empty for none
	RetryAfter  string // its first Retry-After; empty for none
	Gzip        bool   // its content is compressed by gzip

	begun     bool  // the status line of the head has been read
	complete  bool  // the whole head has been read
	old       bool  // it is of HTTP/1.0
	seen      int   // bytes of the head so far
	interim   int   // interim answers so far
	hasLength bool  // it has a Content-Length
	length    int64 // its Content-Length
	hasCoding bool  // it has a Transfer-Encoding: chunked
	closes    bool  // the connection cannot be used after it
	body
}

// ReadHead reads the head of the answer, after those of interim answers. After ErrStopped and Resume it can be called
// again.
func (c *Conn) ReadHead() error {
	for !c.complete {
		if !c.begun {
			if err := c.expectHTTP(); err != nil {
				return err
			}
		}
		line, err := c.line(maxHead - c.seen)
		if err != nil {
			return err
		}
		c.seen += len(line) + len("\r\n")
		if err := c.takeLine(line); err != nil {
			return err
		}
	}
	return nil
}

// expectHTTP refuses anything but HTTP/1 before there is a whole line of it, since a whole line may never come.
func (c *Conn) expectHTTP() error {
	const begin = "HTTP/1."
	for c.end-c.start < len(begin) {
		if err := c.fill(); err != nil {
			return unexpected(err)
		}
	}
	if string(c.buf[c.start:c.start+len(begin)]) != begin {
		return malformed("it does not begin with a status line of HTTP/1")
	}
	return nil
}

// takeLine takes one line of a head.
func (c *Conn) takeLine(line []byte) error {
	switch {
	case !c.begun:
		c.begun = true
		return c.takeStatus(line)
	case len(line) > 0:
		name, value, err := field(line)
		if err != nil {
			return err
		}
		return c.takeField(name, value)
	case c.Status == 101:
		return malformed("it changes the protocol, which was not asked for")
	case c.Status < 200:
		if c.interim++; c.interim > maxInterim {
			return malformed("too many interim answers")
		}
		c.answer = answer{interim: c.interim, seen: c.seen}
		return nil
	}
	c.complete = true
	return c.frame()
}

// takeStatus takes the status line (RFC 9112, section 4).
func (c *Conn) takeStatus(line []byte) error {
	const least = len("HTTP/1.1 200")
	if len(line) < least || !digit(line[7]) || line[8] != ' ' || !digit(line[9]) || line[9] == '0' ||
		!digit(line[10]) || !digit(line[11]) || len(line) > least && line[least] != ' ' || !printable(line) {
		return malformed("its status line is invalid")
	}
	c.old = line[7] == '0'
	c.Status = int(line[9]-'0')*100 + int(line[10]-'0')*10 + int(line[11]-'0')
	return nil
}

// field splits a field line (RFC 9112, section 5). A line continuing another one is refused.
func field(line []byte) (name, value []byte, _ error) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return nil, nil, malformed("a field has no name, or continues another one")
	}
	for _, b := range line[:i] {
		if !token[b] {
			return nil, nil, malformed("a field has an invalid name")
		}
	}
	if value = bytes.Trim(line[i+1:], " \t"); !printable(value) {
		return nil, nil, malformed("a field has an invalid value")
	}
	return line[:i], value, nil
}

// takeField takes a field of the head.
func (c *Conn) takeField(name, value []byte) error {
	switch len(name) {
	case len("Connection"):
		if is(name, "connection") && hasToken(value, "close") {
			c.closes = true
		}
	case len("Retry-After"):
		if is(name, "retry-after") && c.RetryAfter == "" {
			c.RetryAfter = string(value)
		}
	case len("Content-Type"):
		if is(name, "content-type") && c.ContentType == "" {
			if string(value) != c.lastType {
				c.lastType = string(value[:min(len(value), maxType)])
			}
			c.ContentType = c.lastType
		}
	case len("Content-Encoding"):
		if is(name, "content-encoding") && (is(value, "gzip") || is(value, "x-gzip")) {
			c.Gzip = true
		}
	case len("Content-Length"):
		if is(name, "content-length") {
			n, ok := decimal(value)
			if !ok || c.hasLength {
				return malformed("it has no single valid Content-Length")
			}
			c.hasLength, c.length = true, n
		}
	case len("Transfer-Encoding"):
		if is(name, "transfer-encoding") {
			if c.hasCoding || !is(value, "chunked") || c.old {
				return malformed("it has a Transfer-Encoding other than chunked")
			}
			c.hasCoding = true
		}
	}
	return nil
}

// frame decides the delimiting of the content (RFC 9112, section 6.3).
func (c *Conn) frame() error {
	c.closes = c.closes || c.old
	switch {
	case c.hasLength && c.hasCoding:
		return malformed("it has both a Content-Length and a Transfer-Encoding")
	case c.Status == 204 || c.Status == 304:
		c.ended = true
		c.closes = c.closes || c.hasCoding || c.length > 0 // the server may send something nevertheless
	case c.hasCoding:
		c.framing = chunked
	case c.hasLength:
		c.framing, c.left, c.ended = sized, c.length, c.length == 0
	default:
		c.framing, c.closes = untilClose, true
	}
	return nil
}

// decimal reads a number of digits alone.
func decimal(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, d := range b {
		if !digit(d) {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	return n, true
}

// hasToken reports whether a list of tokens has one, given in lower case.
func hasToken(list []byte, want string) bool {
	for len(list) > 0 {
		var one []byte
		one, list, _ = bytes.Cut(list, []byte{','})
		if is(bytes.Trim(one, " \t"), want) {
			return true
		}
	}
	return false
}

// is reports whether b is s; s is in lower case.
func is(b []byte, s string) bool {
	if len(b) != len(s) {
		return false
	}
	for i := range b {
		if lower(b[i]) != s[i] {
			return false
		}
	}
	return true
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func digit(b byte) bool { return '0' <= b && b <= '9' }

// printable reports whether there is no control character but the tab.
func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// token has the characters allowed in a name (RFC 9110, section 5.6.2).
var token = func() (t [256]bool) {
	for _, b := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[b] = true
	}
	return t
}()

func indexLF(b []byte, from int) int {
	if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
		return from + i
	}
	return -1
}
