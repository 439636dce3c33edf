// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// answer reads the head of a response.
func answer(t *testing.T, r *bufio.Reader) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestTheSameBytes writes a body on a taken-over connection and as net/http does, and compares the bytes read by the
// caller.
func TestTheSameBytes(t *testing.T) {
	pieces := []string{"id: 1\ndata: {}\n\n", "", ":\n\n", strings.Repeat("x", 100_000), "\r\n0\r\n\r\n"}
	h := serve(t, plain)
	ordinary := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		control := http.NewResponseController(w)
		_ = control.Flush()
		for _, piece := range pieces {
			_, err := w.Write([]byte(piece))
			if err = errors.Join(err, control.Flush()); err != nil {
				t.Error(err)
			}
		}
	}))
	defer ordinary.Close()
	wire := func(address string, respond func()) string {
		t.Helper()
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		h.send(c, request)
		respond()
		var wire strings.Builder
		res := answer(t, bufio.NewReader(io.TeeReader(c, &wire)))
		if body, err := io.ReadAll(res.Body); string(body) != strings.Join(pieces, "") || err != nil {
			t.Errorf("the body has %d bytes, %v", len(body), err)
		}
		return strings.Replace(wire.String(), "Date: "+res.Header.Get("Date")+"\r\n", "", 1)
	}
	want := wire(ordinary.Listener.Addr().String(), func() {})
	got := wire(h.Listener.Addr().String(), func() {
		taken := <-h.taken
		for _, piece := range pieces {
			h.write(taken, piece)
		}
		taken.End(true, true)
	})
	if got != want {
		t.Errorf("got %d bytes, want the %d of net/http", len(got), len(want))
	}
}

// TestConnIsReturned has one connection serve requests after a stream, and another stream.
func TestConnIsReturned(t *testing.T) {
	for name, start := range ways {
		t.Run(name, func(t *testing.T) {
			h := serve(t, start)
			c := h.dial(nil)
			r := bufio.NewReader(c)
			for range 3 {
				h.send(c, request)
				taken := <-h.taken
				h.write(taken, "event")
				taken.End(true, true)
				if body, err := io.ReadAll(answer(t, r).Body); string(body) != "event" || err != nil {
					t.Fatalf("the body is %q, %v", body, err)
				}
				h.send(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
				if body, err := io.ReadAll(answer(t, r).Body); string(body) != "an answer" || err != nil {
					t.Fatalf("the next request gets %q, %v", body, err)
				}
			}
		})
	}
}

// TestConnIsIdle has connections wait for the next request after a stream: as long as an idle connection may, however
// soon the head of a request must come.
func TestConnIsIdle(t *testing.T) {
	for name, c := range map[string]struct {
		head, idle time.Duration
		drained    bool
		used       bool // the next request is answered; else, the connection is closed
	}{
		"longer than a head may take": {200 * time.Millisecond, time.Minute, false, true},
		"without a limit":             {200 * time.Millisecond, 0, false, true},
		"too long":                    {time.Minute, 20 * time.Millisecond, false, false},
		"when it is drained":          {time.Minute, time.Minute, true, false},
	} {
		for way, start := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				h := serve(t, start)
				var drain context.CancelFunc
				h.drain, drain = context.WithCancel(t.Context())
				defer drain()
				conn := h.dial(nil)
				r := bufio.NewReader(conn)
				h.send(conn, request)
				taken := <-h.taken
				h.Config.ReadHeaderTimeout, h.Config.IdleTimeout = c.head, c.idle
				taken.End(true, true)
				if _, err := io.ReadAll(answer(t, r).Body); err != nil {
					t.Fatal(err)
				}
				if c.drained {
					drain()
				}
				if !c.used {
					if _, err := r.ReadByte(); err == nil {
						t.Error("the connection has sent something")
					}
					return
				}
				h.wantSilence(conn, r, 2*c.head)
				h.send(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
				if body, err := io.ReadAll(answer(t, r).Body); string(body) != "an answer" || err != nil {
					t.Errorf("the next request gets %q, %v", body, err)
				}
			})
		}
	}
}

// TestConnIsClosed ends streams on connections not used again.
func TestConnIsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		request        string
		complete, keep bool
		shutdown       bool
	}{
		"by the caller":          {strings.Replace(request, "Host", "Connection: close\r\nHost", 1), true, true, false},
		"by the gateway":         {request, true, false, false},
		"with its server":        {request, true, true, true},
		"in the middle":          {request, false, true, false},
		"after pipelined bytes":  {request + "POST / HTTP/1.1\r\n\r\n", true, true, false},
		"after a second request": {request + request, true, true, false},
	} {
		for way, start := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				h := serve(t, start)
				conn := h.dial(nil)
				h.send(conn, c.request)
				taken := <-h.taken
				h.write(taken, "event")
				if c.shutdown {
					if err := h.Config.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
				}
				taken.End(c.complete, c.keep)
				r := bufio.NewReader(conn)
				body, err := io.ReadAll(answer(t, r).Body)
				if string(body) != "event" || (err == nil) != c.complete {
					t.Errorf("the body is %q, %v", body, err)
				}
				if _, err := r.ReadByte(); err == nil {
					t.Error("the connection is still open")
				}
			})
		}
	}
}

