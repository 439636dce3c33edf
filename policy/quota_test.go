// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// clock is a wall clock that can be set.
type clock struct{ by atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

// set sets the clock to a time after that of the bubble, and step by more.
func (c *clock) set(by time.Duration)  { c.by.Store(int64(by)) }
func (c *clock) step(by time.Duration) { c.by.Add(int64(by)) }

// counting returns a policy with quotas over a store, and its book.
func counting(t testing.TB, store replay.Store, wall *clock, quotas ...Quota) (*Policy, *Book) {
	t.Helper()
	b := OpenBook(store, wall.now, slog.New(slog.DiscardHandler))
	p := newPolicy(t, Config{Quotas: quotas, Partner: "partner"})
	p.Open(b)
	return p, b
}

// leaderOf returns the n-th of some Leaders.
func leaderOf(n int) *identity.Peer {
	return &identity.Peer{Proof: identity.ByToken, Kind: "jwt", ID: fmt.Sprintf("idp|%d", n)}
}

// start makes a call that starts a task, or that starts it again. It returns the limit that refuses it.
func start(ctx context.Context, p *Policy, peer *identity.Peer, again bool) (limit string, err error) {
	var u Use
	if err := p.Decide(ctx, callOf(peer), &u); err != nil {
		return limitOf(err), err
	}
	defer u.End()
	full, err := u.Start(ctx)
	if err != nil {
		return "", err
	}
	u.Started(full == nil && !again)
	if full != nil && !again {
		return limitOf(full), u.Refuse(full)
	}
	return "", nil
}

func limitOf(err error) string {
	e, ok := errors.AsType[*task.Error](err)
	if !ok || e.Kind != task.LimitExceeded || e.RetryAfter() < 1 {
		return fmt.Sprintf("no refusal of a quota: %v", err)
	}
	return e.Data["limit"].(string)
}

// TestRates reads rates, and says what is wrong with others.
func TestRates(t *testing.T) {
	for s, want := range map[string]Rate{
		"50/s":           {50, time.Second, 50},
		"50/s burst 100": {50, time.Second, 100},
		"600/m":          {600, time.Minute, 10},
		"10/h":           {10, time.Hour, 1},
		"":               {}, "50": {}, "0/s": {}, "-1/s": {}, "50/d": {}, "50/s burst": {}, "50/s burst 0": {}, "1e3/s": {},
		"5000000000/s": {},
	} {
		got, err := ParseRate(s)
		if got != want || (err == nil) != (want != Rate{}) {
			t.Errorf("%q is %+v, %v", s, got, err)
		}
	}
	for s, want := range map[string]int64{"1000/day": 1000, "0/day": 0, "5": 0, "5/s": 0} {
		if got, err := ParseDaily(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v", s, got, err)
		}
	}
	for s, want := range map[string]int64{"1GiB/day": 1 << 30, "10kB/day": 10_000, "x/day": 0, "0/day": 0, "1GiB": 0} {
		if got, err := ParseDailyBytes(s); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %d, %v", s, got, err)
		}
	}
}

// FuzzRates: what is accepted is a rate by which something can be counted.
func FuzzRates(f *testing.F) {
	for _, s := range []string{"50/s burst 100", "1/h", "1000/day", "1GiB/day", "9999999999999999999/s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil {
			var b bucket
			now := time.Unix(1e9, 0)
			if _, ok := b.take(r, now); !ok || r.N <= 0 || r.Burst <= 0 {
				t.Errorf("%q is %+v, and its first call is refused", s, r)
			}
			b.level = 0
			if wait, ok := b.take(r, now); ok || wait <= 0 || wait > r.Per {
				t.Errorf("%q has a call again after %v, %v", s, wait, ok)
			}
		}
		if n, err := ParseDaily(s); err == nil && n <= 0 {
			t.Errorf("%q is %d", s, n)
		}
		if n, err := ParseDailyBytes(s); err == nil && n <= 0 {
			t.Errorf("%q is %d", s, n)
		}
	})
}

// TestFiftyLeaders: fifty Leaders call at once, each as often as it can, and each gets exactly what its quotas have.
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

// TestClockSteps: a day begins at midnight of UTC, a clock that goes back gives nothing anew, and one that comes back
// from far in the future does not stop the days.
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

// TestRetryAfter: the error of a quota says its name, its limit and when there is room.
func TestRetryAfter(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock), Quota{Name: "gold", Starts: 1, Calls: Rate{1, time.Minute, 1}})
		defer b.Close()
		bubble.Pass(time.Hour)
		if _, err := start(t.Context(), p, leaderOf(1), false); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := start(t.Context(), p, leaderOf(1), false)
			e, _ := errors.AsType[*task.Error](err)
			want := map[string]any{"limit": "gold.calls", "max": int64(1), "retryAfter": int64(60)}
			if d := cmp.Diff(want, e.Data); d != "" {
				t.Error(d)
			}
		}
		bubble.Pass(time.Minute)
		_, err := start(t.Context(), p, leaderOf(1), false)
		e, _ := errors.AsType[*task.Error](err)
		want := map[string]any{"limit": "gold.starts", "max": int64(1), "retryAfter": int64(23*3600 - 60)}
		if d := cmp.Diff(want, e.Data); d != "" {
			t.Error(d)
		}
	})
}

