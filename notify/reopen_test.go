// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// fenced is a store to make unavailable, and to reopen.
type fenced struct {
	replay.Store
	mu       sync.Mutex
	shut     bool
	reopened chan struct{}
}

func (f *fenced) Append(ctx context.Context, a replay.Append) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut {
		return replay.ErrUnavailable
	}
	return f.Store.Append(ctx, a)
}

func (f *fenced) Reopened() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reopened
}

func (f *fenced) set(shut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shut = shut; !shut {
		close(f.reopened)
		f.reopened = make(chan struct{})
	}
}

// While the store is unavailable, callers get an error of that kind, and a receiver gets notifications in flight once.
// When the store is reopened, missed ones are delivered at once.
func TestStoreIsReopened(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := &fenced{Store: memory(), reopened: make(chan struct{})}
		w := newWorld(t, f)
		defer func() { w.e.Close() }()
		a, b := w.task("a"), w.task("b")
		w.hook(a.log, here+"a", At{})
		w.hook(b.log, here+"b", At{})
		must(t, b.move(task.Accepted))
		synctest.Wait()
		w.sink.set(func(*notice) (time.Duration, int, error) { return time.Second, 200, nil })
		must(t, a.move(task.Accepted))
		f.set(true) // while the first attempt is in flight

		for range 2 { // and once more: a second time is like the first
			wantOf := func(err error) {
				t.Helper()
				if task.KindOf(err) != task.StoreUnavailable {
					t.Errorf("to a caller it is %v", err)
				}
			}
			_, err := w.e.Set(t.Context(), a.log, task.Webhook{URL: here, Dialect: "aip"}, At{})
			wantOf(err)
			wantOf(w.all().Disable(t.Context(), here))
			wantOf(w.e.Delete(t.Context(), a.log, ""))
			// A change of the task is in its log, but its writer does not know it.
			l := &writer{w: &world{t: t, store: f.Store, e: w.e}, log: b.log, fold: b.fold, silent: true,
				revision: b.revision}
			must(t, l.move([]task.State{task.Working, task.AwaitingInput}[len(b.states)-1]))
			b.fold, b.revision, b.states = l.fold, l.revision, append(b.states, l.states...)
			before := len(w.sink.all())
			time.Sleep(6 * time.Hour)
			synctest.Wait()
			if n := len(w.sink.all()) - before; n > 1 {
				t.Errorf("%d notifications were sent though what came of them cannot be stored", n)
			}
			f.set(false)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if diff := cmp.Diff(b.states, w.sink.history(t, here+"b")); diff != "" {
				t.Errorf("after the store was reopened (-want +got):\n%s", diff)
			}
			f.set(true)
		}
		f.set(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff([]task.State{task.Accepted}, w.sink.history(t, here+"a")); diff != "" {
			t.Errorf("what was in flight (-want +got):\n%s", diff)
		}
		if n := strings.Count(w.log.String(), "outcome of an attempt cannot be stored"); n == 0 || n > 3 {
			t.Errorf("%d lines say that an outcome was not stored", n)
		}
	})
}

// An unavailable store says so itself. The engine tries again, and adds no line for each try.
func TestUnavailableIsNotLogged(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := &fenced{Store: memory(), reopened: make(chan struct{})}
		w := newWorld(t, f)
		defer func() { w.e.Close() }()
		w.sink.set(func(*notice) (time.Duration, int, error) { return 0, 500, nil })
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} { // enough to open the endpoint's breaker
			l := w.task(id)
			w.hook(l.log, here+id, At{})
			must(t, l.move(task.Accepted))
			synctest.Wait()
		}
		f.set(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		f.set(false)
		w.sink.set(func(*notice) (time.Duration, int, error) { return 0, 200, nil })
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, id := range []string{"a", "f"} {
			if diff := cmp.Diff([]task.State{task.Accepted}, w.sink.history(t, here+id)); diff != "" {
				t.Errorf("%s, after the store was reopened (-want +got):\n%s", id, diff)
			}
		}
		if n := strings.Count(w.log.String(), "level=ERROR"); n > 6 {
			t.Errorf("%d lines:\n%.2000s", n, w.log.String())
		}
	})
}

// gated is a fenced store. It lists nothing as due while its gate is shut.
type gated struct {
	fenced
	gate atomic.Pointer[chan struct{}]
}

func (g *gated) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[replay.DueLog, error] {
	if gate := g.gate.Load(); gate != nil {
		<-*gate
	}
	return g.Store.Due(ctx, class, from, until)
}

// TestChangeRightAfterReopening: a change in the log of its task, though its writer got an error, is not left out when
// the task changes again before the reconciler has noticed the reopening of the store.
func TestChangeRightAfterReopening(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := &gated{fenced: fenced{Store: memory(), reopened: make(chan struct{})}}
		w := newWorld(t, f)
		defer func() { w.e.Close() }()
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		synctest.Wait()
		gate := make(chan struct{})
		f.gate.Store(&gate)
		w.e.reconciler.request()
		time.Sleep(2 * time.Second) // it is held up from now on
		must(t, l.move(task.Working))

		f.set(true)
		unseen := &writer{w: &world{t: t, store: f.Store, e: w.e}, log: l.log, fold: l.fold, silent: true,
			revision: l.revision}
		must(t, unseen.move(task.AwaitingInput))
		l.fold, l.revision, l.states = unseen.fold, unseen.revision, append(l.states, unseen.states...)
		f.set(false)
		must(t, l.move(task.Working))

		close(gate)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if diff := cmp.Diff(l.states, w.sink.history(t, here)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
