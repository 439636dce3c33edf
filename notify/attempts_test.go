// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"fmt"
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

// counting is a store counting appends.
type counting struct {
	replay.Store
	appends atomic.Int64
}

func (c *counting) Append(ctx context.Context, a replay.Append) error {
	c.appends.Add(1)
	return c.Store.Append(ctx, a)
}

// The attempts of a notification are kept, by no write of their own, while it fails and as a dead letter, over a
// restart and a replay, until it is delivered.
func TestAttemptsAreKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &counting{Store: memory()}
		w := newWorld(t, store)
		defer func() { w.e.Close() }()
		w.conf.Attempts = 12
		w.e.Configure(w.conf)
		var began []time.Time
		w.sink.set(func(n *notice) (time.Duration, int, error) {
			began = append(began, n.at)
			switch len(began) {
			case 1:
				return 40 * time.Millisecond, 500, nil
			case 2:
				return time.Hour, 200, nil
			case 3:
				return 0, 0, errReset
			}
			return 0, 404, nil
		})
		var want []Attempt
		add := func(d time.Duration, status int, why string) {
			synctest.Wait()
			at := began[len(began)-1].Truncate(time.Millisecond)
			want = append(want, Attempt{At: at, Duration: d, Status: status, Error: why})
			want = want[max(0, len(want)-maxAttemptsKept):]
		}
		check := func(when string, s Status, attempts int) {
			t.Helper()
			synctest.Wait()
			d := w.deliveries(Filter{})
			if len(d) != 1 || d[0].Status != s || d[0].Attempts != attempts {
				t.Fatalf("%s: %+v", when, d)
			}
			if diff := cmp.Diff(want, d[0].Recent); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		written := store.appends.Load()
		time.Sleep(50 * time.Millisecond)
		add(40*time.Millisecond, 500, "")
		check("answered with 500", Failing, 1)
		time.Sleep(17 * time.Second)
		add(15*time.Second, 0, "the receiver did not answer within 15s")
		check("hung", Failing, 2)
		time.Sleep(3 * time.Second)
		add(0, 0, "the receiver could not be reached, or its answer was not HTTP")
		check("reset", Failing, 3)
		time.Sleep(5 * time.Second)
		add(0, 404, "")
		check("answered with 404", Failing, 4)
		if n := store.appends.Load() - written; n != 4 {
			t.Errorf("4 attempts were %d writes", n)
		}
		w.restart()
		check("after a restart", Failing, 4)

		time.Sleep(100 * time.Hour) // longer than all 12 attempts take
		synctest.Wait()
		for _, at := range began[4:] {
			want = append(want, Attempt{At: at.Truncate(time.Millisecond), Status: 404})
		}
		want = want[len(want)-maxAttemptsKept:]
		check("dead", Dead, 12)

		if n, err := w.all().Replay(t.Context(), Filter{}); n != 1 || err != nil {
			t.Fatalf("replayed %d, %v", n, err)
		}
		add(0, 404, "")
		check("replayed, and failing again", Failing, 1)
		w.restart()
		check("that, after a restart", Failing, 1)
		w.sink.set(nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if d := w.deliveries(Filter{}); len(d) != 0 {
			t.Errorf("left: %+v", d)
		}
		if data := storedMetadata(t, w, l.log); strings.Contains(data, "recent") {
			t.Errorf("of what was delivered, the store has %s", data)
		}
	})
}

// storedMetadata returns the metadata of a task's outbox.
func storedMetadata(t *testing.T, w *world, log string) string {
	t.Helper()
	head, err := w.store.Head(t.Context(), logname.OutboxOf(log))
	must(t, err)
	return string(head.Metadata)
}

// A notification delivered at the first attempt leaves nothing of the attempt in the store.
func TestFirstAttemptLeavesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		synctest.Wait()
		if data := storedMetadata(t, w, l.log); strings.Contains(data, "recent") {
			t.Errorf("the store has %s", data)
		}
	})
}

