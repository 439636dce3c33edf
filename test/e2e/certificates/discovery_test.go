// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestDiscovery: a Leader finds the Partner that it may call, and not the one that it may not; is sent to another
// server where nothing is found; and an operator sees how the Partner is found there. Pollers need no certificate.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	pki := site.Certificates(t)
	aic, other := string(pki.Server.AIC), "10001000011K912345E789ABCDEF2353"
	poller := site.FreePort(t)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		switch {
		case !strings.Contains(string(text), aic):
			fmt.Fprint(w, `{"result":{"acsMap":{},"agents":[]}}`)
		default:
			fmt.Fprintf(w, `{"result":{"acsMap":{%q:{"active":true}},"agents":[],"aliveMap":{%[1]q:{"alive":false}}}}`, aic)
		}
	}))
	t.Cleanup(elsewhere.Close)
	card := "\n\t\tcard {\n\t\t\torganization Example\n\t\t}\n\t"
	s.Start(site.Config{
		Store: "store memory\n\t\tdiscovery " + elsewhere.URL,
		Handle: "aip_discovery {\n\t\tredirect " + elsewhere.URL + "/discover\n\t}\n" +
			"\taip_gateway /one a2a/legacy http://" + agent + " {\n\t\taic " + aic + "\n\t\tpublic_url " + s.URL() + "/one" +
			card + "}\n" +
			"\taip_gateway /two a2a/legacy http://" + agent + " {\n\t\taic " + other + "\n\t\tallow " + other +
			"\n\t\tpublic_url " + s.URL() + "/two" + card + "}",
		OtherSites: fmt.Sprintf("http://localhost:%d {\n\taip_health {\n\t\tpublic\n\t}\n}", poller),
	})
	l := site.LeaderOf(t, s.URL())
	client := *l.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	l.HTTP = &client
	ask := func(path, body string) (*http.Response, gjson.Result) {
		t.Helper()
		res, text := l.Exchange(http.MethodPost, path, []byte(body))
		return res, gjson.ParseBytes(text)
	}
	var res *http.Response
	var found gjson.Result
	site.Eventually(t, "the skills of the agent are known", func() bool { // a request waits for its card for 2 s only
		res, found = ask("/acps-adp-v2/discover", `{"type":"trending"}`)
		return found.Get("result.acsMap.@values.0.skills.0.name").Str != ""
	})
	if res.StatusCode != 200 || found.Get("result.acsMap.@keys").String() != `["`+aic+`"]` ||
		!found.Get("result.aliveMap.@values.0.alive").Bool() ||
		found.Get("result.acsMap.@values.0.endPoints.0.url").Str != s.URL()+"/one/rpc" {
		t.Errorf("found %s %s", res.Status, found)
	}
	skill := found.Get("result.acsMap.@values.0.skills.0.name").Str
	if res, found = ask("/api/discovery/", `{"query":"`+skill+`"}`); res.StatusCode != 200 ||
		found.Get("agents.0.acs.aic").Str != aic {
		t.Errorf("v01 found %s %s", res.Status, found)
	}
	res, found = ask("/discover", `{"query":"x","filter":{"conditions":[{"field":"colour","op":"eq","value":1}]}}`)
	if res.StatusCode != 400 || found.Get("error.code").Int() != 40004 {
		t.Errorf("a wrong filter: %s %s", res.Status, found)
	}
	res, found = ask("/discover", `{"type":"filtered","filter":{"conditions":[`+
		`{"field":"aic","op":"eq","value":"`+other+`"}]}}`)
	if res.StatusCode != 307 || res.Header.Get("Location") != elsewhere.URL+"/discover" ||
		found.Get("error.code").Int() != 30702 {
		t.Errorf("an agent that may not be called: %s %v %s", res.Status, res.Header, found)
	}
	status, out, stderr := s.Caddy("aip", "discover", "check", "--address", s.AdminAddress(), "--json")
	if status != 0 || gjson.Get(out, `agents.#(partner="`+aic+`").state`).Str != "not-alive" ||
		gjson.Get(out, `agents.#(partner="`+other+`").state`).Str != "missing" {
		t.Errorf("discover check: %d %s %s", status, out, stderr)
	}
	for path, want := range map[string]int{"/healthz": 200, "/healthz/" + aic: 200, "/healthz/x": 404} {
		res, err := http.Get(fmt.Sprintf("http://localhost:%d%s", poller, path))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
}
