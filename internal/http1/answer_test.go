// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// source is a connection for reads.
type source struct {
	net.Conn
	io.Reader
}

func (s source) Read(p []byte) (int, error)       { return s.Reader.Read(p) }
func (s source) Write(p []byte) (int, error)      { return len(p), nil }
func (s source) SetDeadline(time.Time) error      { return nil }
func (s source) SetReadDeadline(time.Time) error  { return nil }
func (s source) SetWriteDeadline(time.Time) error { return nil }
func (s source) Close() error                     { return nil }

// result is the result of reading an answer.
type result struct {
	status   int
	body     string
	reusable bool // nothing follows the answer, and the server keeps the connection open
	err      error
}

func (r result) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprintf("%d %q, reusable %v", r.status, r.body, r.reusable)
}

// readAnswer reads one answer.
func readAnswer(src io.Reader) (r result) {
	c := NewConn(source{Reader: src})
	c.Begin(time.Minute)
	if r.err = c.ReadHead(); r.err != nil {
		return r
	}
	var body []byte
	body, r.err = io.ReadAll(c)
	c.err = nil // of the end of the source: the server keeps the connection open
	r.status, r.body, r.reusable = c.Status, string(body), c.reusable() && !pending(src)
	return r
}

func pending(src io.Reader) bool {
	n, _ := io.Copy(io.Discard, src)
	return n > 0
}

// readByNetHTTP reads one answer as net/http does.
func readByNetHTTP(data []byte) (r result) {
	src := bufio.NewReader(bytes.NewReader(data))
	for range maxInterim + 1 {
		var res *http.Response
		res, r.err = http.ReadResponse(src, &http.Request{Method: http.MethodPost})
		if r.err != nil {
			return r
		}
		if r.status = res.StatusCode; r.status >= 200 || r.status == http.StatusSwitchingProtocols {
			var body []byte
			body, r.err = io.ReadAll(res.Body)
			_, end := src.ReadByte()
			r.body, r.reusable = string(body), end != nil && !res.Close
			return r
		}
	}
	return r
}

const begin = "HTTP/1.1 200 OK\r\n"

func lines(l ...string) string { return strings.Join(l, "\r\n") + "\r\n" }

