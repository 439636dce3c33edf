// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// hostileValues are values of parameters that no operator means.
var hostileValues = []string{
	strings.Repeat("x", 64<<10), "\x00\xff\xfe", "-1", "99999999999999999999999", "1e309", "../../../etc/passwd",
	"!", "a!", "!b", "%00", `"><script>`, "NaN", "2026-99-99T99:99:99Z", strings.Repeat("9", 90) + "d",
	"-9223372036854775808",
}

// hostileBodies are bodies that no route takes.
var hostileBodies = []string{
	"null", "[]", "0", `"text"`, "{", "\x00", "\xff\xfe{}", `{"":""}`, `{"partner":{}}`, `{"partner":null,"command":[]}`,
	strings.Repeat(`{"partner":`, 20000), strings.Repeat("[", 20000),
	`{"partner":"` + strings.Repeat("x", maxBody) + `"}`,
}

// TestHostileRequests: no request makes a route fail: what cannot be understood is refused as the caller's mistake, or
// selects nothing. All answers are JSON.
func TestHostileRequests(t *testing.T) {
	p := newAlone(t, nil)
	p.try("hello", "awaiting-completion")
	ask := func(method, path, query, body string) {
		t.Helper()
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, path+"?"+query, strings.NewReader(body))
		p.handlers[path].ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s %s?%.80s %.80q is answered with %d %.200s", method, path, query, body, w.Code, w.Body)
		}
		if text := w.Body.Bytes(); len(text) > 0 && !json.Valid(text) {
			t.Errorf("%s %s?%.80s is answered with %.200q", method, path, query, text)
		}
	}
	for path := range p.handlers {
		if path == adminapi.TailTasks { // an answer without an end
			continue
		}
		route := adminapi.RouteOf(path)
		for method := range strings.SplitSeq(route.Method, ", ") {
			for _, name := range route.Query {
				for _, value := range hostileValues {
					ask(method, path, url.Values{name: {value}}.Encode(), "")
				}
			}
			if method == http.MethodGet {
				continue
			}
			for _, body := range hostileBodies {
				ask(method, path, "", body)
			}
		}
	}
}

// TestOrders: a body that may be empty is bounded, and has known members only.
func TestOrders(t *testing.T) {
	read := func(body string) (adminapi.Withdrawal, error) {
		var into adminapi.Withdrawal
		err := readOrder(httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(body)), &into)
		return into, err
	}
	for body, want := range map[string]adminapi.Withdrawal{
		"": {}, " \n": {}, "{}": {}, "null": {}, `{"partner":"P","delete":true}`: {Partner: "P", Delete: true},
	} {
		if got, err := read(body); got != want || err != nil {
			t.Errorf("%q is read as %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{"{", "[]", `{"delete":"yes"}`, `{"other":1}`, `{"partner":"P"`,
		`{"partner":"` + strings.Repeat("x", maxBody) + `"}`} {
		if _, err := read(body); task.KindOf(err) != task.InvalidParams {
			t.Errorf("%.40q is refused by %v", body, err)
		}
	}
}