// TestTheSameStartAgain: a repeated start is a call and no start, also where no start is left.
func TestTheSameStartAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock), Quota{Name: "q", Starts: 1, Calls: Rate{1, time.Hour, 4}})
		defer b.Close()
		for i, again := range []bool{true, false, true} {
			if _, err := start(t.Context(), p, leaderOf(1), again); err != nil {
				t.Errorf("start %d: %v", i, err)
			}
		}
		if limit, _ := start(t.Context(), p, leaderOf(1), false); limit != "q.starts" {
			t.Errorf("a second start: %s", limit)
		}
		if limit, _ := start(t.Context(), p, leaderOf(1), true); limit != "q.calls" {
			t.Errorf("a fifth call: %s", limit)
		}
	})
}

// TestScopes: calls of a Leader, of all to whom the quota applies, and of all Leaders of a Partner count together.
func TestScopes(t *testing.T) {
	for of, want := range map[Scope]int{OfLeader: 4, OfSet: 2, OfAgent: 2} {
		bubble.Test(t, func(t *testing.T) {
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			p, b := counting(t, store, new(clock), Quota{Name: "q", Of: of, Starts: 2})
			defer b.Close()
			n := 0
			for i := range 10 {
				if _, err := start(t.Context(), p, leaderOf(i%2), false); err == nil {
					n++
				}
			}
			if n != want {
				t.Errorf("of %s: %d starts, want %d", of, n, want)
			}
		})
	}
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock), Quota{Name: "q", Starts: 2})
		defer b.Close()
		n := 0
		for i := range 10 { // a name costs them nothing
			var u Use
			c := callOf(new(identity.Peer), func(c *Call) { c.Leader = fmt.Sprintf("unverified:%d", i) })
			if err := p.Decide(t.Context(), c, &u); err != nil {
				t.Fatal(err)
			}
			if full, _ := u.Start(t.Context()); full == nil {
				n++
				u.Started(true)
			}
			u.End()
		}
		if n != 2 {
			t.Errorf("unverified Leaders have %d starts", n)
		}
	})
}

// TestDryRunOfAQuota: nothing is refused, and what would be is counted.
func TestDryRunOfAQuota(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock),
			Quota{Name: "q", Starts: 1, Calls: Rate{1, time.Hour, 3}, Streams: 1, Bytes: 10, Tasks: 1, DryRun: true})
		defer b.Close()
		var uses [5]Use
		for i := range uses {
			u := &uses[i]
			if err := p.Decide(t.Context(), callOf(leaderOf(1)), u); err != nil {
				t.Fatal(err)
			}
			full, err := u.Start(t.Context())
			u.Started(true)
			if err := errors.Join(err, u.OpenStream(), u.Send(4)); err != nil || full != nil {
				t.Fatal(full, err)
			}
			if one, all := u.Tasks(); one != 0 || all != 0 {
				t.Errorf("tasks are bounded: %d, %d", one, all)
			}
		}
		for i := range uses {
			uses[i].End()
		}
		for q := range p.config.Meter.Quotas() { // 4 starts, 2 calls, 4 streams, 3 sendings, and 2 calls without bytes
			if q.Denied != 0 || q.DryRun < 10 {
				t.Errorf("counted %+v", q)
			}
		}
		if n := b.account("q").streams.Total(); n != 0 {
			t.Errorf("%d streams are left", n)
		}
	})
}

// TestStreams: as many streams are open as the quota has, whichever is closed.
func TestStreams(t *testing.T) {
	store := replay.NewMemory(replay.Settings{})
	defer store.Close()
	p, b := counting(t, store, new(clock), Quota{Name: "q", Streams: 2}, Quota{Name: "r", Streams: 3, Of: OfSet})
	defer b.Close()
	open := func(n int) (*Use, error) {
		var u Use
		if err := p.Decide(t.Context(), callOf(leaderOf(n)), &u); err != nil {
			t.Fatal(err)
		}
		if err := u.OpenStream(); err != nil {
			u.End()
			return nil, err
		}
		return u.Move(), nil
	}
	var opened []*Use
	for i, want := range []string{"", "", "q.streams"} {
		u, err := open(1)
		if (want == "") != (err == nil) || err != nil && limitOf(err) != want {
			t.Errorf("stream %d: %v", i, err)
		}
		opened = append(opened, u)
	}
	u, err := open(2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(2); limitOf(err) != "r.streams" {
		t.Errorf("the fourth of all: %v", err)
	}
	opened[0].End()
	if opened[0], err = open(2); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	for _, one := range []*Use{u, opened[0], opened[1]} {
		one.End()
	}
	if n := b.account("q").streams.Total() + b.account("r").streams.Total(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

// TestARefusedCallIsNotCounted: a call that one quota refuses is not counted by another.
func TestARefusedCallIsNotCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock),
			Quota{Name: "a", Calls: Rate{1, time.Hour, 6}}, Quota{Name: "b", Calls: Rate{1, time.Second, 1}})
		defer b.Close()
		for i := range 5 {
			var limits []string
			for range 4 {
				var u Use
				if err := p.Decide(t.Context(), callOf(leaderOf(1)), &u); err != nil {
					limits = append(limits, limitOf(err))
				}
				u.End()
			}
			if d := cmp.Diff([]string{"b.calls", "b.calls", "b.calls"}, limits); d != "" {
				t.Errorf("second %d: %s", i, d)
			}
			bubble.Pass(time.Second)
		}
	})
}

