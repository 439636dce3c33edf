// SPDX-License-Identifier: Apache-2.0

package streams

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

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
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
	if err := c.SetReadDeadline(time.Now().Add(site.Patience)); err != nil { // before its transport sees that it is closed
		t.Fatal(err)
	}
	close(c.wake)
	if _, err := io.Copy(io.Discard, c.Conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}

// TestCallersThatNeverRead opens streams whose callers read no more than the beginning. What they are sent fits into
// the
// buffers of the system, so that no write of the gateway lasts.
func TestCallersThatNeverRead(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	const each = 3
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy http://" + agent + fmt.Sprintf(` {
		heartbeat 1s
		write_timeout 1s
		limits {
			streams_per_leader %d
		}
	}`, 2*each)})
	l := site.LeaderOf(t, s.URL())
	var conns []*numb
	for version, transport := range map[int]http.RoundTripper{1: l.Transports(t)["1"], 2: l.Transports(t)["2"]} {
		for i := range each {
			own, conn := numbed(transport.(*http.Transport))
			conns = append(conns, conn)
			ask(s, own, "/stream", site.StreamBody(l.Sender, "start", fmt.Sprintf("h%d-%d", version, i), "stream 900 0", ""),
				version)
		}
	}
	site.Eventually(t, "the streams of callers that never read have ended", func() bool {
		for range 2 * each {
			res := ask(s, l.HTTP.Transport, "/stream", site.StreamBody(l.Sender, "re-stream", "h1-0", "", ""), 2)
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
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		site.WriteTask(w, h, "completed", strings.Repeat("x", 8<<20))
	})
	s := site.Serve(
		t,
		site.Config{Options: "debug", Handle: "aip_gateway a2a/legacy " + agent.URL + " {\n\t\twrite_timeout 10s\n\t}"},
	)
	l := site.LeaderOf(t, s.URL())
	l.Start("large", "hello")
	var conns []*numb
	for version, transport := range map[int]http.RoundTripper{1: l.Transports(t)["1"], 2: l.Transports(t)["2"]} {
		own, conn := numbed(transport.(*http.Transport))
		conns = append(conns, conn)
		ask(s, own, "/rpc", site.RPCBody(l.Sender, "get", "large", ""), version)
	}
	site.Eventually(t, "both answers are given up", func() bool {
		return strings.Count(s.Out.String(), "an answer was not delivered") == len(conns)
	})
	for _, conn := range conns {
		conn.wantClosed(t)
	}
}

// ask sends a request by a transport, which must answer by a version of HTTP.
func ask(s *site.Site, transport http.RoundTripper, path string, body []byte, version int) *http.Response {
	s.T.Helper()
	ctx := site.Within(s.T, 2*site.Patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+path, bytes.NewReader(body))
	if err != nil {
		s.T.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		s.T.Fatalf("HTTP/%d: %v", version, err)
	}
	s.T.Cleanup(func() { res.Body.Close() })
	if res.ProtoMajor != version {
		s.T.Fatalf("it is HTTP/%d, want HTTP/%d", res.ProtoMajor, version)
	}
	return res
}
