// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestFiftyLeaders: fifty Leaders call at once, each without a pause, and each gets exactly its quotas.
func TestFiftyLeaders(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock),
			Quota{Name: "calls", Calls: Rate{10, time.Second, 30}},
			Quota{Name: "starts", Starts: 20},
			Quota{Name: "all", Of: OfAgent, Starts: 700})
		defer b.Close()
		const leaders, each = 50, 40
		var mu sync.Mutex
		got := make(map[string]int)
		var wg sync.WaitGroup
		for l := range leaders {
			for range each {
				wg.Go(func() {
					limit, _ := start(t.Context(), p, leaderOf(l), false)
					mu.Lock()
					defer mu.Unlock()
					got[limit]++
				})
			}
		}
		wg.Wait()
		if got[""] != 700 || got["calls.calls"] != leaders*(each-30) {
			t.Errorf("got %v", got)
		}
		b.flush(t.Context())
		total := int64(0)
		for l := range leaders {
			e, err := b.account("starts").entry(t.Context(), leaderOf(l).Leader())
			if err != nil {
				t.Fatal(err)
			}
			if total += e.state.starts; e.state.starts > 20 {
				t.Errorf("Leader %d has %d starts", l, e.state.starts)
			}
			e.release()
		}
		if total != 700 {
			t.Errorf("%d starts are counted", total)
		}
		bubble.Pass(time.Second) // ten calls for each Leader
		clear(got)
		for l := range leaders {
			for range 11 {
				var u Use
				err := p.Decide(t.Context(), callOf(leaderOf(l), func(c *Call) { c.Command = "get" }), &u)
				if u.End(); err == nil {
					got[""]++
				}
			}
		}
		if got[""] != 10*leaders {
			t.Errorf("after a second: %v", got)
		}
	})
}

// TestKeptOverRestarts: after a crash every start is counted, and of bytes and slow rates a minute is lost at most;
// after an orderly end, nothing is.
func TestKeptOverRestarts(t *testing.T) {
	quotas := []Quota{{Name: "q", Starts: 10, Bytes: 1000, Calls: Rate{100, time.Hour, 100}}}
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %v", crash), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := replay.NewMemory(replay.Settings{})
				defer store.Close()
				p, b := counting(t, store, new(clock), quotas...)
				send := func(n int64) {
					var u Use
					if err := p.Decide(t.Context(), callOf(leaderOf(1)), &u); err != nil {
						t.Fatal(err)
					}
					defer u.End()
					if err := u.Send(n); err != nil {
						t.Fatal(err)
					}
				}
				send(300)
				bubble.Pass(time.Minute)
				send(200)
				for range 7 {
					if limit, err := start(t.Context(), p, leaderOf(1), false); err != nil {
						t.Fatal(limit, err)
					}
				}
				var want, got state
				e, _ := b.account("q").entry(t.Context(), leaderOf(1).Leader())
				want = e.state
				if e.release(); crash {
					b.stop() // and nothing is written
					b.done.Wait()
				} else {
					b.Close()
				}
				p, b = counting(t, store, new(clock), quotas...)
				defer b.Close()
				e, err := b.account("q").entry(t.Context(), leaderOf(1).Leader())
				if err != nil {
					t.Fatal(err)
				}
				got = e.state
				e.release()
				if got.starts != 7 || got.bytes != 500 || got.day != want.day || got.calls.level > want.calls.level+0.001 {
					t.Errorf("after the restart: %+v, before: %+v", got, want)
				}
				n := 0
				for {
					if limit, err := start(t.Context(), p, leaderOf(1), false); err != nil {
						if limit != "q.starts" {
							t.Errorf("the limit is %s", limit)
						}
						break
					}
					n++
				}
				if n != 3 {
					t.Errorf("%d more starts", n)
				}
			})
		})
	}
}

// appending is a store counting appends.
type appending struct {
	replay.Store
	appends atomic.Int64
}

func (c *appending) Append(ctx context.Context, a replay.Append) error {
	c.appends.Add(1)
	return c.Store.Append(ctx, a)
}

