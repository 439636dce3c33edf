// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// quick is an agent at a cost of next to nothing: it knows only the HTTP needed.
func quick(b *testing.B) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	body := is("completed", has("echo: hello"))
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					size := 0
					for { // the head
						line, err := in.ReadSlice('\n')
						if err != nil {
							return
						}
						if len(line) == 2 {
							break
						}
						if n, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
							size, _ = strconv.Atoi(string(bytes.TrimSpace(n)))
						}
					}
					if _, err := in.Discard(size); err != nil {
						return
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// BenchmarkRun measures one unary turn.
func BenchmarkRun(b *testing.B) {
	h := agentAt(b, httptransport.Config{URL: "http://" + quick(b) + "/", Codec: a2a.Legacy()})
	t := turn("hello")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			for rep, err := range carryOut(b.Context(), h, t, false) {
				if err != nil || rep.State != task.AwaitingCompletion {
					b.Error(rep.State, err)
				}
			}
		}
	})
}

// BenchmarkReverseProxy measures the cost of passing the same through the standard library's proxy, without the cost of
// the server in front of it.
func BenchmarkReverseProxy(b *testing.B) {
	u := &url.URL{Scheme: "http", Host: quick(b)}
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	defer transport.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }, Transport: transport}
	body := a2a.Legacy().AppendTurn(nil, turn("hello"), false)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w := httptest.NewRecorder()
			proxy.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
			if w.Code != http.StatusOK {
				b.Error(w.Code)
			}
		}
	})
}

// BenchmarkTransport measures the floor set by net/http: the same exchange with nothing around it.
func BenchmarkTransport(b *testing.B) {
	u := &url.URL{Scheme: "http", Host: quick(b), Path: "/"}
	transport := &http.Transport{MaxIdleConnsPerHost: 1024, DisableCompression: true}
	defer transport.CloseIdleConnections()
	body := a2a.Legacy().AppendTurn(nil, turn("hello"), false)
	header := http.Header{"Content-Type": {"application/json"}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			res, err := transport.RoundTrip(&http.Request{Method: http.MethodPost, URL: u, Header: header,
				Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))})
			if err != nil {
				b.Error(err)
				return
			}
			io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	})
}
