// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// Duration is a duration of a host.
type Duration time.Duration

// TestSettingsOf: settings have their names in JSON, and the form of the configuration. An empty one is left out, but
// not one that is set to nothing; and a secret shows its placeholders.
func TestSettingsOf(t *testing.T) {
	type shared struct {
		Inner string `json:"inner"`
	}
	type part struct {
		Name string   `json:"name"`
		Of   []string `json:"of,omitempty"`
	}
	type settings struct {
		shared

		Empty   string              `json:"empty"`
		Off     *bool               `json:"off"`
		Never   *Duration           `json:"never"`
		Some    *part               `json:"some"`
		Wait    Duration            `json:"wait"`
		Size    int64               `json:"size"`
		Parts   []part              `json:"parts"`
		Header  map[string][]string `json:"header"`
		Key     string              `json:"key"`
		Keys    []string            `json:"keys"`
		Unnamed string
	}
	got := SettingsOf(&settings{shared: shared{"in"}, Off: new(false), Never: new(Duration), Some: &part{},
		Wait: Duration(90 * time.Second), Size: 7, Parts: []part{{"a", nil}, {"b", []string{"x", "y"}}},
		Header: map[string][]string{"B": {"{env.B}"}, "A": {"plain {env.A} {other.A}"}}, Key: "k",
		Keys: []string{"{file.one}", "two"}, Unnamed: "u"}, "header", "key")
	want := []adminapi.Setting{
		{Name: "inner", Value: "in"},
		{Name: "off", Value: "false"},
		{Name: "never", Value: "0s"},
		{Name: "wait", Value: "1m30s"},
		{Name: "size", Value: "7"},
		{Name: "parts[0].name", Value: "a"},
		{Name: "parts[1].name", Value: "b"},
		{Name: "parts[1].of", Value: "x y"},
		{Name: "header.A", Value: "*** {env.A}", Secret: true},
		{Name: "header.B", Value: "{env.B}", Secret: true},
		{Name: "key", Value: "***", Secret: true},
		{Name: "keys", Value: "{file.one} two"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSettingsOfAPartner: the host has the settings of a Partner.
func TestSettingsOfAPartner(t *testing.T) {
	p := newAlone(t, nil)
	p.has.Settings = func(partner string) []adminapi.Setting { return []adminapi.Setting{{Name: "of", Value: partner}} }
	var got adminapi.AgentSettings
	p.ask("GET", adminapi.AgentSettingsOf+"?partner=maps", "", &got)
	want := adminapi.AgentSettings{Partner: "P", Settings: []adminapi.Setting{{Name: "of", Value: "P"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
