// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// TestNoLeader: while the registry and the streams have no leader, no node is declared gone, and none acts after its
// lease. Then all go on with their shards.
func TestNoLeader(t *testing.T) {
	for i := range 10 {
		inBubble(t, func(w *world) {
			nodes := []*node{w.start("a"), w.start("b"), w.start("c")}
			bubble.Pass(20*time.Second + time.Duration(i)*100*time.Millisecond)
			before := w.owners()
			at := w.at()
			w.SetDown(true)
			bubble.Pass(8 * time.Second)
			for _, n := range nodes {
				if last := w.lastOf(n, w.at()); last > at+lease {
					t.Errorf("%s has acted %v after the leader was lost", n.name, last-at)
				}
				if err := n.Ready(); !errors.Is(err, replay.ErrUnavailable) {
					t.Errorf("%s is ready: %v", n.name, err)
				}
			}
			w.SetDown(false)
			at = w.at()
			bubble.Pass(10 * time.Second)
			for _, n := range nodes {
				if s := n.Stats(); s.Gone+s.Fenced > 0 || s.Lapses != 1 {
					t.Errorf("%s has seen %+v", n.name, s)
				}
				if err := n.Ready(); err != nil {
					t.Errorf("%s is not ready: %v", n.name, err)
				}
			}
			if gap := w.gap(at); gap > lease {
				t.Errorf("no node has acted for %v more", gap)
			}
			if !slices.Equal(before, w.owners()) {
				t.Errorf("shards have moved: %v, %v", before, w.owners())
			}
			w.end(nodes...)
		})
	}
}

// TestDeathWithoutLeader: the shards of a dead node are taken over soon after there is a leader again. A living node
// has the time until then for a failing try to renew its lease, and for the next one.
func TestDeathWithoutLeader(t *testing.T) {
	const tries, soon = lease*2/3 + lease/15, lease / 10
	for i := range 20 {
		for hangs, most := range map[bool]time.Duration{false: tries + soon, true: 2*tries + soon} {
			inBubble(t, func(w *world) {
				a, b, c := w.start("a"), w.start("b"), w.start("c")
				bubble.Pass(20 * time.Second)
				w.SetDown(true)
				c.die()
				bubble.Pass(8*time.Second + time.Duration(i)*100*time.Millisecond)
				b.link.LoseWrites(hangs) // the one under way
				w.SetDown(false)
				bubble.Pass(time.Millisecond)
				b.link.LoseWrites(false)
				at := w.at()
				bubble.Pass(15 * time.Second)
				w.shares("a", "b")
				if gap := w.gap(at); gap > most {
					t.Errorf("a shard had no owner for %v more", gap)
				}
				for _, n := range []*node{a, b} {
					if s := n.Stats(); s.Gone != 1 || s.Fenced > 0 {
						t.Errorf("%s has seen %+v", n.name, s)
					}
				}
				w.alone()
				w.end(a, b)
			})
		}
	}
}

// TestDeathWithoutNotices: the shards of a dead node are taken over by others, even if they do not see its records.
func TestDeathWithoutNotices(t *testing.T) {
	for i := range 20 {
		inBubble(t, func(w *world) {
			a, b, c := w.start("a"), w.start("b"), w.start("c")
			bubble.Pass(20 * time.Second)
			a.link.Deaf()
			b.link.Deaf()
			bubble.Pass(10*time.Second + time.Duration(i)*170*time.Millisecond)
			at := w.at()
			c.die()
			bubble.Pass(15 * time.Second)
			w.shares("a", "b")
			if gap := w.gap(at); gap > takeOver+lease*2/3 {
				t.Errorf("a shard had no owner for %v", gap)
			}
			w.alone()
			w.end(a, b)
		})
	}
}

// TestOneAsksForTheOwner: of all callers of a shard with no leader for its stream, one asks for its owner, and all wait
// for the answer. Each waits no longer than it wants to.
func TestOneAsksForTheOwner(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		w.SetDown(true)
		begun := w.at()
		var callers sync.WaitGroup
		hasty, cancel := context.WithTimeout(w.Context(), lease/10)
		defer cancel()
		callers.Go(func() {
			if _, err := a.Call(hasty, of, "echo", nil); err == nil || w.at() != begun+lease/10 {
				t.Errorf("who waits for %v is answered after %v: %v", lease/10, w.at()-begun, err)
			}
		})
		for range 40 {
			callers.Go(func() {
				var moved *cluster.MovedError
				if _, err := a.Call(w.Context(), of, "echo", nil); !errors.As(err, &moved) || moved.Begun {
					t.Errorf("a call has the error %v", err)
				}
				if at := w.at(); at != begun+lease/3 {
					t.Errorf("a call is answered after %v", at-begun)
				}
			})
		}
		callers.Wait()
		again := w.at()
		if _, err := a.Call(w.Context(), of, "echo", nil); err == nil || w.at() != again {
			t.Errorf("right after that, a call is answered after %v: %v", w.at()-again, err)
		}
		w.SetDown(false)
		bubble.Pass(lease / 2)
		b.Handle("echo", func(context.Context, int, []byte) ([]byte, error) { return nil, nil })
		if _, err := a.Call(w.Context(), of, "echo", nil); err != nil {
			t.Errorf("with a leader: %v", err)
		}
		w.end(a, b)
	})
}
