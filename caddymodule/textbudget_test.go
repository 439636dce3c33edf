// SPDX-License-Identifier: Apache-2.0

//go:build !race

package caddymodule

import (
	"runtime"
	"strings"
	"testing"
)

// TestTextBudget: a whole start with a text of 16 KiB, in and out, allocates no more than a given number of bytes. The
// second text has many escapes, as source code has. The race detector drops what is pooled, so make sparse runs this.
func TestTextBudget(t *testing.T) {
	for _, c := range []struct {
		name, text string
		budget     uint64
	}{
		{"plain", strings.Repeat("0123456789abcdef", 1<<10), 66 << 10},
		{"large", strings.Repeat("0123456789abcdef", 4<<10), 290 << 10},
		{"escaped", strings.Repeat(`if a == \"b\" {\n\t\treturn`, 546), 74 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := starts(t, c.text)
			const n = 500
			for range n / 10 { // the pools fill
				call()
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range n {
				call()
			}
			runtime.ReadMemStats(&after)
			each := (after.TotalAlloc - before.TotalAlloc) / n
			if t.Logf("%d bytes of text, %d allocated", len(c.text), each); each > c.budget {
				t.Errorf("a start allocates %d bytes, want at most %d", each, c.budget)
			}
		})
	}
}
