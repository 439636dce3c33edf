// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestWebhookCountsOnce: a call for a webhook beside its command is counted once in each quota with either.
func TestWebhookCountsOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		p, b := counting(t, store, new(clock), Quota{Name: "all", Calls: Rate{3, time.Hour, 3}},
			Quota{Name: "hooks", Match: Match{Command: []string{"set-webhook"}}, Calls: Rate{2, time.Hour, 2}})
		defer b.Close()
		for i, want := range []string{"", "", "hooks.calls"} {
			var u Use
			err := p.Decide(t.Context(), callOf(leaderOf(1), func(c *Call) { c.Webhook = true }), &u)
			u.End()
			if (err != nil) != (want != "") || err != nil && limitOf(err) != want {
				t.Errorf("call %d: %v, want %q", i, err, want)
			}
		}
		if limit, _ := start(t.Context(), p, leaderOf(1), false); limit != "" {
			t.Errorf("a call without a webhook: %s", limit)
		}
	})
}

// clock is an adjustable wall clock.
type clock struct{ by atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

// set sets the clock to a time after the bubble's, and step by more.
func (c *clock) set(by time.Duration) { c.by.Store(int64(by)) }

func (c *clock) step(by time.Duration) { c.by.Add(int64(by)) }

// counting returns a policy with quotas over a store, and its book.
func counting(t testing.TB, store replay.Store, wall *clock, quotas ...Quota) (*Policy, *Book) {
	t.Helper()
	b := OpenBook(shard.One(store), wall.now, slog.New(slog.DiscardHandler))
	p := newPolicy(t, Config{Quotas: quotas, Partner: "partner"})
	p.Open(b)
	return p, b
}

// leaderOf returns the n-th of some Leaders.
func leaderOf(n int) *identity.Peer {
	return &identity.Peer{Proof: identity.ByToken, Kind: "jwt", ID: fmt.Sprintf("idp|%d", n)}
}

// start makes a call to start a task, or to start it again. It returns the refusing limit.
func start(ctx context.Context, p *Policy, peer *identity.Peer, again bool) (limit string, err error) {
	var u Use
	if err := p.Decide(ctx, callOf(peer), &u); err != nil {
		return limitOf(err), err
	}
	defer u.End()
	var full *task.Error
	if !u.StartKept() {
		var err error
		if full, err = u.Start(ctx); err != nil {
			return "", err
		}
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

// TestStartKept: starts without a write are left once some were written ahead, and none without a look at the store. If
// a quota has none, nothing is counted in the others.
func TestStartKept(t *testing.T) {
	for _, c := range []struct {
		starts int64
		want   []bool // before each start
	}{
		{3, []bool{false, false, false, false}},
		{200, []bool{false, true, true, false}},
	} {
		bubble.Test(t, func(t *testing.T) {
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			p, b := counting(t, store, new(clock), Quota{Name: "more", Starts: 10_000},
				Quota{Name: "q", Starts: c.starts}, Quota{Name: "calls", Calls: Rate{9, time.Hour, 9}})
			defer b.Close()
			var got []bool
			for range c.want {
				var u Use
				if err := p.Decide(t.Context(), callOf(leaderOf(1)), &u); err != nil {
					t.Fatal(err)
				}
				before := u.of[0].entry.startsOf(dayOf(b.now()))
				kept := u.StartKept()
				got = append(got, kept)
				if !kept {
					if now := u.of[0].entry.startsOf(dayOf(b.now())); now != before {
						t.Errorf("%d starts are counted of a quota, and no start of the other; there were %d", now, before)
					}
					full, err := u.Start(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					u.Started(full == nil)
				} else {
					u.Started(true)
				}
				u.End()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%d starts: %s", c.starts, diff)
			}
		})
	}
}

// TestTheSameStartAgain: a repeated start is a call and no start, also if no start is left.
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

// TestScopes: calls of a Leader, of all callers of the quota, and of all Leaders of a Partner count together.
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

// TestDryRunOfAQuota: nothing is refused, and possible refusals are counted.
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

// TestARefusedCallIsNotCounted: a call refused by one quota is not counted by another.
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

// TestUses: the counts of quotas are shown in pages, also those not in the store yet.
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

// TestQuotasBeforeFurther: a decision point is not asked about a call beyond a quota, and a call it denies counts: it
// has cost a question, and would cost more for nothing.
//
// Promise: a Leader uses more than its share
func TestQuotasBeforeFurther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p, b := counting(t, replay.NewMemory(replay.Settings{}), new(clock), Quota{Name: "q", Calls: Rate{3, time.Hour, 3}})
		defer b.Close()
		asked, denied := 0, true
		p.config.Further = func(context.Context, *Call) error {
			asked++
			if denied {
				return Denied(nil)
			}
			return nil
		}
		for range 2 {
			if _, err := start(t.Context(), p, leaderOf(1), false); task.KindOf(err) != task.AuthorizationFailed {
				t.Errorf("%v, want that it is denied", err)
			}
		}
		denied = false
		if _, err := start(t.Context(), p, leaderOf(1), false); err != nil {
			t.Error(err)
		}
		denied = true
		if limit, err := start(t.Context(), p, leaderOf(1), false); limit != "q.calls" || asked != 3 {
			t.Errorf("%v after %d questions, want no call left after 3", err, asked)
		}
	})
}

// TestSent: bytes sent to the agent are counted with the next ones, at the latest when the call ends or has become a
// stream.
func TestSent(t *testing.T) {
	for name, end := range map[string]func(u *Use) error{
		"sent": func(u *Use) error { return u.Send(3) },
		"ends": func(u *Use) error { u.End(); return nil },
		"a stream": func(u *Use) error {
			u.Move().End()
			return nil
		},
	} {
		bubble.Test(t, func(t *testing.T) {
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			p, b := counting(t, store, new(clock), Quota{Name: "q", Bytes: 100})
			defer b.Close()
			var u Use
			if err := p.Decide(t.Context(), callOf(leaderOf(1)), &u); err != nil {
				t.Fatal(err)
			}
			e := u.of[0].entry
			u.Sent(4)
			if err := end(&u); err != nil {
				t.Error(err)
			}
			if want := map[string]int64{"sent": 7}[name]; e.state.bytes != max(want, 4) {
				t.Errorf("%s: %d bytes are counted", name, e.state.bytes)
			}
			u.End()
			if want := map[string]int64{"sent": 7}[name]; e.state.bytes != max(want, 4) {
				t.Errorf("%s: %d bytes are counted at the end", name, e.state.bytes)
			}
		})
	}
}
