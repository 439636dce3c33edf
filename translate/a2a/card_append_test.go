// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
)

var allForms = []CardForm{CardLegacy, CardV02, CardV03, CardV1, CardHybrid}

const base = "https://public.example/agents/a"

// every is everything that a gateway may serve.
var every = []string{"aip", version.NameLegacy, version.Name03, version.Name10, version.Name10REST}

// in returns the same schemes for some dialects.
func in(dialects []string, s Schemes) map[string]Schemes {
	all := make(map[string]Schemes)
	for _, name := range dialects {
		all[name] = s
	}
	return all
}

// TestSchemesOfADialect: a card names the schemes of its version's dialect, and no others.
func TestSchemesOfADialect(t *testing.T) {
	served := []string{version.NameLegacy, version.Name03, version.Name03REST, version.Name10, version.Name10REST,
		version.Name10GRPC}
	v03, v1 := Schemes{Bearer: true}, Schemes{MutualTLS: true, OpenID: []string{"https://one.example"}}
	schemes := map[string]Schemes{version.NameLegacy: {KeyHeader: "X-Key"}, version.Name03: v03, version.Name03REST: v03,
		version.Name10: v1, version.Name10REST: v1, version.Name10GRPC: v1}
	const (
		old = `{"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}},"security":[{"bearer":[]}]}`
		of1 = `{"securitySchemes":{"mtls":{"mtlsSecurityScheme":{}},"oidc":{"openIdConnectSecurityScheme":` +
			`{"openIdConnectUrl":"https://one.example"}}}}`
	)
	for name, tt := range map[string]struct {
		o    CardOptions
		want string
	}{
		"legacy":       {CardOptions{Form: CardLegacy}, `{"authentication":{"schemes":["ApiKey"]}}`},
		"0.2":          {CardOptions{Form: CardV02}, old},
		"0.3":          {CardOptions{Form: CardV03}, old},
		"1.0":          {CardOptions{Form: CardV1}, of1},
		"1.0 for REST": {CardOptions{Form: CardV1, Generations: []string{version.Name10REST, version.Name03}}, of1},
		"hybrid": {CardOptions{Form: CardHybrid}, `{"securitySchemes":{` +
			`"bearer":{"type":"http","scheme":"bearer","httpAuthSecurityScheme":{"scheme":"Bearer"}},` +
			`"mtls":{"type":"mutualTLS","mtlsSecurityScheme":{}},"oidc":{"type":"openIdConnect",` +
			`"openIdConnectUrl":"https://one.example","openIdConnectSecurityScheme":{"openIdConnectUrl":` +
			`"https://one.example"}}},"security":[{"bearer":[]}]}`},
		"hybrid where only 1.0 is served": {CardOptions{Form: CardHybrid, Generations: []string{version.Name10}}, of1},
		"1.0 where only 0.3 is served": {CardOptions{Form: CardV1, Generations: []string{version.Name03}},
			`{"securitySchemes":{"bearer":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}}}`},
	} {
		tt.o.Base, tt.o.Schemes = base, schemes
		if tt.o.Generations == nil {
			tt.o.Generations = served
		}
		got := decoded(t, AppendCard(nil, &translate.Card{Name: "a"}, tt.o)).(map[string]any)
		for member := range got {
			if member != "securitySchemes" && member != "security" && member != "authentication" {
				delete(got, member)
			}
		}
		if diff := cmp.Diff(decoded(t, []byte(tt.want)), any(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAppendCard(t *testing.T) {
	c := parsed(t, "legacy-nulls")
	const who = `"name":"maps","description":"maps","version":"1.0.0","provider":{"organization":"Maps Ltd","url":""}`
	const skill = `"id":"route","name":"Route","description":"Route","tags":[],"examples":["to the station"],` +
		`"outputModes":["text/html"]`
	const types = `"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain","image/png"],"skills":[{` +
		skill + `}]`
	const rpc = `{"url":"` + base + `","protocolBinding":"JSONRPC","protocolVersion":"1.0"}`
	const rest = `{"url":"` + base + `","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}`
	const old = `{"url":"` + base + `","protocolBinding":"JSONRPC","protocolVersion":"0.3"}`
	const zero = `"url":"` + base +
		`","protocolVersion":"0.3.0","preferredTransport":"JSONRPC","additionalInterfaces":[{"url":"` + base +
		`","transport":"JSONRPC"}]`
	for _, tt := range []struct {
		name string
		o    CardOptions
		want string
	}{
		{"legacy", CardOptions{Form: CardLegacy, Generations: every},
			`{` + who + `,"url":"` + base +
				`","capabilities":{"streaming":true,"pushNotifications":false,"stateTransitionHistory":false},
			"authentication":{"schemes":[]},
			"defaultInputModes":["text"],"defaultOutputModes":["text","text/plain","image/png"],
			"skills":[{` +
				skill + `}]}`},
		{"legacy with TLS and webhooks",
			CardOptions{Form: CardLegacy, Generations: every, Schemes: in(every, Schemes{MutualTLS: true}), Push: true,
				Extended: true},
			`{` + who + `,"url":"` + base +
				`","capabilities":{"streaming":true,"pushNotifications":true,"stateTransitionHistory":false},
			"authentication":{"schemes":["mutualTLS"]},
			"defaultInputModes":["text"],"defaultOutputModes":["text","text/plain","image/png"],
			"skills":[{` +
				skill + `}]}`},
		{"0.2 has no word for TLS",
			CardOptions{Form: CardV02, Generations: every, Schemes: in(every, Schemes{MutualTLS: true})},
			`{` + who + `,` + zero +
				`,"capabilities":{"streaming":true,"pushNotifications":false,"stateTransitionHistory":false},
			"supportsAuthenticatedExtendedCard":false,` + types + `}`},
		{"0.3", CardOptions{Form: CardV03, Generations: every, Schemes: in(every, Schemes{MutualTLS: true}), Extended: true,
			Push: true},
			`{` + who + `,` + zero +
				`,"capabilities":{"streaming":true,"pushNotifications":true,"stateTransitionHistory":false},
			"supportsAuthenticatedExtendedCard":true,"securitySchemes":{"mtls":{"type":"mutualTLS"}},"security":[{"mtls":[]}],` +
				types + `}`},
		{"1.0", CardOptions{Form: CardV1, Generations: every, Schemes: in(every, Schemes{MutualTLS: true}), Extended: true,
			Push: true},
			`{` + who + `,"supportedInterfaces":[` + rpc + `,` + rest + `],
			"capabilities":{"streaming":true,"pushNotifications":true,"extendedAgentCard":true},
			"securitySchemes":{"mtls":{"mtlsSecurityScheme":{}}},` + types + `}`},
		{"1.0 without REST", CardOptions{Form: CardV1, Generations: []string{version.Name10, version.Name03}},
			`{` + who + `,"supportedInterfaces":[` + rpc + `],
			"capabilities":{"streaming":true,"pushNotifications":false,"extendedAgentCard":false},` + types + `}`},
		{"1.0 where only 0.3 is served", CardOptions{Form: CardV1, Generations: []string{version.Name03}},
			`{` + who + `,"supportedInterfaces":[` + old + `],
			"capabilities":{"streaming":true,"pushNotifications":false,"extendedAgentCard":false},` + types + `}`},
		{"hybrid", CardOptions{Form: CardHybrid, Generations: every, Schemes: in(every, Schemes{MutualTLS: true})},
			`{` + who + `,` + zero + `,"supportedInterfaces":[` + rpc + `,` + rest + `,` + old + `],
			"capabilities":{"streaming":true,"pushNotifications":false,"extendedAgentCard":false},
			"securitySchemes":{"mtls":{"type":"mutualTLS","mtlsSecurityScheme":{}}},
			"security":[{"mtls":[]}],` + types + `}`},
		{"hybrid where only 1.0 is served", CardOptions{Form: CardHybrid, Generations: []string{version.Name10REST}},
			`{` + who + `,"supportedInterfaces":[` + rest + `],
			"capabilities":{"streaming":true,"pushNotifications":false,"extendedAgentCard":false},` + types + `}`},
	} {
		tt.o.Base = base
		got := AppendCard([]byte("before"), c, tt.o)
		if diff := cmp.Diff(decoded(t, []byte(tt.want)), decoded(t, got[len("before"):])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func decoded(t testing.TB, body []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

// TestAppendCardOfEveryAgent: no form shows the agent's place or protection, and each has the members required by its
// schema.
func TestAppendCardOfEveryAgent(t *testing.T) {
	for name := range cards(t) {
		c := parsed(t, name)
		for _, form := range allForms {
			for flags := range 16 {
				o := CardOptions{Form: form, Base: base, Generations: every, Push: flags&1 > 0, Extended: flags&2 > 0,
					Schemes: in(every, Schemes{MutualTLS: flags&4 > 0, Bearer: flags&8 > 0})}
				got := AppendCard(nil, c, o)
				for _, secret := range []string{"127.0.0.1", "localhost", "agent.internal", "idp.internal", "X-Key",
					"grpc", "signatures", "acme"} {
					if strings.Contains(string(got), secret) {
						t.Errorf("%s, form %d shows %q", name, form, secret)
					}
				}
				for _, wrong := range schemaErrors(form, decoded(t, got).(map[string]any)) {
					t.Errorf("%s, form %d, flags %d: %s", name, form, flags, wrong)
				}
				if back, err := ParseCard(got); err != nil {
					t.Errorf("%s, form %d: cannot be read again: %v", name, form, err)
				} else if back.Push != o.Push || !back.Streaming || form != CardLegacy && back.Extended != o.Extended {
					t.Errorf("%s, form %d: read again as %+v", name, form, back)
				}
			}
		}
	}
}

// schemaErrors checks a card against the schema of its version: required and allowed members.
func schemaErrors(form CardForm, card map[string]any) (wrong []string) {
	has := func(where string, m map[string]any, kind string, names ...string) {
		for _, n := range names {
			ok := false
			switch v := m[n].(type) {
			case string:
				ok = kind == "string" && v != ""
			case bool:
				ok = kind == "bool"
			case []any:
				ok = kind == "list"
			case map[string]any:
				ok = kind == "object"
			}
			if !ok {
				wrong = append(wrong, fmt.Sprintf("%s%s is %T, want a %s", where, n, m[n], kind))
			}
		}
	}
	only := func(where string, m map[string]any, names string) {
		for n := range m {
			if !slices.Contains(strings.Fields(names), n) {
				wrong = append(wrong, where+n+" is not of this version")
			}
		}
	}
	const common = "name description version provider documentationUrl capabilities defaultInputModes " +
		"defaultOutputModes skills "
	const zero = "iconUrl url protocolVersion preferredTransport additionalInterfaces supportsAuthenticatedExtendedCard " +
		"securitySchemes security "
	const one = "iconUrl supportedInterfaces securitySchemes "
	has("", card, "string", "name", "description", "version")
	has("", card, "list", "defaultInputModes", "defaultOutputModes", "skills")
	has("", card, "object", "capabilities")
	capabilities := card["capabilities"].(map[string]any)
	has("capabilities.", capabilities, "bool", "streaming", "pushNotifications")
	switch form {
	case CardLegacy:
		only("", card, common+"url authentication")
		has("", card, "string", "url")
	case CardV02, CardV03:
		only("", card, common+zero)
		has("", card, "string", "url", "protocolVersion", "preferredTransport")
		only("capabilities.", capabilities, "streaming pushNotifications stateTransitionHistory extensions")
	case CardV1:
		only("", card, common+one)
		has("", card, "list", "supportedInterfaces")
		only("capabilities.", capabilities, "streaming pushNotifications extendedAgentCard extensions")
	case CardHybrid:
		only("", card, common+zero+one)
		has("", card, "string", "url", "protocolVersion", "preferredTransport")
		has("", card, "list", "supportedInterfaces")
		// Beyond 1.0 it has the members required in 0.3, and nothing more: validators of 1.0 refuse unknown ones.
		only("capabilities.", capabilities, "streaming pushNotifications extendedAgentCard extensions")
	}
	list, _ := card["additionalInterfaces"].([]any)
	for _, i := range list {
		has("additionalInterfaces.", i.(map[string]any), "string", "url", "transport")
		only("additionalInterfaces.", i.(map[string]any), "url transport")
	}
	list, _ = card["supportedInterfaces"].([]any)
	for _, i := range list {
		only("supportedInterfaces.", i.(map[string]any), "url protocolBinding protocolVersion")
		has("supportedInterfaces.", i.(map[string]any), "string", "url", "protocolBinding", "protocolVersion")
	}
	list, _ = card["skills"].([]any)
	for _, s := range list {
		s := s.(map[string]any)
		has("skills.", s, "string", "id", "name", "description")
		has("skills.", s, "list", "tags")
		only("skills.", s, "id name description tags examples inputModes outputModes")
	}
	return wrong
}

// TestCardListsREST03: both forms of a card list HTTP+JSON of 0.3, behind 1.0, but not for callers asking for 1.0.
func TestCardListsREST03(t *testing.T) {
	entry := func(members ...string) map[string]any {
		m := map[string]any{"url": base}
		for i := 0; i < len(members); i += 2 {
			m[members[i]] = members[i+1]
		}
		return m
	}
	supported := func(binding, version string) any {
		return entry("protocolBinding", binding, "protocolVersion", version)
	}
	additional := []any{entry("transport", "JSONRPC"), entry("transport", "HTTP+JSON")}
	for form, want := range map[CardForm][2]any{
		CardV03: {additional, nil},
		CardHybrid: {additional,
			[]any{supported("JSONRPC", "1.0"), supported("HTTP+JSON", "1.0"), supported("JSONRPC", "0.3"),
				supported("HTTP+JSON", "0.3")}},
		CardV1: {nil, []any{supported("JSONRPC", "1.0"), supported("HTTP+JSON", "1.0")}},
	} {
		o := CardOptions{Form: form, Base: base, Generations: append([]string{version.Name03REST}, every...)}
		card := decoded(t, AppendCard(nil, parsed(t, "v10"), o)).(map[string]any)
		if d := cmp.Diff(want, [2]any{card["additionalInterfaces"], card["supportedInterfaces"]}); d != "" {
			t.Errorf("form %d (-want +got):\n%s", form, d)
		}
	}
}

func TestSignatures(t *testing.T) {
	signed, unsigned := parsed(t, "v03-rest-first"), parsed(t, "v03-go")
	keep := CardOptions{Form: CardV1, Base: base, Generations: every, Signatures: KeepSignatures}
	if got := AppendCard(nil, signed, keep); string(got) != string(signed.Raw) {
		t.Errorf("a signed card is not passed on as it is: %s", got)
	}
	if got := AppendCard(nil, unsigned, keep); string(got) == string(unsigned.Raw) ||
		!strings.Contains(string(got), base) {
		t.Errorf("without a signature there is nothing to keep: %s", got)
	}
	keep.Signatures = DropSignatures
	if got := AppendCard(nil, signed, keep); strings.Contains(string(got), "signatures") {
		t.Errorf("a signature that cannot be valid is shown: %s", got)
	}
}

func TestCardFormOf(t *testing.T) {
	const none = CardForm(99)
	for _, tt := range []struct {
		file, version, generations string
		want                       CardForm
	}{
		{"agent.json", "", "aip a2a/legacy", CardLegacy},
		{"agent.json", "", "a2a/legacy a2a/0.3 a2a/1.0", CardV02},
		{"agent.json", "1.0", "a2a/1.0", none},
		{"agent.json", "", "aip", none},
		{"agent-card.json", "", "a2a/legacy a2a/0.3 a2a/1.0", CardHybrid},
		{"agent-card.json", "", "a2a/1.0-rest", CardHybrid},
		{"agent-card.json", "1.0", "a2a/legacy a2a/0.3 a2a/1.0", CardV1},
		{"agent-card.json", "1.0", "a2a/0.3", CardV03},
		{"agent-card.json", "0.3", "a2a/0.3 a2a/1.0", CardV03},
		{"agent-card.json", "0.3", "a2a/1.0", CardHybrid},
		{"agent-card.json", "", "a2a/0.3", CardV03},
		{"agent-card.json", "", "a2a/legacy", none},
		{"agent-card.json", "7", "a2a/legacy a2a/0.3 a2a/1.0", CardHybrid},
		{"acs.json", "", "a2a/legacy a2a/0.3 a2a/1.0", none},
	} {
		got, ok := CardFormOf(tt.file, tt.version, strings.Fields(tt.generations))
		if !ok {
			got = none
		}
		if got != tt.want {
			t.Errorf("CardFormOf(%q, %q, %s) = %d, want %d", tt.file, tt.version, tt.generations, got, tt.want)
		}
	}
}

// TestCardOfAnAgentWithExtensions: the extensions supported by an agent stand in our card, in all forms but that of
// 0.1, as it has none. The URL of the mount point keeps its last slash, unless callers append paths to it.
func TestCardOfAnAgentWithExtensions(t *testing.T) {
	c, err := ParseCard([]byte(`{"name":"a","url":"http://agent/","capabilities":{"extensions":[` +
		`{"uri":"https://ui.example/v1","description":"UI","required":true,"params":{"a": [1]}},` +
		`{"uri":"urn:x"},{"description":"none"},{"uri":7},"no"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := decoded(t, []byte(`[{"uri":"https://ui.example/v1","description":"UI","required":true,"params":{"a":[1]}},`+
		`{"uri":"urn:x"}]`))
	for _, form := range allForms {
		card := decoded(t, AppendCard(nil, c, CardOptions{Form: form, Base: base + "/", Generations: append(every,
			version.Name03REST)})).(map[string]any)
		got := card["capabilities"].(map[string]any)["extensions"]
		if diff := cmp.Diff(want, got); diff != "" && (form != CardLegacy || got != nil) {
			t.Errorf("form %d (-want +got):\n%s", form, diff)
		}
		if url, ok := card["url"]; ok && url != base+"/" {
			t.Errorf("form %d: the URL is %v", form, url)
		}
		for _, list := range []string{"supportedInterfaces", "additionalInterfaces"} {
			all, _ := card[list].([]any)
			for _, i := range all {
				i := i.(map[string]any)
				rest := i["protocolBinding"] == "HTTP+JSON" || i["transport"] == "HTTP+JSON"
				if i["url"] != base+map[bool]string{false: "/", true: ""}[rest] {
					t.Errorf("form %d: %v", form, i)
				}
			}
		}
	}
}
