// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	takeOver = lease + lease/30 + 200*time.Millisecond // after the death of a node
	handOver = 200 * time.Millisecond                  // of a released shard
)

// TestJoinAndLeave: shards are shared by the living nodes. A leaving one hands over its shards at once.
func TestJoinAndLeave(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		bubble.Pass(100 * time.Millisecond)
		w.shares("a")
		b := w.start("b")
		c := w.start("c")
		at := w.at()
		bubble.Pass(20 * time.Second)
		w.shares("a", "b", "c")
		b.end()
		bubble.Pass(2 * time.Second)
		w.shares("a", "c")
		if gap := w.gap(at); gap > handOver {
			t.Errorf("a shard had no owner for %v", gap)
		}
		w.alone()
		w.end(a, c)
	})
}

// TestLostAnswer: a node whose record was written goes on without the answer, and others know at once when it leaves.
func TestLostAnswer(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		b.link.LoseAnswers(true)
		bubble.Pass(lease / 2)
		b.link.LoseAnswers(false)
		bubble.Pass(10 * time.Second)
		if err := b.Ready(); err != nil {
			t.Error(err)
		}
		b.link.LoseAnswers(true)
		bubble.Pass(lease / 2)
		b.link.LoseAnswers(false)
		b.end()
		bubble.Pass(handOver)
		w.shares("a")
		if nodes := a.Nodes(); len(nodes) != 2 || !nodes[1].Left {
			t.Errorf("the other node knows %+v", nodes)
		}
		w.end(a)
	})
}

// TestFailedWrites: a node unable to write its record for a moment tries again soon, and keeps its shards.
func TestFailedWrites(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		before := a.Stats().TakeOverTook.Count
		b.link.FailWrites(5)
		bubble.Pass(10 * time.Second)
		w.shares("a", "b")
		if n := a.Stats().TakeOverTook.Count - before; n > 0 {
			t.Errorf("%d shards were taken over", n)
		}
		w.end(a, b)
	})
}

// TestDeath: the shards of a dead node are taken over when its lease is over. They come back with the node, at once
// under its name.
func TestDeath(t *testing.T) {
	for i := range 20 { // at all times between two records
		inBubble(t, func(w *world) {
			a, b, c := w.start("a"), w.start("b"), w.start("c")
			bubble.Pass(20*time.Second + time.Duration(i)*50*time.Millisecond)
			at := w.at()
			c.die()
			bubble.Pass(10 * time.Second)
			w.shares("a", "b")
			if gap := w.gap(at); gap > takeOver {
				t.Errorf("a shard had no owner for %v", gap)
			}
			took := a.Stats().TakeOverTook
			if took.Count == 0 || took.Sum > float64(took.Count)*takeOver.Seconds() {
				t.Errorf("the times are %+v", took)
			}
			at = w.at()
			c = w.start("c")
			if took := w.at() - at; took > lease/5 {
				t.Errorf("it took %v to join", took)
			}
			bubble.Pass(20 * time.Second)
			w.shares("a", "b", "c")
			w.alone()
			w.end(a, b, c)
		})
	}
}

// TestCallToOneThatDies: a node may be called by its name while it is declared gone. From then on the error says so.
func TestCallToOneThatDies(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		tooLarge := make([]byte, cluster.MaxBody+1) // so nothing is sent, and nothing waited for
		b.die()
		for at := w.at(); ; bubble.Pass(10 * time.Millisecond) {
			err := err0(a.CallNode(w.Context(), "b", "none", tooLarge))
			if err != nil && strings.Contains(err.Error(), `no node "b"`) {
				break
			}
			if w.at() > at+2*lease {
				t.Fatalf("the node is not declared gone: %v", err)
			}
		}
		w.end(a)
	})
}

// TestDeposedLeader: after a lapse of its lease a node does not act in a shard taken over by another, although the
// leader it asks was deposed and does not know of the next owner.
func TestDeposedLeader(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		a.link.SetStale(true)
		a.link.Cut(true)
		bubble.Pass(3 * lease)
		w.shares("b")
		a.link.Cut(false)
		bubble.Pass(lease)
		w.alone()
		a.link.SetStale(false)
		bubble.Pass(20 * time.Second)
		w.shares("a", "b")
		w.alone()
		w.end(a, b)
	})
}

