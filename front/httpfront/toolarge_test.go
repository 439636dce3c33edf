// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTooLargeForA2A: callers of A2A learn by the status of a body too large, since some SDKs show nothing of an error
// without an id under 200. It is so whether the gateway or a handler before it ends the body, and whether its length is
// known. AIP has its errors under 200.
func TestTooLargeForA2A(t *testing.T) {
	const limit = 16 << 10
	text := strings.Repeat("x", limit)
	calls := map[string]struct{ path, version, body string }{
		"1.0": {"", "", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m",` +
			`"role":"ROLE_USER","parts":[{"text":"` + text + `"}]}}}`},
		"1.0, by the version": {"", "1.0", `{"params":{"message":{"parts":[{"text":"` + text +
			`"}]}},"method":"SendMessage"}`},
		"1.0, REST": {"/message:send", "", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"` + text +
			`"}]}}`},
		"0.3": {"", "", `{"id":1,"jsonrpc":"2.0","method":"message/stream","params":{"message":{"messageId":"m",` +
			`"role":"user","parts":[{"kind":"text","text":"` + text + `"}]}}}`},
		"0.3, REST": {"/v1/message:send", "", `{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"` + text +
			`"}]}}`},
		"legacy": {"", "", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t","message":{"role":"user",` +
			`"parts":[{"type":"text","text":"` + text + `"}]}}}`},
		"aip": {"/rpc", "", message("rpc", "start", "t", text)},
	}
	bodies := make(map[string][]string)
	for _, by := range []string{"the gateway", "a handler before it"} {
		g := open(t, everyA2A, func(h *setup) {
			if h.Limits.Bytes = limit; by == "a handler before it" {
				h.Limits.Bytes = 64 << 10
			}
		})
		handler := g.server.Config.Handler
		g.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if by == "a handler before it" {
				r.Body = http.MaxBytesReader(w, r.Body, limit)
			}
			handler.ServeHTTP(w, r)
		})
		for name, c := range calls {
			for _, chunked := range []bool{false, true} {
				body := io.Reader(strings.NewReader(c.body))
				if chunked {
					body = io.MultiReader(body) // its length is not known
				}
				req, err := http.NewRequestWithContext(t.Context(), "POST", g.server.URL+"/agents/one"+c.path, body)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				if c.version != "" {
					req.Header.Set("A2A-Version", c.version)
				}
				res, err := g.server.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := io.ReadAll(res.Body)
				res.Body.Close()
				want := 413
				if name == "aip" {
					want = 200
				}
				if err != nil || res.StatusCode != want || res.Header.Get("Content-Type") == "text/event-stream" ||
					!strings.Contains(string(answer), "the body is larger than 16384 bytes") {
					t.Errorf("%s, by %s, chunked %t: answered with %d and %.300s, %v", name, by, chunked, res.StatusCode,
						answer, err)
				}
				bodies[name] = append(bodies[name], string(answer))
			}
		}
	}
	for name, all := range bodies {
		for _, other := range all[1:] {
			if diff := cmp.Diff(all[0], other); diff != "" {
				t.Errorf("%s: not all answers are the same:\n%s", name, diff)
			}
		}
	}
}
