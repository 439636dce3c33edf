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

// twin is a server noting the requests it sees. Its answers depend on their paths.
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

// answers are other answers to requests, by their paths.
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
	"/hijacked-answered": func(w http.ResponseWriter) {
		w.WriteHeader(202)
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, "4\r\nmine\r\n0\r\n\r\n")
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

// exchange sends requests on a new connection, in a loop by then if the server has loops. It returns the requests seen
// by the server, the answers, and whether the connection was reset.
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
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
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
	if reset || reset2 { // bytes sent before may be lost
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

// FuzzLoop is TestALoopIsTheSame for any idea of a caller.
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
