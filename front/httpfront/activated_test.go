// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// completed are the agents' results of two dialects for a completed task of a message.
var completed = map[string]string{
	"a2a/0.3": `{"kind":"task","id":"T","contextId":"C","status":{"state":"completed"}}`,
	"a2a/1.0": `{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"}}}`,
}

// answers serves an agent without a card, with one result for each request, after see was called with it.
func answers(t *testing.T, result string, see func(r *http.Request, body []byte)) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // its card
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		see(r, body)
		var request struct{ ID json.RawMessage }
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, result)
	}))
}

// TestActivatedExtensions: the extensions of A2A activated by a caller reach agents of A2A, by both names of the field,
// and nothing else of the caller's header does.
func TestActivatedExtensions(t *testing.T) {
	const ui, other = "https://a2ui.example/v0.1", "urn:x:y"
	send := func(method, parts string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"activatedExtensions":{"uris":"urn:forged"},` +
			`"message":{"messageId":"m","role":"ROLE_USER","parts":[` + parts + `]}}}`
	}
	for dialect, answer := range completed {
		var got []string
		var body string
		behind := answers(t, answer, func(r *http.Request, all []byte) {
			body = string(all)
			got = append(append(r.Header["A2a-Extensions"], r.Header["X-A2a-Extensions"]...), r.Header["X-Other"]...)
		})
		g := open(t, everyA2A, func(s *setup) {
			s.Agent.Dialect, s.Agent.HTTP.URL, s.Partner.Agent = dialect, behind.URL, nil
		})
		for name, c := range map[string]struct {
			body   string
			header http.Header
			want   []string
		}{
			"none": {send("SendMessage", `{"text":"hi"}`), nil, nil},
			"1.0": {send("SendMessage", `{"text":"hi"}`), http.Header{"A2A-Extensions": {ui + ", " + other}, "X-Other": {"x"}},
				[]string{ui + ", " + other, ui + ", " + other}},
			"0.3, twice, and what is none": {strings.Replace(send("message/send", `{"kind":"text","text":"hi"}`),
				"ROLE_USER", "user", 1), http.Header{"X-A2A-Extensions": {ui, ui + ",no uri,\x01:," + strings.Repeat("x:", 200)}},
				[]string{ui, ui}},
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/agents/one", strings.NewReader(c.body))
			r.Header.Set("Content-Type", "application/json")
			for field, values := range c.header {
				for _, v := range values {
					r.Header.Add(field, v)
				}
			}
			w := httptest.NewRecorder()
			g.Front.ServeHTTP(w, r)
			if diff := cmp.Diff(c.want, got); diff != "" || strings.Contains(body, "activatedExtensions") ||
				strings.Contains(w.Body.String(), "activated") {
				t.Errorf("%s, %s: (-want +got):\n%s\nthe agent got %s\nthe caller got %s", dialect, name, diff, body, w.Body)
			}
		}
		behind.Close()
	}
}

// TestForgedExtensions: a Leader of AIP may write extensions of A2A as metadata, and nothing in them becomes a header
// field of its choice.
func TestForgedExtensions(t *testing.T) {
	const forged = `http://x,urn:a\r\nAuthorization: Bearer stolen\r\nX-Other: 1\r\nContent-Length: 0\r\n\r\n`
	for dialect, answer := range completed {
		var got http.Header
		behind := answers(t, answer, func(r *http.Request, _ []byte) { got = r.Header.Clone() })
		g := open(t, func(s *setup) {
			s.Agent.Dialect, s.Agent.HTTP.URL, s.Partner.Agent = dialect, behind.URL, nil
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/agents/one", strings.NewReader(
			`{"jsonrpc":"2.0","method":"rpc","id":1,"params":{"message":{"id":"m","senderRole":"leader","senderId":"L",`+
				`"command":"start","taskId":"t","sessionId":"s","dataItems":[{"type":"text","text":"hi"}],`+
				`"metadata":{"a2a":{"activatedExtensions":{"uris":"`+forged+`"}}}}}}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.Front.ServeHTTP(w, r)
		want := []string{"http://x"}
		if diff := cmp.Diff([][]string{want, want, nil, nil}, [][]string{
			got["A2a-Extensions"], got["X-A2a-Extensions"], got["X-Other"], got["Authorization"],
		}); diff != "" {
			t.Errorf("%s (-want +got):\n%s\nthe caller got %s", dialect, diff, w.Body)
		}
		behind.Close()
	}
}
