// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestOneByOne: a node gives up one shard at a time.
func TestOneByOne(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		bubble.Pass(5 * time.Second)
		b := w.start("b")
		b.link.SetDelay(200 * time.Millisecond)
		for range 2000 {
			bubble.Pass(5 * time.Millisecond)
			if n := w.owned()[""]; n > 1 {
				t.Fatalf("%d shards have no owner", n)
			}
		}
		w.shares("a", "b")
		w.end(a, b)
	})
}

// TestTakenBack: a node taking back a shard it has given up, since the next owner has died, gives shards up again
// later.
func TestTakenBack(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		bubble.Pass(5 * time.Second)
		b := w.start("b")
		b.link.SetDelay(lease)
		for range 2000 {
			bubble.Pass(5 * time.Millisecond)
			if w.owned()[""] > 0 {
				break
			}
		}
		b.die()
		bubble.Pass(20 * time.Second)
		w.shares("a")
		b = w.start("b")
		bubble.Pass(20 * time.Second)
		w.shares("a", "b")
		w.end(a, b)
	})
}

// TestTakeOverFirst: while the shards of a gone node are taken over, no other shard moves; later all are shared again.
func TestTakeOverFirst(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c := w.start("a"), w.start("b"), w.start("c")
		bubble.Pass(20 * time.Second)
		before := w.owners()
		c.die()
		bubble.Pass(takeOver + time.Second)
		moved := 0
		for i, o := range w.owners() {
			if before[i].Node != "c" && o.Epoch != before[i].Epoch {
				t.Errorf("shard %d has moved from %q to %q", i, before[i].Node, o.Node)
			} else if o.Node == "c" {
				t.Errorf("shard %d was not taken over", i)
			}
		}
		bubble.Pass(20 * time.Second)
		w.shares("a", "b")
		for i, o := range w.owners() {
			if before[i].Node != "c" && o.Node != before[i].Node {
				moved++
			}
		}
		if moved == 0 {
			t.Error("no shard had to move")
		}
		w.end(a, b)
	})
}

// TestBusy: a busy shard stays until it is not busy, or until the drain is over.
func TestBusy(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		bubble.Pass(5 * time.Second)
		a.setBusy("it has a turn that no other node can resume")
		b := w.start("b")
		bubble.Pass(20 * time.Second)
		w.shares("a")
		for _, s := range a.Shards(w.Context()) {
			if (s.Busy == "") != (s.Should == "a") || !s.Here || s.Owner.Node != "a" {
				t.Errorf("%+v", s)
			}
		}
		a.setBusy("")
		bubble.Pass(20 * time.Second)
		w.shares("a", "b")
		a.setBusy("it has a turn that no other node can resume")
		ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
		defer cancel()
		at := w.at()
		a.Drain(ctx)
		if took := w.at() - at; took < 30*time.Second || took > 30*time.Second+lease {
			t.Errorf("the drain took %v", took)
		}
		w.shares("b")
		w.end(a, b)
	})
}

// TestDrain: a drained node gives up all, one by one, and gets nothing until the drain is lifted.
func TestDrain(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		at := w.at()
		if err := b.DrainNode(w.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
		bubble.Pass(5 * time.Second)
		w.shares("b")
		if gap := w.gap(at); gap > handOver {
			t.Errorf("a shard had no owner for %v", gap)
		}
		a.Drain(w.Context()) // nothing is left
		if err := b.DrainNode(w.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		bubble.Pass(20 * time.Second)
		w.shares("a", "b")
		if err := a.DrainNode(w.Context(), "c", true); err == nil {
			t.Error("a node that does not exist is drained")
		}
		b.end()
		bubble.Pass(time.Second)
		a.Drain(w.Context()) // there is no other node: it keeps its shards
		w.shares("a")
		w.end(a)
	})
}

// TestMove: a shard moved by an operator stays at its new node, until this node ends.
func TestMove(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		for _, to := range []string{"a", "b", "a"} {
			for shard := range 3 {
				w.move(b, shard, to)
			}
			bubble.Pass(10 * time.Second)
			for shard := range 3 {
				if o := w.Owner(shard); o.Node != to {
					t.Errorf("shard %d is owned by %q, want %q", shard, o.Node, to)
				}
			}
		}
		if a.Move(w.Context(), shardCount, "a") == nil || a.Move(t.Context(), 0, "c") == nil {
			t.Error("a move that cannot be is accepted")
		}
		w.alone()
		w.end(a, b)
	})
}

// TestMoveIsLoggedOnce: a moved shard is no news with each record of its new node.
func TestMoveIsLoggedOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		var log asynctest.Buffer
		w.log = slog.New(slog.NewTextHandler(&log, nil))
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		w.move(a, w.ownedBy("a"), "b")
		bubble.Pass(10 * time.Second)
		before := len(log.String())
		bubble.Pass(time.Minute)
		if more := log.String()[before:]; more != "" {
			t.Errorf("it logs:\n%s", more)
		}
		w.end(a, b)
	})
}

// TestStray: a shard whose claim was written, but that is not open, is not kept from its next node.
func TestStray(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		of := w.ownedBy("b")
		a.link.SetBroken(true)
		w.move(b, of, "a")
		bubble.Pass(10 * time.Second)
		if o := w.Owner(of); o.Node != "a" || a.opened()[of] != nil {
			t.Fatalf("the shard has %+v", o)
		}
		w.move(a, of, "b")
		bubble.Pass(5 * time.Second)
		if o := w.Owner(of); o.Node != "b" || b.opened()[of] == nil {
			t.Errorf("the shard has %+v", o)
		}
		w.end(a, b)
	})
}
