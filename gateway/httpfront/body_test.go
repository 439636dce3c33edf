// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/gateway"
)

// TestBodies reads bodies into buffers of any size: a fresh one, and one that a large request has left without memory.
func TestBodies(t *testing.T) {
	const limit = 10 << 10
	h := openSite(t, func(h *setup) { h.Partner.Agent, h.Limits.Bytes = busyAgent{}, limit })
	for _, room := range []int{0, 1, 4 << 10, limit, 2 * limit} {
		for _, size := range []int{0, 1, limit, limit + 1, 2 * limit} {
			for _, length := range []int64{int64(size), -1} {
				body := strings.Repeat("x", size)
				r := httptest.NewRequest("POST", "/", wary{strings.NewReader(body)})
				r.ContentLength = length
				in := make([]byte, 0, room)
				e := exchange{front: h.Front, ctx: t.Context(), request: gateway.Request{Body: &in}}
				err := e.read(httptest.NewRecorder(), r)
				want := body[:min(size, limit+1)]
				if got := string(in); err != nil || got != want {
					t.Errorf("room %d, a body of %d bytes, length %d: %d bytes, %v", room, size, length, len(got), err)
				}
			}
		}
	}
}

// wary is a body that refuses to be read into no room, which would go on for ever.
type wary struct{ io.Reader }

func (w wary) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, errors.New("there is no room to read into")
	}
	return w.Reader.Read(p)
}