// TestRestart: a node dead and started again at once has its name, and its shards when the lease of the dead process is
// over, and not before.
func TestRestart(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		at := w.at()
		b.die()
		b = w.start("b")
		bubble.Pass(takeOver)
		w.shares("a", "b")
		if gap := w.gap(at); gap > takeOver || gap < lease*2/3 {
			t.Errorf("a shard had no owner for %v", gap)
		}
		w.alone()
		w.end(a, b)
	})
}

// TestSuspended: a node stopped for three leases acts no more when it goes on, and its appends are refused. It owns
// shards again later.
func TestSuspended(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		at, had := w.at(), b.opened()
		b.link.Cut(true)
		bubble.Pass(3 * lease)
		w.shares("a")
		for i, s := range had {
			if s == nil {
				continue
			}
			if err := replay.HeldBy(s)(); !errors.Is(err, replay.ErrUnavailable) {
				t.Errorf("shard %d may be acted on: %v", i, err)
			}
		}
		b.link.Cut(false)
		for i, s := range had {
			if s == nil {
				continue
			}
			if err := s.Append(w.Context(), replay.Append{Log: "t"}); !errors.Is(err, replay.ErrFenced) {
				t.Errorf("an append to shard %d is not refused: %v", i, err)
			}
		}
		if last := w.lastOf(b, at+3*lease+time.Second); last > at+lease {
			t.Errorf("the node has acted %v after it was stopped", last-at)
		}
		bubble.Pass(20 * time.Second)
		w.shares("a", "b")
		w.alone()
		w.end(a, b)
	})
}

// TestUnseen: a shard lost while nothing was appended is given up, before anything is acted on again.
func TestUnseen(t *testing.T) {
	for _, knows := range []bool{false, true} {
		inBubble(t, func(w *world) {
			a, b := w.start("a"), w.start("b")
			bubble.Pass(20 * time.Second)
			at := w.at()
			cut := b.link.Cut
			if knows {
				cut = b.link.Disconnect
			}
			cut(true)
			bubble.Pass(3 * lease)
			cut(false)
			bubble.Pass(20 * time.Second)
			w.shares("a", "b")
			if gap := w.gap(at); gap > takeOver {
				t.Errorf("a shard had no owner for %v", gap)
			}
			if b.Stats().Fenced == 0 {
				t.Error("the node does not know what it has lost")
			}
			w.alone()
			w.end(a, b)
		})
	}
}

// TestNames: a second process under the name of a living node is refused, and does no harm.
func TestNames(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		bubble.Pass(10 * time.Second)
		before := w.owners()
		second := w.open("a")
		err := second.Joined(w.Context())
		if _, ok := errors.AsType[*cluster.NameTakenError](err); !ok || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("the error is %v", err)
		}
		bubble.Pass(10 * time.Second)
		if a.Ready() != nil || second.Ready() == nil || !slices.Equal(before, w.owners()) {
			t.Error("the second process has done harm")
		}
		w.end(second)
		bubble.Pass(10 * time.Second)
		if err := a.Ready(); err != nil || !slices.Equal(before, w.owners()) {
			t.Errorf("the second process has done harm: %v", err)
		}
		a.link.Cut(true) // it does not answer: the second process waits until its lease is over
		at := w.at()
		second = w.start("a")
		if took := w.at() - at; took < lease || took > 2*lease {
			t.Errorf("it took %v to join", took)
		}
		a.link.Cut(false)
		bubble.Pass(10 * time.Second)
		if a.Ready() == nil || second.Ready() != nil {
			t.Error("the first process takes part")
		}
		w.alone()
		w.end(a, second)
	})
	for name, ok := range map[string]bool{"gw-1": true, "a_B": true, "": false, "a.b": false, "ä": false,
		strings.Repeat("a", 65): false} {
		if err := cluster.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestUnreachable: a node started while the registry has no leader joins when there is one.
func TestUnreachable(t *testing.T) {
	inBubble(t, func(w *world) {
		w.SetDown(true)
		a := w.open("a")
		bubble.Pass(10 * time.Second)
		if a.Ready() == nil {
			t.Error("it is ready")
		}
		w.SetDown(false)
		bubble.Pass(5 * time.Second)
		if err := a.Ready(); err != nil {
			t.Error(err)
		}
		w.shares("a")
		w.end(a)
	})
}

// TestLostNotices: nodes not seeing each other's records ask the registry before they declare anybody gone.
func TestLostNotices(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		a.link.Deaf()
		bubble.Pass(60 * time.Second)
		if s := a.Stats(); s.Gone > 0 {
			t.Errorf("%d were declared gone", s.Gone)
		}
		w.shares("a", "b")
		w.end(a, b)
	})
}

