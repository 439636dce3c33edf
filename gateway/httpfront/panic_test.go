// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// broken is a dialect with a bug in how its streams begin.
type broken struct{ translate.Server }

func (broken) NewStream(jsonrpc.ID, *translate.Call, *task.Task) translate.Encoder { panic("a bug") }

// TestStreamsAfterAPanic: a bug of a codec ends one stream, and takes no place from the others for ever.
func TestStreamsAfterAPanic(t *testing.T) {
	g := open(t, func(h *setup) { h.Callers = []translate.Server{broken{aip.Server()}} })
	r := httptest.NewRequest("POST", "/agents/one/stream", strings.NewReader(message("stream", "start", "t1", "hello")))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		g.ServeHTTP(httptest.NewRecorder(), r)
	}()
	if n := g.streams(); n != 0 {
		t.Errorf("%d streams are counted as open", n)
	}
}
