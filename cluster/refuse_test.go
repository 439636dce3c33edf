// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestRefusal: a shard its node cannot open gets another owner, and comes back after a while.
func TestRefusal(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		of := w.ownedBy("b")
		a.link.SetBroken(true)
		w.move(b, of, "a")
		bubble.Pass(5*lease + 2*time.Second)
		if o := w.Owner(of); o.Node != "b" || b.opened()[of] == nil {
			t.Fatalf("the shard that cannot be opened has %+v", o)
		}
		at := w.at()
		bubble.Pass(20 * lease)
		a.link.SetBroken(false)
		bubble.Pass(5*lease + 2*time.Second)
		if o := w.Owner(of); o.Node != "a" || a.opened()[of] == nil {
			t.Errorf("the shard that can be opened again has %+v", o)
		}
		if gap := w.gap(at); gap > 6*lease {
			t.Errorf("a shard had no owner for %v", gap)
		}
		w.end(a, b)
	})
}

// TestAllRefuse: a shard no node can open is claimed as soon as one can.
func TestAllRefuse(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		a.link.SetBroken(true)
		b.link.SetBroken(true)
		of := w.ownedBy("b")
		w.move(b, of, "a")
		bubble.Pass(time.Minute)
		a.link.SetBroken(false)
		b.link.SetBroken(false)
		bubble.Pass(2 * time.Second)
		if o := w.Owner(of); o.Node == "" || a.opened()[of] == nil && b.opened()[of] == nil {
			t.Errorf("the shard has %+v", o)
		}
		w.end(a, b)
	})
}
