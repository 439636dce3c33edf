// SPDX-License-Identifier: Apache-2.0

package node

import (
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPartners: a Partner with two mounts, one of another name for the same agent, and one whose title is the name of
// another.
func TestPartners(t *testing.T) {
	all := Partners{
		{Name: "a", Title: "weather", Agent: "http://one", URL: "/1"},
		{Name: "b", Title: "trips", Agent: "http://one"},
		{Name: "a", Title: "weather", Agent: "http://one", URL: "/2"},
		{Name: "c", Title: "a", Agent: "http://two"},
	}
	for typed, want := range map[string]string{"a": "a", "weather": "a", "trips": "b", "c": "c", "none": "none"} {
		if got := all.Resolve(typed); got != want {
			t.Errorf("%q is taken for %q, and not %q", typed, got, want)
		}
	}
	if p := all.Named("a"); p != all[0] {
		t.Errorf("the Partner a is %+v", p)
	}
	if p := all.Named("weather"); p != nil {
		t.Errorf("a title is taken for a name: %+v", p)
	}
	names := func(seq iter.Seq[*Partner]) (names []string) {
		for p := range seq {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		return names
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(all.Each())); diff != "" {
		t.Errorf("the Partners (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "c"}, names(all.Agents())); diff != "" {
		t.Errorf("a Partner of each agent (-want +got):\n%s", diff)
	}
}
