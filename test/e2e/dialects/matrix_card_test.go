// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// publicURL is where a mount point says that it is, other than where it is asked.
const publicURL = "https://agents.example/one"

// cardJobs are about the cards that the gateway shows.
func cardJobs(w *world) (jobs []job) {
	for _, b := range w.backs {
		jobs = append(jobs, job{"cards of " + b.name, func(t *testing.T) { byCards(t, w, b, w.mount(b), w.mount(b)) }})
	}
	return append(
		jobs,
		job{"cards of a public URL", func(t *testing.T) { byCards(t, w, w.backs[1], w.url+"/public", publicURL) }},
	)
}

// fetch asks for a document.
func fetch(t *testing.T, method, url string, header ...string) (*http.Response, gjson.Result) {
	t.Helper()
	res, err := http.DefaultClient.Do(site.JSONRequest(method, url, "",
		header...).WithContext(site.Within(t, site.Patience)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, gjson.ParseBytes(body)
}

// urlsOf returns every URL in a document that callers are to call.
func urlsOf(v gjson.Result) (urls []string) {
	v.ForEach(func(key, v gjson.Result) bool {
		switch {
		case v.IsObject() || v.IsArray():
			if key.Str != "provider" {
				urls = append(urls, urlsOf(v)...)
			}
		case key.Str == "url":
			urls = append(urls, v.Str)
		}
		return true
	})
	return urls
}

// byCards fetches the cards of a mount point in all versions. base is what their URLs must be.
func byCards(t *testing.T, w *world, b *back, mount, base string) {
	for _, tc := range []struct {
		file, version string
		has, hasNot   []string // members
	}{
		{"agent.json", "", []string{"name", "url", "capabilities.streaming", "skills"}, []string{"supportedInterfaces"}},
		{"agent-card.json", "", []string{"url", "protocolVersion", "preferredTransport", "supportedInterfaces",
			"capabilities.pushNotifications"}, nil},
		{"agent-card.json", "0.3", []string{"url", "protocolVersion", "preferredTransport"}, []string{"supportedInterfaces"}},
		{"agent-card.json", "1.0", []string{"supportedInterfaces"}, []string{"url", "protocolVersion"}},
		{"acs.json", "", []string{"name"}, nil},
	} {
		url := mount + "/.well-known/" + tc.file
		name := tc.file + " " + tc.version
		var header []string
		if tc.version != "" {
			header = []string{"A2A-Version", tc.version}
		}
		res, card := fetch(t, http.MethodGet, url, header...)
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" || !card.IsObject() {
			t.Fatalf("%s is answered with %s: %s", name, res.Status, card.Raw)
		}
		for _, member := range tc.has {
			if !card.Get(member).Exists() {
				t.Errorf("%s has no %s: %s", name, member, card.Raw)
			}
		}
		for _, member := range tc.hasNot {
			if card.Get(member).Exists() {
				t.Errorf("%s has the member %s: %s", name, member, card.Raw)
			}
		}
		urls := urlsOf(card)
		if len(urls) == 0 {
			t.Errorf("%s names no URL: %s", name, card.Raw)
		}
		for _, u := range urls {
			if rest, ok := strings.CutPrefix(u, base); !ok || rest != "" && rest[0] != '/' {
				t.Errorf("%s names the URL %s, which is not below %s", name, u, base)
			}
		}
		for _, own := range []string{b.recorder.url, w.agents["a2a-go-03"]} {
			if own != "" && strings.Contains(card.Raw, strings.TrimPrefix(own, "http://")) {
				t.Errorf("%s names the agent's own address: %s", name, card.Raw)
			}
		}

		tag := res.Header.Get("ETag")
		if !strings.Contains(strings.Join(res.Header.Values("Vary"), ","), "A2A-Version") || tag == "" ||
			res.Header.Get("Cache-Control") == "" {
			t.Errorf("%s has the header %v", name, res.Header)
		}
		again, empty := fetch(t, http.MethodGet, url, append(header, "If-None-Match", `"other", `+tag)...)
		if again.StatusCode != http.StatusNotModified || empty.Raw != "" || again.Header.Get("ETag") != tag {
			t.Errorf("%s is answered with %s for one who has it", name, again.Status)
		}
		if head, empty := fetch(t, http.MethodHead, url, header...); head.StatusCode != http.StatusOK ||
			head.Header.Get("ETag") != tag ||
			empty.Raw != "" {
			t.Errorf("the HEAD of %s is answered with %s", name, head.Status)
		}
		if post, _ := fetch(t, http.MethodPost, url, header...); post.StatusCode != http.StatusMethodNotAllowed ||
			post.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("a POST of %s is answered with %s", name, post.Status)
		}
	}
	_, old := fetch(t, http.MethodGet, mount+"/.well-known/agent-card.json", "A2A-Version", "0.3")
	_, asked := fetch(t, http.MethodGet, mount+"/.well-known/agent-card.json?A2A-Version=0.3")
	if diff := cmp.Diff(old.Raw, asked.Raw); diff != "" {
		t.Errorf("the version in the query gives another card (-header +query):\n%s", diff)
	}
}
