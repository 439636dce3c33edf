// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// counted is a response, kept only as its size.
type counted struct {
	header http.Header
	bytes  int
}

func (c *counted) Header() http.Header { return c.header }
func (c *counted) WriteHeader(int)     {}
func (c *counted) Flush()              {}
func (c *counted) Write(b []byte) (int, error) {
	c.bytes += len(b)
	return len(b), nil
}

// BenchmarkCall measures a get of a finished task, from the request to its answer.
func BenchmarkCall(b *testing.B) {
	for name, change := range map[string]func(*setup){"aip": func(*setup) {}, "all dialects": everyCaller} {
		b.Run(name, func(b *testing.B) {
			h := openSite(b, change, func(h *setup) { h.Partner.Agent = sleeper{state: "awaiting-completion"} })
			start := httptest.NewRequest("POST", "/", strings.NewReader(message("rpc", "start", "t1", "hello")))
			h.ServeHTTP(&counted{header: make(http.Header)}, start)
			get := message("rpc", "get", "t1", "")
			body := strings.NewReader(get)
			r := httptest.NewRequest("POST", "/", nil)
			r.Body, r.ContentLength = io.NopCloser(body), int64(len(get))
			w := &counted{header: make(http.Header)}
			b.ReportAllocs()
			for b.Loop() {
				body.Reset(get)
				clear(w.header)
				w.bytes = 0
				h.ServeHTTP(w, r)
			}
			if w.bytes < 500 {
				b.Errorf("the answer has %d bytes", w.bytes)
			}
		})
	}
}

// BenchmarkStream measures a stream of a task's events from the beginning.
func BenchmarkStream(b *testing.B) {
	h := openSite(b, func(h *setup) { h.Partner.Agent = sleeper{state: "awaiting-completion"} })
	post := func(path, body string) int {
		w := &counted{header: make(http.Header)}
		h.ServeHTTP(w, httptest.NewRequest("POST", "/"+path, strings.NewReader(body)))
		return w.bytes
	}
	post("rpc", message("rpc", "start", "t1", "hello"))
	for i := range 100 { // each causes two events
		post("rpc", message("rpc", "continue", "t1", fmt.Sprint(i)))
	}
	post("rpc", message("rpc", "complete", "t1", ""))
	again := message("stream", "re-stream", "t1", "")
	b.ReportAllocs()
	for b.Loop() {
		if n := post("stream", again); n < 200*100 {
			b.Fatalf("the stream has %d bytes", n)
		}
	}
}