// TestLongerLease: a node with a longer lease, as during the roll-out of a configuration, is not declared gone before
// that lease is over.
func TestLongerLease(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		w.lease = 3 * lease
		b := w.start("b")
		bubble.Pass(30 * time.Second)
		at := w.at()
		b.link.Cut(true)
		bubble.Pass(4 * lease)
		if last := w.lastOf(b, w.at()); last < at+lease {
			t.Errorf("the node has acted for %v only", last-at)
		}
		w.shares("a")
		w.alone()
		b.link.Cut(false)
		bubble.Pass(30 * time.Second)
		w.alone()
		w.end(a, b)
	})
}

// TestStolen: a node acts no more on a shard claimed by another one although both live, and after a lease at most if it
// does not hear of it.
func TestStolen(t *testing.T) {
	for _, test := range []struct {
		name   string
		heard  bool
		within time.Duration
	}{{"heard", true, 100 * time.Millisecond}, {"unheard", false, lease}} {
		t.Run(test.name, func(t *testing.T) { testStolen(t, test.heard, test.within) })
	}
}

func testStolen(t *testing.T, heard bool, within time.Duration) {
	inBubble(t, func(w *world) {
		a, b, of := w.pair()
		b.mu.Lock()
		b.slow = 2 * time.Second
		b.mu.Unlock()
		thief := w.Link()
		owner := w.Owner(of)
		if _, err := thief.Claim(w.Context(), of, owner, "a", w.Owner(w.ownedBy("a")).Incarnation); err != nil {
			t.Fatal(err)
		}
		stop, err := thief.Listen("thief", func(cluster.Message) {})
		if err != nil {
			t.Fatal(err)
		}
		at := w.at()
		if heard {
			thief.Send(cluster.Message{From: "thief", To: "all", Data: []byte{11, byte(of)}})
		}
		bubble.Pass(5 * time.Second)
		w.mu.Lock()
		for _, act := range w.acts[of] {
			if act.node == b && act.at > at+within && act.epoch == owner.Epoch {
				t.Errorf("the former owner has acted %v after the claim", act.at-at)
			}
		}
		w.mu.Unlock()
		if n := b.Stats().Fenced; n != 1 {
			t.Errorf("it counts %d shards that it has lost", n)
		}
		stop()
		bubble.Pass(20 * time.Second)
		w.end(a, b)
	})
}

// TestRegistryMadeAgain: when the registry was lost and made again, with revisions begun anew, the nodes see each other
// as before, and none takes anything from another one. A name with its process started again meanwhile is seen, too.
func TestRegistryMadeAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b, c := w.start("a"), w.start("b"), w.start("c")
		bubble.Pass(time.Minute)
		before := w.owners()
		w.Remake()
		bubble.Pass(20 * time.Second)
		if !slices.Equal(before, w.owners()) {
			t.Errorf("shards have moved: %v, %v", before, w.owners())
		}
		for _, n := range []*node{a, b, c} {
			if s := n.Stats(); s.Gone+s.Fenced > 0 {
				t.Errorf("%s has seen %+v", n.name, s)
			}
			for _, other := range n.Nodes() {
				if !other.Living || other.Silent > lease/2 {
					t.Errorf("%s has %+v", n.name, other)
				}
			}
		}
		w.Remake()
		c.end()
		c = w.start("c")
		bubble.Pass(20 * time.Second)
		w.shares("a", "b", "c")
		w.alone()
		w.end(a, b, c)
	})
}
