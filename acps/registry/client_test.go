// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
)

// TestACS tells the answers to a lookup apart, as a registry of ACPs 2.1 gives them.
func TestACS(t *testing.T) {
	const aic = "1.2.156.3088.1.0001.00001.NENBED.MH2BLU.0VKU"
	for _, c := range []struct {
		name, capture string
		kind          Kind
		text          string // empty for success
	}{
		{"active", "20-acs-by-aic", 0, ""},
		{"another check digit", "20c-acs-bad-checksum", Refused, "Invalid AIC format or checksum"},
		{"unknown", "20b-acs-by-aic-lower-case", NotFound, "Agent not found with the provided AIC"},
		{"disabled", "33-acs-inactive", Inactive, "Agent status is not active"},
		{"deleted", "38-acs-deleted", Inactive, "Agent status is not active"},
		{"too many", "60-login-rate-limit", Limited, "20 per 1 minute"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := registrytest.Captured(t, c.capture)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/acps-atr-v2/acs/"+aic || r.Header.Get("Authorization") != "" {
					t.Errorf("it is asked for %s", r.URL)
				}
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}))
			defer s.Close()
			client := open(t, s.URL)
			acs, err := client.ACS(t.Context(), aic)
			if c.text == "" {
				if err != nil || !strings.Contains(string(acs), aic) {
					t.Fatalf("got %s, %v", acs, err)
				}
				return
			}
			e, _ := errors.AsType[*Error](err)
			if e == nil || e.Kind != c.kind || e.Status != status || e.Detail != c.text {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// TestBroken: a registry answering nonsense, breaking off, or silent.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		kind   Kind
	}{
		{"breaks off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"aic":`)
		}, Unavailable},
		{"closes", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unavailable},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, Malformed},
		{"no object", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[]") }, Malformed},
		{"too much", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `"`+strings.Repeat("x", maxACS)+`"`)
		}, Malformed},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, Malformed},
		{"an error of nothing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.answer)
			defer s.Close()
			client := open(t, s.URL)
			if _, err := client.ACS(t.Context(), "X"); !Is(err, c.kind) || c.kind == Unavailable && !IsTransient(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSilent: a registry without an answer in time is not available.
func TestSilent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	client, err := New(Config{URL: s.URL, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.ACS(t.Context(), "X"); !Is(err, Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestCheckURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://registry.example/":     "https://registry.example",
		"https://registry.example:9001": "https://registry.example:9001",
		"http://localhost:9001":         "http://localhost:9001",
		"http://127.0.0.2":              "http://127.0.0.2",
		"http://[::1]:1":                "http://[::1]:1",
		"http://registry.example":       "",
		"http://10.0.0.1":               "",
		"https://u:p@registry.example":  "",
		"https://registry.example?x=1":  "",
		"registry.example":              "",
		"ftp://registry.example":        "",
	} {
		got, err := CheckURL(url)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", url, got, err)
		}
	}
}

// TestReadError reads the three forms of errors, and bodies without one.
func TestReadError(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   Error
	}{
		{400, `{"error_name":"INVALID_ACS","title":"Invalid Acs","detail":"'aic' is a required property"}`,
			Error{Kind: Refused, Name: "INVALID_ACS", Detail: "'aic' is a required property"}},
		{401, `{"detail":"Not authenticated"}`, Error{Kind: Unauthorized, Detail: "Not authenticated"}},
		{409, `{"status":"error","error":{"code":40901,"message":"taken","data":{"existingAic":"A"}}}`,
			Error{Kind: Conflict, Name: "40901", Detail: "taken", Existing: "A"}},
		{403, `{"status":"error","error":{"code":40310,"message":"not active","data":"of another form"}}`,
			Error{Kind: Inactive, Name: "40310", Detail: "not active"}},
		{409, `{"status":"error","error":{"code":40901,"message":"taken","data":{"existingAic":7}}}`,
			Error{Kind: Conflict, Name: "40901", Detail: "taken"}},
		{422, `{"title":"T","errors":[{"loc":["body","x"],"msg":"bad"},{"loc":[],"msg":"worse"}]}`,
			Error{Kind: Refused, Detail: "[body x]: bad; []: worse"}},
		{400, `{"error":"authorization_pending","error_description":"wait"}`,
			Error{Kind: Refused, Name: "authorization_pending", Detail: "wait"}},
		{403, `{"error_name":"AIC_INACTIVE"}`, Error{Kind: Inactive, Name: "AIC_INACTIVE"}},
		{410, `gone`, Error{Kind: Gone}},
		{500, "{\"detail\":\"a\\u0000b\\nc\"}", Error{Kind: Unavailable, Detail: "a b c"}},
	} {
		c.want.Status = c.status
		if diff := cmp.Diff(&c.want, readError(c.status, []byte(c.body))); diff != "" {
			t.Errorf("%s: %s", c.body, diff)
		}
	}
}

// TestManyErrors: of a long list of mistakes, no more is formatted than is kept.
func TestManyErrors(t *testing.T) {
	body := []byte(`{"errors":[` + strings.Repeat(`{},`, maxErrorBody/3-10) + `{}]}`)
	var e *Error
	if n := testing.AllocsPerRun(1, func() { e = readError(422, body) }); n > 2*maxDetail {
		t.Errorf("%v allocations", n)
	}
	if len(e.Detail) > 2*maxDetail || !strings.HasPrefix(e.Detail, "[]: ; []: ;") {
		t.Errorf("the text is %q", e.Detail)
	}
}

func FuzzReadError(f *testing.F) {
	f.Add(400, `{"error_name":"X","detail":"y","errors":[{"loc":[1],"msg":"z"}],"error":{"code":1,"message":"m"}}`)
	f.Add(422, `{"detail":[{"loc":["body"],"msg":"m"}],"error":"text"}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		e := readError(status, []byte(body))
		if len(e.Detail) > 2*maxDetail || strings.ContainsAny(e.Detail+e.Name, "\n\r\x00\x1b") {
			t.Errorf("the text is %q", e.Detail)
		}
	})
}

func open(t testing.TB, url string) *Client {
	t.Helper()
	c, err := New(Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