// answers are answers of every kind, with the result of reading, or a part of the error.
var answers = []struct{ name, answer, want string }{
	{"a length", lines(begin+"Content-Length: 2", "") + "ok", `200 "ok", reusable true`},
	{"no reason phrase", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", `200 "ok", reusable true`},
	{"an empty reason phrase", "HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok", `200 "ok", reusable true`},
	{"an empty body", lines(begin+"Content-Length: 0", ""), `200 "", reusable true`},
	{"chunks", lines(begin+"Transfer-Encoding: chunked", "", "2", "ab", "A;x=\"y\"", "0123456789", "0", ""),
		`200 "ab0123456789", reusable true`},
	{"chunks in capitals", lines(begin+"transfer-encoding: CHUNKED", "", "0001 ", "a", "000", ""),
		`200 "a", reusable true`},
	{"a trailer", lines(begin+"Transfer-Encoding: chunked", "", "1", "a", "0", "X-A: b", "X-C: d", ""),
		`200 "a", reusable true`},
	{"no length", begin + "\r\nto the end", `200 "to the end", reusable false`},
	{"the connection is closed", lines(begin+"Content-Length: 1", "Connection: x , Close", "") + "a",
		`200 "a", reusable false`},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\na", `200 "a", reusable false`},
	{"HTTP/1.0 without a length", "HTTP/1.0 200 OK\r\n\r\nabc", `200 "abc", reusable false`},
	{"no content", lines("HTTP/1.1 204 No Content", ""), `204 "", reusable true`},
	{"no content, but a length", lines("HTTP/1.1 204 No Content", "Content-Length: 1", "") + "a",
		`204 "", reusable false`},
	{"not modified", lines("HTTP/1.1 304 Not Modified", "Content-Length: 3", ""), `304 "", reusable false`},
	{"interim answers", lines("HTTP/1.1 100 Continue", "", "HTTP/1.1 103 Early Hints", "Link: x", "",
		"HTTP/1.1 200 OK", "Content-Length: 1", "") + "a", `200 "a", reusable true`},
	{"bytes after the answer", lines(begin+"Content-Length: 1", "") + "abc", `200 "a", reusable false`},
	{"a second answer", strings.Repeat(lines(begin+"Content-Length: 1", "")+"a", 2), `200 "a", reusable false`},
	{"a large head", lines(begin+"X: "+strings.Repeat("x", 60_000), "Content-Length: 1", "") + "a",
		`200 "a", reusable true`},
	{"spaces around a value", lines(begin+"Content-Length: \t 1 \t", "") + "a", `200 "a", reusable true`},
	{"other characters in a value", lines(begin+"X: \xe4\xff", "Content-Length: 1", "") + "a",
		`200 "a", reusable true`},

	{"nothing", "", "unexpected EOF"},
	{"half a head", begin + "Content-Le", "unexpected EOF"},
	{"half a body", lines(begin+"Content-Length: 5", "") + "abc", "unexpected EOF"},
	{"half a chunk", lines(begin+"Transfer-Encoding: chunked", "", "5", "abc"), "unexpected EOF"},
	{"no last chunk", lines(begin+"Transfer-Encoding: chunked", "", "1", "a"), "unexpected EOF"},
	{"half a trailer", lines(begin+"Transfer-Encoding: chunked", "", "0", "X: y"), "unexpected EOF"},
	{"other lengths", lines(begin+"Content-Length: 1", "Content-Length: 2", "") + "ab", "Content-Length"},
	{"the same length twice", lines(begin+"Content-Length: 1", "Content-Length: 1", "") + "a", "Content-Length"},
	{"a list of lengths", lines(begin+"Content-Length: 1, 1", "") + "a", "Content-Length"},
	{"a negative length", lines(begin+"Content-Length: -1", "") + "a", "Content-Length"},
	{"a length with a sign", lines(begin+"Content-Length: +1", "") + "a", "Content-Length"},
	{"a length in hex", lines(begin+"Content-Length: 0x1", "") + "a", "Content-Length"},
	{"no digits in a length", lines(begin+"Content-Length:", "") + "a", "Content-Length"},
	{"a length beyond all numbers", lines(begin+"Content-Length: 99999999999999999999", "") + "a", "Content-Length"},
	{"a length and chunks", lines(begin+"Content-Length: 1", "Transfer-Encoding: chunked", "", "1", "a", "0", ""),
		"both a Content-Length and a Transfer-Encoding"},
	{"chunks and a length", lines(begin+"Transfer-Encoding: chunked", "Content-Length: 1", "", "1", "a", "0", ""),
		"both a Content-Length and a Transfer-Encoding"},
	{"a coding", lines(begin+"Transfer-Encoding: gzip", "") + "a", "Transfer-Encoding"},
	{"two codings", lines(begin+"Transfer-Encoding: gzip, chunked", "", "0", ""), "Transfer-Encoding"},
	{"chunked twice", lines(begin+"Transfer-Encoding: chunked", "Transfer-Encoding: chunked", "", "0", ""),
		"Transfer-Encoding"},
	{"identity", lines(begin+"Transfer-Encoding: identity", "") + "a", "Transfer-Encoding"},
	{"chunks of HTTP/1.0", lines("HTTP/1.0 200 OK", "Transfer-Encoding: chunked", "", "0", ""), "Transfer-Encoding"},
	{"a space before the colon", lines(begin+"Content-Length : 1", "") + "a", "invalid name"},
	{"a tab in a name", lines(begin+"Content\tLength: 1", "") + "a", "invalid name"},
	{"no name", lines(begin+": 1", "") + "a", "no name"},
	{"no colon", lines(begin+"Content-Length", "") + "a", "no name"},
	{"a continued field", lines(begin+"X: a", " b", "Content-Length: 1", "") + "a", "no name"},
	{"a continued field with a colon", lines(begin+"X: a", " b: c", "Content-Length: 1", "") + "a", "invalid name"},
	{"a space first", lines(begin+" X: a", "Content-Length: 1", "") + "a", "invalid name"},
	{"LF alone", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", "CR LF"},
	{"LF alone after a field", begin + "Content-Length: 1\n\r\na", "CR LF"},
	{"an end of LF alone", begin + "Content-Length: 1\r\n\na", "CR LF"},
	{"CR alone", begin + "X: a\rContent-Length: 1\r\n\r\na", "invalid value"},
	{"CR CR LF", begin + "Content-Length: 1\r\r\n\r\na", "invalid value"},
	{"NUL", lines(begin+"X: a\x00b", "Content-Length: 1", "") + "a", "invalid value"},
	{"NUL in a name", lines(begin+"X\x00: a", "Content-Length: 1", "") + "a", "invalid name"},
	{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", "status line"},
	{"TLS", "\x15\x03\x01\x00\x02\x02\x46", "status line"},
	{"HTTP/2", "\x00\x00\x12\x04\x00\x00\x00\x00\x00", "status line"},
	{"HTTP/2 in words", "HTTP/2.0 200 OK\r\n\r\n", "status line"},
	{"HTTP in small letters", "http/1.1 200 OK\r\n\r\n", "status line"},
	{"an empty line first", "\r\n" + lines(begin+"Content-Length: 1", "") + "a", "status line"},
	{"a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\na", "status line"},
	{"a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\na", "status line"},
	{"a status with a sign", "HTTP/1.1 +20 OK\r\nContent-Length: 1\r\n\r\na", "status line"},
	{"a status below 100", "HTTP/1.1 099 OK\r\nContent-Length: 1\r\n\r\na", "status line"},
	{"no status", "HTTP/1.1\r\nContent-Length: 1\r\n\r\na", "status line"},
	{"two spaces before the status", "HTTP/1.1  200 OK\r\nContent-Length: 1\r\n\r\na", "status line"},
	{"NUL in the reason", "HTTP/1.1 200 O\x00K\r\nContent-Length: 1\r\n\r\na", "status line"},
	{"a change of protocol", lines("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", ""), "changes the protocol"},
	{"too many interim answers", strings.Repeat(lines("HTTP/1.1 100 Continue", ""), 6), "too many interim"},
	{"a head that is too large", lines(begin+"X: "+strings.Repeat("x", 66_000), ""), "too large"},
	{"a head without an end", begin + strings.Repeat("X: y\r\n", 20_000), "too large"},
	{"interim answers that are too large",
		strings.Repeat(lines("HTTP/1.1 103 Hi", "X: "+strings.Repeat("x", 30_000), ""), 3), "too large"},
	{"a chunk size with a sign", lines(begin+"Transfer-Encoding: chunked", "", "+1", "a", "0", ""), "size of a chunk"},
	{"a chunk size with 0x", lines(begin+"Transfer-Encoding: chunked", "", "0x1", "a", "0", ""), "size of a chunk"},
	{"a chunk size after a space", lines(begin+"Transfer-Encoding: chunked", "", " 1", "a", "0", ""),
		"size of a chunk"},
	{"a chunk size with an underscore", lines(begin+"Transfer-Encoding: chunked", "", "1_0", "a", "0", ""),
		"size of a chunk"},
	{"no chunk size", lines(begin+"Transfer-Encoding: chunked", "", "", "a", "0", ""), "size of a chunk"},
	{"only an extension", lines(begin+"Transfer-Encoding: chunked", "", ";a=b", "a", "0", ""), "size of a chunk"},
	{"a chunk size beyond all numbers",
		lines(begin+"Transfer-Encoding: chunked", "", "10000000000000001", "a", "0", ""), "size of a chunk"},
	{"a chunk that is too long", lines(begin+"Transfer-Encoding: chunked", "", "1", "ab", "0", ""),
		"longer than its size"},
	{"a chunk that ends with LF", lines(begin+"Transfer-Encoding: chunked", "") + "1\r\na\n0\r\n\r\n", "CR LF"},
	{"a chunk size that ends with LF", lines(begin+"Transfer-Encoding: chunked", "") + "1\na\r\n0\r\n\r\n", "CR LF"},
	{"CR in an extension", lines(begin+"Transfer-Encoding: chunked", "", "1;a\rb", "a", "0", ""), "size of a chunk"},
	{"a long extension",
		lines(begin+"Transfer-Encoding: chunked", "", "1;"+strings.Repeat("x", 2000), "a", "0", ""), "too large"},
	{"many extensions", lines(begin+"Transfer-Encoding: chunked", "") +
		strings.Repeat("1;"+strings.Repeat("x", 1000)+"\r\na\r\n", 20) + "0\r\n\r\n", "too large"},
	{"a trailer that is no field", lines(begin+"Transfer-Encoding: chunked", "", "0", "X", ""), "no name"},
	{"a trailer that is too large",
		lines(begin+"Transfer-Encoding: chunked", "") + "0\r\n" + strings.Repeat("X: y\r\n", 1000) + "\r\n", "too large"},
}

// TestAnswers: each answer is read correctly, however it arrives.
func TestAnswers(t *testing.T) {
	for _, tc := range answers {
		for name, src := range map[string]io.Reader{
			"at once":     strings.NewReader(tc.answer),
			"in halves":   iotest.HalfReader(strings.NewReader(tc.answer)),
			"by the byte": iotest.OneByteReader(strings.NewReader(tc.answer)),
			"with EOF":    iotest.DataErrReader(strings.NewReader(tc.answer)),
		} {
			if got := readAnswer(src).String(); !strings.Contains(got, tc.want) {
				t.Errorf("%s, %s: %s, want %s", tc.name, name, got, tc.want)
			}
		}
	}
}

// FuzzAnswer: an answer has the same meaning as for net/http, and is refused if net/http refuses it. It is refused,
// too, if net/http is lenient: for ends of lines without CR, continued fields, lengths repeated or beside chunks, and
// the cases of TestAnswers. Fields forbidden in a trailer are not refused, since trailers are discarded.
func FuzzAnswer(f *testing.F) {
	for _, tc := range answers {
		f.Add([]byte(tc.answer), uint8(0))
		f.Add([]byte(tc.answer), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, pieces uint8) {
		var src io.Reader = bytes.NewReader(data)
		if pieces > 0 {
			src = &inPieces{src, int(pieces)}
		}
		ours := readAnswer(src)
		if ours.err != nil {
			return
		}
		theirs := readByNetHTTP(data)
		if theirs.err != nil {
			if !strings.Contains(theirs.err.Error(), "bad trailer key") {
				t.Errorf("net/http refuses what is read as %v: %v", ours, theirs.err)
			}
			return
		}
		if ours.status != theirs.status || ours.body != theirs.body || ours.reusable && !theirs.reusable {
			t.Errorf("%v, but net/http reads %v", ours, theirs)
		}
	})
}

// inPieces gives at most so many bytes at once.
type inPieces struct {
	io.Reader
	most int
}

func (r *inPieces) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.most)]) }

// TestBufferStaysSmall: a large answer with a length does not make the buffer of the connection larger.
func TestBufferStaysSmall(t *testing.T) {
	content := strings.Repeat("x", 5*smallBuffer)
	c := NewConn(source{Reader: strings.NewReader(fmt.Sprintf(
		"%sContent-Length: %d\r\n\r\n%s", begin, len(content), content))})
	c.Begin(time.Minute)
	if err := c.ReadHead(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err != nil || string(got) != content {
		t.Errorf("%d bytes were read, %v", len(got), err)
	}
	if len(c.buf) != smallBuffer {
		t.Errorf("the buffer has %d bytes, want %d", len(c.buf), smallBuffer)
	}
}
