// SPDX-License-Identifier: Apache-2.0

package notify

import "testing"

// TestOwnerOf proves that unverified Leaders are one for the limit of outboxes, and that nobody else is.
func TestOwnerOf(t *testing.T) {
	owner := func(partner, leader string) string {
		return ownerOf(string(Class) + partner + separator + leader + separator + "task")
	}
	same := func(a, b string, want bool) {
		t.Helper()
		if got := a == b; got != want {
			t.Errorf("%q and %q are the same: %v, want %v", a, b, got, want)
		}
	}
	same(owner("p", "unverified:a"), owner("p", "unverified:b"), true)
	same(owner("p", "unverified:a"), owner("q", "unverified:a"), false)
	same(owner("p", "unverified:a"), owner("p", "a"), false)
	same(owner("p", "a"), owner("p", "b"), false)
}
