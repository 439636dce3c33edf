// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// replaced returns a request with another body in the place of its own, as a handler of the host may make it.
func replaced(r *http.Request, body string) *http.Request {
	r = r.WithContext(r.Context()) // as the host does: its server must know its own body
	_ = r.Body.Close()
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return r
}

// TestLoopReplacedBody has a handler put another body in the place of the caller's, so net/http does not read the
// latter to its end. The rest of it is no request.
func TestLoopReplacedBody(t *testing.T) {
	hidden := "POST /hidden HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
	hidden += strings.Repeat(" ", 300<<10-len(hidden)) // more than net/http reads of a body closed by a handler
	for name, field := range map[string]string{
		"length": fmt.Sprintf("Content-Length: %d\r\n\r\n", len(hidden)),
		"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", len(hidden)),
	} {
		t.Run(name, func(t *testing.T) {
			h := openSite(t, func(s *setup) {
				s.Partner.Agent, s.front.Loop = spoken{pieces: make(chan string)}, func(http.ResponseWriter) bool { return true }
			})
			var mu sync.Mutex
			var served []string
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				served = append(served, r.URL.Path)
				mu.Unlock()
				r = replaced(r, message("rpc", "get", "none", ""))
				r.URL.Path = "/rpc"
				h.ServeHTTP(w, r)
			}))
			server.Config.ConnContext = WithConnection
			server.Start()
			defer closeServer(server)
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(c, "POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
			_, _ = io.WriteString(c, "POST /second HTTP/1.1\r\nHost: x\r\n"+field+hidden)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.ReadAll(c) // the connection may be reset
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff([]string{"/first", "/second"}, served); diff != "" {
				t.Errorf("the requests that are served (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReplacedBodyStays has the request of a stream get another body: its connection is not taken over, since nothing
// has read the caller's bytes.
func TestReplacedBodyStays(t *testing.T) {
	var takenOver atomic.Int64
	g := open(t, func(h *setup) {
		h.takeOver(func() func() { takenOver.Add(1); return func() {} })
	})
	inner := g.server.Config.Handler
	g.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stream") {
			r = replaced(r, message("stream", "start", "t1", "stream 30 1"))
		}
		inner.ServeHTTP(w, r)
	})
	res, next := g.openStream(t.Context(), "another body")
	until(t, next, "awaiting-completion")
	g.post("/agents/one/rpc", message("rpc", "cancel", "t1", ""))
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	if n := takenOver.Load(); n != 0 {
		t.Errorf("%d streams have outlived their requests, want none", n)
	}
}
