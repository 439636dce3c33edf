// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate"
)

const acsAIC = "10001000011K912345E789ABCDEF2353"

func fullCard() *translate.Card {
	return &translate.Card{
		Name: "Tours \"of\" Beijing\n", Description: "Plans tours.", Version: "1.2.0",
		Provider:         translate.Provider{Organization: "BUPT", URL: "https://ai.bupt.example"},
		DocumentationURL: "https://docs.example/tours", IconURL: "https://docs.example/tours.png",
		DefaultInputModes: []string{"text", "text/plain"}, DefaultOutputModes: []string{"text/plain", "image/png"},
		Skills: []translate.Skill{
			{ID: "tour.plan", Name: "Plan", Description: "Plans a tour", Tags: []string{"tour"},
				Examples: []string{"two days"}, InputModes: []string{"text"}},
			{ID: "tour.book"},
		},
		Interfaces: []translate.Interface{{URL: "http://agent.internal/a2a", Binding: "JSONRPC"}},
		Security:   translate.Security{Version: "0.2", Schemes: []byte(`{"key":{"type":"apiKey"}}`)},
		Streaming:  true, Push: true,
	}
}

func fullOptions() ACSOptions {
	return ACSOptions{
		AIC: acsAIC, Modified: time.Date(2025, 3, 15, 8, 30, 0, 7, time.UTC), Base: "https://public.example/tours/",
		MutualTLS: true, Notification: true, CAChallengeBaseURL: "https://public.example/challenge", License: "ICP 1",
	}
}

func TestAppendACS(t *testing.T) {
	const want = `{
		"aic": "10001000011K912345E789ABCDEF2353", "active": true,
		"lastModifiedTime": "2025-03-15T16:30:00+08:00", "protocolVersion": "01.00",
		"name": "Tours \"of\" Beijing\n", "description": "Plans tours.", "version": "1.2.0",
		"iconUrl": "https://docs.example/tours.png", "documentationUrl": "https://docs.example/tours",
		"provider": {"countryCode": "CN", "organization": "BUPT", "url": "https://ai.bupt.example", "license": "ICP 1"},
		"securitySchemes": {"mtls": {"type": "mutualTLS", "x-caChallengeBaseUrl": "https://public.example/challenge"}},
		"endPoints": [{"url": "https://public.example/tours", "transport": "JSONRPC", "security": [{"mtls": []}]}],
		"capabilities": {"streaming": true, "notification": true, "messageQueue": []},
		"defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain", "image/png"],
		"skills": [
			{"id": "tour.plan", "name": "Plan", "description": "Plans a tour", "version": "1.2.0",
				"tags": ["tour"], "examples": ["two days"], "inputModes": ["text/plain"]},
			{"id": "tour.book", "name": "tour.book", "description": "tour.book", "version": "1.2.0", "tags": []}
		]}`
	var w, g any
	got := AppendACS([]byte("before"), fullCard(), fullOptions())[len("before"):]
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for version, want := range map[string]string{
		ACS01: `"messageQueue":["rabbitmq:3.9","rabbitmq:3.10","rabbitmq:3.11"]}`,
		ACS02: `"messageQueue":["rabbitmq:>=3.9"]}`,
	} {
		o := fullOptions()
		o.ProtocolVersion, o.Groups = version, true
		if got := AppendACS(nil, fullCard(), o); !strings.Contains(string(got), want) {
			t.Errorf("%s does not have %s: %s", version, want, got)
		}
	}
}

// Whatever is known of an agent, what is written follows the definitions, except for what MissingACS names.
func TestACSFollowsTheDefinitions(t *testing.T) {
	many := fullCard()
	many.Provider = translate.Provider{}
	cards := map[string]*translate.Card{
		"full": fullCard(), "no provider": many, "nothing": {},
		"no texts": {Skills: []translate.Skill{{Name: "only a name"}, {ID: "x", OutputModes: []string{"a/b"}}}},
	}
	for name, c := range cards {
		for _, version := range []string{"", ACS01, ACS02} {
			for flags := range 8 {
				o := fullOptions()
				o.ProtocolVersion = version
				o.MutualTLS, o.Notification = flags&1 > 0, flags&2 > 0
				if flags&4 > 0 {
					o.License, o.CAChallengeBaseURL = "", ""
				} else {
					o.Organization, o.Department, o.ProviderURL, o.CountryCode = "O", "D", "https://o.example", "DE"
				}
				got := AppendACS(nil, c, o)
				if strings.Contains(string(got), "agent.internal") || strings.Contains(string(got), "apiKey") {
					t.Errorf("%s: shows how the agent is reached: %s", name, got)
				}
				wrong, missing := validateACS(got), MissingACS(c, o)
				slices.Sort(wrong)
				slices.Sort(missing)
				if diff := cmp.Diff(missing, wrong); diff != "" {
					t.Errorf("%s, version %q, flags %d (-missing +found by the definitions):\n%s", name, version, flags, diff)
				}
			}
		}
	}
}

