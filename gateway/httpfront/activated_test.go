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

// TestActivatedExtensions: the extensions of A2A that a caller activates reach agents of A2A, by both names of the
// field, and nothing else of the caller's header does.
func TestActivatedExtensions(t *testing.T) {
	const ui, other = "https://a2ui.example/v0.1", "urn:x:y"
	send := func(method, parts string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"activatedExtensions":{"uris":"urn:forged"},` +
			`"message":{"messageId":"m","role":"ROLE_USER","parts":[` + parts + `]}}}`
	}
	for dialect, answer := range map[string]string{
		"a2a/0.3": `{"kind":"task","id":"T","contextId":"C","status":{"state":"completed"}}`,
		"a2a/1.0": `{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"}}}`,
	} {
		var got []string
		var body string
		behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			all, _ := io.ReadAll(r.Body)
			body = string(all)
			got = append(append(r.Header["A2a-Extensions"], r.Header["X-A2a-Extensions"]...), r.Header["X-Other"]...)
			var request struct{ ID json.RawMessage }
			if err := json.Unmarshal(all, &request); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, request.ID, answer)
		}))
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
