// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// looped is a server with connections in loops from their second call on.
type looped struct {
	*httptest.Server
	t       *testing.T
	serve   http.HandlerFunc // answers calls in a loop; nil for an answer of net/http's size
	logged  asynctest.Buffer
	unable  atomic.Value // the reason why the last connection is in no loop
	answers atomic.Int64
}

func serveLoops(t *testing.T, start func(*httptest.Server), change func(*http.Server)) *looped {
	h := &looped{t: t}
	h.Server = httptest.NewUnstartedServer(h)
	h.Config.ErrorLog = log.New(&h.logged, "", 0)
	h.Config.ConnContext = withSocket
	if change != nil {
		change(h.Config)
	}
	start(h.Server)
	t.Cleanup(func() {
		_ = h.Config.Shutdown(context.Background())
		if err := Wait(context.Background()); err != nil {
			t.Error(err)
		}
		h.Close()
	})
	return h
}

func (h *looped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.answers.Add(1)
	if _, in := w.(*response); (in || r.TransferEncoding != nil) && h.serve != nil {
		h.serve(w, r)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		h.t.Error(err)
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", "2")
	_, _ = io.WriteString(w, "ok")
	socket, _ := r.Context().Value(socketKey{}).(syscall.RawConn)
	o := LoopOptions{Socket: socket, Passes: func(http.ResponseWriter) bool { return true }}
	if err := Serve(w, r, o); err != nil {
		h.unable.Store(err)
	}
}

func (h *looped) reason() error {
	err, _ := h.unable.Load().(error)
	return err
}

// loops returns the present loops.
func (h *looped) loops() []*loop {
	g := loopsOf(h.Config)
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.all))
}

// calling returns the number of calls in loops.
func (h *looped) calling() (n int) {
	for _, l := range h.loops() {
		l.mu.Lock()
		if l.calling {
			n++
		}
		l.mu.Unlock()
	}
	return n
}

// early returns the number of bytes arrived during calls.
func (h *looped) early() (n int) {
	for _, l := range h.loops() {
		l.looking.Lock()
		n += len(l.early)
		l.looking.Unlock()
	}
	return n
}

// caller is a connection in a loop.
type caller struct {
	net.Conn
	in *bufio.Reader
	t  *testing.T
}

func (h *looped) dial() *caller {
	h.t.Helper()
	c, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	if h.TLS != nil {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate()}})
	}
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		h.t.Fatal(err)
	}
	k := &caller{c, bufio.NewReader(c), h.t}
	k.call("ok")
	return k
}

// send begins a call.
func (k *caller) send(text string) {
	k.t.Helper()
	if _, err := io.WriteString(k, text); err != nil {
		k.t.Fatal(err)
	}
}

// receive reads an answer, and returns it with its body.
func (k *caller) receive() (*http.Response, string) {
	k.t.Helper()
	res := answer(k.t, k.in)
	body, err := io.ReadAll(res.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return res, string(body)
}

func (k *caller) call(want string) *http.Response {
	k.t.Helper()
	k.send(firstRequest)
	res, body := k.receive()
	if body != want {
		k.t.Fatalf("the answer is %q, want %q", body, want)
	}
	return res
}

// wantEnd wants the connection to be closed without another byte.
func (k *caller) wantEnd() {
	k.t.Helper()
	if b, err := io.ReadAll(k.in); len(b) > 0 || err != nil {
		k.t.Fatalf("the connection ends with %q, %v", b, err)
	}
}

// TestALoopServes has a connection served by a loop, each call with everything of its own.
func TestALoopServes(t *testing.T) {
	for way, start := range ways {
		t.Run(way, func(t *testing.T) {
			h := serveLoops(t, start, nil)
			var last *http.Request
			var lastWriter http.ResponseWriter
			h.serve = func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if string(body) != "{}" || err != nil {
					t.Errorf("the body is %q, %v", body, err)
				}
				if r.Context().Value(http.ServerContextKey) != h.Config || r.Context().Value(http.LocalAddrContextKey) == nil ||
					r.Context().Value(socketKey{}) == nil || r.RemoteAddr == "" || (r.TLS != nil) != (h.TLS != nil) {
					t.Error("the request lacks what net/http gives one")
				}
				if r.TLS != nil && len(r.TLS.PeerCertificates) != 1 {
					t.Errorf("the request has %d certificates of its caller", len(r.TLS.PeerCertificates))
				}
				if last != nil {
					if last.Context().Err() == nil || r.Context().Err() != nil {
						t.Error("a call does not end with its handler")
					}
					if _, err := last.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
						t.Errorf("the body of another call is read: %v", err)
					}
					if _, err := lastWriter.Write([]byte("late")); !errors.Is(err, http.ErrHijacked) {
						t.Errorf("an answer is written to after its end: %v", err)
					}
				}
				want := http.Header{"Content-Length": {"2"}}
				if diff := cmp.Diff(want, r.Header); diff != "" {
					t.Errorf("the header (-want +got):\n%s", diff)
				}
				r.Header["Content-Length"][0] = "7"
				r.Header.Set("Mine", "yes")
				r.URL.Path = "/mine"
				last, lastWriter = r, w
				_, _ = io.WriteString(w, "looped")
			}
			c := h.dial()
			for range 3 {
				c.call("looped")
			}
		})
	}
}

