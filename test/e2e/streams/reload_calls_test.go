// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/quic-go/quic-go/http3"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// askWebhooks is a call that only the part of the gateway answers that keeps webhooks.
const askWebhooks = `{"jsonrpc":"2.0","id":1,"method":"notification/get","params":{"taskId":"one"}}`

// TestReloadLosesNoCall reloads under the load of connections that are kept alive. HTTP/1.1 is not among them: net/http
// closes its idle connections without a warning, and a request that is on its way then is lost whatever a handler does.
// Nor are calls counted that have no connection yet: a reload closes a listener, and the kernel resets the connections
// that wait there to be accepted. So a connection is made again until its handshake is over. A call over HTTP/3 is made
// again if the client itself has closed the connection: after a GOAWAY quic-go misses a request that it has just begun.
func TestReloadLosesNoCall(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	with := site.Config{Handle: site.GatewayTo(agent)}
	s := site.Serve(t, with)
	l := site.LeaderOf(t, s.URL())
	l.Start("one", "hello")
	var stop atomic.Bool
	var calls atomic.Int64
	var callers sync.WaitGroup
	for name, transport := range l.Transports(t) {
		if h, ok := transport.(*http.Transport); ok {
			if !h.ForceAttemptHTTP2 {
				continue
			}
			h.DialTLSContext = dialUntilAccepted(h.TLSClientConfig)
		}
		for range 2 {
			callers.Go(func() {
				for !stop.Load() {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL(), strings.NewReader(askWebhooks))
					if err != nil {
						t.Error(err)
						return
					}
					res, err := transport.RoundTrip(req)
					if errors.Is(err, &http3.Error{ErrorCode: http3.ErrCodeNoError}) {
						continue
					}
					if err != nil {
						t.Errorf("HTTP/%s: %v", name, err)
						continue
					}
					body, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err != nil || !strings.Contains(string(body), `"result"`) {
						t.Errorf("HTTP/%s: %s %v", name, body, err)
					}
					calls.Add(1)
				}
			})
		}
	}
	for i := range 10 {
		with.Handle = strings.Replace(site.GatewayTo(agent), "limits {", fmt.Sprintf("heartbeat %ds\n\t\tlimits {", 10+i), 1)
		if trouble := s.Reload(with); trouble != "" {
			t.Errorf("reload %d: %s", i, trouble)
		}
	}
	stop.Store(true)
	callers.Wait()
	t.Logf("%d calls", calls.Load())
}

// dialUntilAccepted returns a dial function that dials again where the handshake is cut off.
func dialUntilAccepted(config *tls.Config) func(ctx context.Context, network, address string) (net.Conn, error) {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	d := tls.Dialer{Config: config}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		for {
			conn, err := d.DialContext(ctx, network, address)
			if errors.Is(err, syscall.ECONNRESET) {
				continue
			}
			return conn, err
		}
	}
}