// TestUses: what quotas have counted is shown in pages, also what is not in the store yet.
func TestUses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock), Quota{Name: "a", Starts: 9, Bytes: 99}, Quota{Name: "b", Starts: 9, Of: OfSet})
		defer b.Close()
		for i := range 3 {
			var u Use
			if err := p.Decide(t.Context(), callOf(leaderOf(i)), &u); err != nil {
				t.Fatal(err)
			}
			if full, err := u.Start(t.Context()); full != nil || err != nil {
				t.Fatal(full, err)
			}
			u.Started(true)
			_ = u.Send(int64(10 + i))
			u.End()
		}
		var got []string
		f := UseFilter{Limit: 2}
		for pages := 1; ; pages++ {
			page, next, err := b.Uses(t.Context(), f)
			if err != nil || len(page) > 2 {
				t.Fatal(page, err)
			}
			for _, u := range page {
				day := u.Day.UTC().Format(time.DateOnly)
				got = append(got, fmt.Sprintf("%s %q %s %d %d", u.Quota, u.Of, day, u.Starts, u.Bytes))
			}
			if f.After = next; next == "" {
				break
			}
		}
		want := []string{`a "jwt:idp|0" 2000-01-01 1 10`, `a "jwt:idp|1" 2000-01-01 1 11`, `a "jwt:idp|2" 2000-01-01 1 12`,
			`b "" 2000-01-01 3 0`}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		one, _, err := b.Uses(t.Context(), UseFilter{Quota: "a", Of: "jwt:idp|1"})
		if err != nil || len(one) != 1 || one[0].Bytes != 11 {
			t.Errorf("%+v, %v", one, err)
		}
	})
}

// failing is a store that fails for a while.
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

// TestAStoreThatFails: a start that cannot be counted is not begun, and a caller that is not known is not let in, until
// the store works again.
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

// TestForgotten: what nobody uses leaves the memory, and is as it was when it is used again. What is old leaves the
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

// TestManyQuotas is a property: whatever calls are made, no quota has counted more than its limit, nor a start that was
// none.
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

// checked returns a policy of ten rules and two quotas, and a call that it lets in.
func checked(t testing.TB) (*Policy, *Call) {
	store := replay.NewMemory(replay.Settings{})
	c := Config{Partner: "partner", Quotas: []Quota{
		{Name: "q", Calls: Rate{maxRate, time.Second, maxRate}, Bytes: maxCount},
		{Name: "r", Of: OfAgent, Calls: Rate{maxRate, time.Second, maxRate}},
	}}
	for range 9 {
		c.Rules = append(c.Rules, Rule{Deny: true, Match: Match{Vendor: []string{"1.2.156.3088.1.1.999"},
			Certificate: map[string][]string{"organization": {"X"}}, Command: []string{"start"}}})
	}
	c.Rules = append(c.Rules, Rule{Match: Match{Certificate: map[string][]string{"organization": {"ACME"}}}})
	p := newPolicy(t, c)
	b := OpenBook(store, time.Now, slog.New(slog.DiscardHandler))
	p.Open(b)
	t.Cleanup(func() {
		b.Close()
		_ = store.Close()
	})
	return p, callOf(byCertificate(aicV1))
}

// check is what is done for each call.
func check(t testing.TB, p *Policy, c *Call, u *Use) {
	if err := p.Decide(context.Background(), c, u); err != nil {
		t.Fatal(err)
	}
	_ = u.Send(500)
	u.End()
}

// BenchmarkDecide measures the check of a call.
func BenchmarkDecide(b *testing.B) {
	p, c := checked(b)
	var u Use
	b.ReportAllocs()
	for b.Loop() {
		check(b, p, c, &u)
	}
}

// TestDecideAllocatesNothing: the check is on the way of every call.
func TestDecideAllocatesNothing(t *testing.T) {
	p, c := checked(t)
	var u Use
	if n := testing.AllocsPerRun(1000, func() { check(t, p, c, &u) }); n > 0 {
		t.Errorf("a check allocates %v times", n)
	}
}