// TestLoopIdentity has a handler change the first request's view of its connection: the next calls are those of the
// connection's proven caller.
func TestLoopIdentity(t *testing.T) {
	h := serveLoops(t, secure, func(s *http.Server) {
		inner := s.Handler
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, in := w.(*response); !in {
				r.TLS = &tls.ConnectionState{ServerName: "changed"}
				r.RemoteAddr = "changed"
			}
			inner.ServeHTTP(w, r)
		})
	})
	h.serve = func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || r.TLS.ServerName != "" || len(r.TLS.PeerCertificates) != 1 || r.RemoteAddr == "changed" {
			t.Errorf("the request is of %s with %+v", r.RemoteAddr, r.TLS)
		}
		_, _ = io.WriteString(w, "looped")
	}
	h.dial().call("looped")
}

// TestLoopNotices has callers leave during a call: their connections are closed, or only their half of TLS is.
func TestLoopNotices(t *testing.T) {
	for name, leave := range map[string]func(*caller){
		"plain":           func(c *caller) { c.Close() },
		"half":            func(c *caller) { _ = c.Conn.(*net.TCPConn).CloseWrite() },
		"TLS":             func(c *caller) { c.Close() },
		"TLS, the socket": func(c *caller) { c.Conn.(*tls.Conn).NetConn().Close() },
		"TLS, half":       func(c *caller) { _ = c.Conn.(*tls.Conn).CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			start := plain
			if strings.HasPrefix(name, "TLS") {
				start = secure
			}
			h := serveLoops(t, start, nil)
			began, left := make(chan bool), make(chan struct{})
			h.serve = func(_ http.ResponseWriter, r *http.Request) {
				began <- true
				<-r.Context().Done()
				close(left)
			}
			c := h.dial()
			c.send(firstRequest)
			<-began
			leave(c)
			<-left
		})
	}
}

// TestLoopPipelined has a caller send its next request during a call, and leave only then: as by net/http, the call is
// not canceled, and both are answered.
func TestLoopPipelined(t *testing.T) {
	for way, start := range ways {
		t.Run(way, func(t *testing.T) {
			h := serveLoops(t, start, nil)
			began, release := make(chan bool), make(chan bool)
			h.serve = func(w http.ResponseWriter, r *http.Request) {
				began <- true
				<-release
				if err := r.Context().Err(); err != nil {
					t.Error(err)
				}
				_, _ = io.WriteString(w, "looped")
			}
			c := h.dial()
			c.send(firstRequest)
			<-began
			c.send(firstRequest)
			_ = c.Conn.(interface{ CloseWrite() error }).CloseWrite()
			asynctest.Eventually(t, "the loop has seen the next request", func() bool { return h.early() > 0 })
			for _, l := range h.loops() {
				for range len(firstRequest) + 1 {
					l.look() // as its watch would have it do for each byte and for the end
				}
			}
			release <- true
			for _, want := range []string{"looped", "ok"} {
				if _, body := c.receive(); body != want {
					t.Errorf("the answer is %q, want %q", body, want)
				}
			}
		})
	}
}

