// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// TestDiscover finds agents by their cards and their answers, with as few questions as possible.
//
// Lenient: its card at `/.well-known/<id>/agent-card.json`, for an endpoint ending with `<id>`
// Lenient: a redirect on its own host, adding or taking the path's last slash
// Lenient: a relative URL in its card, or one with a path extended or cut by a proxy
func TestDiscover(t *testing.T) {
	type want struct {
		Dialect, URL, Card, Why string
		Requests                []string
	}
	const moved = "; the card names another host for the endpoint, which the configured one replaces"
	for _, tt := range []struct {
		name string
		path string // of the base
		peer *peer
		want want
	}{
		{"trpc-a2a-go 0.0.3", "", &peer{cards: only(agentJSON, legacyCard), rpc: at1("/", speaksLegacy)},
			want{"a2a/legacy", "/", "l", "it knows tasks/pushNotification/get; its card names no version",
				[]string{cardJSON, agentJSON, "/ GetTask", "/ tasks/pushNotification/get"}}},
		{"the first samples", "", &peer{cards: only(agentJSON, legacyCard), rpc: at1("/", validates)},
			want{"a2a/legacy", "/", "l", "it knows tasks/pushNotification/get; its card names no version",
				[]string{cardJSON, agentJSON, "/ GetTask", "/ tasks/pushNotification/get"}}},
		{"early 0.2", "", &peer{cards: only(agentJSON, legacyCard), rpc: at1("/", speaks02)},
			want{"a2a/0.3", "/", "l", "it knows tasks/pushNotificationConfig/get; its card names no version",
				[]string{cardJSON, agentJSON, "/ GetTask", "/ tasks/pushNotification/get",
					"/ tasks/pushNotificationConfig/get"}}},
		{"a2a-js 0.2", "", &peer{cards: only(agentJSON, card02), rpc: at1("/", speaks02)},
			want{"a2a/0.3", "/", "js",
				"its card has members that 0.2 brought, and it knows tasks/pushNotificationConfig/get",
				[]string{cardJSON, agentJSON, "/ tasks/pushNotificationConfig/get"}}},
		{"a2a-go 0.3", "", &peer{cards: only(cardJSON, card03), rpc: at1("/invoke", speaks03)},
			want{"a2a/0.3", "/invoke", "g",
				"its card names a protocolVersion of 0.2 or 0.3, and it knows tasks/pushNotificationConfig/get",
				[]string{cardJSON, "/invoke tasks/pushNotificationConfig/get"}}},
		{"a2a-go 2.4", "", &peer{cards: only(cardJSON, hybrid),
			rpc: map[string]map[string]string{"/invoke": speaks10, "/invoke03": speaks03}},
			want{"a2a/1.0", "/invoke", "h", "its card lists JSONRPC 1.0, and it knows GetTask",
				[]string{cardJSON, "/invoke GetTask"}}},
		{"HTTP+JSON is believed", "", &peer{cards: only(cardJSON, cardREST)},
			want{"a2a/1.0-rest", "/rest/", "t", "its card lists HTTP+JSON 1.0", []string{cardJSON}}},
		{"by hand, without webhooks", "", &peer{cards: only(agentJSON, legacyCard), rpc: at1("/", noWebhooks)},
			want{"a2a/legacy", "/", "l", "its card names no version, and no answer of the agent proves one",
				[]string{cardJSON, agentJSON, "/ GetTask", "/ tasks/pushNotification/get",
					"/ tasks/pushNotificationConfig/get"}}},
		{"by hand, where cards lie from 0.3 on", "", &peer{cards: only(cardJSON, legacyCard), rpc: at1("/", noWebhooks)},
			want{"a2a/0.3", "/", "l", "its card names no version, and no answer of the agent proves one",
				[]string{cardJSON, "/ GetTask", "/ tasks/pushNotification/get", "/ tasks/pushNotificationConfig/get"}}},
		{"by hand, without a URL", "/agents/a", &peer{
			cards: only("/agents/a"+agentJSON, `{"name":"l","url":null,"capabilities":["streaming"]}`),
			rpc:   at1("/agents/a", noWebhooks)},
			want{"a2a/legacy", "/agents/a", "l", "its card names no URL, and no answer of the agent proves one",
				[]string{"/agents/a" + cardJSON, "/agents/a" + agentJSON, "/agents/a GetTask",
					"/agents/a tasks/pushNotification/get", "/agents/a tasks/pushNotificationConfig/get"}}},
		{"by hand, the method is ignored", "", &peer{cards: only(agentJSON, legacyCard), rpc: at1("/", ignoresMethod)},
			want{"a2a/legacy", "/", "l", "it knows tasks/pushNotification/get; its card names no version",
				[]string{cardJSON, agentJSON, "/ GetTask", "/ tasks/pushNotification/get"}}},
		{"unknown methods are answered without JSON-RPC", "", &peer{cards: only(agentJSON, legacyCard),
			rpc: at1("/", speaks03), plain: true},
			want{"a2a/0.3", "/", "l", "it knows tasks/pushNotificationConfig/get; its card names no version",
				[]string{cardJSON, agentJSON, "/ GetTask", "/ tasks/pushNotification/get",
					"/ tasks/pushNotificationConfig/get"}}},

		{"the card lies below the base", "/agents/a",
			&peer{cards: only("/agents/a"+cardJSON, card10), rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask",
				[]string{"/agents/a" + cardJSON, "/rpc GetTask"}}},
		{"the card lies at the root", "/agents/a", &peer{cards: only(agentJSON, card10), rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask",
				[]string{"/agents/a" + cardJSON, "/agents/a" + agentJSON, cardJSON, agentJSON, "/rpc GetTask"}}},
		{"the URL is that of the card", "/x/.well-known/agent.json",
			&peer{cards: only("/x"+agentJSON, card10), rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask",
				[]string{"/x" + cardJSON, "/x" + agentJSON, "/rpc GetTask"}}},
		{"an app answers every path with its page", "/a",
			&peer{cards: map[string]string{"/a" + cardJSON: "<html>app</html>", "/a" + agentJSON: `{"detail":1}`,
				cardJSON: card10},
				rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask",
				[]string{"/a" + cardJSON, "/a" + agentJSON, cardJSON, "/rpc GetTask"}}},
		{"a container's name for itself", "",
			&peer{cards: only(cardJSON, strings.ReplaceAll(card10, "HOST", "0.0.0.0:9999")),
				rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask" + moved,
				[]string{cardJSON, "/rpc GetTask"}}},
		{"another port", "", &peer{cards: only(cardJSON, strings.ReplaceAll(card10, "HOST", "127.0.0.1:1")),
			rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask" + moved,
				[]string{cardJSON, "/rpc GetTask"}}},
		{"another scheme", "", &peer{cards: only(cardJSON, strings.ReplaceAll(card10, "http:", "https:")),
			rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask" + moved,
				[]string{cardJSON, "/rpc GetTask"}}},
		{"a path that only the agent knows", "/agents/a",
			&peer{cards: only("/agents/a"+cardJSON, strings.ReplaceAll(card10, "HOST/rpc", "localhost:80/")),
				rpc: at1("/agents/a", speaks10)},
			want{"a2a/1.0", "/agents/a", "t", "it knows GetTask; not where its card says",
				[]string{"/agents/a" + cardJSON, "/ GetTask", "/agents/a GetTask"}}},
		{"an endpoint that is no http", "",
			&peer{cards: only(cardJSON, strings.ReplaceAll(card10, "http://HOST", "file:///etc")),
				rpc: at1("/", speaks10)},
			want{"a2a/1.0", "/", "t", "it knows GetTask; its card lists no interface that the gateway speaks",
				[]string{cardJSON, "/ GetTask"}}},
		{"credentials in the card's URL", "",
			&peer{cards: only(cardJSON, strings.ReplaceAll(card10, "HOST", "u:p@HOST")), rpc: at1("/", speaks10)},
			want{"a2a/1.0", "/", "t", "it knows GetTask; its card lists no interface that the gateway speaks",
				[]string{cardJSON, "/ GetTask"}}},

		{"says 0.3, speaks legacy", "", &peer{cards: only(cardJSON, card03), rpc: at1("/invoke", speaksLegacy)},
			want{"a2a/legacy", "/invoke", "g",
				"it knows tasks/pushNotification/get; not as its card says: names a protocolVersion of 0.2 or 0.3",
				[]string{cardJSON, "/invoke tasks/pushNotificationConfig/get", "/invoke GetTask",
					"/invoke tasks/pushNotification/get"}}},
		{"says 0.3, speaks 1.0", "", &peer{cards: only(cardJSON, card03), rpc: at1("/invoke", speaks10)},
			want{"a2a/1.0", "/invoke", "g",
				"it knows GetTask; not as its card says: names a protocolVersion of 0.2 or 0.3",
				[]string{cardJSON, "/invoke tasks/pushNotificationConfig/get", "/invoke GetTask"}}},
		{"says 1.0, speaks 0.3", "",
			&peer{cards: only(cardJSON, hybrid),
				rpc: map[string]map[string]string{"/invoke": speaks03, "/invoke03": speaks03}},
			want{"a2a/0.3", "/invoke03", "h",
				"its card names a protocolVersion of 0.2 or 0.3, and it knows tasks/pushNotificationConfig/get",
				[]string{cardJSON, "/invoke GetTask", "/invoke03 tasks/pushNotificationConfig/get"}}},
		{"0.3 without webhooks", "", &peer{cards: only(cardJSON, card03), rpc: at1("/invoke", noWebhooks)},
			want{"a2a/0.3", "/invoke", "g",
				"its card names a protocolVersion of 0.2 or 0.3, though no answer of the agent proves it",
				[]string{cardJSON, "/invoke tasks/pushNotificationConfig/get", "/invoke GetTask",
					"/invoke tasks/pushNotification/get", "/ GetTask"}}},
		{"JSONRPC is denied, HTTP+JSON is not", "",
			&peer{cards: only(cardJSON, strings.ReplaceAll(hybrid, `"JSONRPC"`, `"jsonrpc"`)),
				rpc: map[string]map[string]string{"/invoke": noWebhooks, "/invoke03": noWebhooks}},
			want{"a2a/1.0-rest", "/rest", "h", "its card lists HTTP+JSON 1.0, though no answer of the agent proves it",
				[]string{cardJSON, "/invoke GetTask", "/invoke03 tasks/pushNotificationConfig/get",
					"/invoke tasks/pushNotification/get",
					"/invoke tasks/pushNotificationConfig/get", "/rest GetTask", "/invoke03 GetTask",
					"/invoke03 tasks/pushNotification/get", "/ GetTask"}}},
		{"an endpoint that answers only callers that it knows", "",
			&peer{cards: only(cardJSON, card03), over: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					w.WriteHeader(http.StatusUnauthorized)
				}
				return r.Method == http.MethodPost
			}}, want{"a2a/0.3", "/invoke", "g",
				"its card names a protocolVersion of 0.2 or 0.3, and it answers only callers that it knows (HTTP 401: the " +
					"agent refuses the gateway's credentials)",
				[]string{cardJSON, "/invoke tasks/pushNotificationConfig/get"}}},
		{"no card, 1.0", "/rpc", &peer{rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "", "it knows GetTask; it shows no card",
				[]string{"/rpc" + cardJSON, "/rpc" + agentJSON, cardJSON, agentJSON, "/.well-known/rpc/agent-card.json",
					"/rpc GetTask"}}},
		{"Mastra, by the URL of its card", "/.well-known/weather/agent-card.json", &peer{
			cards: only("/.well-known/weather/agent-card.json", strings.Replace(card03, "/invoke", "/a2a/weather", 1)),
			rpc:   at1("/a2a/weather", map[string]string{"tasks/get": knownTask}), plain: true},
			want{"a2a/0.3", "/a2a/weather", "g",
				"its card names a protocolVersion of 0.2 or 0.3, though no answer of the agent proves it",
				[]string{"/.well-known/weather/agent-card.json", "/a2a/weather tasks/pushNotificationConfig/get",
					"/a2a/weather GetTask", "/a2a/weather tasks/pushNotification/get", "/ GetTask"}}},
		{"VoltAgent, by its endpoint", "/a2a/support", &peer{
			cards: only("/.well-known/support/agent-card.json", strings.Replace(legacyCard, "HOST/", "HOST/a2a/support", 1)),
			rpc:   at1("/a2a/support", noWebhooks)},
			want{"a2a/0.3", "/a2a/support", "l", "its card names no version, and no answer of the agent proves one",
				[]string{"/a2a/support" + cardJSON, "/a2a/support" + agentJSON, cardJSON, agentJSON,
					"/.well-known/support/agent-card.json", "/a2a/support GetTask", "/a2a/support tasks/pushNotification/get",
					"/a2a/support tasks/pushNotificationConfig/get"}}},
		{"a card with a query", "/card?agent=x", &peer{cards: only("/card?agent=x", card03),
			rpc: at1("/invoke", speaks03)},
			want{"a2a/0.3", "/invoke", "g",
				"its card names a protocolVersion of 0.2 or 0.3, and it knows tasks/pushNotificationConfig/get",
				[]string{"/card?agent=x", "/invoke tasks/pushNotificationConfig/get"}}},
		{"a card of another name", "/cards/x.json", &peer{cards: only("/cards/x.json", card10),
			rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask",
				[]string{"/cards/x.json", "/rpc GetTask"}}},
		{"a relative URL", "", &peer{cards: only(cardJSON, strings.Replace(card10, "http://HOST", "", 1)),
			rpc: at1("/rpc", speaks10)},
			want{"a2a/1.0", "/rpc", "t", "its card lists JSONRPC 1.0, and it knows GetTask",
				[]string{cardJSON, "/rpc GetTask"}}},
		{"a path that a proxy cuts off", "/svc", &peer{
			cards: only("/svc"+cardJSON, strings.Replace(card03, "HOST/invoke", "public.example/ingress/a2a", 1)),
			rpc:   at1("/svc/a2a", speaks03)},
			want{"a2a/0.3", "/svc/a2a", "g", "it knows tasks/pushNotificationConfig/get; not where its card says",
				[]string{"/svc" + cardJSON, "/ingress/a2a tasks/pushNotificationConfig/get", "/svc GetTask",
					"/svc/ingress/a2a GetTask", "/svc/a2a GetTask", "/svc/a2a tasks/pushNotification/get",
					"/svc/a2a tasks/pushNotificationConfig/get"}}},
		{"a path that a proxy adds, without webhooks", "/svc", &peer{
			cards: only("/svc"+cardJSON, card03), rpc: at1("/svc/invoke", noWebhooks)},
			want{"a2a/0.3", "/svc/invoke", "g",
				"its card names a protocolVersion of 0.2 or 0.3, though no answer of the agent proves it",
				[]string{"/svc" + cardJSON, "/invoke tasks/pushNotificationConfig/get", "/svc GetTask",
					"/svc/invoke GetTask", "/svc/invoke tasks/pushNotification/get",
					"/svc/invoke tasks/pushNotificationConfig/get"}}},
		{"a slash is added by a redirect", "/app", &peer{
			cards: only("/app"+cardJSON, strings.Replace(card03, "invoke", "app", 1)), rpc: at1("/app/", speaks03),
			over: redirecting("/app", "http://HOST/app/")},
			want{"a2a/0.3", "/app/", "g",
				"its card names a protocolVersion of 0.2 or 0.3, and it knows tasks/pushNotificationConfig/get",
				[]string{"/app" + cardJSON, "/app tasks/pushNotificationConfig/get",
					"/app/ tasks/pushNotificationConfig/get"}}},
		{"no card, legacy", "", &peer{rpc: at1("/", speaksLegacy)},
			want{"a2a/legacy", "/", "", "it knows tasks/pushNotification/get; it shows no card",
				[]string{cardJSON, agentJSON, "/ GetTask", "/ tasks/pushNotification/get"}}},
		{"only gRPC is listed", "", &peer{cards: only(cardJSON, grpcCard), rpc: at1("/", speaks10)},
			want{"a2a/1.0", "/", "t", "it knows GetTask; not as its card says: lists GRPC 1.0",
				[]string{cardJSON, "/ GetTask"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(tt.peer)
			defer srv.Close()
			found, err := Discover(t.Context(), Config{URL: srv.URL + tt.path, Finder: a2a.Finder()})
			if err != nil {
				t.Fatalf("%v, after %q", err, tt.peer.log)
			}
			got := want{Dialect: found.Dialect, URL: strings.TrimPrefix(found.URL, srv.URL), Why: found.Why,
				Requests: tt.peer.log}
			if found.Card != nil {
				got.Card = found.Card.Name
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(tt.peer.log) > maxQuestions {
				t.Errorf("%d requests", len(tt.peer.log))
			}
		})
	}
}

