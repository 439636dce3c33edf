// SPDX-License-Identifier: Apache-2.0

package procs

import "testing"

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		name            string
		now, processors int
		environment     string
		want            int
	}{
		{"one processor", 1, 1, "", 2},
		{"two", 2, 2, "", 4},
		{"three", 3, 3, "", 4},
		{"four", 4, 4, "", 4},
		{"many", 64, 64, "", 64},
		{"set by the environment", 2, 2, "2", 2},
		{"a share of a machine", 2, 64, "", 2},
		{"a share of two processors", 1, 2, "", 1},
		{"set before", 4, 2, "", 4},
	} {
		if got := Wanted(c.now, c.processors, c.environment); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
