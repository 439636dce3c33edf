// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"fmt"
	"testing"
)

// TestTaken: a name that is taken stays with its holder, until as many as are kept were taken after it.
func TestTaken(t *testing.T) {
	var names taken
	ann, bob := holderOf("ann", true), holderOf("bob", false)
	name := func(n int) string { return fmt.Sprint("task-", n) }
	for n := range 2 * maxTaken {
		if of, had := names.take(name(n), ann); had {
			t.Fatalf("the name %d is new, and %+v has it", n, of)
		}
		for _, kept := range []int{max(0, n+1-maxTaken), n} {
			if of, had := names.take(name(kept), bob); !had || of != ann {
				t.Fatalf("after %d names the name %d is held by %+v, %t", n+1, kept, of, had)
			}
		}
		if n >= maxTaken && names.has(name(n-maxTaken)) {
			t.Fatalf("after %d names the name %d is kept", n+1, n-maxTaken)
		}
	}
	if !names.claim(name(0), bob) {
		t.Error("a name that was forgotten cannot be taken")
	}
	if of, _ := names.take(name(0), ann); of != bob {
		t.Errorf("it is held by %+v, want %+v", of, bob)
	}
	if len(names.holders) != maxTaken || len(names.names) != maxTaken {
		t.Errorf("%d names and %d holders are kept", len(names.names), len(names.holders))
	}
}
