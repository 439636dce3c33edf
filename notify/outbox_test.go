// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// weighed is a store counting its appends and their bytes.
type weighed struct {
	replay.Store
	appends, bytes atomic.Int64
}

func (w *weighed) Append(ctx context.Context, a replay.Append) error {
	n := len(a.Metadata)
	for _, r := range a.Records {
		n += len(r)
	}
	w.bytes.Add(int64(n))
	w.appends.Add(1)
	return w.Store.Append(ctx, a)
}

// TestWritesOfAStart counts the writes of a start, answered at once, for its webhook: the webhook, the changes, and the
// outcome of each delivery.
func TestWritesOfAStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &weighed{Store: memory()}
		w := newWorld(t, s)
		defer func() { w.e.Close() }()
		log := taskLog("a")
		_, err := w.e.Set(t.Context(), log, task.Webhook{URL: here, Dialect: "aip"}, At{})
		must(t, err)
		var changes []Change
		for i, state := range []task.State{task.Accepted, task.Working, task.AwaitingCompletion} {
			changes = append(changes, Change{Seq: uint64(i + 1), Task: &task.Task{ID: "a", Status: task.Status{
				State: state, ChangedAt: time.Now().Add(time.Duration(i) * time.Millisecond)}}})
		}
		w.e.Notify(t.Context(), log, changes)
		time.Sleep(time.Minute)
		if got := len(w.sink.all()); got != 3 {
			t.Errorf("%d notifications", got)
		}
		if n := s.appends.Load(); n != 1+1+3 {
			t.Errorf("the outbox was written %d times", n)
		}
	})
}

// The URL and the secrets of a webhook are written when it is set, and not whenever a notification is delivered; and
// yet the outbox of a long task stays small.
func TestWebhooksAreWrittenOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &weighed{Store: memory()}
		w := newWorld(t, s)
		defer func() { w.e.Close() }()
		l := w.task("a")
		var want []task.Webhook
		for range maxHooks {
			hook := task.Webhook{URL: here, Token: strings.Repeat("t", 4096), Dialect: "aip"}
			h, err := w.e.Set(t.Context(), l.log, hook, At{})
			must(t, err)
			want = append(want, h)
		}
		s.bytes.Store(0)
		must(t, l.move(task.Accepted, task.Working, task.AwaitingCompletion))
		time.Sleep(time.Minute)
		synctest.Wait()
		n := s.bytes.Load()
		t.Logf("a start writes %d bytes", n)
		if n > 512<<10 {
			t.Errorf("a start with %d webhooks writes %d bytes", maxHooks, n)
		}
		must(t, l.say(strings.Repeat("p", 4096))) // in every record from now on: the webhooks are soon written again
		for range 20 {
			must(t, l.move(task.Working, task.AwaitingInput))
			synctest.Wait()
		}
		head, err := s.Head(t.Context(), logname.OutboxOf(l.log))
		must(t, err)
		if most := int64(2*maxHooks*(4096+256) + 4096); head.Bytes > most {
			t.Errorf("%d bytes are kept, want %d at most", head.Bytes, most)
		}
		w.restart()
		got, err := w.e.Get(t.Context(), l.log, "")
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after all that (-want +got):\n%s", diff)
		}
	})
}

// readCounter is a store counting the reads of a log's metadata.
type readCounter struct {
	replay.Store
	heads atomic.Int64
}

func (r *readCounter) Head(ctx context.Context, log string) (replay.Head, error) {
	if log[0] == logname.Outbox {
		r.heads.Add(1)
	}
	return r.Store.Head(ctx, log)
}

// An outbox in use is read once, until the store may hold something else: then every outbox is read again.
func TestOutboxIsReadOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := &readCounter{Store: memory()}
		w := newWorld(t, s)
		defer func() { w.e.Close() }()
		l := w.task("a")
		w.hook(l.log, here, At{})
		synctest.Wait()
		s.heads.Store(0)
		must(t, l.move(whole[:4]...))
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(whole[:4], w.sink.history(t, here)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if n := s.heads.Load(); n != 0 {
			t.Errorf("an outbox in use was read %d times", n)
		}
		w.e.reconciler.request()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := s.heads.Load(); n != 1 {
			t.Errorf("after the store failed, the outbox was read %d times", n)
		}
	})
}
