// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// TestEveryCommandHasADeed: each command of the table of routes, and no other.
func TestEveryCommandHasADeed(t *testing.T) {
	var names []string
	for _, route := range adminapi.Routes {
		for _, c := range route.Commands {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, slices.Sorted(maps.Keys(deeds))); diff != "" {
		t.Errorf("(-commands +deeds):\n%s", diff)
	}
}
