// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// everyCaller makes a Handler serve all dialects, as callers aip aip/2 a2a does.
func everyCaller(h *Handler) {
	h.Callers = []translate.Server{aip.Server(), aip.ServerV2(""), a2a.V1Server(false), a2a.V1RESTServer(false), a2a.V03Server(false), a2a.LegacyServer(false)}
}

// TestRequestsWithoutID: callers of A2A are told first what else is wrong, those of AIP that there is no id.
func TestRequestsWithoutID(t *testing.T) {
	g := open(t, everyCaller)
	const message = `{"kind":"message","role":"user","messageId":"m","parts":[{"kind":"text","text":"hello"}]}`
	for name, c := range map[string]struct{ body, says string }{
		"0.3, nothing else":        {`"method":"message/send","params":{"message":` + message + `}`, `-32600`},
		"0.3, no message":          {`"method":"message/send","params":{}`, `-32602`},
		"0.3, params are a string": {`"method":"message/send","params":"not_a_dict"`, `-32602`},
		"0.3, no such task":        {`"method":"tasks/get","params":{"id":"gw-aaaaaaaaaaaaaaaaaaaaaaaaaa"}`, `-32600`},
		"legacy, params":           {`"method":"tasks/send","params":[]`, `-32602`},
		"1.0, nothing else":        {`"method":"GetTask","params":{"id":"t"}`, `-32600`},
		"1.0, params":              {`"method":"GetTask","params":{}`, `-32602`},
		"1.0, params are a string": {`"method":"SendMessage","params":"x"`, `-32602`},
		"no such method":           {`"method":"no/such","params":{}`, `-32600`},
		"no method":                {`"params":{}`, `-32600`},
		"aip":                      {`"method":"rpc","params":{}`, `-32600`},
		"aip, params":              {`"method":"rpc","params":"x"`, `-32600`},
	} {
		t.Run(name, func(t *testing.T) {
			_, body := g.post("/agents/one", `{"jsonrpc":"2.0",`+c.body+`}`)
			if !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":null,"error":{"code":`+c.says) {
				t.Errorf("got %s, want %s", body, c.says)
			}
		})
	}
	t.Run("with an id", func(t *testing.T) {
		_, body := g.post("/agents/one", `{"jsonrpc":"2.0","id":7,"method":"rpc","params":"x"}`)
		if !strings.HasPrefix(body, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`) {
			t.Errorf("got %s", body)
		}
	})
	if n := g.asked.Load(); n != 0 {
		t.Errorf("the agent was asked %d times", n)
	}
	t.Run("only A2A is served", func(t *testing.T) {
		g := open(t, func(h *Handler) { everyCaller(h); h.Callers = h.Callers[2:] })
		_, body := g.post("/agents/one", `{"jsonrpc":"2.0","method":"no/such","params":{}}`)
		if !strings.Contains(body, `-32601`) {
			t.Errorf("got %s", body)
		}
	})
}