// TestDiscoverGRPC: gRPC has a port of its own at the configured host, and TLS if either side says so. Another way in
// the card is preferred.
func TestDiscoverGRPC(t *testing.T) {
	for url, want := range map[string]string{
		"HOST":                      "http://HOST/",
		"127.0.0.1:50051":           "http://127.0.0.1:50051/",
		"agent.internal:50051":      "http://127.0.0.1:50051/",
		"grpc://agent:50051/base":   "http://127.0.0.1:50051/base",
		"dns:///agent:50051":        "http://127.0.0.1:50051/",
		"https://agent.example":     "https://127.0.0.1:443/",
		"agent.example:443":         "https://127.0.0.1:443/",
		"grpcs://agent.example:444": "https://127.0.0.1:444/",
		"http://agent.example":      "http://127.0.0.1:80/",
	} {
		t.Run(url, func(t *testing.T) {
			srv := httptest.NewServer(&peer{cards: only(cardJSON, strings.Replace(grpcCard, "HOST", url, 1))})
			defer srv.Close()
			found, err := Discover(t.Context(), Config{URL: srv.URL, Finder: a2a.Finder()})
			want := strings.Replace(want, "HOST", strings.TrimPrefix(srv.URL, "http://"), 1)
			if err != nil || found.Dialect != "a2a/1.0-grpc" || found.URL != want {
				t.Errorf("got %+v, %v, want %s", found, err, want)
			}
		})
	}
	t.Run("another way", func(t *testing.T) {
		card := strings.Replace(card10, `[{`, `[{"url":"HOST","protocolBinding":"GRPC","protocolVersion":"1.0"},{`, 1)
		srv := httptest.NewServer(&peer{cards: only(cardJSON, card), rpc: at1("/rpc", speaks10)})
		defer srv.Close()
		found, err := Discover(t.Context(), Config{URL: srv.URL, Finder: a2a.Finder()})
		if err != nil || found.Dialect != "a2a/1.0" {
			t.Errorf("got %+v, %v", found, err)
		}
	})
}

