// SPDX-License-Identifier: Apache-2.0

package callback

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// push posts a body as an agent does, and returns the status of the answer.
func push(t *testing.T, s *Server, url, token, body string) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-A2A-Notification-Token", token)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Code
}

// TestServer pushes with the right token and address, and with wrong ones.
//
// Promise: forged pushes of an agent (`aip_callback`)
func TestServer(t *testing.T) {
	var callbacks Server
	cb := callbacks.begin()
	url := "/some/where/" + cb.id
	for _, tc := range []struct {
		name, method, url string
		header            []string
		body              string
		status            int
		says              string
	}{
		{"in order", "POST", url, []string{"X-A2A-Notification-Token", cb.token}, "{}", 200, ""},
		{"as 1.0 has it", "POST", url, []string{"A2A-Notification-Token", cb.token}, "{}", 200, ""},
		{"as AIP has it", "POST", url, []string{"X-ACPS-AIP-Notification-Token", cb.token}, "{}", 200, ""},
		{"as a bearer", "POST", url, []string{"Authorization", "Bearer " + cb.token}, "{}", 200, ""},
		{"the wrong token", "POST", url, []string{"X-A2A-Notification-Token", cb.token + "x"}, "{}", 401, "token"},
		{"no token", "POST", url, nil, "{}", 401, "token"},
		{"another address", "POST", "/some/where/else", []string{"X-A2A-Notification-Token", cb.token}, "{}", 404,
			"no turn"},
		{"no JSON", "POST", url, []string{"X-A2A-Notification-Token", cb.token, "Content-Type", "text/plain"}, "{}",
			415, "JSON"},
		{"too large", "POST", url, []string{"X-A2A-Notification-Token", cb.token}, strings.Repeat("x", MaxPush+1), 413,
			"too large"},
		{"a challenge", "GET", url + "?validationToken=a%20b", nil, "", 200, "a b"},
		{"no challenge", "GET", url, nil, "", 400, "validationToken"},
		{"a long challenge", "GET", url + "?validationToken=" + strings.Repeat("x", maxChallenge+1), nil, "", 400,
			"validationToken"},
		{"another method", "DELETE", url, nil, "", 405, "POST"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.url, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			for i := 0; i < len(tc.header); i += 2 {
				r.Header.Set(tc.header[i], tc.header[i+1])
			}
			w := httptest.NewRecorder()
			callbacks.ServeHTTP(w, r)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("got %d %q, want %d with %q", w.Code, w.Body, tc.status, tc.says)
			}
		})
	}
	for len(cb.bodies) < maxPushes {
		cb.bodies <- nil
	}
	if status := push(t, &callbacks, url, cb.token, "{}"); status != http.StatusServiceUnavailable {
		t.Errorf("a turn that is behind answers %d", status)
	}
	if got, want := callbacks.Counts(), (Counts{Open: 1, Taken: 4, Refused: 6}); got != want {
		t.Errorf("counted are %+v, want %+v", got, want)
	}
	callbacks.end(cb)
	if status := push(t, &callbacks, url, cb.token, "{}"); status != http.StatusNotFound {
		t.Errorf("a turn that is over answers %d", status)
	}
}