// TestStartsAhead: not each start is written, and yet no start is begun without a count in the store, whatever is
// written meanwhile. A crash counts a hundredth of the quota too much at most, and the starts under way; an orderly
// end, nothing.
func TestStartsAhead(t *testing.T) {
	for _, crash := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			store := &appending{Store: replay.NewMemory(replay.Settings{})}
			defer store.Close()
			q := Quota{Name: "q", Starts: 1000}
			p, b := counting(t, store, new(clock), q)
			log := logname.QuotaOf("q", leaderOf(1).Leader())
			var begun atomic.Int64
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for i := range 50 {
						if limit, err := start(t.Context(), p, leaderOf(1), i%5 == 4); err != nil {
							t.Error(limit, err)
						}
						if i%5 != 4 {
							begun.Add(1)
						}
						if g == 0 && i%10 == 0 {
							b.flush(t.Context())
						}
						least := begun.Load()
						head, err := store.Head(t.Context(), log)
						if s, _ := decodeState(head.Metadata); err != nil || s.starts < least {
							t.Errorf("the store counts %d starts, %v, and %d are begun", s.starts, err, least)
						}
					}
				})
			}
			wg.Wait()
			if n := store.appends.Load(); n > 200 {
				t.Errorf("400 starts are %d appends", n)
			}
			if crash {
				b.stop() // and nothing is written
				b.done.Wait()
			} else {
				b.Close()
			}
			_, b = counting(t, store, new(clock), q)
			defer b.Close()
			e, err := b.account("q").entry(t.Context(), leaderOf(1).Leader())
			if err != nil {
				t.Fatal(err)
			}
			defer e.release()
			if n := e.state.starts - begun.Load(); n < 0 || n > 10+8 || !crash && n > 0 {
				t.Errorf("crash %v: %d starts are counted too much", crash, n)
			}
		})
	}
}

// TestClockSteps: a day begins at midnight of UTC, a clock going back gives nothing anew, and one coming back from far
// in the future does not stop the days.
func TestClockSteps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) { // it begins at midnight
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		wall := new(clock)
		p, b := counting(t, store, wall, Quota{Name: "q", Starts: 2})
		defer b.Close()
		starts := func() (n int) {
			for {
				if _, err := start(t.Context(), p, leaderOf(1), false); err != nil {
					return n
				}
				n++
			}
		}
		check := func(when string, want int) {
			t.Helper()
			if got := starts(); got != want {
				t.Errorf("%s: %d starts, want %d", when, got, want)
			}
		}
		check("the first day", 2)
		wall.set(24*time.Hour - time.Second)
		check("its last second", 0)
		wall.set(24 * time.Hour)
		check("the second day", 2)
		wall.step(-time.Minute)
		check("the clock goes back over midnight", 0)
		wall.step(time.Minute)
		check("and comes to midnight again", 0)
		wall.step(24 * time.Hour)
		check("the third day", 2)
		wall.step(365 * 24 * time.Hour)
		check("the clock jumps a year", 2)
		wall.step(-(365 * 24 * time.Hour))
		check("and back", 0)
		wall.step(24 * time.Hour)
		check("the next midnight", 2)
	})
}

// TestRestartsWithClockSteps: fifty Leaders use up their quotas, and a clock set back gives none of them anything anew
// after a restart, whether the process has ended or crashed.
func TestRestartsWithClockSteps(t *testing.T) {
	const leaders = 50
	for _, crash := range []bool{false, true} {
		for _, step := range []time.Duration{-time.Minute, -23 * time.Hour, -48 * time.Hour, 0, time.Second} {
			bubble.Test(t, func(t *testing.T) {
				store := replay.NewMemory(replay.Settings{})
				defer store.Close()
				wall := new(clock)
				wall.set(3 * 24 * time.Hour)
				quotas := []Quota{{Name: "starts", Starts: 4}, {Name: "calls", Calls: Rate{1, 24 * time.Hour, 6}}}
				p, b := counting(t, store, wall, quotas...)
				begun := func() (n int) {
					var wg sync.WaitGroup
					var all atomic.Int64
					for l := range leaders {
						for range 5 {
							wg.Go(func() {
								if _, err := start(t.Context(), p, leaderOf(l), false); err == nil {
									all.Add(1)
								}
							})
						}
					}
					wg.Wait()
					return int(all.Load())
				}
				if n := begun(); n != 4*leaders {
					t.Errorf("%d starts", n)
				}
				bubble.Pass(time.Minute)
				if crash {
					b.stop() // and nothing is written
					b.done.Wait()
				} else {
					b.Close()
				}
				wall.step(step)
				p, b = counting(t, store, wall, quotas...)
				defer b.Close()
				if n := begun(); n != 0 {
					t.Errorf("crash %v, a step of %v: %d more starts", crash, step, n)
				}
				calls := 0
				for l := range leaders {
					for range 4 {
						var u Use
						if p.Decide(t.Context(), callOf(leaderOf(l)), &u) == nil {
							calls++
						}
						u.End()
					}
				}
				if calls != 0 { // five and one of the six are used
					t.Errorf("crash %v, a step of %v: %d more calls", crash, step, calls)
				}
			})
		}
	}
}