// TestTheCallerLeaves has callers leave in every way.
func TestTheCallerLeaves(t *testing.T) {
	socket := func(c net.Conn) *net.TCPConn {
		if over, ok := c.(*tls.Conn); ok {
			c = over.NetConn()
		}
		return c.(*net.TCPConn)
	}
	for name, leave := range map[string]func(net.Conn) error{
		"FIN":        func(c net.Conn) error { return socket(c).Close() },
		"half-close": func(c net.Conn) error { return socket(c).CloseWrite() },
		"RST":        func(c net.Conn) error { return errors.Join(socket(c).SetLinger(0), socket(c).Close()) },
		"close":      net.Conn.Close,
		"close_notify": func(c net.Conn) error {
			return c.(interface{ CloseWrite() error }).CloseWrite()
		},
		"bytes without end": func(c net.Conn) error {
			for range 2 * maxWakes {
				if _, err := c.Write(make([]byte, 512)); err != nil {
					return nil
				}
			}
			return nil
		},
		"bytes, then FIN": func(c net.Conn) error {
			_, err := c.Write(make([]byte, 700))
			return errors.Join(err, c.Close())
		},
	} {
		for way, start := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				h := serve(t, start)
				c := h.dial(nil)
				h.send(c, request)
				taken := <-h.taken
				h.write(taken, "event")
				if err := leave(c); err != nil {
					t.Error(err)
				}
				<-h.gone
				taken.End(false, false)
			})
		}
	}
}

// TestNothingIsLeft opens and ends many streams.
func TestNothingIsLeft(t *testing.T) {
	const streams = 1000
	watched := func() bool {
		connections.mu.Lock()
		defer connections.mu.Unlock()
		return len(connections.byID) != 0 || connections.epoll != nil
	}
	asynctest.Eventually(t, "the connections of other tests are not watched", func() bool { return !watched() })
	h := serve(t, secure)
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	var taken [streams]*Conn
	var conns [streams]net.Conn
	for i := range taken {
		conns[i] = h.dial(nil)
		h.send(conns[i], request)
		taken[i] = <-h.taken
	}
	asynctest.Eventually(t, "only the watcher has a goroutine", func() bool {
		return runtime.NumGoroutine() <= goroutines+1
	})
	if n := descriptors(t); n > files+2*streams+1 {
		t.Errorf("%d streams take %d descriptors", streams, n-files)
	}
	for i, c := range taken {
		c.End(i%2 == 0, i%3 == 0)
		conns[i].Close()
	}
	asynctest.Eventually(t, "goroutines and descriptors are given back", func() bool {
		return runtime.NumGoroutine() <= goroutines && descriptors(t) <= files
	})
	h.Close()
	asynctest.Eventually(t, "no connection is watched", func() bool { return !watched() })
}

// wrapper is a ResponseWriter around another.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// opaque is a ResponseWriter hiding another.
type opaque struct{ http.ResponseWriter }

func (o opaque) Flush() { o.ResponseWriter.(http.Flusher).Flush() }

// TestOrdinaryResponses has responses stay with net/http.
func TestOrdinaryResponses(t *testing.T) {
	encoded := func(w http.ResponseWriter) http.ResponseWriter {
		w.Header().Set("Content-Encoding", "gzip")
		return w
	}
	for name, c := range map[string]struct {
		start   func(*httptest.Server)
		request string
		change  func(http.ResponseWriter) http.ResponseWriter
	}{
		"HTTP/1.0":         {start: plain, request: strings.Replace(request, "/1.1", "/1.0", 1)},
		"a timeout":        {start: func(s *httptest.Server) { s.Config.WriteTimeout = 1 << 40; s.Start() }},
		"no socket":        {start: func(s *httptest.Server) { s.Config.ConnContext = nil; s.Start() }},
		"another encoding": {start: plain, change: encoded},
		"a wrapper":        {start: plain, change: func(w http.ResponseWriter) http.ResponseWriter { return wrapper{w} }},
		"a hidden writer":  {start: plain, change: func(w http.ResponseWriter) http.ResponseWriter { return opaque{w} }},
		"a known length": {start: plain, change: func(w http.ResponseWriter) http.ResponseWriter {
			w.Header().Set("Content-Length", "0")
			return w
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, c.start)
			h.change = c.change
			h.passes = func(w http.ResponseWriter) bool { _, changes := w.(wrapper); return !changes }
			conn := h.dial(nil)
			if c.request == "" {
				c.request = request
			}
			h.send(conn, c.request)
			if err := <-h.err; !errors.Is(err, ErrUnable) {
				t.Errorf("got %v", err)
			}
			if res := answer(t, bufio.NewReader(conn)); res.StatusCode != http.StatusOK {
				t.Errorf("the response is %s", res.Status)
			}
		})
	}
	t.Run("HTTP/2", func(t *testing.T) {
		h := serve(t, func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() })
		res, err := h.Client().Post(h.URL+"/stream", "", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := <-h.err; !errors.Is(err, ErrUnable) || res.ProtoMajor != 2 {
			t.Errorf("got %v over %s", err, res.Proto)
		}
	})
}

// TestSharedCertificates has connections of one caller share its certificate: a state's slices are the connection's.
func TestSharedCertificates(t *testing.T) {
	h := serve(t, secure)
	var of [2]*tls.ConnectionState
	for i := range of {
		h.send(h.dial(nil), request)
		taken := <-h.taken
		defer taken.End(true, false)
		state := taken.conn.(*tls.Conn).ConnectionState()
		of[i] = &state
	}
	if of[0].PeerCertificates[0] != of[1].PeerCertificates[0] {
		t.Error("the connections of one caller do not share its certificate")
	}
}
