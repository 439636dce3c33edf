// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestLoopShutdown shuts a server down: a resting connection is closed, and one in a call after its answer. Wait waits
// for the answer.
func TestLoopShutdown(t *testing.T) {
	for way, start := range ways {
		t.Run(way, func(t *testing.T) {
			h := serveLoops(t, start, nil)
			began, release := make(chan bool), make(chan bool)
			h.serve = func(w http.ResponseWriter, _ *http.Request) {
				began <- true
				<-release
				_, _ = io.WriteString(w, "looped")
			}
			rests, calls := h.dial(), h.dial()
			calls.send(firstRequest)
			<-began
			if err := h.Config.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			rests.wantEnd()
			ctx, cancel := context.WithCancelCause(t.Context())
			waited := make(chan error)
			go func() { waited <- Wait(ctx) }()
			cancel(errors.New("not yet"))
			if err := <-waited; err == nil || err.Error() != "not yet" {
				t.Errorf("Wait returns %v while a call is carried out", err)
			}
			release <- true
			res, body := calls.receive()
			if body != "looped" || !res.Close {
				t.Errorf("the answer is %q, and closes the connection: %v", body, res.Close)
			}
			calls.wantEnd()
			if err := Wait(t.Context()); err != nil {
				t.Error(err)
			}
			servers.mu.Lock()
			defer servers.mu.Unlock()
			if servers.loops[h.Config] != nil {
				t.Error("the server is still known")
			}
		})
	}
}

// TestLoopShutdownInABody shuts a server down while the body of a call arrives: it is carried out, as by net/http.
func TestLoopShutdownInABody(t *testing.T) {
	for way, start := range ways {
		t.Run(way, func(t *testing.T) {
			h := serveLoops(t, start, nil)
			h.serve = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "looped") }
			c := h.dial()
			c.send(firstRequest[:len(firstRequest)-1])
			asynctest.Eventually(t, "the head has arrived", func() bool { return h.calling() == 1 })
			if err := h.Config.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			loopsOf(h.Config).stop() // Shutdown has it called by a goroutine
			c.send("}")
			res, body := c.receive()
			if body != "looped" || !res.Close {
				t.Errorf("the answer is %q, and closes the connection: %v", body, res.Close)
			}
			c.wantEnd()
		})
	}
}

// TestLoopShutdownWhileReading has a read of a caller wait, as TLS lets it if the caller asks for new keys and reads
// nothing: the rest of a shutdown is done.
func TestLoopShutdownWhileReading(t *testing.T) {
	held := &heldConn{began: make(chan bool), end: make(chan bool)}
	g := &loops{all: make(map[*loop]struct{})}
	l := &loop{loops: g, conn: held, calling: true, listens: true, leave: func() {}, timer: time.NewTimer(time.Hour)}
	g.all[l] = struct{}{}
	looked := make(chan bool)
	go func() { l.look(); close(looked) }()
	<-held.began
	g.stop()
	close(held.end)
	<-looked
}

// heldConn is a connection with waiting reads.
type heldConn struct {
	net.Conn
	began, end chan bool
	gives      []string // the results of the first reads; others find the end
	deadline   atomic.Pointer[time.Time]
}

func (c *heldConn) SetReadDeadline(t time.Time) error {
	c.deadline.Store(&t)
	return nil
}

func (c *heldConn) Read(p []byte) (n int, err error) {
	c.began <- true
	<-c.end
	if len(c.gives) == 0 {
		return 0, io.EOF
	}
	n = copy(p, c.gives[0])
	c.gives = c.gives[1:]
	return n, nil
}

// TestLoopShutdownInASlowBody shuts a server down while the body of a call takes its time: the loop waits for it, since
// net/http takes no connection any more.
func TestLoopShutdownInASlowBody(t *testing.T) {
	last := len(firstRequest) - 1
	parts := []string{firstRequest[:last], firstRequest[last:]}
	held := &heldConn{began: make(chan bool), end: make(chan bool), gives: parts}
	g := &loops{all: make(map[*loop]struct{})}
	l := &loop{loops: g, server: &http.Server{}, conn: held, buffer: make([]byte, maxRequest)}
	g.all[l] = struct{}{}
	received := make(chan error)
	go func() { received <- l.receive() }()
	<-held.began
	held.end <- true
	<-held.began // the rest of the body is awaited
	if d := time.Until(*held.deadline.Load()); d > bodyPatience {
		t.Errorf("the loop waits for %v before net/http does", d)
	}
	g.stop()
	if d := time.Until(*held.deadline.Load()); d < lastPatience/2 {
		t.Errorf("when the server shuts down the loop waits for %v", d)
	}
	held.end <- true
	if err := <-received; err != nil || l.length == 0 {
		t.Errorf("a body of %d bytes is received: %v", l.length, err)
	}
}

// TestLoopAfterShutdown has a call end in net/http when its server shuts down: no loop begins.
func TestLoopAfterShutdown(t *testing.T) {
	var h *looped
	ended := make(chan error, 1)
	h = serveLoops(t, plain, func(s *http.Server) {
		inner := s.Handler
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			go func() { ended <- s.Shutdown(context.Background()) }()
			asynctest.Eventually(t, "the server shuts down", func() bool { return isShutDown(s) })
			inner.ServeHTTP(w, r)
		})
	})
	c := h.dial()
	c.wantEnd()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !errors.Is(h.reason(), ErrUnable) {
		t.Errorf("Serve returns %v", h.reason())
	}
}
