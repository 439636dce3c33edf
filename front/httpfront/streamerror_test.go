// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// TestErrorsBeforeStreams: a Leader of AIP 2 asking for a stream, and accepting one, learns the reason for none from an
// event, whatever the reason: the reference's Leaders read nothing but events. All others get the error as JSON.
func TestErrorsBeforeStreams(t *testing.T) {
	both := func(h *setup) { h.Callers = []translate.Server{aip.ServerV2("partner"), aip.Server()} }
	one := func(h *setup) { h.Callers = []translate.Server{aip.ServerV2("partner")} }
	v2 := func(body string) string {
		return strings.Replace(body, `"message":{"type":"message"`, `"message":{"type":"task-command"`, 1)
	}
	again := message("stream", "re-stream", "none", "")
	large := message("stream", "start", "t", strings.Repeat("x", 16<<10))
	full := func(h *setup) { h.Streaming.Max = 0 }
	unknown := func(h *setup) { h.Guard = &identity.Guard{Mode: identity.Required} }
	const events = "text/event-stream"
	for name, c := range map[string]struct {
		change             func(*setup)
		path, accept, body string
		code               string
		event              bool
	}{
		"no such task":           {both, "stream", events, v2(again), "-32001", true},
		"among others":           {both, "stream", "application/json, text/event-stream", v2(again), "-32001", true},
		"not accepted":           {both, "stream", "application/json", v2(again), "-32001", false},
		"anything accepted":      {both, "stream", "*/*", v2(again), "-32001", false},
		"at the mount point":     {both, "", events, v2(again), "-32001", true},
		"version 1":              {both, "stream", events, again, "-32001", false},
		"no stream":              {both, "rpc", events, v2(message("rpc", "get", "none", "")), "-32001", false},
		"another method":         {both, "", events, v2(message("rpc", "get", "none", "")), "-32001", false},
		"cannot be decoded":      {both, "stream", events, v2(message("stream", "get", "t", "")), "-32602", true},
		"not JSON":               {one, "stream", events, v2(again) + "}", "-32700", true},
		"not of this path":       {one, "stream", events, v2(message("rpc", "get", "t", "")), "-32600", false},
		"too large":              {one, "stream", events, v2(large), "-32600", true},
		"too large, one of two":  {both, "stream", events, v2(large), "-32600", true},
		"too large, mount point": {one, "", events, v2(large), "-32600", true},
		"too large, version 1":   {both, "", events, large, "-32600", false},
		"no certificate":         {func(h *setup) { both(h); unknown(h) }, "stream", events, v2(again), "-32008", true},
		"too many streams": {func(h *setup) { both(h); full(h) }, "stream", events,
			v2(message("stream", "start", "t", "hello")), "-32050", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, c.change)
			req, err := http.NewRequestWithContext(t.Context(), "POST", g.server.URL+"/agents/one/"+c.path,
				strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", c.accept)
			res, err := g.server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			body, event := strings.CutPrefix(string(b), "data: ")
			want := "application/json"
			if c.event {
				want = events
				body, event = strings.CutSuffix(body, "\n\n")
			}
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != want || event != c.event ||
				!strings.HasPrefix(body, `{"jsonrpc":"2.0","id":`) || !strings.Contains(body, `"error":{"code":`+c.code) {
				t.Errorf("answered with %d %s %q", res.StatusCode, res.Header.Get("Content-Type"), b)
			}
		})
	}
}
