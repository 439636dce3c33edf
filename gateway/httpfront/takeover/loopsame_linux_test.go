// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// twin is a server that notes the requests that it sees. Its answers depend on their paths.
type twin struct {
	*httptest.Server
	loops bool // with loops; else it is all of net/http's

	mu   sync.Mutex
	seen map[string][]string // requests, by the address of the caller
}

func newTwin(secure, loops bool) *twin {
	s := &twin{loops: loops, seen: make(map[string][]string)}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnContext = withSocket
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	return s
}

// ServeHTTP notes a request and answers it.
func (s *twin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := new(strings.Builder)
	_ = r.Header.Write(header)
	var content []byte
	var err error
	if r.URL.Path != "/unread" {
		content, err = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	s.seen[r.RemoteAddr] = append(s.seen[r.RemoteAddr], fmt.Sprintf(
		"%s %q %q %s host=%q length=%d coding=%v close=%v tls=%v trailer=%v body=%q error=%v\n%s", r.Method, r.RequestURI,
		r.URL, r.Proto, r.Host, r.ContentLength, r.TransferEncoding, r.Close, r.TLS != nil, r.Trailer, content, err,
		header))
	s.mu.Unlock()
	r.Header.Set("Changed", "by the handler") // the next request must not have it
	r.URL.Path = "/changed" + r.URL.Path
	h := w.Header()
	h["Server"] = []string{"twin"}
	answer, ok := answers[strings.TrimPrefix(r.URL.Path, "/changed")]
	if ok {
		answer(w)
		return
	}
	text := fmt.Sprintf("%d bytes", len(content))
	h["Content-Type"] = []string{"text/plain"}
	h["Content-Length"] = []string{fmt.Sprint(len(text))}
	_, _ = io.WriteString(w, text)
	if s.loops && err == nil && r.ContentLength >= 0 && r.Header.Get("Expect") == "" {
		socket, _ := r.Context().Value(socketKey{}).(syscall.RawConn)
		_ = Serve(w, r, LoopOptions{Socket: socket, Passes: func(http.ResponseWriter) bool { return true }})
	}
}

// answers are how else requests are answered, by their paths.
var answers = map[string]func(http.ResponseWriter){
	"/unread": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "nothing was read") },
	"/empty":  func(http.ResponseWriter) {},
	"/sniff":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>"); _, _ = io.WriteString(w, "<body>") },
	"/long":   func(w http.ResponseWriter) { _, _ = w.Write(bytes.Repeat([]byte("0123456789"), 1000)) },
	"/bits": func(w http.ResponseWriter) {
		for range 700 {
			_, _ = io.WriteString(w, "0123456789")
		}
	},
	"/known": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "10000")
		_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 1000))
	},
	"/flushed": func(w http.ResponseWriter) {
		for range 3 {
			_, _ = io.WriteString(w, "a part")
			w.(http.Flusher).Flush()
		}
	},
	"/flushed-first": func(w http.ResponseWriter) { w.(http.Flusher).Flush(); _, _ = io.WriteString(w, "later") },
	"/none":          func(w http.ResponseWriter) { w.WriteHeader(204); _, _ = io.WriteString(w, "no") },
	"/unmodified": func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", "5")
		w.WriteHeader(304)
	},
	"/unmodified-bare": func(w http.ResponseWriter) { w.WriteHeader(304) },
	"/hints": func(w http.ResponseWriter) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(103)
		w.WriteHeader(200)
		_, _ = io.WriteString(w, "after hints")
	},
	"/close": func(w http.ResponseWriter) { w.Header().Set("Connection", "close"); _, _ = io.WriteString(w, "bye") },
	"/closes": func(w http.ResponseWriter) {
		w.Header().Set("Connection", "Close, other")
		_, _ = io.WriteString(w, "bye")
	},
	"/alive":   func(w http.ResponseWriter) { w.Header().Set("Connection", "keep-alive") },
	"/twice":   func(w http.ResponseWriter) { w.WriteHeader(201); w.WriteHeader(202) },
	"/unknown": func(w http.ResponseWriter) { w.WriteHeader(599); _, _ = io.WriteString(w, "odd") },
	"/short": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "short")
	},
	"/too-long": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, "abc")
		_, _ = io.WriteString(w, "def")
	},
	"/no-number": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "many")
		_, _ = io.WriteString(w, "abc")
	},
	"/late": func(w http.ResponseWriter) {
		w.WriteHeader(200)
		w.Header().Set("Late", "yes")
		_, _ = io.WriteString(w, "abc")
	},
	"/identity": func(w http.ResponseWriter) {
		w.Header().Set("Transfer-Encoding", "identity")
		_, _ = io.WriteString(w, "until the end")
	},
	"/chunked": func(w http.ResponseWriter) {
		w.Header().Set("Transfer-Encoding", "chunked")
		_, _ = io.WriteString(w, "chunks")
	},
	"/both": func(w http.ResponseWriter) {
		w.Header().Set("Transfer-Encoding", "chunked")
		w.Header().Set("Content-Length", "6")
		_, _ = io.WriteString(w, "chunks")
	},
	"/encoded": func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = io.WriteString(w, "chunks")
	},
	"/trailers": func(w http.ResponseWriter) {
		w.Header().Set("Trailer", "A, B,Content-Length")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("B", "2")
		w.Header().Set("A", "1")
		w.Header().Set(http.TrailerPrefix+"C", "3")
	},
	"/late-trailer": func(w http.ResponseWriter) {
		_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 300))
		w.Header().Set(http.TrailerPrefix+"C", "3")
	},
	"/split": func(w http.ResponseWriter) {
		w.Header().Set("A", "1\r\nB: 2")
		w.Header()["bad name"] = []string{"x"}
		w.Header()["Date"] = nil
		_, _ = io.WriteString(w, "body")
	},
	"/abort": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "some"); panic(http.ErrAbortHandler) },
	"/abort-later": func(w http.ResponseWriter) {
		_, _ = w.Write(bytes.Repeat([]byte("0123456789"), 300))
		panic(http.ErrAbortHandler)
	},
	"/exit":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "some"); runtime.Goexit() },
	"/panic": func(w http.ResponseWriter) { w.(http.Flusher).Flush(); panic("a bug") },
	"/hijacked": func(w http.ResponseWriter) {
		c, in, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		rest, _ := io.ReadAll(in)
		_, err = io.WriteString(w, "no longer possible")
		fmt.Fprintf(c, "%d bytes follow, %v", len(rest), err)
	},
	"/hijacked-later": func(w http.ResponseWriter) {
		w.(http.Flusher).Flush()
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, "4\r\nmine\r\n0\r\n\r\n")
		if _, _, err := w.(http.Hijacker).Hijack(); err == nil {
			_, _ = io.WriteString(c, "hijacked twice")
		}
		c.Close()
	},
	"/hijacked-panic": func(w http.ResponseWriter) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, "still open")
		time.AfterFunc(10*time.Millisecond, func() { _, _ = io.WriteString(c, ", and closed now"); c.Close() })
		panic("a bug")
	},
	"/duplex": func(w http.ResponseWriter) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, "both ways")
	},
	"/switching": func(w http.ResponseWriter) { w.WriteHeader(101); _, _ = io.WriteString(w, "no") },
	"/processing": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "3")
		w.WriteHeader(102)
		w.WriteHeader(103)
		_, _ = io.WriteString(w, "abc")
	},
	"/two-lengths": func(w http.ResponseWriter) {
		w.Header()["Content-Length"] = []string{"3", "4"}
		_, _ = io.WriteString(w, "abc")
	},
	"/signed":   func(w http.ResponseWriter) { w.Header().Set("Content-Length", "+3"); _, _ = io.WriteString(w, "abc") },
	"/no-bytes": func(w http.ResponseWriter) { w.Header().Set("Content-Length", "0"); w.WriteHeader(200) },
	"/flushed-known": func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "6")
		_, _ = io.WriteString(w, "abc")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "def")
	},
	"/late-status": func(w http.ResponseWriter) { _, _ = io.WriteString(w, "abc"); w.WriteHeader(500) },
	"/bad-status":  func(w http.ResponseWriter) { w.WriteHeader(99) },
	"/deadline": func(w http.ResponseWriter) {
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Now().Add(time.Hour))
		_ = c.SetReadDeadline(time.Now().Add(time.Hour))
		_, _ = io.WriteString(w, "in time")
		_ = c.Flush()
	},
}

