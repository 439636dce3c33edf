// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// broken is a dialect with a bug at the begin of its streams.
type broken struct{ translate.Server }

func (broken) NewStream(jsonrpc.ID, *translate.Call, *task.Task) translate.Encoder { panic("a bug") }

// TestStreamsAfterAPanic: a bug of a codec ends one stream, and takes no place from the others for ever, nor from a
// quota.
func TestStreamsAfterAPanic(t *testing.T) {
	g := open(t, func(h *setup) { h.Callers = []translate.Server{broken{aip.Server()}} },
		under(t, policy.Config{Quotas: []policy.Quota{{Name: "q", Streams: 1}}}))
	for _, id := range []string{"t1", "t2"} {
		start := strings.NewReader(message("stream", "start", id, "hello"))
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: there was no panic", id)
				}
			}()
			g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/agents/one/stream", start))
		}()
		if n := g.streams(); n != 0 {
			t.Errorf("%s: %d streams are counted as open", id, n)
		}
	}
}
