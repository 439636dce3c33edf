// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
)

// TestDialects holds the table of dialects together: names are unique, a codec has the name of its dialect, the key for
// finding it again, an older dialect is one of the table, and each codec has the parts needed by its transport.
func TestDialects(t *testing.T) {
	seen := make(map[string]bool)
	for _, d := range dialects {
		if seen[d.Name] {
			t.Errorf("%s is there twice", d.Name)
		}
		seen[d.Name] = true
		if older := dialectOf(d.older); d.older != "" && (older == nil || older.client == nil || !older.cards) {
			t.Errorf("%s has the older dialect %q, which no agent can be found to speak", d.Name, d.older)
		}
		if d.client == nil {
			continue
		}
		codec := d.client(new(AgentConfig))
		if codec.Name() != d.Name {
			t.Errorf("the codec of %s has the name %s", d.Name, codec.Name())
		}
		if grpc := translate.FacetsOf(codec).StatusReader != nil; grpc != (d.Transport == OverGRPC) {
			t.Errorf("%s is for gRPC: %v, but its transport is %d", d.Name, grpc, d.Transport)
		}
	}
}

// TestPolled holds the list of agents asked, without a turn, whether they are there.
func TestPolled(t *testing.T) {
	for _, d := range dialects {
		want := d.Name != AgentAPI && d.Name != AUN && d.Name != "aun-assignee"
		if d.Polled() != want {
			t.Errorf("agents of %s are polled: %v", d.Name, d.Polled())
		}
	}
}

// TestFacets: the client of one request has the facets of its dialect, and each facet is one of some dialect.
func TestFacets(t *testing.T) {
	had := make(map[string]bool)
	of := func(c translate.Client) (list []string) {
		facets := reflect.ValueOf(translate.FacetsOf(c))
		for i := range facets.NumField() {
			name := facets.Type().Field(i).Name
			had[name] = had[name] || !facets.Field(i).IsNil()
			if !facets.Field(i).IsNil() {
				list = append(list, name)
			}
		}
		return list
	}
	for _, d := range dialects {
		if d.client == nil {
			continue
		}
		codec := d.client(&AgentConfig{AgentAPI: agentapi.Options{CancelPath: "/stop"}})
		if diff := cmp.Diff(of(codec), of(codec.For(translate.Query{ID: "x-1", Task: "t", Session: "s"}))); diff != "" {
			t.Errorf("%s (-of the dialect +of a request):\n%s", d.Name, diff)
		}
	}
	for name, ok := range had {
		if !ok {
			t.Errorf("no dialect has the facet %s", name)
		}
	}
}
