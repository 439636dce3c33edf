// SPDX-License-Identifier: Apache-2.0

package caddymodule

import "testing"

// TestTakenOver: of what has outlived its request, only streams count as taken over, and not connections of AUN. Both
// are waited for.
func TestTakenOver(t *testing.T) {
	a := &App{configuration: process.NewConfiguration()}
	streams, all := process.TakenOver.Total(), process.Detached.Total()
	for _, c := range []struct {
		what    string
		begin   func() func()
		streams int64
	}{{"a connection of AUN", a.configuration.Detach, 0}, {"a stream", a.configuration.TakeOver, 1}} {
		end := c.begin()
		if n, of := process.TakenOver.Total()-streams, process.Detached.Total()-all; n != c.streams || of != 1 {
			t.Errorf("%s: %d streams of %d", c.what, n, of)
		}
		end()
		if process.TakenOver.Total() != streams || process.Detached.Total() != all {
			t.Errorf("%s is still counted", c.what)
		}
	}
}