// The attempts of a webhook with as many dead letters as are kept take no more than the dead letters themselves.
func TestAttemptsAreBounded(t *testing.T) {
	m := metadata{First: 1}
	m.add(task.Webhook{ID: "w", URL: here}, 0)
	h, now := &m.Hooks[0], time.Now()
	long := strings.Repeat("x", 70) // as long as the longest text of an error
	for range maxDead {
		m.Queue = append(m.Queue, entry{Event: m.last() + 1, State: task.Working, At: now.UnixMilli()})
		var kept []attempt
		for range 3 * maxAttemptsKept {
			kept = addAttempt(kept, attempt{At: now.UnixMilli(), Duration: 15_000, Error: long})
		}
		if len(kept) != maxAttemptsKept {
			t.Fatalf("%d attempts of a notification are kept", len(kept))
		}
		m.die(h, target{record: h.Cursor + 1}, deadLetter{Attempts: 30, Recent: kept, At: now, Error: long})
		m.tidy(now)
	}
	without := metadata{First: m.First, Queue: m.Queue, Hooks: []hook{*h}}
	without.Hooks[0].Dead = nil
	var total int
	for i, l := range h.Dead {
		total += len(l.Recent)
		if want := i >= maxDead-maxDeadAttemptsKept/maxAttemptsKept; want != (len(l.Recent) == maxAttemptsKept) {
			t.Errorf("of dead letter %d, %d attempts are kept", i, len(l.Recent))
		}
		l.Recent = nil
		without.Hooks[0].Dead = append(without.Hooks[0].Dead, l)
	}
	size := func(m *metadata) int {
		data, err := json.Marshal(m)
		must(t, err)
		return len(data)
	}
	if with, plain := size(&m), size(&without); total != maxDeadAttemptsKept || with > 2*plain {
		t.Errorf("%d attempts are kept, in %d bytes of metadata instead of %d", total, with, plain)
	}
}

// An outbox with more than a few attempts does not stay in memory when it is not in use.
func TestAttemptsCountInMemory(t *testing.T) {
	b := &outbox{loaded: "now", exists: true}
	b.metadata.Hooks = []hook{{Recent: make([]attempt, maxAttemptsKept)}}
	if !b.worthKeeping() {
		t.Error("a webhook with one notification that fails is not kept")
	}
	b.metadata.Hooks[0].Dead = []deadLetter{{Recent: make([]attempt, maxAttemptsKept)}}
	if b.worthKeeping() {
		t.Error("20 attempts are kept")
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"seen":2,"created":"2026-01-01T00:00:00Z","epoch":"x","first":1,` +
		`"queue":[{"e":1,"s":"working","t":1,"b":9}],` +
		`"webhooks":[{"record":1,"setAfter":0,"cursor":0,"attempts":1,` +
		`"recent":[{"t":1,"d":2,"s":500},{"t":3,"e":"closed"}],` +
		`"dead":[{"record":1,"attempts":2,"recent":[{"t":1}],"at":"2026-01-01T00:00:00Z"}]}]}`))
	f.Add([]byte(`{"created":"2026-01-01T00:00:00Z","first":1,"webhooks":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMetadata(data)
		if err != nil {
			return
		}
		data, err = json.Marshal(&m)
		if err != nil {
			return // a time that nothing of ours writes
		}
		again, err := decodeMetadata(data)
		if err != nil {
			t.Fatalf("%s cannot be read: %v", data, err)
		}
		if second, err := json.Marshal(&again); err != nil || string(second) != string(data) {
			t.Errorf("%s is then %s, %v", data, second, err)
		}
		for i := range again.Hooks {
			h := &again.Hooks[i]
			h.trimAttempts()
			if n := h.attemptsKept() - len(h.Recent); n > maxDeadAttemptsKept {
				t.Errorf("%d attempts of dead letters are kept", n)
			}
			_ = fmt.Sprint(attemptsShown(h.Recent))
		}
	})
}
