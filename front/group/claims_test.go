// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestClaims: whoever names others as the Leader has few refusals written, and takes little memory.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c claims
		written := func(attempts int, leader func(i int) string) (n int) {
			for i := range attempts {
				if c.take(leader(i)) {
					n++
				}
			}
			return n
		}
		one := func(int) string { return "leader" }
		many := func(i int) string { return fmt.Sprint("leader", i) }
		if n := written(100, one); n != maxClaimsOfLeader {
			t.Errorf("%d are written to one Leader", n)
		}
		if n := written(10_000, many); n != maxClaims-maxClaimsOfLeader || len(c.of) > maxClaims {
			t.Errorf("%d are written to many Leaders, and %d names are kept", n, len(c.of))
		}
		time.Sleep(claimWindow)
		if n := written(100, one); n != maxClaimsOfLeader {
			t.Errorf("in the next window, %d are written", n)
		}
		c.stop()
		time.Sleep(claimWindow - 1)
		if n := written(100, many); n > 0 {
			t.Errorf("%d are written after one was not taken", n)
		}
		time.Sleep(time.Nanosecond)
		if n := written(1, many); n != 1 {
			t.Error("none is written ever after")
		}
	})
}
