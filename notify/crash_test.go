// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
)

var errDead = errors.New("the process is dead")

// mortal is a store of a dying process: after some writes, none is carried out any more. Some may be carried out and
// still be reported as failed.
type mortal struct {
	replay.Store
	mu     sync.Mutex
	writes int // left; negative for any number
	lies   func() bool
	fails  func() bool
}

func (m *mortal) Append(ctx context.Context, a replay.Append) error {
	m.mu.Lock()
	if m.writes == 0 {
		m.mu.Unlock()
		return errDead
	}
	m.writes--
	lie, fail := m.lies != nil && m.lies(), m.fails != nil && m.fails()
	m.mu.Unlock()
	if fail {
		return errDead
	}
	if err := m.Store.Append(ctx, a); err != nil {
		return err
	}
	if lie {
		return errDead
	}
	return nil
}

// The process dies after each write in turn: of the task's log, of the outbox, after a delivery. Whatever state is in
// the task's log is delivered, in order.
func TestKilledAfterEveryWrite(t *testing.T) {
	run := func(t *testing.T, disk replay.Store, writes int, await func(w *world, want int)) (done bool) {
		m := &mortal{Store: disk, writes: -1}
		w := newWorld(t, m)
		defer func() { w.e.Close() }()
		l := w.task(fmt.Sprint("a", writes))
		url := fmt.Sprint(here, writes)
		w.hook(l.log, url, At{})
		m.mu.Lock()
		m.writes = writes
		m.mu.Unlock()
		err := l.move(whole...)
		await(w, -1)
		m.mu.Lock()
		done = m.writes > 0
		m.writes = -1
		m.mu.Unlock()
		if err != nil && !errors.Is(err, errDead) {
			t.Fatal(err)
		}
		w.restart()
		if !l.fold.Status().State.Terminal() { // the next process continues the task at once
			must(t, l.move(whole[len(l.states):]...))
		}
		await(w, len(whole))
		if d := cmp.Diff(whole, w.sink.history(t, url)); d != "" {
			t.Errorf("dead after %d writes: %s", writes, d)
		}
		return done
	}
	t.Run("memory", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			for writes := 0; ; writes++ {
				if run(t, memory(), writes, func(*world, int) { time.Sleep(20 * time.Second); synctest.Wait() }) {
					break
				}
			}
		})
	})
	t.Run("pebble", func(t *testing.T) {
		disk, err := pebble.Open(t.TempDir(), replay.Settings{}, nil)
		must(t, err)
		defer func() { must(t, disk.Close()) }()
		for writes := range 16 {
			run(t, disk, writes, func(w *world, want int) {
				if want < 0 {
					return
				}
				for deadline := time.After(time.Minute); ; {
					w.sink.mu.Lock()
					if w.sink.news == nil {
						w.sink.news = make(chan struct{}, 1)
					}
					news := w.sink.news
					ids := make(map[string]bool)
					for _, n := range w.sink.got {
						ids[n.id] = true
					}
					w.sink.mu.Unlock()
					if len(ids) >= want {
						return
					}
					select {
					case <-news:
					case <-deadline:
						t.Fatalf("dead after %d writes: %d of %d were delivered after a minute", writes, len(ids), want)
					}
				}
			})
		}
	})
}

// A store that fails now and then, receivers that do as they like, an engine that is opened again and again: every
// webhook gets all its notifications, in order, and again only under the same id.
func TestRandomFailures(t *testing.T) {
	webhooks, attempts := 0, 0
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w, a := randomRun(t, seed)
				webhooks, attempts = webhooks+w, attempts+a
			})
		})
	}
	if webhooks < 80 || attempts < 300 { // one run may have few: several draw from its numbers, in any order
		t.Errorf("only %d webhooks and %d attempts", webhooks, attempts)
	}
}

// source is a source of random numbers for several users.
type source struct {
	mu   sync.Mutex
	from rand.Source
}

func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from.Uint64()
}

