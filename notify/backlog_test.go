// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// wantBacklog compares the counts of waiting notifications with the list of deliveries: that reads every outbox.
func (w *world) wantBacklog() {
	w.t.Helper()
	pending, age := 0, time.Duration(0)
	for _, d := range w.deliveries(Filter{Limit: maxPage}) {
		if d.Status != Dead {
			pending, age = pending+1, max(age, time.Since(d.At))
		}
	}
	c := w.all().Counts()
	if c.Pending != pending || c.Oldest > age || c.Oldest < age-backlogStep {
		w.t.Errorf("%d are counted, the oldest since %v; listed are %d since %v", c.Pending, c.Oldest, pending, age)
	}
}

// Notifications count as long as they wait in the store, and those of an earlier process before anything uses them.
func TestNotificationsAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		want := func(pending int, oldest time.Duration) {
			t.Helper()
			synctest.Wait()
			c := w.all().Counts()
			if c.Pending != pending || c.Oldest > oldest || c.Oldest < oldest-backlogStep {
				t.Errorf("%d wait, the oldest since %v; want %d since %v", c.Pending, c.Oldest, pending, oldest)
			}
		}
		want(0, 0)
		w.sink.set(status(500))
		a, b := w.task("a"), w.task("b")
		w.hook(a.log, here, At{})
		w.hook(a.log, here, At{}, task.Working) // wants no other state
		w.hook(b.log, "https://other.example.org/", At{})
		must(t, a.move(task.Accepted, task.Working))
		want(3, 0)
		time.Sleep(time.Hour)
		must(t, b.move(task.Accepted))
		want(4, time.Hour)
		w.restart()
		want(4, time.Hour)
		must(t, w.all().Disable(t.Context(), here))
		must(t, w.e.Delete(t.Context(), b.log, ""))
		want(3, time.Hour)
		w.sink.set(nil)
		must(t, w.all().Enable(t.Context(), here))
		want(0, 0)

		// A dead letter waits no more.
		w.sink.set(status(500))
		must(t, a.move(task.AwaitingInput))
		want(1, 0)
		time.Sleep(7 * 24 * time.Hour)
		want(0, 0)
	})
}