// failing is a store with failures for a while.
type failing struct {
	replay.Store
	fails atomic.Bool
}

func (f *failing) Append(ctx context.Context, a replay.Append) error {
	if f.fails.Load() {
		return replay.ErrUnavailable
	}
	return f.Store.Append(ctx, a)
}

func (f *failing) Head(ctx context.Context, log string) (replay.Head, error) {
	if f.fails.Load() {
		return replay.Head{}, replay.ErrUnavailable
	}
	return f.Store.Head(ctx, log)
}

// TestAStoreThatFails: an uncounted start is not begun, and an unknown caller is not let in, until the store works
// again.
func TestAStoreThatFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &failing{Store: replay.NewMemory(replay.Settings{})}
		defer store.Close()
		p, b := counting(t, store, new(clock), Quota{Name: "q", Starts: 3})
		defer b.Close()
		if _, err := start(t.Context(), p, leaderOf(1), false); err != nil {
			t.Fatal(err)
		}
		store.fails.Store(true)
		for _, leader := range []int{1, 2} {
			if _, err := start(t.Context(), p, leaderOf(leader), false); task.KindOf(err) != task.StoreUnavailable {
				t.Errorf("Leader %d: %v", leader, err)
			}
		}
		bubble.Pass(time.Minute)
		store.fails.Store(false)
		n := 0
		for range 5 {
			if _, err := start(t.Context(), p, leaderOf(1), false); err == nil {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d more starts, want 2", n)
		}
	})
}

// TestForgotten: an unused entry leaves the memory, and is as it was when it is used again. An old one leaves the
// store.
func TestForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		wall := new(clock)
		p, b := counting(t, store, wall, Quota{Name: "q", Starts: 3})
		defer b.Close()
		if _, err := start(t.Context(), p, leaderOf(1), false); err != nil {
			t.Fatal(err)
		}
		bubble.Pass(5 * time.Minute)
		synctest.Wait()
		if n := len(b.account("q").entries); n != 0 {
			t.Errorf("%d entries are in memory", n)
		}
		e, err := b.account("q").entry(t.Context(), leaderOf(1).Leader())
		if err != nil || e.state.starts != 1 {
			t.Errorf("it has %d starts, %v", e.state.starts, err)
		}
		e.release()
		bubble.Pass((staleAfter + 2) * 24 * time.Hour)
		synctest.Wait()
		for one := range store.List(t.Context(), "q", "") {
			t.Errorf("%q is in the store", one.Log)
		}
	})
}

// TestManyQuotas is a property: whatever calls are made, no quota has counted more than its limit, nor a start not
// made.
func TestManyQuotas(t *testing.T) {
	for seed := range uint64(50) {
		bubble.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			wall := new(clock)
			quotas := []Quota{
				{Name: "a", Starts: 1 + r.Int64N(5)},
				{Name: "b", Starts: 1 + r.Int64N(9), Of: OfSet, Calls: Rate{1 + r.Int64N(3), time.Minute, 1 + r.Int64N(5)}},
				{Name: "c", Starts: 1 + r.Int64N(9), Of: OfAgent, Match: Match{Dialect: []string{"a2a"}}},
			}
			p, b := counting(t, store, wall, quotas...)
			type of struct {
				quota, key string
				day        int64
			}
			begun := make(map[of]int64)
			highest := int64(0)
			for range 200 {
				switch r.IntN(12) {
				case 0:
					bubble.Pass(time.Duration(r.Int64N(int64(10 * time.Hour))))
				case 1:
					wall.step(-(time.Duration(r.Int64N(int64(6 * time.Hour)))))
				case 2:
					b.Close()
					p, b = counting(t, store, wall, quotas...)
				}
				highest = max(highest, dayOf(wall.now()))
				again, peer := r.IntN(3) == 0, leaderOf(r.IntN(3))
				call := callOf(peer, func(c *Call) {
					if r.IntN(2) == 0 {
						c.Dialect = "a2a/1.0"
					}
				})
				var u Use
				if p.Decide(t.Context(), call, &u) != nil {
					continue
				}
				full, err := u.Start(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				started := full == nil && !again
				for i := range u.all() {
					if one := &u.of[i]; started {
						begun[of{one.quota.Name, one.entry.key, one.day}]++
					}
				}
				u.Started(started)
				u.End()
			}
			b.Close()
			for o, n := range begun {
				for _, q := range quotas {
					if q.Name == o.quota && n > q.Starts {
						t.Errorf("seed %d: %d starts of %+v, and at most %d are allowed", seed, n, o, q.Starts)
					}
				}
			}
		})
	}
}