func TestDiscoverFails(t *testing.T) {
	huge := &peer{cards: only(cardJSON, `{"name":"`+strings.Repeat("x", maxCard)+`","url":"http://HOST/"}`)}
	const change = "; the operator must check the agent's URL and credentials, or name its dialect"
	const none = "the agent shows no card, and answers no question as a known version would"
	const noVersion = "the agent's card names no version, and the agent answers no question as a known version would"
	const all = " (GetTask, tasks/pushNotification/get, tasks/pushNotificationConfig/get"
	const grpc = "the agent's card offers only gRPC of A2A before 1.0, which this gateway does not speak; " +
		"let the agent serve gRPC of 1.0, JSONRPC or HTTP+JSON as well, and list it in its card"
	const noCard, change2 = "the agent shows no card, neither below its URL nor at the root of its host", ""
	for _, tt := range []struct {
		name        string
		peer        *peer
		want, fetch string
	}{
		{"nothing", &peer{}, none + " (GetTask: HTTP 404)" + change, noCard + change2},
		{"redirects", answers(307, ""), none + " (GetTask: HTTP 307: the agent redirects, which is not followed)" + change,
			noCard + " (HTTP 307: the agent redirects, which is not followed)" + change2},
		{"credentials", answers(401, "{}"), none + all + ": HTTP 401: the agent refuses the gateway's credentials)" +
			change, noCard + " (HTTP 401: the agent refuses the gateway's credentials)" + change2},
		{"a page for everything", answers(200, "<html>app</html>"),
			none + " (GetTask: HTTP 200, but nothing that is understood) (its card is not JSON in UTF-8)" + change,
			noCard + " (its card is not JSON in UTF-8)" + change2},
		{"a huge card", huge, none + " (GetTask: HTTP 404) (its card is larger than 1048576 bytes)" + change,
			noCard + " (its card is larger than 1048576 bytes)" + change2},
		{"a card of the wrong types", &peer{cards: only(cardJSON, `{"name":"l","url":7}`)},
			noVersion + " (GetTask: HTTP 404) (of its card, these members have a wrong type and are ignored: url)" + change,
			""},
		{"no card, by hand", &peer{rpc: at1("/", noWebhooks)}, none + all + ": not known)" + change, noCard},
		{"redirects, but for its card", &peer{cards: only(agentJSON, legacyCard),
			over: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPost {
					w.WriteHeader(http.StatusTemporaryRedirect)
				}
				return r.Method == http.MethodPost
			}}, noVersion + " (GetTask: HTTP 307: the agent redirects, which is not followed)" + change, ""},
		{"only gRPC, 0.3", &peer{cards: only(cardJSON,
			`{"name":"l","protocolVersion":"0.3.0","url":"http://HOST","preferredTransport":"grpc",`+
				`"additionalInterfaces":[{"url":"http://HOST","transport":"GRPC"}]}`)}, grpc, ""},
		{"gRPC and another", &peer{cards: only(cardJSON,
			`{"name":"l","supportedInterfaces":[{"url":"http://HOST","protocolBinding":"GRPC"},{"url":"ws://HOST",`+
				`"protocolBinding":"WEBSOCKET"}]}`)},
			noVersion + " (GetTask: HTTP 404) (its card lists no interface that the gateway speaks)" + change, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(tt.peer)
			defer srv.Close()
			config := Config{URL: srv.URL, Finder: a2a.Finder()}
			_, err := Discover(t.Context(), config)
			if task.KindOf(err) != task.InvalidAgentResponse || detailOf(err) != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if len(tt.peer.log) > maxQuestions {
				t.Errorf("%d requests", len(tt.peer.log))
			}
			card, err := FetchCard(t.Context(), config)
			switch {
			case tt.fetch == "":
				if err != nil || card.Name != "l" {
					t.Errorf("fetched %v, %v", card, err)
				}
			case detailOf(err) != tt.fetch:
				t.Errorf("got  %v\nwant %s", err, tt.fetch)
			}
		})
	}
}

func TestDiscoverRefusesURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://a:b c@host/":   "the agent's URL cannot be read",
		"ftp://host/":          "the agent's URL must begin with http:// or https:// and a host",
		"agent":                "the agent's URL must begin with http:// or https:// and a host",
		"https://":             "the agent's URL must begin with http:// or https:// and a host",
		"http://me:pw@host/":   "the agent's URL must not hold credentials",
		"http://host/\x7fpath": "the agent's URL cannot be read",
	} {
		if _, err := Discover(t.Context(), Config{URL: url, Finder: a2a.Finder()}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", url, err, want)
		}
	}
	if _, err := FetchCard(t.Context(), Config{URL: "http://host/"}); err == nil {
		t.Error("without a Finder, there is no error")
	}
}
