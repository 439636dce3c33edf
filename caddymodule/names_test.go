// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
)

// TestTitles proves that each Partner has a title of its own, which does not depend on the order in which handlers are
// loaded.
func TestTitles(t *testing.T) {
	card := filepath.Join(t.TempDir(), "acs.json")
	if err := os.WriteFile(card, []byte(`{"name": "Travel\n planner"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	make := func(name, aic, base, agent string) *Gateway {
		return &Gateway{Name: name, AIC: aic, BasePath: base, Agent: agents.Config{URL: agent}}
	}
	all := []*Gateway{
		make("", "a1", "/travel", "http://one"), make("", "a2", "/travel", "http://two"),
		make("travel-2", "a3", "/travel", "http://three"), make("", "a3", "/other", "http://three"),
		make("", "", "", "http://four:1/rpc/"), make("", "a5", "/x", "http://five"),
	}
	all[5].Card.Registered = card
	want := []string{"travel", "travel-3", "travel-2", "travel-2", "four:1/rpc", "Travel planner"}
	for range 2 {
		a := &App{members: slices.Clone(all)}
		a.assignTitles()
		var got []string
		for _, g := range all {
			got = append(got, g.title())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the titles differ (-want +got):\n%s", diff)
		}
		slices.Reverse(all)
		slices.Reverse(want)
	}
}

// TestExaminedTitles proves that doctor tells Partners apart that have one default.
func TestExaminedTitles(t *testing.T) {
	var partners []doctor.Partner
	for _, aic := range []string{"10001000011K94ZH3VDXLP4S5EB63614", groupAIC} { // the second is the first of the names
		partners = append(partners, doctor.Partner{Handler: json.RawMessage(`{"base_path": "/travel", "aic": "` + aic +
			`", "agent": {"dialect": "a2a/legacy", "url": "http://` + freeAddr(t) + `"}}`)})
	}
	subjects := make(map[string]int)
	app := &App{StoreRaw: json.RawMessage(`{"driver": "memory"}`)}
	for _, f := range findings(t, app, partners) {
		if f.Check == doctor.CheckClientAuth {
			subjects[f.Subject]++
		}
	}
	if diff := cmp.Diff(map[string]int{"travel": 1, "travel-2": 1}, subjects); diff != "" {
		t.Errorf("the findings are about others (-want +got):\n%s", diff)
	}
}

// TestNamesThatAreRefused proves that a name needs no quotes where it is typed, and that one name means one Partner.
func TestNamesThatAreRefused(t *testing.T) {
	for name, want := range map[string]string{
		"travel-planner": "", "": "", "2.fast_one": "", "-x": "must be", "a b": "must be", "ü": "must be",
		strings.Repeat("a", 65): "at most 64", "{env.NAME}": "placeholder",
	} {
		err := (&Gateway{Name: name}).checkTitle()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the name %q: %v, want %q", name, err, want)
		}
	}
	for _, tc := range []struct{ aic, name, other, otherName, want string }{
		{"a", "x", "b", "x", "are different Partners"}, {"a", "x", "a", "y", "give them one name"},
		{"a", "x", "a", "", ""}, {"a", "x", "b", "y", ""}, {"a", "", "b", "", ""},
	} {
		one := &Gateway{AIC: tc.aic, Name: tc.name, Agent: agents.Config{URL: "http://one"}}
		two := &Gateway{AIC: tc.other, Name: tc.otherName, Agent: agents.Config{URL: "http://one"}}
		err := checkTitles(one, two)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}
