// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// numb is a caller's end of a connection from which only so much is read.
type numb struct {
	net.Conn
	mu   sync.Mutex
	left int
	wake chan struct{} // closed when it feels again
}

func (c *numb) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left <= 0 {
		<-c.wake
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// numbed returns a transport whose only connection is numb after some kilobytes.
func numbed(transport *http.Transport) (*http.Transport, *numb) {
	conn := &numb{left: 8 << 10, wake: make(chan struct{})}
	own := transport.Clone()
	own.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn.Conn = c
		return conn, c.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	if !own.ForceAttemptHTTP2 {
		own.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return own, conn
}

// wantClosed waits until the gateway has closed the connection.
func (c *numb) wantClosed(t *testing.T) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil { // before its transport sees that it is closed
		t.Fatal(err)
	}
	close(c.wake)
	if _, err := io.Copy(io.Discard, c.Conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}

// ask sends a request by a transport, which must answer by a version of HTTP.
func (s *site) ask(transport http.RoundTripper, path string, body []byte, version int) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(within(s.t, 2*patience), http.MethodPost, s.url()+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		s.t.Fatalf("HTTP/%d: %v", version, err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if res.ProtoMajor != version {
		s.t.Fatalf("it is HTTP/%d, want HTTP/%d", res.ProtoMajor, version)
	}
	return res
}

// TestCallersThatNeverRead opens streams whose callers read no more than the beginning. What they are sent fits into
// the
// buffers of the system, so that no write of the gateway lasts.
func TestCallersThatNeverRead(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	const each = 3
	s := serve(t, config{handle: "aip_gateway a2a/legacy http://" + agent + fmt.Sprintf(` {
		heartbeat 1s
		write_timeout 1s
		limits {
			streams_per_leader %d
		}
	}`, 2*each)})
	l := leaderOf(t, s.url())
	var conns []*numb
	for version, transport := range map[int]http.RoundTripper{1: l.transports(t)["1"], 2: l.transports(t)["2"]} {
		for i := range each {
			own, conn := numbed(transport.(*http.Transport))
			conns = append(conns, conn)
			s.ask(own, "/stream", streamBody(l.Sender, "start", fmt.Sprintf("h%d-%d", version, i), "stream 900 0", ""), version)
		}
	}
	eventually(t, "the streams of callers that never read have ended", func() bool {
		for range 2 * each {
			res := s.ask(l.HTTP.Transport, "/stream", streamBody(l.Sender, "re-stream", "h1-0", "", ""), 2)
			defer res.Body.Close()
			if res.Header.Get("Content-Type") != "text/event-stream" {
				return false
			}
		}
		return true
	})
	for _, conn := range conns {
		conn.wantClosed(t)
	}
}

// TestAnswersThatAreNotRead asks for a large task and reads no more than the beginning.
func TestAnswersThatAreNotRead(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		writeTask(w, h, "completed", strings.Repeat("x", 8<<20))
	})
	s := serve(
		t,
		config{options: "debug", handle: "aip_gateway a2a/legacy " + agent.url + " {\n\t\twrite_timeout 10s\n\t}"},
	)
	l := leaderOf(t, s.url())
	l.start("large", "hello")
	var conns []*numb
	for version, transport := range map[int]http.RoundTripper{1: l.transports(t)["1"], 2: l.transports(t)["2"]} {
		own, conn := numbed(transport.(*http.Transport))
		conns = append(conns, conn)
		s.ask(own, "/rpc", rpcBody(l.Sender, "get", "large", ""), version)
	}
	eventually(t, "both answers are given up", func() bool {
		return strings.Count(s.out.String(), "an answer was not delivered") == len(conns)
	})
	for _, conn := range conns {
		conn.wantClosed(t)
	}
}
