// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestOldOwner: a node that has lost a shard, and is answered that it owns it still, asks again.
func TestOldOwner(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		for _, n := range []*node{a, b} {
			n.Handle("name", func(context.Context, int, []byte) ([]byte, error) { return []byte(n.name), nil })
		}
		b.link.SetStale(true)
		w.move(a, of, "a")
		bubble.Pass(time.Second) // the announcements are over
		_, err := b.Call(w.Context(), of, "name", nil)
		if _, ok := errors.AsType[*cluster.MovedError](err); !ok {
			t.Errorf("with an old answer: %v", err)
		}
		b.link.SetStale(false)
		bubble.Pass(time.Second)
		if got, err := b.Call(w.Context(), of, "name", nil); err != nil || string(got) != "a" {
			t.Errorf("with the present answer: %q, %v", got, err)
		}
		w.end(a, b)
	})
}
