// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
)

func TestDocuments(t *testing.T) {
	var logged strings.Builder
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	site := func(public string) *site {
		return openSite(t, func(h *setup) {
			h.Base, h.PublicURL, h.Partner.Agent, h.front.Log = "/agents/one", public, busyAgent{}, logger
		})
	}
	h := site("")
	documents := map[string]gateway.Document{
		"/agents/one/.well-known/card.json": func(_ context.Context, base, version string) ([]byte, error) {
			return []byte(`{"base":"` + base + `","version":"` + version + `"}`), nil
		},
		"/agents/one/.well-known/none.json": func(context.Context, string, string) ([]byte, error) { return nil, nil },
		"/agents/one/.well-known/down.json": func(context.Context, string, string) ([]byte, error) {
			return nil, errors.New("the agent sleeps")
		},
	}
	get := func(method, path string, header ...string) *http.Response {
		r := httptest.NewRequest(method, "http://gateway.example"+path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		documentHandler{h.Front, documents[path[:strings.Index(path+"?", "?")]], path, h.Front.url(r)}.ServeHTTP(w, r)
		return w.Result()
	}
	for _, tc := range []struct {
		name, method, path string
		header             []string
		status             int
		body               string
	}{
		{"by request", "GET", "/agents/one/.well-known/card.json", nil, 200,
			`{"base":"http://gateway.example/agents/one","version":""}`},
		{"a version", "GET", "/agents/one/.well-known/card.json", []string{"A2A-Version", " 1.0 "}, 200,
			`{"base":"http://gateway.example/agents/one","version":"1.0"}`},
		{"a version in the query", "GET", "/agents/one/.well-known/card.json?A2A-Version=0.3", nil, 200,
			`{"base":"http://gateway.example/agents/one","version":"0.3"}`},
		{"head", "HEAD", "/agents/one/.well-known/card.json", nil, 200, ""},
		{"post", "POST", "/agents/one/.well-known/card.json", nil, 405, "use GET\n"},
		{"not for this caller", "GET", "/agents/one/.well-known/none.json", nil, 404, "404 page not found\n"},
		{"the agent is down", "GET", "/agents/one/.well-known/down.json", nil, 502,
			"the agent's card is not available\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res := get(tc.method, tc.path, tc.header...)
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.body, string(body)); res.StatusCode != tc.status || diff != "" {
				t.Errorf("status %d, want %d\n%s", res.StatusCode, tc.status, diff)
			}
			if tc.status == 200 && (res.Header.Get("Vary") != "A2A-Version" || res.Header.Get("ETag") == "" ||
				res.Header.Get("Cache-Control") == "") {
				t.Errorf("header %v", res.Header)
			}
		})
	}
	if !strings.Contains(logged.String(), "the agent sleeps") {
		t.Errorf("the log says %q", logged.String())
	}

	logged.Reset()
	left, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(left, "GET", "http://gateway.example/agents/one/.well-known/down.json", nil)
	down := documents["/agents/one/.well-known/down.json"]
	documentHandler{h.Front, down, r.URL.Path, ""}.ServeHTTP(httptest.NewRecorder(), r)
	if logged.Len() > 0 {
		t.Errorf("of a caller that has left, the log says %q", logged.String())
	}

	first := get("GET", "/agents/one/.well-known/card.json")
	tag := first.Header.Get("ETag")
	for field, status := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200,
		"": 200} {
		if res := get("GET", "/agents/one/.well-known/card.json", "If-None-Match", field); res.StatusCode != status {
			t.Errorf("If-None-Match %s: status %d, want %d", field, res.StatusCode, status)
		}
	}
	h = site("https://agents.example/one")
	if res := get("GET", "/agents/one/.well-known/card.json"); res.Header.Get("ETag") == tag {
		t.Error("another public URL, and the tag is the same")
	}
}
