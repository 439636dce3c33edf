// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// askWebhooks is a call that only the part of the gateway answers that keeps webhooks.
const askWebhooks = `{"jsonrpc":"2.0","id":1,"method":"notification/get","params":{"taskId":"one"}}`

// TestReloadLosesNoCall reloads under the load of connections that are kept alive. HTTP/1.1 is not among them: net/http
// closes its idle connections without a warning, and a request that is on its way then is lost whatever a handler does.
func TestReloadLosesNoCall(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	with := config{handle: gatewayTo(agent)}
	s := serve(t, with)
	l := leaderOf(t, s.url())
	l.start("one", "hello")
	var stop atomic.Bool
	var calls atomic.Int64
	var callers sync.WaitGroup
	for name, transport := range l.transports(t) {
		if name == "1" {
			continue
		}
		for range 2 {
			callers.Go(func() {
				for !stop.Load() {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url(), strings.NewReader(askWebhooks))
					if err != nil {
						t.Error(err)
						return
					}
					res, err := transport.RoundTrip(req)
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
		with.handle = strings.Replace(gatewayTo(agent), "limits {", fmt.Sprintf("heartbeat %ds\n\t\tlimits {", 10+i), 1)
		if trouble := s.reload(with); trouble != "" {
			t.Errorf("reload %d: %s", i, trouble)
		}
	}
	stop.Store(true)
	callers.Wait()
	t.Logf("%d calls", calls.Load())
}
