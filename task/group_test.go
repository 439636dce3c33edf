// SPDX-License-Identifier: Apache-2.0

package task

import "testing"

func TestMentioned(t *testing.T) {
	for _, tt := range []struct {
		mentions []string
		aic      string
		want     bool
	}{
		{nil, "a", false},
		{[]string{"all"}, "a", true},
		{[]string{"b", "all"}, "a", true},
		{[]string{"A1B2"}, "a1b2", true},
		{[]string{"1.2.156.A"}, "1.2.156.a", true},
		{[]string{"b", "c"}, "a", false},
		{[]string{"ALL"}, "a", false},
		{[]string{""}, "a", false},
		{[]string{"aa"}, "a", false},
	} {
		if got := Mentioned(tt.mentions, tt.aic); got != tt.want {
			t.Errorf("%q in %q: %v", tt.aic, tt.mentions, got)
		}
	}
}
