// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/translate"
)

// TestDialects holds the table of dialects together: names are unique, a codec has the name of its dialect, which is
// how it is found again, an older dialect is one of the table, and what the transport needs of a codec is there.
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

// TestPolled holds which agents are asked, without a turn, whether they are there.
func TestPolled(t *testing.T) {
	for _, d := range dialects {
		want := d.Name != AgentAPI && d.Name != AUN && d.Name != "aun-assignee"
		if d.Polled() != want {
			t.Errorf("agents of %s are polled: %v", d.Name, d.Polled())
		}
	}
}
