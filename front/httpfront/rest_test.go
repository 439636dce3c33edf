// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// TestBodiesWithoutEnvelope holds bodies without an envelope to the same strictness as bodies with one.
func TestBodiesWithoutEnvelope(t *testing.T) {
	g := open(t, func(h *setup) { h.Callers = []translate.Server{a2a.V1Server(false), a2a.V1RESTServer(false)} })
	const start = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}`
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"valid":           {start + `}`, 200, `"TASK_STATE_COMPLETED"`},
		"a member behind": {start + `},"x":1`, 400, `"PARSE_ERROR"`},
		"a second object": {start + `},"params":{}`, 400, `"PARSE_ERROR"`},
		"a second value":  {start + `} {}`, 400, `"PARSE_ERROR"`},
		"one brace more":  {start + `}}`, 400, `"PARSE_ERROR"`},
		"cut off":         {start, 400, `"PARSE_ERROR"`},
		"blank":           {" ", 400, `"PARSE_ERROR"`},
		"a key twice":     {start + `,"metadata":{"a":1,"a":2}}`, 400, `"field":"metadata.a"`},
		"an array":        {`[` + start + `}]`, 400, `"INVALID_PARAMS"`},
		"a string":        {`"message"`, 400, `"INVALID_PARAMS"`},
		"as deep as may be": {start + `,"metadata":` + strings.Repeat(`{"a":`, 15) + `1` + strings.Repeat(`}`, 15) +
			`}`, 200, `"task"`},
		"too deep": {start + `,"metadata":` + strings.Repeat(`{"a":`, 16) + `1` + strings.Repeat(`}`, 16) +
			`}`, 400, `"limit":"depth"`},
		"too large": {start + `,"metadata":{"a":"` + strings.Repeat("y", 16<<10) + `"}}`, 413,
			`"limit":"bytes"`},
	} {
		t.Run(name, func(t *testing.T) {
			res, body := g.post("/agents/one/message:send", c.body)
			if res.StatusCode != c.status || !strings.Contains(body, c.says) {
				t.Errorf("got %d %s, want %d with %s", res.StatusCode, body, c.status, c.says)
			}
		})
	}
	t.Run("a body that is not looked at", func(t *testing.T) {
		req, err := http.NewRequest("GET", g.server.URL+"/agents/one/tasks", strings.NewReader(`{"x`))
		if err != nil {
			t.Fatal(err)
		}
		res, err := g.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("got %d", res.StatusCode)
		}
	})
}

// TestStoreIsUnavailable: a caller is asked to try again later by a field, and a caller of plain HTTP by the status,
// too, while one of JSON-RPC has the reason in the error.
func TestStoreIsUnavailable(t *testing.T) {
	g := open(t, func(h *setup) {
		h.Callers = []translate.Server{aip.Server(), a2a.V1Server(false), a2a.V1RESTServer(false)}
		h.Ready = func(context.Context) error {
			return partner.StoreError(replay.ErrUnavailable, "the task cannot be stored")
		}
	})
	type answer struct {
		Status int
		Field  string
	}
	for name, c := range map[string]struct {
		path, body string
		want       answer
	}{
		"REST": {"/message:send", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`,
			answer{503, "5"}},
		"JSON-RPC": {"", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"gw-aaaaaaaaaaaaaaaaaaaaaaaaaa"}}`,
			answer{200, "5"}},
		"AIP": {"/rpc",
			`{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"type":"message","id":"m",` +
				`"sentAt":"2026-01-01T00:00:00Z",` +
				`"senderRole":"leader","senderId":"l","command":"get","taskId":"t","dataItems":[]}}}`, answer{200, "5"}},
	} {
		res, body := g.post("/agents/one"+c.path, c.body)
		if diff := cmp.Diff(c.want, answer{res.StatusCode, res.Header.Get("Retry-After")}); diff != "" ||
			!strings.Contains(body, `"STORE_UNAVAILABLE"`) {
			t.Errorf("%s is answered %s (-want +got):\n%s", name, body, diff)
		}
	}
}