func TestACSUsesWhatIsConfigured(t *testing.T) {
	o := fullOptions()
	o.Organization, o.Department, o.ProviderURL, o.CountryCode = "O", "D", "https://o.example", "DE"
	o.MutualTLS, o.ProtocolVersion = false, ACS02
	var got struct {
		Active          bool
		ProtocolVersion string
		Provider        map[string]string
		SecuritySchemes map[string]any
		EndPoints       []map[string]any
	}
	if err := json.Unmarshal(AppendACS(nil, fullCard(), o), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"countryCode": "DE", "organization": "O", "department": "D", "url": "https://o.example",
		"license": "ICP 1"}
	if diff := cmp.Diff(want, got.Provider); diff != "" {
		t.Errorf("provider (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]map[string]any{{"url": "https://public.example/tours", "transport": "JSONRPC"}},
		got.EndPoints); diff != "" {
		t.Errorf("endPoints (-want +got):\n%s", diff)
	}
	if !got.Active || got.ProtocolVersion != ACS02 || len(got.SecuritySchemes) != 0 {
		t.Errorf("got %+v", got)
	}
}

// validateACS returns the paths at which a document breaks the definitions of ACS v01.00 or v02.01.
func validateACS(body []byte) (wrong []string) {
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil {
		return []string{err.Error()}
	}
	bad := func(path string) {
		if !slices.Contains(wrong, path) {
			wrong = append(wrong, path)
		}
	}
	text := func(v any) bool { s, ok := v.(string); return ok && s != "" }
	texts := func(v any) bool {
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { _, ok := v.(string); return !ok })
	}
	truth := func(v any) bool { _, ok := v.(bool); return ok }
	link := func(v any) bool {
		s, ok := v.(string)
		u, err := url.Parse(s)
		return ok && err == nil && u.IsAbs() && u.Host != ""
	}
	// fields checks an object: a name with ? may be missing, and no other may be there.
	fields := func(path string, v any, defs map[string]func(any) bool) map[string]any {
		m, ok := v.(map[string]any)
		if !ok {
			bad(strings.TrimSuffix(path, "."))
			return nil
		}
		known := map[string]bool{}
		for name, valid := range defs {
			name, optional := strings.CutSuffix(name, "?")
			known[name] = true
			if v, there := m[name]; there && !valid(v) || !there && !optional {
				bad(path + name)
			}
		}
		for name := range m {
			if !known[name] {
				bad(path + name + " is not defined")
			}
		}
		return m
	}
	anything := func(any) bool { return true }
	v1 := doc["protocolVersion"] == "01.00"
	fields("", doc, map[string]func(any) bool{
		"aic": text, "active": truth, "name": text, "description": text, "version": text,
		"lastModifiedTime": func(v any) bool {
			s, _ := v.(string)
			at, err := time.Parse(time.RFC3339, s)
			return err == nil && !at.IsZero() && strings.HasSuffix(s, "+08:00")
		},
		"protocolVersion": func(v any) bool { return v == "01.00" || v == "02.01" },
		"iconUrl?":        link, "documentationUrl?": link, "webAppUrl?": link,
		"provider": anything, "securitySchemes": anything, "endPoints": anything, "capabilities": anything,
		"skills":            anything,
		"defaultInputModes": texts, "defaultOutputModes": texts,
	})
	provider := map[string]func(any) bool{"countryCode?": text, "department?": text}
	for name, valid := range map[string]func(any) bool{"organization": text, "url": link, "license": text} {
		if !v1 {
			name += "?"
		}
		provider[name] = valid
	}
	fields("provider.", doc["provider"], provider)
	schemes, _ := doc["securitySchemes"].(map[string]any)
	for name, s := range schemes {
		defs := map[string]func(any) bool{"type": func(v any) bool { return v == "mutualTLS" }, "description?": text}
		if v1 {
			defs["x-caChallengeBaseUrl"] = link
		} else {
			defs["x-caChallengeBaseUrl?"] = link
		}
		fields("securitySchemes."+name+".", s, defs)
	}
	points, _ := doc["endPoints"].([]any)
	if len(points) == 0 {
		bad("endPoints")
	}
	for i, p := range points {
		path := fmt.Sprintf("endPoints.%d.", i)
		m := fields(path, p, map[string]func(any) bool{
			"url": link, "transport": func(v any) bool { return v == "JSONRPC" || v == "HTTP_JSON" }, "security?": anything,
		})
		alternatives, _ := m["security"].([]any)
		for _, a := range alternatives {
			for name, scopes := range a.(map[string]any) {
				if schemes[name] == nil || !texts(scopes) {
					bad(path + "security")
				}
			}
		}
	}
	fields("capabilities.", doc["capabilities"], map[string]func(any) bool{"streaming": truth, "notification": truth,
		"messageQueue": texts})
	skills, ok := doc["skills"].([]any)
	if !ok {
		bad("skills")
	}
	for i, s := range skills {
		fields(fmt.Sprintf("skills.%d.", i), s, map[string]func(any) bool{
			"id": text, "name": text, "description": text, "version": text, "tags": texts,
			"examples?": texts, "inputModes?": texts, "outputModes?": texts,
		})
	}
	return wrong
}
