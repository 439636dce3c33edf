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

// TestCallersThatNeverRead opens streams whose callers read no more than the beginning. What they are sent fits into the
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
	open := func(transport *http.Transport, body []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(within(t, 2*patience), http.MethodPost, s.url()+"/stream", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return transport.RoundTrip(req)
	}
	var conns []*numb
	for name, transport := range map[string]*http.Transport{
		"1": l.transports(t)["1"].(*http.Transport), "2": l.transports(t)["2"].(*http.Transport),
	} {
		for i := range each {
			conn := &numb{left: 8 << 10, wake: make(chan struct{})}
			conns = append(conns, conn)
			own := transport.Clone()
			own.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := new(net.Dialer).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
					return nil, err
				}
				conn.Conn = c
				return conn, nil
			}
			if name == "1" {
				own.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
			}
			res, err := open(own, streamBody(l.Sender, "start", fmt.Sprintf("h%s-%d", name, i), "stream 900 0", ""))
			if err != nil {
				t.Fatalf("HTTP/%s: %v", name, err)
			}
			if got := fmt.Sprint(res.ProtoMajor); got != name {
				t.Fatalf("it is HTTP/%s, want HTTP/%s", got, name)
			}
			defer res.Body.Close()
		}
	}
	transport := l.HTTP.Transport.(*http.Transport)
	eventually(t, "the streams of callers that never read have ended", func() bool {
		var open2 []*http.Response
		defer func() {
			for _, res := range open2 {
				res.Body.Close()
			}
		}()
		for range 2 * each {
			res, err := open(transport, streamBody(l.Sender, "re-stream", "h1-0", "", ""))
			if err != nil {
				t.Fatal(err)
			}
			open2 = append(open2, res)
			if res.Header.Get("Content-Type") != "text/event-stream" {
				return false
			}
		}
		return true
	})
	for i, conn := range conns {
		close(conn.wake)
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn.Conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d is still open", i)
		}
	}
}
