// SPDX-License-Identifier: Apache-2.0

package console

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// fromAPI is the answer of the admin API in tests.
const fromAPI = "of the API"

// ask has a handler with some permissions answer a request, with header fields as pairs.
func ask(method, path string, allow []adminapi.Permission, fields ...string) *httptest.ResponseRecorder {
	h := &Handler{Allow: allow, API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, fromAPI)
	})}
	r := httptest.NewRequest(method, "https://console.example"+path, nil)
	for pair := range slices.Chunk(fields, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestParsePermissions: all that an operator can give have a name, and reading needs none.
func TestParsePermissions(t *testing.T) {
	got, err := ParsePermissions([]string{"try", "cancel", "fail", "replay", "endpoints", "leave"})
	want := []adminapi.Permission{adminapi.MayTry, adminapi.MayCancel, adminapi.MayFail, adminapi.MayReplay,
		adminapi.MaySwitch, adminapi.MayLeave}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := ParsePermissions(nil); got != nil || err != nil {
		t.Errorf("of no names: %v, %v", got, err)
	}
	for _, name := range []string{"read", "Cancel", "all", ""} {
		want := `allow has "` + name + `", but must have some of [cancel fail replay endpoints leave try]`
		if got, err := ParsePermissions([]string{"try", name}); err == nil || err.Error() != want || got != nil {
			t.Errorf("of %q: %v, %v, want %s", name, got, err, want)
		}
	}
}

// TestServes: the page has its own paths and those that it asks, and leaves all others to its site.
func TestServes(t *testing.T) {
	for path, want := range map[string]bool{
		"/aip/console": true, "/aip/console/": true, "/aip/console/console.js": true, "/aip/console/none": true,
		adminapi.Tasks: true, adminapi.CancelTask: true, adminapi.TryPartner: true,
		"/": false, "/aip/": false, "/aip/consoles": false, "/console/": false, adminapi.Tasks + "/none": false,
		adminapi.Certificates: false, adminapi.RetireCertificates: false,
	} {
		if got := new(Handler).Serves(path); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

// TestPage: what is answered for the paths of the page.
func TestPage(t *testing.T) {
	const json, javascript = "application/json", "text/javascript; charset=utf-8"
	allow := []adminapi.Permission{adminapi.MayCancel, adminapi.MayTry}
	refused := func(why string) string { return `{"error":"` + why + `"}` + "\n" }
	type answer struct {
		status int
		kind   string
		begins string
	}
	for request, want := range map[string]answer{
		"GET /aip/console/":                  {200, "text/html; charset=utf-8", "<!doctype html>"},
		"HEAD /aip/console/":                 {200, "text/html; charset=utf-8", ""},
		"GET /aip/console/console.css":       {200, "text/css; charset=utf-8", ""},
		"GET /aip/console/icon.svg":          {200, "image/svg+xml", "<svg"},
		"GET /aip/console/console.js":        {200, javascript, ""},
		"GET /aip/console/permissions.json":  {200, json, `["cancel","try"]` + "\n"},
		"GET /aip/console/none.js":           {404, json, refused("the console has no such file")},
		"GET /aip/console/assets":            {404, json, refused("the console has no such file")},
		"GET /aip/console/../console.go":     {404, json, refused("the console has no such file")},
		"GET /aip/console/.":                 {404, json, refused("the console has no such file")},
		"POST /aip/console/":                 {405, json, refused("use GET")},
		"DELETE /aip/console/console.js":     {405, json, refused("use GET")},
		"PUT /aip/console/permissions.json":  {405, json, refused("use GET")},
		"GET " + adminapi.RetireCertificates: {404, json, refused("the console has no such file")},
	} {
		method, path, _ := strings.Cut(request, " ")
		w := ask(method, path, allow)
		got := answer{w.Code, w.Header().Get("Content-Type"), w.Body.String()}
		if w.Code == 200 && path != Path+permissions {
			got.begins = got.begins[:min(len(want.begins), len(got.begins))]
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answer{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", request, diff)
		}
		if allowed := w.Header().Get("Allow"); (allowed == "GET, HEAD") != (w.Code == 405) {
			t.Errorf("%s: the methods are %q", request, allowed)
		}
	}
	if body := ask("GET", Path+permissions, nil).Body.String(); body != "[]\n" {
		t.Errorf("without permissions, the page reads %s", body)
	}
	// Behind a prefix that was stripped, the page is found all the same.
	if w := ask("GET", "/aip/console", nil); w.Code != 308 || w.Header().Get("Location") != "console/" {
		t.Errorf("without a slash at its end: %d, to %s", w.Code, w.Header().Get("Location"))
	}
}

// TestFiles: each file that the page or a module names is there, and a browser is told of all modules at once.
func TestFiles(t *testing.T) {
	names := regexp.MustCompile(`(?:from|import|src=|href=)\s*\(?"(?:\./)?([a-z]+\.[a-z]+)"`)
	files, err := fs.ReadDir(assets, "assets")
	if err != nil {
		t.Fatal(err)
	}
	link, named, modules := ask("GET", Path, nil).Header().Get("Link"), 0, 0
	for _, file := range files {
		text, err := fs.ReadFile(assets, "assets/"+file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file.Name(), ".js") {
			modules++
			if !strings.Contains(link, "<"+file.Name()+">; rel=modulepreload") {
				t.Errorf("%s is not in %s", file.Name(), link)
			}
		}
		for _, found := range names.FindAllStringSubmatch(string(text), -1) {
			named++
			if w := ask("GET", Path+found[1], nil); w.Code != 200 {
				t.Errorf("%s names %s, for which %d is answered", file.Name(), found[1], w.Code)
			}
		}
	}
	if n := strings.Count(link, "rel="); n != modules || named < modules {
		t.Errorf("of %d modules, %d are told of; %d names were found", modules, n, named)
	}
	if link := ask("GET", Path+"console.js", nil).Header().Get("Link"); link != "" {
		t.Errorf("a module is sent with %s", link)
	}
}

// TestHeaders: no answer may be framed, kept, or taken for something else, also one of the API and a refusal.
func TestHeaders(t *testing.T) {
	for _, path := range []string{Path, "/aip/console", Path + "console.js", Path + "none", adminapi.Tasks,
		adminapi.CancelTask} {
		header := ask("GET", path, nil).Header()
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control": "no-store",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		rules := strings.Split(header.Get("Content-Security-Policy"), "; ")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'",
			"frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'"} {
			if !slices.Contains(rules, rule) {
				t.Errorf("%s: the policy %q has no %s", path, rules, rule)
			}
		}
	}
}

// TestPermissions: each route is asked with its permission and with no other one, and reading needs none.
func TestPermissions(t *testing.T) {
	asked := 0
	for _, route := range adminapi.Routes {
		if route.Console == "" {
			continue
		}
		asked++
		method, _, _ := strings.Cut(route.Method, ", ")
		others := slices.DeleteFunc(adminapi.Permissions(), func(p adminapi.Permission) bool { return p == route.Console })
		if body := ask(method, route.Path, []adminapi.Permission{route.Console}).Body.String(); body != fromAPI {
			t.Errorf("%s with %s: %s", route.Path, route.Console, body)
		}
		want := fromAPI
		if route.Console != adminapi.MayRead {
			want = `{"error":"the console may not do that; its site has no allow ` + string(route.Console) + "\"}\n"
		}
		if diff := cmp.Diff(want, ask(method, route.Path, others).Body.String()); diff != "" {
			t.Errorf("%s with %v (-want +got):\n%s", route.Path, others, diff)
		}
	}
	if asked < 20 {
		t.Errorf("the page asks %d routes only", asked)
	}
}

// TestOtherSites: a page of another site can make an operator's browser neither read nor change anything. Programs that
// are no browsers say nothing about sites.
func TestOtherSites(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		fields       []string
		want         int
	}{
		{"GET", adminapi.Tasks, nil, 200},
		{"GET", adminapi.Tasks, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"GET", adminapi.Tasks, []string{"Sec-Fetch-Site", "none"}, 200}, // typed by the operator
		{"GET", adminapi.Tasks, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", adminapi.Tasks, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", adminapi.CancelTask, nil, 200},
		{"POST", adminapi.CancelTask, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"POST", adminapi.CancelTask, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", adminapi.CancelTask, []string{"Origin", "https://console.example"}, 200},
		{"POST", adminapi.CancelTask, []string{"Origin", "https://other.example"}, 403},
		{"POST", adminapi.CancelTask, []string{"Origin", "null"}, 403},
		{"GET", Path, []string{"Sec-Fetch-Site", "cross-site"}, 200}, // a link to the page
	} {
		w := ask(tc.method, tc.path, []adminapi.Permission{adminapi.MayCancel}, tc.fields...)
		if w.Code != tc.want {
			t.Errorf("%s %s with %q: %d, want %d", tc.method, tc.path, tc.fields, w.Code, tc.want)
		}
		const why = `{"error":"the request comes from another site"}` + "\n"
		if w.Code == 403 && w.Body.String() != why {
			t.Errorf("%s %s with %q: %s", tc.method, tc.path, tc.fields, w.Body)
		}
	}
}
