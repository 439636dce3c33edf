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

// TestStopped: nothing is sent to the webhooks of a Leader without standing, nor of one that no mount of the Partner
// would let in. At a Partner that is gone, they go on.
func TestStopped(t *testing.T) {
	may := func(leaders ...string) func(string) bool {
		return func(leader string) bool { return slices.Contains(leaders, leader) }
	}
	all := Partners{{Name: "a", Permits: may("one")}, {Name: "a", Permits: may("two")}, {Name: "open"}}
	stopped := all.stopped(may("lost"))
	got := make(map[string]bool)
	for _, partner := range []string{"a", "open", "gone"} {
		for _, leader := range []string{"one", "two", "three", "lost"} {
			got[partner+" "+leader] = stopped(partner, leader)
		}
	}
	want := map[string]bool{"a one": false, "a two": false, "a three": true, "a lost": true, "open one": false,
		"open two": false, "open three": false, "open lost": true, "gone one": false, "gone two": false,
		"gone three": false, "gone lost": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
