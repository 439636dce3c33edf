// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestDiscoverByPolicy: who is not let in by the policy of a mount finds the agent by another one, or not at all. A
// gateway that drains sends callers on, and says so to pollers.
func TestDiscoverByPolicy(t *testing.T) {
	s := newSite(t)
	const one, two = "10001000011K912345E789ABCDEF2353", "10001000011K94ZH3VDXLP4S5EB63614"
	partner := func(path, aic, more string) string {
		return "aip_gateway " + path + " a2a/legacy " + s.agent + " {\nidentity off\ncallers aip a2a\naic " + aic +
			"\npublic_url http://" + s.addr + path + "\n" + more + "\n}\n"
	}
	never := freeAddr(t)
	config := func(denied string) []byte {
		return []byte(adapt(t, string(caddyfile.Format([]byte("{\nadmin off\nauto_https off\naip {\nstore memory\n"+
			"discovery http://"+never+"\n}\n}\nhttp://"+s.addr+" {\naip_health {\npublic\n}\naip_discovery {\nredirect http://"+
			never+"/discover\n}\n"+
			partner("/one", one, "")+partner("/two", two, denied)+"}\n")))))
	}
	ask := func(method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+s.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	found := func() string {
		_, text := ask("POST", "/discover", `{"type":"filtered","filter":{}}`)
		return gjson.Get(text, "result.agents.0.agentSkills.#.aic").String()
	}
	s.mustLoad(config(""))
	if got, want := found(), `["`+one+`","`+two+`"]`; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	if status, text := ask("GET", "/agents", ""); status != 200 || gjson.Get(text, "agents.#").Int() != 2 ||
		!strings.Contains(gjson.Get(text, "agents.0").Raw, s.addr) {
		t.Errorf("the list of A2A is %d %s", status, text)
	}
	s.mustLoad(config("policy {\nallow {\nleader 10001000011K9DX1GW14X1VSP2QQNG44\n}\n}"))
	if got, want := found(), `["`+one+`"]`; got != want {
		t.Errorf("with a policy, found %s, want %s", got, want)
	}
	if _, text := ask("GET", "/agents", ""); gjson.Get(text, "agents.#").Int() != 1 {
		t.Errorf("with a policy, the list of A2A is %s", text)
	}
	for path, want := range map[string]int{"/discover": 405, "/api/discovery/": 405, "/agents/": 200, "/healthz": 200,
		"/healthz/" + one: 200, "/healthz/x": 404} {
		if status, _ := ask("GET", path, ""); status != want {
			t.Errorf("GET %s: %d, want %d", path, status, want)
		}
	}
	if status, _ := ask("POST", "/discover", strings.Repeat(" ", 1<<17)); status != 413 {
		t.Errorf("a large body: %d", status)
	}

	o := running()
	var list adminapi.DiscoveredList
	status := adminAnswer(t, http.MethodGet, adminapi.CheckDiscovery, "", &list)
	want := adminapi.DiscoveredList{Agents: []adminapi.Discovered{
		{Server: "http://" + never, Partner: one, State: adminapi.NotAsked},
		{Server: "http://" + never, Partner: two, State: adminapi.NotAsked},
	}}
	for i := range list.Agents {
		if !strings.Contains(list.Agents[i].Reason, "refused") {
			t.Errorf("the reason is %q", list.Agents[i].Reason)
		}
		list.Agents[i].Reason = ""
	}
	if diff := cmp.Diff(want, list); diff != "" || status != http.StatusOK {
		t.Errorf("discovery servers that are down: %d (-want +got):\n%s", status, diff)
	}

	o.Tasks.Process().Drain()
	defer o.Tasks.Process().EndDrain()
	if status, text := ask("POST", "/discover", `{"query":"echo"}`); status != 307 ||
		gjson.Get(text, "error.code").Int() != 30701 {
		t.Errorf("while it drains: %d %s", status, text)
	}
	if status, text := ask("GET", "/healthz", ""); status != 503 || text != "unavailable\n" {
		t.Errorf("while it drains, /healthz: %d %s", status, text)
	}
}

// TestListWithoutCard: a caller does not wait for an agent that shows no card until that fails.
func TestListWithoutCard(t *testing.T) {
	s := newSite(t)
	failed := make(chan struct{}, 100)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		failed <- struct{}{}
	}))
	defer hangs.Close()
	partner := func(path, agent, aic string) string {
		return "aip_gateway " + path + " a2a/legacy " + agent + " {\nidentity off\ncallers aip a2a\naic " + aic +
			"\npublic_url http://" + s.addr + path + "\n}\n"
	}
	s.mustLoad([]byte(adapt(t, string(caddyfile.Format([]byte("{\nadmin off\nauto_https off\naip {\nstore memory\n"+
		"}\n}\nhttp://"+s.addr+" {\naip_discovery\n"+partner("/one", s.agent, "10001000011K912345E789ABCDEF2353")+
		partner("/two", hangs.URL, "10001000011K94ZH3VDXLP4S5EB63614")+"}\n"))))))
	// Of the other agent the card is known, however slow that was.
	card, err := http.Get("http://" + s.addr + "/one/.well-known/agent.json")
	if err != nil {
		t.Fatal(err)
	}
	card.Body.Close()
	if card.StatusCode != http.StatusOK {
		t.Fatalf("the card is answered with %s", card.Status)
	}
	res, err := http.Get("http://" + s.addr + "/agents")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if res.StatusCode != 200 || gjson.GetBytes(text, "agents.#").Int() != 1 {
		t.Errorf("the list is %s %s", res.Status, text)
	}
	select {
	case <-failed:
		t.Error("the list came when the agent had failed")
	default:
	}
	hangs.CloseClientConnections()
}
