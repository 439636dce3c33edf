// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

func TestTasksPerLeader(t *testing.T) {
	store := memory(t)
	two := func(c *Config) { c.MaxTasks = 2 }
	b := setUp(t, store, answers("x"), two)
	b.do(call(task.Start, "t1"))
	b.do(call(task.Start, "t2"))
	b.want(call(task.Start, "t3"), task.LimitExceeded)
	b.want(call(task.Get, "t3"), task.TaskNotFound)
	b.do(call(task.Start, "t1")) // repeated, not new
	b.do(call(task.Complete, "t1"))
	b.do(call(task.Start, "t3"))

	b.engine.Close()
	b = setUp(t, store, answers("x"), two)
	b.want(call(task.Start, "t4"), task.LimitExceeded)
	b.do(call(task.Cancel, "t2"))
	b.do(call(task.Start, "t4"))
}

// TestBounds: a start keeps to the bounds of its caller, also after a restart; the lesser limit counts. A repeated
// start and one continuing a task need no room.
func TestBounds(t *testing.T) {
	store := memory(t)
	four := func(c *Config) { c.MaxTasks = 4 }
	b := setUp(t, store, answers("x"), four)
	start := func(leader, id string, bounds Bounds) string {
		t.Helper()
		_, err := b.Do(t.Context(), leader, call(task.Start, id, func(c *Request) { c.Bounds = bounds }))
		beyond, ok := errors.AsType[*BoundError](err)
		switch {
		case err == nil:
			return ""
		case !ok:
			return task.KindOf(err).String()
		case beyond.NoStart:
			return "no start"
		case beyond.OfAll:
			return "of all"
		}
		return "of leader"
	}
	check := func(leader, id string, bounds Bounds, want string) {
		t.Helper()
		if got := start(leader, id, bounds); got != want {
			t.Errorf("%s of %s: %q, want %q", id, leader, got, want)
		}
	}
	check("a", "t1", Bounds{OfLeader: 2}, "")
	check("a", "t2", Bounds{OfLeader: 2, OfAll: 2}, "")
	check("a", "t3", Bounds{OfLeader: 2}, "of leader")
	check("b", "t1", Bounds{OfLeader: 2, OfAll: 2}, "of all")
	check("b", "t1", Bounds{NoStart: true}, "no start")
	check("a", "t1", Bounds{NoStart: true, OfLeader: 1, OfAll: 1}, "")
	check("a", "t1", Bounds{NoContinue: true}, "")
	check("b", "t1", Bounds{OfLeader: 2, OfAll: 3}, "")
	if one, all := b.Unfinished("a"); one != 2 || all != 3 {
		t.Errorf("unfinished: %d of %d", one, all)
	}
	b.engine.Close()
	b = setUp(t, store, answers("x"), four)
	check("b", "t2", Bounds{OfAll: 3}, "of all")
	check("a", "t3", Bounds{OfLeader: 9}, "")
	check("a", "t4", Bounds{OfLeader: 9}, "")
	check("a", "t5", Bounds{OfLeader: 9}, "limit-exceeded") // of the Partner
	if _, err := b.Do(t.Context(), "b", call(task.Complete, "t1")); err != nil {
		t.Error(err)
	}
	check("b", "t2", Bounds{OfAll: 5}, "")
	check("b", "t3", Bounds{OfAll: 5}, "of all")
}

// TestTasksOfUnverified: Leaders without a certificate have the limit of one together, and still tasks of their own.
func TestTasksOfUnverified(t *testing.T) {
	store := memory(t)
	two := func(c *Config) { c.MaxTasks = 2 }
	b := setUp(t, store, answers("x"), two)
	do := func(leader string, cmd task.Command) task.Kind {
		t.Helper()
		got, err := b.Do(t.Context(), leader, call(cmd, "t1"))
		if err == nil {
			if got.Task.ID != "t1" {
				t.Errorf("%s: got task %q", leader, got.Task.ID)
			}
			return none
		}
		return task.KindOf(err)
	}
	want := func(leader string, cmd task.Command, kind task.Kind) {
		t.Helper()
		if got := do(leader, cmd); got != kind {
			t.Errorf("%s of %s: got %v, want %v", cmd, leader, got, kind)
		}
	}
	want("unverified:a", task.Start, none)
	want("unverified:b", task.Start, none)
	want("unverified:c", task.Start, task.LimitExceeded)
	want("unverified:c", task.Get, task.TaskNotFound)
	want("verified", task.Start, none)

	b.engine.Close()
	b = setUp(t, store, answers("x"), two)
	want("unverified:c", task.Start, task.LimitExceeded)
	want("unverified:b", task.Complete, none)
	want("unverified:c", task.Start, none)
}

// slowDue is a store with a Due stopping after the first task, until the test continues it by the result of Due.
type slowDue struct {
	replay.Store
	goOn chan error
}

func (s *slowDue) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[replay.DueLog, error] {
	if from != replay.Recover {
		return s.Store.Due(ctx, class, from, until)
	}
	return func(yield func(replay.DueLog, error) bool) {
		n := 0
		for due, err := range s.Store.Due(ctx, class, from, until) {
			if n++; n == 2 {
				select {
				case failed := <-s.goOn:
					if failed != nil {
						yield(replay.DueLog{}, failed)
						return
					}
				case <-ctx.Done():
				}
			}
			if !yield(due, err) {
				return
			}
		}
	}
}

// TestCountInBackground opens a store of many tasks: they are served while they are counted, and only a new one waits.
// The limit holds as if they had been counted before.
func TestCountInBackground(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		three := func(c *Config) { c.MaxTasks = 3 }
		b := setUp(t, store, answers("x"), three)
		for _, id := range []string{"t1", "t2", "t3"} {
			b.do(call(task.Start, id))
		}
		b.engine.Close()

		slow := &slowDue{store, make(chan error)}
		b = setUp(t, slow, answers("x"), three)
		b.do(call(task.Get, "t1"))
		b.do(call(task.Complete, "t1"))
		b.do(call(task.Continue, "t2"))
		started := make(chan task.Kind)
		start := func(id string) {
			_, err := b.Do(t.Context(), leader, call(task.Start, id))
			if err == nil {
				started <- none
				return
			}
			started <- task.KindOf(err)
		}
		impatient, leave := context.WithCancel(t.Context())
		go func() {
			_, err := b.Do(impatient, leader, call(task.Start, "t4"))
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the start of a caller that left: %v", err)
			}
			started <- none
		}()
		synctest.Wait()
		leave()
		<-started
		go start("t4")
		synctest.Wait()
		slow.goOn <- replay.ErrUnavailable
		if kind := <-started; kind != task.StoreUnavailable {
			t.Errorf("a start while the store cannot be read: %v", kind)
		}
		time.Sleep(2 * retryFirst) // the next attempt no longer sees t1
		b.do(call(task.Complete, "t2"))
		slow.goOn <- nil
		synctest.Wait()
		b.do(call(task.Start, "t4"))
		b.do(call(task.Start, "t5"))
		b.want(call(task.Start, "t6"), task.LimitExceeded)
	})
}