// TestLoopTimeouts has callers send nothing, half a head or half a body.
func TestLoopTimeouts(t *testing.T) {
	const head = bodyPatience * 9 / 10 // the handshake of a slow machine may take it, too
	for way, start := range ways {
		t.Run(way, func(t *testing.T) {
			t.Run("idle", func(t *testing.T) {
				h := serveLoops(t, start, func(s *http.Server) { s.IdleTimeout = 300 * time.Millisecond })
				h.dial().wantEnd()
			})
			t.Run("head", func(t *testing.T) {
				h := serveLoops(t, start, func(s *http.Server) { s.ReadHeaderTimeout = head })
				c := h.dial()
				c.send("POST /first HTTP")
				c.wantEnd()
			})
			t.Run("body", func(t *testing.T) {
				h := serveLoops(t, start, func(s *http.Server) { s.ReadHeaderTimeout = head })
				c := h.dial()
				before := h.answers.Load()
				c.send(firstRequest[:len(firstRequest)-1])
				asynctest.Eventually(t, "net/http has the call", func() bool { return h.answers.Load() > before })
				c.send("}")
				if _, body := c.receive(); body != "ok" {
					t.Errorf("the answer is %q", body)
				}
			})
		})
	}
}

// TestLoopPanics has handlers panic in a loop.
func TestLoopPanics(t *testing.T) {
	for text, value := range map[string]any{"": http.ErrAbortHandler, "a bug": "a bug"} {
		h := serveLoops(t, plain, nil)
		h.serve = func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "some")
			panic(value)
		}
		c := h.dial()
		c.send(firstRequest)
		c.wantEnd()
		if log := h.logged.String(); !strings.Contains(log, text) || (text == "") != (log == "") {
			t.Errorf("the log after a panic by %v is %q", value, log)
		}
	}
}

// TestNoLoop names the servers and the responses with connections staying with net/http.
func TestNoLoop(t *testing.T) {
	for name, change := range map[string]func(*http.Server){
		"read timeout":  func(s *http.Server) { s.ReadTimeout = time.Minute },
		"write timeout": func(s *http.Server) { s.WriteTimeout = time.Minute },
		"base context":  func(s *http.Server) { s.BaseContext = func(net.Listener) context.Context { return t.Context() } },
	} {
		h := serveLoops(t, plain, change)
		c := h.dial()
		c.call("ok")
		if !errors.Is(h.reason(), ErrUnable) {
			t.Errorf("%s: Serve returns %v", name, h.reason())
		}
	}
	for _, header := range []http.Header{
		{}, {"Content-Length": {"1"}, "Connection": {"close"}}, {"Content-Length": {"1"}, "Trailer": {"A"}},
		{"Content-Length": {"1"}, "Transfer-Encoding": {"chunked"}},
	} {
		if isWhole(header) {
			t.Errorf("a response with %v is whole", header)
		}
	}
}

// TestLoopDeadline has a caller read nothing: a write of a loop ends at its deadline, also one set meanwhile.
func TestLoopDeadline(t *testing.T) {
	for name, set := range map[string]func(*http.ResponseController){
		"before": func(c *http.ResponseController) { _ = c.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)) },
		"meanwhile": func(c *http.ResponseController) {
			time.AfterFunc(200*time.Millisecond, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := serveLoops(t, plain, nil)
			failed := make(chan error, 1)
			h.serve = func(w http.ResponseWriter, _ *http.Request) {
				set(http.NewResponseController(w))
				for {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						failed <- err
						return
					}
				}
			}
			c := h.dial()
			c.send(firstRequest)
			if late, ok := errors.AsType[net.Error](<-failed); !ok || !late.Timeout() {
				t.Errorf("a write fails by %v", late)
			}
		})
	}
}
