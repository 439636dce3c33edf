// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// node is one of several processes counting together.
type node struct {
	*replaytest.Node
	policy *Policy
	book   *Book
}

// nodes returns processes over the same shards, each owning some.
func nodes(t *testing.T, shards *replaytest.Shards, n int, quotas ...Quota) (all []*node) {
	t.Helper()
	for range n {
		one := &node{Node: shards.Node()}
		set := shard.Join(one.Node, slog.New(slog.DiscardHandler))
		one.book = OpenBook(set, time.Now, slog.New(slog.DiscardHandler))
		one.policy = newPolicy(t, Config{Quotas: quotas, Partner: "partner"})
		one.policy.Open(one.book)
		all = append(all, one)
		t.Cleanup(func() {
			one.book.Close()
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range all[0].Count() {
		shards.Assign(i, all[i%n].Node, false)
	}
	synctest.Wait()
	return all
}

// TestNodes: Leaders calling at several processes at once get exactly their quotas, also while the shards with the
// counts are handed over.
func TestNodes(t *testing.T) {
	for _, moves := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			shards := replaytest.NewShards(4)
			all := nodes(t, shards, 3, Quota{Name: "calls", Calls: Rate{1, time.Hour, 30}},
				Quota{Name: "starts", Starts: 20}, Quota{Name: "all", Of: OfAgent, Starts: 180})
			ctx, done := context.WithCancel(t.Context())
			var mover, callers sync.WaitGroup
			if moves {
				mover.Go(func() {
					for ctx.Err() == nil {
						shards.Assign(rand.N(4), all[rand.N(3)].Node, false)
						bubble.Pass(time.Millisecond)
					}
				})
			}
			const leaders, each = 10, 40
			var got [leaders]struct{ calls, starts atomic.Int64 }
			for l := range leaders {
				for i := range each {
					callers.Go(func() {
						bubble.Pass(rand.N(20 * time.Millisecond))
						limit, err := start(t.Context(), all[i%3].policy, leaderOf(l), false)
						if limit != "calls.calls" {
							got[l].calls.Add(1)
						}
						if err == nil {
							got[l].starts.Add(1)
						} else if task.KindOf(err) != task.LimitExceeded {
							t.Errorf("Leader %d: %v", l, err)
						}
					})
				}
			}
			callers.Wait()
			done()
			mover.Wait()
			sum := int64(0)
			for l := range leaders {
				calls, starts := got[l].calls.Load(), got[l].starts.Load()
				if sum += starts; calls != 30 || starts > 20 {
					t.Errorf("moves %v: Leader %d has made %d calls and %d starts, want 30 and at most 20", moves, l, calls, starts)
				}
			}
			if sum != 180 {
				t.Errorf("moves %v: %d starts, want 180", moves, sum)
			}
		})
	}
}

// TestBytesOfNodes: the bytes of the streams of several processes count together, and each stream ends soon after the
// quota is used up.
func TestBytesOfNodes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(4)
		all := nodes(t, shards, 3, Quota{Name: "q", Bytes: 30_000})
		var sent int64
		var mu sync.Mutex
		var streams sync.WaitGroup
		for _, n := range all {
			streams.Go(func() {
				var u Use
				if err := n.policy.Decide(t.Context(), callOf(leaderOf(1)), &u); err != nil {
					t.Error(err)
				}
				defer u.End()
				for err := error(nil); err == nil; {
					bubble.Pass(time.Millisecond)
					err = u.Send(10)
					mu.Lock()
					sent += 10
					mu.Unlock()
				}
			})
		}
		streams.Wait()
		// Each may send until the others learn of it.
		if most := int64(30_000 + 3*10*(2*reportAfter/time.Millisecond)); sent < 30_000 || sent > most {
			t.Errorf("%d bytes were sent, want 30000 to %d", sent, most)
		}
		bubble.Pass(time.Second)
		var counted int64
		for _, n := range all {
			uses, _, err := n.book.Uses(t.Context(), UseFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range uses {
				counted += u.Bytes
			}
			var u Use
			if err := n.policy.Decide(t.Context(), callOf(leaderOf(1)), &u); limitOf(err) != "q.bytes" {
				t.Errorf("a call at %s: %v", n.Name(), err)
			}
		}
		if counted != sent {
			t.Errorf("%d bytes are counted, but %d were sent", counted, sent)
		}
	})
}

