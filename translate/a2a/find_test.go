// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
)

func TestOffers(t *testing.T) {
	const names = "its card names a protocolVersion of 0.2 or 0.3"
	for name, want := range map[string][]translate.Offer{
		"legacy-trpc": {{URL: "http://127.0.0.1:9102/", Likely: version.NameLegacy, Why: "its card names no version"}},
		"legacy-nulls": {{URL: "http://agent.internal/maps", Likely: version.NameLegacy,
			Why: "its card names no version"}},
		"v02": {{URL: "http://localhost:41241/", Dialect: version.Name03,
			Why: "its card has members that 0.2 brought"}},
		"v03-go":         {{URL: "http://127.0.0.1:9202/invoke", Dialect: version.Name03, Why: names}},
		"v03-rest-first": {{URL: "http://127.0.0.1/rpc", Dialect: version.Name03, Why: names}},
		"v10-go-hybrid": {
			{URL: "http://127.0.0.1:9302/invoke", Dialect: version.Name10, Why: "its card lists JSONRPC 1.0"},
			{URL: "http://127.0.0.1:9302/rest", Dialect: version.Name10REST, Why: "its card lists HTTP+JSON 1.0"},
			{URL: "http://127.0.0.1:9302/invoke03", Dialect: version.Name03, Why: names},
		},
		"v10": {
			{URL: "https://agent.internal/rest", Dialect: version.Name10REST, Why: "its card lists HTTP+JSON 1.0"},
			{URL: "grpc.internal:443", OwnPort: true, Dialect: version.Name10GRPC, Why: "its card lists GRPC 1.0"},
		},
	} {
		if diff := cmp.Diff(want, Finder().Offers(parsed(t, name), placeBefore03)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if o := Finder().Offers(parsed(t, "legacy-trpc"), placeOf03); o[0].Likely != version.Name03 {
		t.Errorf("where cards lie from 0.3 on: %+v", o)
	}
}

func TestGenerations(t *testing.T) {
	for text, want := range map[string]version.Generation{
		"1.0": version.V1, "1.0.0": version.V1, "1": version.V1, "v1.0": version.V1, " 1.2": version.V1,
		"0.3": version.V03, "0.3.0": version.V03, "0.2.5": version.V03, "0.2": version.V03, "0.10": version.V03,
		"0.1": version.Legacy, "0.1.0": version.Legacy, "": version.Unknown, "2.0": version.Unknown,
		"0": version.Unknown, "0.x": version.Unknown, "0.-3": version.Unknown, "10": version.Unknown,
		"one": version.Unknown,
	} {
		if got := version.Parse(text); got != want {
			t.Errorf("version.Parse(%q) = %d, want %d", text, got, want)
		}
	}
}

// Answers seen of agents, by probe: the first row of verdicts is GetTask, then the legacy one, then 0.3's.
func TestVerdicts(t *testing.T) {
	failure := func(code string) string {
		return `{"jsonrpc":"2.0","id":1,"error":{"code":` + code + `,"message":"m"}}`
	}
	const yes, no, unsure = translate.Yes, translate.No, translate.Unsure
	for _, tt := range []struct {
		name, body string
		want       [3]translate.Verdict
	}{
		{"no such task", failure("-32001"), [3]translate.Verdict{yes, yes, yes}},
		{"no such task, by js 1.x",
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"m","data":[{"@type":"t"}]}}`,
			[3]translate.Verdict{yes, yes, yes}},
		{"no such method", failure("-32601"), [3]translate.Verdict{no, no, no}},
		{"trpc leaves the id out", `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"}}`,
			[3]translate.Verdict{no, no, no}},
		{"method known by validation, as in the first samples", failure("-32600"), [3]translate.Verdict{no, no, no}},
		{"method known by parsing", failure("-32700"), [3]translate.Verdict{no, no, no}},
		{"a2a-go 0.3 fails over an unknown id", failure("-32603"), [3]translate.Verdict{no, yes, yes}},
		{"version not supported", failure("-32009"), [3]translate.Verdict{no, yes, yes}},
		{"no webhooks", failure("-32003"), [3]translate.Verdict{yes, yes, yes}},
		{"who asks", failure("-31401"), [3]translate.Verdict{yes, yes, yes}},
		{"a result, whatever the method", `{"jsonrpc":"2.0","id":1,"result":{}}`, [3]translate.Verdict{no, yes, yes}},
		{"a page", `<html><body>404</body></html>`, [3]translate.Verdict{unsure, unsure, unsure}},
		{"nothing", ``, [3]translate.Verdict{unsure, unsure, unsure}},
		{"REST's error", `{"detail":"Not Found"}`, [3]translate.Verdict{unsure, unsure, unsure}},
	} {
		var got [3]translate.Verdict
		for i, p := range Finder().Probes("x") {
			got[i] = p.Judge([]byte(tt.body))
		}
		if got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestProbes(t *testing.T) {
	type request struct {
		Method  string
		ID      string
		Version string
		Dialect string
	}
	var got []request
	for _, p := range Finder().Probes(`no "such" task`) {
		var body struct {
			JSONRPC string
			ID      int
			Method  string
			Params  struct{ ID string }
		}
		if err := json.Unmarshal(p.Body, &body); err != nil || body.JSONRPC != "2.0" || body.ID != 1 {
			t.Errorf("%s: %v", p.Body, err)
		}
		r := request{Method: body.Method, ID: body.Params.ID, Dialect: p.Dialect}
		for _, f := range p.Header {
			r.Version = f.Name + ": " + f.Value
		}
		got = append(got, r)
	}
	want := []request{
		{"GetTask", `no "such" task`, "A2A-Version: 1.0", version.Name10},
		{"tasks/pushNotification/get", `no "such" task`, "", version.NameLegacy},
		{"tasks/pushNotificationConfig/get", `no "such" task`, "", version.Name03},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
