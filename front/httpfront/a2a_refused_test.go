// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"strings"
	"testing"
)

// TestMessagesWithoutARole: the role of a message may be missing in every version, and is a user's.
func TestMessagesWithoutARole(t *testing.T) {
	g := open(t, everyCaller)
	for method, params := range map[string]string{
		"SendMessage":  `{"message":{"messageId":"m","parts":[{"text":"hello"}]}}`,
		"message/send": `{"message":{"kind":"message","messageId":"m","parts":[{"kind":"text","text":"hello"}]}}`,
		"tasks/send":   `{"id":"t","message":{"parts":[{"type":"text","text":"hello"}]}}`,
	} {
		_, body := g.post("/agents/one", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
		if strings.Contains(body, `"error"`) {
			t.Errorf("%s: got %s", method, body)
		}
		agents := strings.Replace(params, `"message":{`, `"message":{"role":"agent",`, 1)
		_, body = g.post("/agents/one", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+agents+`}`)
		if !strings.Contains(body, "-32602") {
			t.Errorf("%s of an agent: got %s", method, body)
		}
	}
}

// TestMediaTypeBeforeContent: a body of a media type unknown to 1.0 is refused before it is read, wherever the caller
// is known to speak 1.0.
func TestMediaTypeBeforeContent(t *testing.T) {
	for name, tc := range map[string]struct {
		callers    int // index into everyCaller
		path, says string
		version    string
	}{
		"only 1.0":        {2, "", `"code":-32005`, ""},
		"named":           {0, "", `"code":-32005`, "1.0"},
		"not named":       {0, "", `"code":-32700`, ""},
		"REST":            {0, "/message:send", `"CONTENT_TYPE_NOT_SUPPORTED"`, ""},
		"another version": {0, "", `"code":-32700`, "0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, func(h *setup) {
				if everyCaller(h); tc.callers > 0 {
					h.Callers = h.Callers[tc.callers : tc.callers+2]
				}
			})
			path := tc.path
			if tc.version != "" {
				path += "?A2A-Version=" + tc.version
			}
			_, body := g.request("POST", "/agents/one"+path, "Content-Type", "text/plain", "{")
			if !strings.Contains(body, tc.says) {
				t.Errorf("got %s, want %s", body, tc.says)
			}
		})
	}
}

// TestErrorsOfNamedVersion: a caller of 0.3 with the name of its version gets errors without data, in a stream, too.
func TestErrorsOfNamedVersion(t *testing.T) {
	g := open(t, everyCaller)
	for _, method := range []string{"tasks/get", "tasks/resubscribe"} {
		for version, want := range map[string]bool{"": true, "0.3": false, "0.3.0": false} {
			path := "/agents/one"
			if version != "" {
				path += "?A2A-Version=" + version
			}
			_, body := g.post(path, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"id":"gw-`+
				strings.Repeat("a", 26)+`"}}`)
			if !strings.Contains(body, "-32001") || strings.Contains(body, `"data":`) != want {
				t.Errorf("%s, version %q: %s", method, version, body)
			}
		}
	}
}

// TestMessagesOfAnotherContext: a message with a task and a context other than the task's is refused in A2A (1.0
// §3.4.3), and its agent does not get it. Neither does it get a message with the id of another one.
func TestMessagesOfAnotherContext(t *testing.T) {
	g := open(t, everyCaller)
	for name, post := range map[string]func(id, members, text string) string{
		"1.0": func(id, members, text string) string {
			_, body := g.post("/agents/one", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{`+
				`"role":"ROLE_USER","taskId":"`+id+`","parts":[{"text":"`+text+`"}],`+members+`}}}`)
			return body
		},
		"1.0, by a stream": func(id, members, text string) string {
			_, body := g.post("/agents/one", `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{`+
				`"role":"ROLE_USER","taskId":"`+id+`","parts":[{"text":"`+text+`"}],`+members+`}}}`)
			return body
		},
		"REST": func(id, members, text string) string {
			_, body := g.post("/agents/one/message:send", `{"message":{`+
				`"role":"ROLE_USER","taskId":"`+id+`","parts":[{"text":"`+text+`"}],`+members+`}}`)
			return body
		},
		"0.3": func(id, members, text string) string {
			_, body := g.post("/agents/one", `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{`+
				`"kind":"message","role":"user","taskId":"`+id+`","parts":[{"kind":"text","text":"`+text+`"}],`+members+`}}}`)
			return body
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := g.started("ask")
			asked := g.requests.Load()
			refused := func(members, text string) {
				t.Helper()
				if body := post(id, members, text); !strings.Contains(body, "-32602") && !strings.Contains(body, "INVALID_PARAMS") {
					t.Errorf("with %s, got %s", members, body)
				}
			}
			refused(`"messageId":"m2","contextId":"another"`, "ask")
			refused(`"messageId":"m","metadata":{}`, "other")
			if n := g.requests.Load(); n != asked {
				t.Errorf("the agent has got %d requests", n-asked)
			}
			if body := post(id, `"messageId":"m3"`, "ask"); strings.Contains(body, `"error"`) {
				t.Errorf("without a context, got %s", body)
			}
			if n := g.requests.Load(); n == asked {
				t.Error("the agent has got nothing")
			}
		})
	}
}