// TestNoOwner: a call waits for the owner of its count, and is refused if there is none: an uncounted call is not let
// in. A stream goes on, and its bytes are counted later.
func TestNoOwner(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(1)
		all := nodes(t, shards, 2, Quota{Name: "q", Bytes: 1000, Starts: 5})
		var stream Use
		if err := all[1].policy.Decide(t.Context(), callOf(leaderOf(1)), &stream); err != nil {
			t.Fatal(err)
		}
		defer stream.End()
		shards.Assign(0, nil, false)
		synctest.Wait()
		if err := stream.Send(400); err != nil {
			t.Error(err)
		}
		begun := time.Now()
		if _, err := start(t.Context(), all[1].policy, leaderOf(1), false); task.KindOf(err) != task.StoreUnavailable {
			t.Errorf("a call without an owner: %v", err)
		}
		if waited := time.Since(begun); waited < 10*time.Second || waited > 11*time.Second {
			t.Errorf("it has waited for %v", waited)
		}
		time.AfterFunc(3*time.Second, func() { shards.Assign(0, all[0].Node, false) })
		if limit, err := start(t.Context(), all[1].policy, leaderOf(1), false); err != nil {
			t.Errorf("a call whose owner comes: %s %v", limit, err)
		}
		bubble.Pass(15 * time.Second)
		uses, _, err := all[0].book.Uses(t.Context(), UseFilter{})
		if err != nil || len(uses) != 1 || uses[0].Bytes != 400 || uses[0].Starts != 1 {
			t.Errorf("counted are %+v, %v", uses, err)
		}
	})
}

// TestOwedInParts: an owner able to count only a part of its debt is asked to count the rest later, and nothing twice.
func TestOwedInParts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(2)
		all := nodes(t, shards, 2, Quota{Name: "q", Bytes: 1000})
		owner, sender := all[0].book, all[1]
		var of [2][]int // Leaders, by their shards
		for l := range 20 {
			shard := replay.ShardOf(2, "q", leaderOf(l).Leader())
			of[shard] = append(of[shard], l)
		}
		parts := 0
		ask.New(owner.set, "parts", func(ctx context.Context, shard int, q question) ([]counted, error) {
			if parts++; parts == 1 {
				q.Owed[1].Key = leaderOf(of[1][0]).Leader() // it counts elsewhere
			}
			return owner.answer(ctx, shard, q)
		})
		var streams [3]Use
		for i := range streams {
			if err := sender.policy.Decide(t.Context(), callOf(leaderOf(of[0][i])), &streams[i]); err != nil {
				t.Fatal(err)
			}
		}
		sender.book.owners = ask.New(sender.book.set, "parts", sender.book.answer)
		for i := range streams {
			if err := streams[i].Send(400); err != nil {
				t.Error(err)
			}
			defer streams[i].End()
		}
		bubble.Pass(2 * reportAgain)
		uses, _, err := owner.Uses(t.Context(), UseFilter{})
		if err != nil || len(uses) != 3 || parts != 2 {
			t.Errorf("%+v are counted by %d questions, %v", uses, parts, err)
		}
		for _, u := range uses {
			if u.Bytes != 400 {
				t.Errorf("%d bytes are counted, want 400", u.Bytes)
			}
		}
	})
}

// TestSeized: a former owner's count of starts counts at the next one, after the shard was taken over.
func TestSeized(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(1)
		all := nodes(t, shards, 3, Quota{Name: "q", Starts: 6})
		n := 0
		for i := range 12 {
			if i%2 == 0 {
				shards.Assign(0, all[(i/2+1)%3].Node, true)
			}
			if _, err := start(t.Context(), all[i%3].policy, leaderOf(1), false); err == nil {
				n++
			} else if limitOf(err) != "q.starts" {
				t.Error(err)
			}
		}
		if n != 6 {
			t.Errorf("%d starts, want 6", n)
		}
	})
}
