// SPDX-License-Identifier: Apache-2.0

package acs

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	aicV1 = "10001000011K912345E789ABCDEF2353"
	aicV2 = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
)

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

func fullOptions() Options {
	return Options{
		AIC: aicV1, Base: "https://public.example/tours/", Named: true, MutualTLS: true, Notification: true, Validity: 90,
		CAChallengeBaseURL: "https://public.example/challenge", License: "ICP 1",
	}
}

// made is a document of the middle of an hour.
func made(c *translate.Card, o Options) []byte {
	d := Make(c, o)
	d.At(time.Date(2025, 3, 15, 8, 30, 0, 7, time.UTC))
	return d.Encode()
}

func TestMakeGolden(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"v01":       func(*Options) {},
		"v01-group": func(o *Options) { o.Groups = true },
		"v02.01":    func(o *Options) { o.AIC, o.CAChallengeBaseURL, o.Groups = aicV2, "", true },
		"v02.02-ip": func(o *Options) {
			o.AIC, o.Version, o.Base, o.CAChallengeBaseURL = aicV2, V0202, "https://[2001:db8::1]:8443/"+Placeholder, ""
		},
		"v02.01-draft": func(o *Options) {
			o.AIC, o.Version, o.Base, o.Organization = "", V0201, "https://Agents.example/"+Placeholder, "O <& Co>"
		},
		"v02.01-unnamed": func(o *Options) { o.AIC, o.Named, o.Validity, o.CAChallengeBaseURL = aicV2, false, 0, "" },
	} {
		o := fullOptions()
		change(&o)
		var got bytes.Buffer
		if err := json.Indent(&got, made(fullCard(), o), "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		file := "testdata/" + name + ".json"
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		mistakes := Check(got.Bytes())
		if o.AIC == "" && len(mistakes) == 1 && mistakes[0].Path == "aic" {
			continue // of a draft
		}
		if len(mistakes) > 0 {
			t.Errorf("%s has mistakes: %v", name, mistakes)
		}
	}
}

// With any knowledge of an agent, the document follows the definitions, except for the mistakes found by Check.
func TestMakeFollowsTheDefinitions(t *testing.T) {
	many := fullCard()
	many.Provider = translate.Provider{}
	cards := map[string]*translate.Card{
		"full": fullCard(), "no provider": many, "nothing": {},
		"no texts": {Skills: []translate.Skill{{Name: "only a name"}, {ID: "x", OutputModes: []string{"a/b"}}}},
	}
	known := make(map[string]bool)
	example, err := os.ReadFile("testdata/example.json")
	if err != nil {
		t.Fatal(err)
	}
	membersOf(t, example, func(path string) { known[path] = true })
	for name, c := range cards {
		for _, version := range []string{"", V0100, V0201, V0202} {
			for flags := range 8 {
				o := fullOptions()
				if o.Version = version; version > V0100 {
					o.AIC = aicV2
				}
				o.MutualTLS, o.Notification = flags&1 > 0, flags&2 > 0
				if flags&4 > 0 {
					o.License, o.CAChallengeBaseURL = "", ""
				} else {
					o.Organization, o.Department, o.ProviderURL, o.CountryCode = "O", "D", "https://o.example", "DE"
				}
				got := made(c, o)
				if strings.Contains(string(got), "agent.internal") || strings.Contains(string(got), "apiKey") {
					t.Errorf("%s: shows how the agent is reached: %s", name, got)
				}
				var found []string
				for _, m := range Check(got) {
					found = append(found, m.Path)
				}
				wrong := defined(got)
				slices.Sort(wrong)
				slices.Sort(found)
				if diff := cmp.Diff(wrong, found); diff != "" {
					t.Errorf("%s, version %q, flags %d (-by the definitions +by Check):\n%s", name, version, flags, diff)
				}
				membersOf(t, got, func(path string) {
					if !known[path] && !strings.HasSuffix(path, "x-caChallengeBaseUrl") {
						t.Errorf("%s, version %q: the registry does not know the member %s", name, version, path)
					}
				})
			}
		}
	}
}

// membersOf calls f with the path of each member of a document. The places in lists, and the names of schemes, are left
// out.
func membersOf(t *testing.T, body []byte, f func(path string)) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, v := range v {
				walk(path, v)
			}
		case map[string]any:
			for name, v := range v {
				if path == "endPoints.security" {
					continue
				}
				if path == "securitySchemes" {
					name = "*"
				}
				f(join(path, name))
				walk(join(path, name), v)
			}
		}
	}
	walk("", doc)
}

// defined returns the paths of a document breaking the definitions of ACS v01.00 or v02.01.
func defined(body []byte) (wrong []string) {
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
		"protocolVersion": func(v any) bool { return v == "01.00" || v == "02.01" || v == "02.02" },
		"iconUrl?":        link, "documentationUrl?": link, "webAppUrl?": link,
		"provider": anything, "securitySchemes": anything, "endPoints": anything, "capabilities": anything,
		"skills":            anything,
		"defaultInputModes": texts, "defaultOutputModes": texts, "certificate?": anything,
	})
	provider := map[string]func(any) bool{"countryCode?": text, "department?": text}
	provider["organization"] = text // in 02.x, the CA demands it
	for name, valid := range map[string]func(any) bool{"url": link, "license": text} {
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
		path := fmt.Sprintf("endPoints[%d].", i)
		m := fields(path, p, map[string]func(any) bool{
			"url": link, "transport": func(v any) bool { return v == "JSONRPC" || v == "HTTP_JSON" }, "security?": anything,
		})
		alternatives, _ := m["security"].([]any)
		if len(alternatives) == 0 { // the registry demands mutualTLS
			bad(path + "security")
		}
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
		fields(fmt.Sprintf("skills[%d].", i), s, map[string]func(any) bool{
			"id": text, "name": text, "description": text, "version": text, "tags": texts,
			"examples?": texts, "inputModes?": texts, "outputModes?": texts,
		})
	}
	return wrong
}

// TestMakeInbox: an ACS of 02.x names the inbox, in the form approved by the registry of ACPs 2.1, and one of 01.00
// does not.
func TestMakeInbox(t *testing.T) {
	o := fullOptions()
	o.Inbox = "amqps://localhost:5671/acps"
	for aic, want := range map[string][]string{
		aicV1: {"https://public.example/tours/rpc JSONRPC"},
		aicV2: {"https://public.example/tours/rpc JSONRPC", "amqps://localhost:5671/acps?inbox=inbox_" + aicV2 + " AMQP"},
		"":    {"https://public.example/tours/rpc JSONRPC", "amqps://localhost:5671/acps?inbox=inbox_{AIC} AMQP"},
	} {
		o.AIC, o.Version = aic, ""
		if aic == "" {
			o.Version = V0202
		}
		var got []string
		d := Make(fullCard(), o)
		for _, p := range d.EndPoints {
			got = append(got, p.URL+" "+p.Transport)
			if diff := cmp.Diff([]map[string][]string{{"mtls": {}}}, p.Security); diff != "" {
				t.Errorf("the security of %s:\n%s", p.URL, diff)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the endpoints (-want +got):\n%s", aic, diff)
		}
		if aic != "" {
			d.At(time.Unix(0, 0))
			for _, m := range Check(d.Encode()) {
				t.Errorf("%s: %s", aic, m)
			}
		}
	}
}