// randomRun returns the number of webhooks set, and of attempts answered by receivers.
func randomRun(t *testing.T, seed uint64) (webhooks, attempts int) {
	rnd := rand.New(&source{from: rand.NewPCG(seed, 7)})
	chance := func(p float64) bool { return rnd.Float64() < p }
	m := &mortal{Store: memory(), writes: -1}
	w := newWorld(t, m)
	defer func() { w.e.Close() }()
	calm := false
	w.sink.set(func(*notice) (time.Duration, int, error) {
		if calm {
			return 0, 200, nil
		}
		delay := time.Duration(0)
		if chance(0.3) {
			delay = time.Duration(rnd.IntN(20)) * time.Second // some are too slow
		}
		switch {
		case chance(0.2):
			return delay, 0, errReset
		case chance(0.4):
			return delay, []int{302, 400, 404, 429, 500, 503}[rnd.IntN(6)], nil
		}
		return delay, 200 + rnd.IntN(5), nil
	})
	type hook struct {
		l    *writer
		url  string
		from int
		want []task.State
	}
	var hooks []hook
	var lives []*writer
	for i := range 8 {
		lives = append(lives, w.task(fmt.Sprint("t", i)))
	}
	add := func(l *writer) {
		var states []task.State
		for _, s := range task.States() {
			if chance(0.4) {
				states = append(states, s)
			}
		}
		h := hook{l, fmt.Sprintf("https://h%d.example.org/%d", rnd.IntN(5), len(hooks)), len(l.states), states}
		w.hook(l.log, h.url, l.at(), states...)
		hooks = append(hooks, h)
	}
	for _, l := range lives {
		if chance(0.8) {
			add(l)
		}
	}
	for range 150 {
		l := lives[rnd.IntN(len(lives))]
		state := l.fold.Status().State
		var next []task.State
		for _, s := range task.States() {
			if (task.CanMove(state, s)) && (!s.Terminal() || chance(0.1)) {
				next = append(next, s)
			}
		}
		move, hookNow, restart := task.None, chance(0.05) && !state.Terminal(), chance(0.04)
		pause := time.Duration(rnd.IntN(4000)) * time.Millisecond
		if len(next) > 0 {
			move = next[rnd.IntN(len(next))]
		}
		bad := chance(0.3)
		if hookNow {
			add(l)
		}
		m.mu.Lock()
		if bad { // of the writes that follow, some are not made, and some are made and not reported so
			m.fails = func() bool { return chance(0.25) }
			m.lies = func() bool { return chance(0.25) }
		}
		m.mu.Unlock()
		if move != task.None {
			// The task's log counts; the life-cycle itself is not tested here.
			silent := l.silent
			l.silent = true
			inner := l.w
			l.w = &world{t: t, store: m.Store, e: w.e}
			must(t, l.move(move))
			l.w = inner
			if l.silent = silent; !restart { // or it dies before it could notify
				tk := *l.fold.Task()
				w.e.Notify(t.Context(), l.log, []Change{{Seq: l.fold.Seq, Task: &tk}})
			}
		}
		time.Sleep(pause)
		m.mu.Lock()
		m.fails, m.lies = nil, nil
		m.mu.Unlock()
		if restart {
			w.restart()
		}
		if chance(0.3) {
			synctest.Wait()
			w.wantBacklog()
		}
	}
	synctest.Wait()
	w.sink.mu.Lock()
	calm = true
	w.sink.mu.Unlock()
	time.Sleep(12 * time.Hour)
	synctest.Wait()
	if w.all().Counts().Dead > 0 || len(w.deliveries(Filter{Status: Dead})) > 0 {
		t.Fatal("something died; the test is not patient enough")
	}
	for _, h := range hooks {
		want := slices.DeleteFunc(slices.Clone(h.l.states[h.from:]), func(s task.State) bool {
			return !(&task.Webhook{States: h.want}).Wants(s)
		})
		if d := cmp.Diff(append([]task.State(nil), want...), w.sink.history(t, h.url)); d != "" {
			t.Errorf("%s: %s", h.url, d)
		}
	}
	return len(hooks), len(w.sink.all())
}

// A change not written by the store is delivered later, though nothing else happens.
func TestStoreFailsOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := &mortal{Store: memory(), writes: -1}
		w := newWorld(t, m)
		defer w.e.Close()
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		m.mu.Lock()
		m.writes = 1 // the task's log, and then nothing
		m.mu.Unlock()
		must(t, l.move(task.Working))
		time.Sleep(5 * time.Minute)
		m.mu.Lock()
		m.writes = -1
		m.mu.Unlock()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if d := cmp.Diff([]task.State{task.Accepted, task.Working}, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
		// The outcome of the first could not be stored, so it came again; but not all the time.
		if n := len(w.sink.all()); n > 35 {
			t.Errorf("%d were sent", n)
		}
	})
}

// The changes behind a snapshot are delivered from its history.
func TestReconcileFromSnapshot(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		synctest.Wait()
		l.silent = true
		must(t, l.move(task.Working))
		must(t, l.say("made"))
		must(t, l.move(task.AwaitingInput, task.Working))
		must(t, l.append(replay.Append{
			DueAt: replay.Recover, Trim: l.fold.Seq,
			Snapshot: task.AppendEvent(nil, &task.Event{Task: l.fold.Task()}),
		}))
		must(t, l.move(task.AwaitingCompletion))
		w.restart()
		synctest.Wait()
		want := []task.State{task.Accepted, task.Working, task.AwaitingInput, task.Working, task.AwaitingCompletion}
		if d := cmp.Diff(want, w.sink.history(t, here)); d != "" {
			t.Error(d)
		}
	})
}

// An outbox keeps a bounded number of notifications.
func TestOutboxIsBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		must(t, w.all().Disable(t.Context(), here))
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		// A write costs as much as there are already, so those with room come by one write; the others come one by one.
		both := []task.State{task.Working, task.AwaitingInput}
		must(t, l.moveAtOnce(slices.Repeat(both, maxRecords/2-1)...))
		for range 11 {
			must(t, l.move(both...))
		}
		if d := w.deliveries(Filter{Limit: 1000}); len(d) != maxRecords {
			t.Errorf("%d are listed", len(d))
		}
		must(t, w.all().Enable(t.Context(), here))
		time.Sleep(time.Minute)
		synctest.Wait()
		got := w.sink.history(t, here)
		if d := cmp.Diff(l.states[len(l.states)-maxRecords:], got); d != "" {
			t.Error(d)
		}
		if c := w.all().Counts(); c.Dead != uint64(len(l.states)-maxRecords) {
			t.Errorf("%d were dropped", c.Dead)
		}
	})
}

func TestOpenFailsOnClosedStore(t *testing.T) {
	s := memory()
	must(t, s.Close())
	if _, err := NewProcess(nil).Open(t.Context(), s); !errors.Is(err, replay.ErrClosed) {
		t.Errorf("%v", err)
	}
}