// exchange sends requests on a new connection, which is in a loop by then if the server has loops. It returns which the
// server has seen, the answers, and whether the connection was reset.
func (s *twin) exchange(t *testing.T, parts [][]byte) (seen []string, answered string, reset bool) {
	t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	address := c.LocalAddr().String()
	if s.TLS != nil {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for range 2 {
		if _, err := io.WriteString(c, firstRequest); err != nil {
			t.Fatal(err)
		}
		answer(t, in)
		if _, err := in.Discard(len("2 bytes")); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range parts {
		if _, err := c.Write(b); err != nil {
			reset = true
			break
		}
	}
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	all, err := io.ReadAll(in)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q: the connection stays open; with loops: %v", parts, s.loops)
	}
	reset = reset || err != nil
	s.mu.Lock()
	defer s.mu.Unlock()
	seen = s.seen[address]
	delete(s.seen, address)
	return seen, string(dates.ReplaceAll(all, []byte("Date: now\r\n"))), reset
}

var dates = regexp.MustCompile(`Date: [^\r]*\r\n`)

const firstRequest = "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

// twins are a server with loops and one without, plain and over TLS.
var twins = sync.OnceValue(func() map[string][2]*twin {
	return map[string][2]*twin{
		"plain": {newTwin(false, false), newTwin(false, true)},
		"TLS":   {newTwin(true, false), newTwin(true, true)},
	}
})

// wantSame wants both servers to see the same requests, and to answer the same.
func wantSame(t *testing.T, way string, parts [][]byte) {
	t.Helper()
	both := twins()[way]
	seen, answered, reset := both[0].exchange(t, parts)
	seen2, answered2, reset2 := both[1].exchange(t, parts)
	if reset || reset2 { // what was sent before may be lost
		n := min(len(answered), len(answered2))
		answered, answered2 = answered[:n], answered2[:n]
	}
	if diff := cmp.Diff(seen, seen2); diff != "" {
		t.Errorf("%s: %q: the requests (-net/http +loop):\n%s", way, parts, diff)
	}
	if diff := cmp.Diff(answered, answered2); diff != "" {
		t.Errorf("%s: %q: the answers (-net/http +loop):\n%s", way, parts, diff)
	}
}

// call is a request that a loop serves.
func call(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// requests are what callers send in a loop, and what they may only send to net/http.
func requests() map[string]string {
	const post = "POST /first HTTP/1.1\r\nHost: x\r\n"
	all := map[string]string{
		"equal":               call("/first", "{}"),
		"two":                 call("/first", "{}") + call("/first", "{}"),
		"other length":        call("/first", "longer"),
		"no body":             call("/first", ""),
		"large":               call("/first", strings.Repeat("x", 7000)),
		"too large":           call("/first", strings.Repeat("x", 20000)),
		"end of line":         call("/first", "{}") + "\r\n" + call("/first", "{}"),
		"ends of line":        call("/first", "{}") + "\r\n\r\n\r\n" + call("/first", "{}"),
		"end of line only":    call("/first", "{}") + "\r\n",
		"trailing zero":       "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 02\r\n\r\n{}",
		"plus":                "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
		"huge":                "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
		"negative":            "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}",
		"two lengths":         "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
		"other lengths":       "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
		"length and chunks":   post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"chunks":              "POST /first HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"no length":           "POST /first HTTP/1.1\r\nHost: x\r\n\r\n",
		"expect":              "POST /first HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
		"upgrade":             post + "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}",
		"close":               "POST /first HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
		"keep alive":          "POST /first HTTP/1.1\r\nHost: x\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}",
		"1.0":                 "POST /first HTTP/1.0\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"1.0 keep alive":      "POST /first HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}",
		"get":                 "GET /first HTTP/1.1\r\nHost: x\r\n\r\n",
		"head":                "HEAD /first HTTP/1.1\r\nHost: x\r\n\r\n",
		"absolute":            "POST http://y/first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"two slashes":         "POST //y/first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"query":               "POST /first?a=b&c HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"escapes":             "POST /f%69rst/%2f%zz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"encoded slash":       "POST /fir%2Fst HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"no host":             "POST /first HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"two hosts":           "POST /first HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}",
		"bad host":            "POST /first HTTP/1.1\r\nHost: x y\r\nContent-Length: 2\r\n\r\n{}",
		"empty host":          "POST /first HTTP/1.1\r\nHost: \r\nContent-Length: 2\r\n\r\n{}",
		"space before colon":  "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\n{}",
		"folded":              "POST /first HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
		"bare line feeds":     "POST /first HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}",
		"a bare return":       "POST /first HTTP/1.1\r\nHost: x\r\nA: b\rc\r\nContent-Length: 2\r\n\r\n{}",
		"nul":                 "POST /first HTTP/1.1\r\nHost: x\r\nA: b\x00\r\nContent-Length: 2\r\n\r\n{}",
		"not ascii":           "POST /first HTTP/1.1\r\nHost: x\r\nA: \xe4\r\nContent-Length: 2\r\n\r\n{}",
		"tab":                 "POST /first HTTP/1.1\r\nHost: x\r\nA:\tb\t\r\nContent-Length: 2\r\n\r\n{}",
		"spaces after length": "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length:   2  \r\n\r\n{}",
		"same field twice":    "POST /first HTTP/1.1\r\nHost: x\r\nA: 1\r\nContent-Length: 2\r\na: 2\r\n\r\n{}",
		"other head":          "POST /first HTTP/1.1\r\nHost: x\r\nTraceparent: 00-1\r\nContent-Length: 2\r\n\r\n{}",
		"pragma":              "POST /first HTTP/1.1\r\nHost: x\r\nPragma: no-cache\r\nContent-Length: 2\r\n\r\n{}",
		"long head":           post + "A: " + strings.Repeat("x", 5000) + "\r\nContent-Length: 2\r\n\r\n{}",
		"nothing":             "",
		"a half":              "POST /first HT",
		"half a body":         "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}",
		"no request":          "hello\r\n\r\n",
		"smuggled":            post + "Content-Length: 34\r\n\r\nPOST /second HTTP/1.1\r\nHost: x\r\n\r\n",
		"expect other":        "POST /first HTTP/1.1\r\nHost: x\r\nExpect: much\r\nContent-Length: 2\r\n\r\n{}",
	}
	for name, line := range map[string]string{
		"list of lengths": "Content-Length: 2, 2", "hexadecimal": "Content-Length: 0x2", "exponent": "Content-Length: 2e0",
		"empty length": "Content-Length:", "no space": "Content-Length:2", "tabs": "Content-Length:\t2",
		"vertical tab": "Content-Length: \v2", "small": "content-length: 2", "large": "CONTENT-LENGTH: 2",
		"space in number": "Content-Length: 2 0", "lengths apart": "content-length: 2\r\nA: b\r\nContent-Length: 02",
		"overflow": "Content-Length: 18446744073709551618", "many zeros": "Content-Length: 0000000002",
		"not a length": "Content_Length: 7\r\nContent-Length: 2", "folded length": "Content-Length:\r\n 2",
		"quoted": "Content-Length: \"2\"", "full width": "Content-Length: \uff12",
	} {
		all["length, "+name] = "POST /first HTTP/1.1\r\nHost: x\r\n" + line + "\r\n\r\n{}"
	}
	for _, line := range []string{
		"transfer-encoding: chunked", "Transfer-Encoding: CHUNKED", "Transfer-Encoding:\tchunked",
		"Transfer-Encoding: identity",
		"Transfer-Encoding: x, chunked", "Transfer-Encoding: chunked, x", "Transfer-Encoding : chunked",
		"Transfer-Encoding: \vchunked", "Transfer-Encoding: xchunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
		"Transfer_Encoding: chunked", "Transfer-Encoding:", "Transfer-Encoding: chunked\x00",
		"Transfer-Encoding:\r\n chunked",
		"X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked", " Transfer-Encoding: chunked",
		"\x00Transfer-Encoding: chunked", ": chunked", "no colon", "N\xc3\xa4me: x", "A(b): c", "TE: trailers",
		"Trailer: A", "Expect:", "Expect: 100-Continue", "Connection: keep-alive, close", "Connection: x",
		"Connection: keep-alive\r\nConnection: close", "Connection: keep-alive\r\nConnection: keep-alive",
		"Proxy-Connection: close", "Keep-Alive: timeout=5", "HTTP2-Settings: AAMAAABk", "Upgrade: websocket",
		"Host: x", "Host: y", "host: y", "Authorization: Bearer a", "Cookie: a=b\r\nCookie: c=d", "A: b\r\nA: c",
		strings.Repeat("A: b\r\n", 400) + "A: b",
	} {
		// What is left of the body, where it is in no chunks, is no request.
		all["field, "+line] = post + line + "\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"
	}
	for _, line := range []string{
		"POST\t/first HTTP/1.1", "POST  /first HTTP/1.1", "POST /first  HTTP/1.1", "POST /first HTTP/1.1 ",
		" POST /first HTTP/1.1",
		"POST /first HTTP/1.2", "POST /first http/1.1", "POST /first HTTP/1.10", "POST /first HTTP/2.0", "POST /first",
		"post /first HTTP/1.1", "POSTS /first HTTP/1.1", "POST /first#part HTTP/1.1", "POST * HTTP/1.1",
		"POST first HTTP/1.1",
		"CONNECT x:1 HTTP/1.1", "OPTIONS * HTTP/1.1", "PRI * HTTP/2.0", "PUT /first HTTP/1.1", "POST /fi\x00rst HTTP/1.1",
		"POST /f\xc3\xa4rst HTTP/1.1", "POST /fi rst HTTP/1.1", "POST /first?a=%zz&;=b HTTP/1.1",
		"POST /./a/../first HTTP/1.1",
		"POST http://x/first HTTP/1.1", "POST https://x:0/first HTTP/1.1", "POST x:1 HTTP/1.1", "POST /first\r HTTP/1.1",
		"POST / HTTP/1.1", "POST /first\\..\\ HTTP/1.1", "POST /%00 HTTP/1.1",
	} {
		all["line, "+line] = line + "\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
	}
	for _, host := range []string{"x:80", "[::1]:80", "X", "x,y", "x@y", "x/y", "x\ty", "\xc3\xa4", "x:y:z", "[", "x%20", "_"} {
		all["host, "+host] = "POST /first HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 2\r\n\r\n{}"
	}
	// At the bounds of a loop: of heads, and of requests.
	for _, n := range []int{maxHead - 1, maxHead, maxHead + 1} {
		head := post + "Content-Length: 2\r\nA: "
		all[fmt.Sprint("head of ", n)] = head + strings.Repeat("x", n-len(head)-4) + "\r\n\r\n{}"
	}
	for _, n := range []int{maxRequest - 1, maxRequest, maxRequest + 1} {
		body := strings.Repeat("x", n-len(call("/first", strings.Repeat("x", 1000)))+1000)
		all[fmt.Sprint("request of ", n)] = call("/first", body)
	}
	for path := range answers {
		all["answer "+path] = call(path, "{}") // by a loop: with another call before it, it would be net/http's
	}
	return all
}

// TestALoopIsTheSame has a server with loops and one of net/http alone answer the same, whether the requests come one
// by one, at once or in pieces.
func TestALoopIsTheSame(t *testing.T) {
	for way := range ways {
		for name, sent := range requests() {
			t.Run(way+", "+name, func(t *testing.T) {
				t.Parallel()
				tail := call("/first", "{}")
				wantSame(t, way, [][]byte{[]byte(sent)})
				wantSame(t, way, [][]byte{[]byte(sent + tail)})
				wantSame(t, way, [][]byte{[]byte(sent), []byte(tail)})
				half := len(sent) / 2
				wantSame(t, way, [][]byte{[]byte(sent[:half]), []byte(sent[half:] + tail)})
			})
		}
	}
}

// FuzzLoop is TestALoopIsTheSame for what a caller may think of.
func FuzzLoop(f *testing.F) {
	for _, sent := range requests() {
		f.Add([]byte(sent), uint16(len(sent)/2), false)
		f.Add([]byte(sent+call("/first", "{}")), uint16(len(sent)), true)
	}
	f.Fuzz(func(t *testing.T, sent []byte, cut uint16, secure bool) {
		if len(sent) > 64<<10 {
			return
		}
		way := "plain"
		if secure {
			way = "TLS"
		}
		at := min(int(cut), len(sent))
		wantSame(t, way, [][]byte{sent[:at], sent[at:]})
	})
}
