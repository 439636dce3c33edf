// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// cards are the cards of testdata by their names.
func cards(t testing.TB) map[string][]byte {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/cards.txtar")
	if err != nil {
		t.Fatal(err)
	}
	m := map[string][]byte{}
	for _, f := range archive.Files {
		m[strings.TrimSuffix(f.Name, ".json")] = f.Data
	}
	return m
}

func parsed(t testing.TB, name string) *translate.Card {
	t.Helper()
	c, err := ParseCard(cards(t)[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func TestParseCard(t *testing.T) {
	text := []string{"text/plain"}
	echo := []translate.Skill{{ID: "echo", Name: "Echo", Description: "echo", Tags: []string{"test"}}}
	want := map[string]translate.Card{
		"legacy-trpc": {
			Name: "legacy-echo", Description: "A2A v0.1 test peer", Version: "0.0.1", Streaming: true, Push: true,
			DefaultInputModes: []string{"text"}, DefaultOutputModes: []string{"text"},
			Skills:     []translate.Skill{{ID: "echo", Name: "Echo", Tags: []string{"test"}}},
			Interfaces: []translate.Interface{{URL: "http://127.0.0.1:9102/", Binding: "JSONRPC"}},
		},
		"legacy-nulls": {
			Name: "maps", Version: "1.0.0", Provider: translate.Provider{Organization: "Maps Ltd"},
			DefaultInputModes: []string{"text"}, DefaultOutputModes: []string{"text", "text/plain", "image/png"},
			Skills: []translate.Skill{{ID: "route", Name: "Route", Examples: []string{"to the station"},
				OutputModes: []string{"text/html"}}},
			Interfaces: []translate.Interface{{URL: "http://agent.internal/maps", Binding: "JSONRPC"}},
			Security: translate.Security{Version: "0.1",
				Schemes: []byte(`{"schemes":["Bearer"],"credentials":null}`)},
		},
		"v02": {
			Name: "js", Description: "of 0.2", Version: "0.2", Streaming: true,
			Provider:          translate.Provider{Organization: "Org", URL: "https://org.example"},
			DefaultInputModes: text, DefaultOutputModes: text,
			Extensions: []translate.Extension{{URI: "https://x.example/ext"}},
			Interfaces: []translate.Interface{{URL: "http://localhost:41241/", Binding: "JSONRPC"}},
			Security: translate.Security{Version: "0.2", Required: []byte(`[{"key":[]}]`),
				Schemes: []byte(`{"key":{"type":"apiKey","in":"header","name":"X-Key"}}`)},
		},
		"v03-go": {
			Name: "go-0.3-echo", Description: "A2A 0.3 test peer", Version: "1", Streaming: true, Push: true,
			Extended:          true,
			DefaultInputModes: text, DefaultOutputModes: text, Skills: echo,
			Interfaces: []translate.Interface{{URL: "http://127.0.0.1:9202/invoke", Binding: "JSONRPC",
				Version: "0.3.0"}},
		},
		"v03-rest-first": {
			Name: "two", Description: "d", Version: "1", IconURL: "https://i.example/i.png", Signed: true,
			DefaultInputModes: text, DefaultOutputModes: text,
			Interfaces: []translate.Interface{
				{URL: "http://127.0.0.1/v1", Binding: "HTTP+JSON", Version: "0.3.0"},
				{URL: "http://127.0.0.1/rpc", Binding: "JSONRPC", Version: "0.3.0"},
			},
		},
		"v10-go-hybrid": {
			Name: "go-1.0-echo", Description: "A2A 1.0 test peer", Version: "1", Streaming: true, Push: true,
			Extended:          true,
			DefaultInputModes: text, DefaultOutputModes: text, Skills: echo,
			Interfaces: []translate.Interface{
				{URL: "http://127.0.0.1:9302/invoke", Binding: "JSONRPC", Version: "1.0"},
				{URL: "http://127.0.0.1:9302/rest", Binding: "HTTP+JSON", Version: "1.0"},
				{URL: "http://127.0.0.1:9302/invoke03", Binding: "JSONRPC", Version: "0.3"},
			},
		},
		"v10": {
			Name: "pure \"one\"\n", Description: "d", Version: "1", Streaming: true,
			DefaultOutputModes: []string{"application/json"},
			Skills:             []translate.Skill{{ID: "s", Description: "does", InputModes: []string{"text"}}},
			Interfaces: []translate.Interface{
				{URL: "grpc.internal:443", Binding: "GRPC", Version: "1.0"},
				{URL: "https://agent.internal/t", Binding: "JSONRPC", Version: "1.0", Tenant: "acme"},
				{URL: "https://agent.internal/rest", Binding: "HTTP+JSON", Version: "1.0"},
			},
			Security: translate.Security{Version: "1.0", Required: []byte(`[{"schemes":{"o":{"list":[]}}}]`),
				Schemes: []byte(`{"o":{"openIdConnectSecurityScheme":{"openIdConnectUrl":"https://idp.internal"}}}`)},
		},
	}
	all := cards(t)
	if len(all) != len(want) {
		t.Errorf("%d cards in testdata, %d here", len(all), len(want))
	}
	for name, want := range want {
		body := all[name]
		want.Raw = slices.Clone(body)
		got, err := ParseCard(body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		clear(body) // the Card must not be a view of it
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseCardRefuses(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":                  ``,
		"a page":                   `<!doctype html><title>App</title>`,
		"an array":                 `[{"name":"a","url":"http://a/"}]`,
		"some object":              `{"detail":"ok"}`,
		"an error":                 `{"jsonrpc":"2.0","error":{"code":-32601,"message":"no"},"id":null}`,
		"one member is not enough": `{"name":"x"}`,
		"not UTF-8":                "{\"name\":\"\xff\",\"url\":\"http://a/\"}",
		"cut":                      `{"name":"a","url":"http://a/"`,
	} {
		if c, err := ParseCard([]byte(body)); c != nil || task.KindOf(err) != task.InvalidAgentResponse {
			t.Errorf("%s: got %v, %v; want an invalid agent response", name, c, err)
		}
	}
}

// TestParseCardIgnores: a member with a wrong type is lost, and the rest of the card is read.
func TestParseCardIgnores(t *testing.T) {
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	modes := func(c *translate.Card) int { return len(c.DefaultInputModes) }
	skills := func(c *translate.Card) int { return len(c.Skills) }
	interfaces := func(c *translate.Card) int { return len(c.Interfaces) }
	schemes := func(c *translate.Card) int { return len(c.Security.Version) }
	nothing := func(*translate.Card) int { return 0 }
	for _, tt := range []struct {
		ignored, members string
		count            func(*translate.Card) int
		want             int
	}{
		{"name", `"name":7`, nothing, 0},
		{"version", `"version":1`, nothing, 0},
		{"url", `"url":["http://a/"]`, interfaces, 0},
		{"capabilities.streaming", `"url":"http://a/","capabilities":{"streaming":"yes"}`, interfaces, 1},
		{"capabilities", `"capabilities":["streaming"]`, nothing, 0},
		{"provider.organization", `"provider":{"organization":{}}`, nothing, 0},
		{"skills", `"skills":{}`, skills, 0},
		{"skills.1", `"skills":[{},"x",{"id":"b"}]`, skills, 2},
		{"skills.0.tags.1", `"skills":[{"tags":["x",1]}]`, skills, 1},
		{"supportedInterfaces.0.url", `"supportedInterfaces":[{"url":1},{"url":"http://a/"}]`, interfaces, 1},
		{"supportedInterfaces.0.protocolVersion", `"supportedInterfaces":[{"protocolVersion":1.0}]`, interfaces, 0},
		{"supportsAuthenticatedExtendedCard", `"supportsAuthenticatedExtendedCard":1`, nothing, 0},
		{"authentication", `"authentication":"none"`, schemes, 0},
		{"securitySchemes", `"securitySchemes":["bearer"]`, schemes, 0},
		{"securitySchemes", `"securitySchemes":{"my secret":"x"}`, schemes, len("0.2")},
		{"security", `"security":{}`, schemes, 0},
		{"defaultInputModes", `"defaultInputModes":"text"`, modes, 0},
		{fmt.Sprint("skills.", maxSkills), `"skills":[` + many(maxSkills+2, `{}`) + `]`, skills, maxSkills},
		{fmt.Sprint("supportedInterfaces.", maxInterfaces),
			`"supportedInterfaces":[` + many(maxInterfaces+1, `{}`) + `]`, interfaces, maxInterfaces},
		{fmt.Sprint("defaultInputModes.", maxWords), `"defaultInputModes":[` + many(maxWords+1, `""`) + `]`, modes,
			maxWords},
		{"", `"skills":[` + many(maxSkills, `{}`) + `]`, skills, maxSkills},
	} {
		c, err := ParseCard([]byte(`{"skills":null,"capabilities":{},"description":"d",` + tt.members + `,"name":"a"}`))
		if err != nil {
			t.Errorf("%s: %v", tt.members, err)
			continue
		}
		if got := strings.Join(c.Ignored, " "); got != tt.ignored {
			t.Errorf("%.60s: %q is ignored, want %q", tt.members, got, tt.ignored)
		}
		if got := tt.count(c); got != tt.want || c.Description != "d" || c.Name != "a" {
			t.Errorf("%.60s: got %d of them, want %d, in %+v", tt.members, got, tt.want, c)
		}
	}
	c, err := ParseCard([]byte(`{"name":"a","skills":[` + many(100, `1`) + `]}`))
	if err != nil || len(c.Ignored) != maxIgnored {
		t.Errorf("%d members are named, want %d: %v", len(c.Ignored), maxIgnored, err)
	}
}

// FuzzParseCard: a card that is read can be written in every form, read again, and written as the same.
func FuzzParseCard(f *testing.F) {
	for _, body := range cards(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := ParseCard(body)
		if err != nil {
			if task.KindOf(err) != task.InvalidAgentResponse {
				t.Errorf("refused as %v", task.KindOf(err))
			}
			return
		}
		for _, form := range allForms {
			o := CardOptions{Form: form, Base: base, Generations: every, Schemes: in(every, Schemes{MutualTLS: true})}
			got := AppendCard(nil, c, o)
			back, err := ParseCard(got)
			if err != nil {
				t.Fatalf("form %d cannot be read again: %v: %s", form, err, got)
			}
			for _, i := range back.Interfaces {
				if i.URL != base {
					t.Errorf("form %d lists %q", form, i.URL)
				}
			}
			if again := AppendCard(nil, back, o); string(again) != string(got) {
				t.Errorf("form %d changes when it is read and written again:\n%s\n%s", form, got, again)
			}
		}
		Finder().Offers(c, "")
	})
}
