// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestJoinAndLeave: shards are shared by the nodes that live.
func TestJoinAndLeave(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		bubble.Pass(10 * time.Millisecond)
		w.shares("a")
		b := w.start("b")
		c := w.start("c")
		bubble.Pass(20 * time.Second)
		w.shares("a", "b", "c")
		at := w.at()
		b.end()
		bubble.Pass(2 * time.Second)
		w.shares("a", "c")
		t.Logf("no owner for %v", w.gap(at))
		at = w.at()
		c.die()
		bubble.Pass(5 * time.Second)
		w.shares("a")
		t.Logf("no owner for %v", w.gap(at))
		a.end()
	})
}
