// SPDX-License-Identifier: Apache-2.0

package bounds

import "testing"

// TestDefaultBody: a body may have 20 MiB, as far as a Leader may hold the memory that this needs, and never less than
// it could before there was so much. What is set alone is never refused for what is not.
func TestDefaultBody(t *testing.T) {
	for _, c := range []struct {
		set       Limits
		body      int
		perLeader int64
	}{
		{Limits{Memory: 192 << 20}, 20 << 20, 48 << 20},
		{Limits{Memory: 64 << 20}, 8<<20 - 1, 16 << 20},
		{Limits{Memory: 24 << 20}, 4 << 20, 8<<20 + 2},
		{Limits{Memory: 192 << 20, Body: 30 << 20}, 30 << 20, 60<<20 + 2},
		{Limits{Memory: 192 << 20, Body: 1 << 20}, 1 << 20, 48 << 20},
	} {
		l := c.set
		l.FillDefaults()
		if l.Body != c.body || l.MemoryPerLeader() != c.perLeader || l.Check() != nil {
			t.Errorf("%+v: %+v, %v", c.set, l, l.Check())
		}
	}
}
