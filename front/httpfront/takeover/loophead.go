// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// maxHead is the most bytes of a head in a loop: no server's MaxHeaderBytes is too small for it.
const maxHead = 4 << 10

// shape is the state of a request in the bytes so far.
type shape int

const (
	foreign shape = iota // net/http is to read the request
	partial              // its head is not complete
	whole                // its head is complete
)

// head is the head of a request. It is read by net/http, unless it equals the head of the request before, but for its
// length.
type head struct {
	before, after []byte // the number of the field Content-Length
	parsed        *http.Request
	values        int // in its header
}

// read reads the head at the begin of b. If it is whole, it returns the sizes of the head and of the body.
func (h *head) read(b []byte) (size, length int, is shape) {
	if h.parsed != nil && bytes.HasPrefix(b, h.before) {
		digits, length := number(b[len(h.before):])
		size := len(h.before) + digits
		if digits > 0 && bytes.HasPrefix(b[size:], h.after) {
			return size + len(h.after), length, whole
		}
	}
	const method = "POST "
	end := bytes.Index(b[:min(len(b), maxHead)], []byte("\r\n\r\n"))
	switch {
	case string(b[:min(len(b), len(method))]) != method[:min(len(b), len(method))]:
		return 0, 0, foreign
	case end < 0 && len(b) < maxHead:
		return 0, 0, partial
	case end < 0 || !h.parse(b[:end+4]):
		return 0, 0, foreign
	}
	return end + 4, int(h.parsed.ContentLength), whole
}

// parse has net/http read a head all readers of HTTP read alike. It reports false for any other.
func (h *head) parse(b []byte) bool {
	at := lengthOf(b)
	if at < 0 {
		return false
	}
	own := bytes.Clone(b)
	r, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(own), len(own)))
	if err != nil {
		return false
	}
	digits, length := number(own[at:])
	if r.ContentLength != int64(length) || r.Close || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 || r.Host == "" {
		return false
	}
	*h = head{before: own[:at], after: own[at+digits:], parsed: r}
	for _, v := range r.Header {
		h.values += len(v)
	}
	return true
}

// request returns a new request with this head and a body of a length. Handlers may change all its contents.
func (h *head) request(ctx context.Context, length int) *http.Request {
	r := h.parsed.WithContext(ctx)
	r.URL = new(url.URL)
	*r.URL = *h.parsed.URL
	r.Header = make(http.Header, len(h.parsed.Header))
	values := make([]string, h.values)
	for name, v := range h.parsed.Header {
		n := copy(values, v)
		r.Header[name], values = values[:n:n], values[n:]
	}
	if r.ContentLength = int64(length); length != int(h.parsed.ContentLength) {
		r.Header["Content-Length"][0] = strconv.Itoa(length)
	}
	return r
}

// number reads the digits at the begin of b, and returns their number; 0 if they are not a number in its usual form.
func number(b []byte) (digits, n int) {
	const most = 7
	for digits < len(b) && b[digits] >= '0' && b[digits] <= '9' {
		if digits == most || digits > 0 && b[0] == '0' {
			return 0, 0
		}
		n = 10*n + int(b[digits]-'0')
		digits++
	}
	return digits, n
}

// lengthOf returns the place in a head at which the number of its field Content-Length begins. It returns -1 for a head
// open to several readings, or with a field beyond a plain request.
func lengthOf(b []byte) (at int) {
	line, rest, _ := bytes.Cut(b, []byte("\r\n"))
	target, post := bytes.CutPrefix(line, []byte("POST /"))
	target, version := bytes.CutSuffix(target, []byte(" HTTP/1.1"))
	if !post || !version || bytes.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return -1
	}
	at = -1
	hosts := 0
	for len(rest) > 2 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte(":"))
		if len(name) == 0 || bytes.ContainsFunc(name, func(c rune) bool { return !isNameByte(c) }) ||
			bytes.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c > '~' }) {
			return -1
		}
		trimmed := bytes.Trim(value, " \t")
		switch http.CanonicalHeaderKey(string(name)) {
		case "Host":
			hosts++
			if len(trimmed) == 0 || bytes.ContainsFunc(trimmed, func(c rune) bool { return !isHostByte(c) }) {
				return -1
			}
		case "Content-Length":
			digits, _ := number(trimmed)
			if at >= 0 || digits == 0 || digits != len(trimmed) || !bytes.HasSuffix(value, trimmed) {
				return -1
			}
			at = len(b) - len(rest) - len("\r\n") - len(trimmed)
		case "Connection":
			if !bytes.EqualFold(trimmed, []byte("keep-alive")) {
				return -1
			}
		case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Te", "Http2-Settings", "Keep-Alive":
			return -1
		}
	}
	if hosts != 1 || len(rest) != 2 {
		return -1
	}
	return at
}

// isNameByte reports whether a byte may stand in the name of a field.
func isNameByte(c rune) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// isHostByte reports whether a byte may stand in the name or the address of a host.
func isHostByte(c rune) bool { return isNameByte(c) || c == '.' || c == ':' || c == '[' || c == ']' }
