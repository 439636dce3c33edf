// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// TestBodiesWithoutEnvelope holds bodies that have no envelope to the same strictness as those that have one.
func TestBodiesWithoutEnvelope(t *testing.T) {
	g := open(t, func(h *Handler) { h.Callers = []translate.Server{a2a.V1Server(false), a2a.V1RESTServer(false)} })
	const start = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}`
	for name, c := range map[string]struct {
		body   string
		status int
		says   string
	}{
		"valid":             {start + `}`, 200, `"TASK_STATE_COMPLETED"`},
		"a member behind":   {start + `},"x":1`, 400, `"PARSE_ERROR"`},
		"a second object":   {start + `},"params":{}`, 400, `"PARSE_ERROR"`},
		"a second value":    {start + `} {}`, 400, `"PARSE_ERROR"`},
		"one brace more":    {start + `}}`, 400, `"PARSE_ERROR"`},
		"cut off":           {start, 400, `"PARSE_ERROR"`},
		"blank":             {" ", 400, `"PARSE_ERROR"`},
		"a key twice":       {start + `,"metadata":{"a":1,"a":2}}`, 400, `"field":"metadata.a"`},
		"an array":          {`[` + start + `}]`, 400, `"INVALID_PARAMS"`},
		"a string":          {`"message"`, 400, `"INVALID_PARAMS"`},
		"as deep as may be": {start + `,"metadata":` + strings.Repeat(`{"a":`, 15) + `1` + strings.Repeat(`}`, 15) + `}`, 200, `"task"`},
		"too deep":          {start + `,"metadata":` + strings.Repeat(`{"a":`, 16) + `1` + strings.Repeat(`}`, 16) + `}`, 400, `"limit":"depth"`},
		"too large":         {start + `,"metadata":{"a":"` + strings.Repeat("y", 16<<10) + `"}}`, 400, `"limit":"bytes"`},
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
