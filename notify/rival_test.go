// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestConflicts has another writer of the outboxes, and of the endpoints, be faster than each write, once. Nothing is
// lost by it, or sent twice, and no caller sees it.
func TestConflicts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &replaytest.Rival{Store: memory(), Classes: string(logname.Outbox) + string(logname.Endpoint)}
		w := newWorld(t, store)
		defer func() { w.e.Close() }()
		l := w.task("a")
		hook := w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		synctest.Wait()
		hook.Token = "another"
		_, err := w.e.Set(t.Context(), l.log, hook, At{})
		must(t, err)
		for range 2 {
			must(t, w.all().Disable(t.Context(), here))
			must(t, w.all().Enable(t.Context(), here))
		}
		must(t, w.all().Disable(t.Context(), here))
		must(t, l.move(task.Working, task.AwaitingInput))
		synctest.Wait()
		must(t, w.all().Enable(t.Context(), here))
		time.Sleep(time.Minute)
		must(t, l.move(task.Working, task.AwaitingCompletion, task.Completed))
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(l.states, w.sink.history(t, here)); diff != "" {
			t.Errorf("it got (-want +got):\n%s", diff)
		}
		must(t, w.e.Delete(t.Context(), l.log, hook.ID))
		if got, err := w.e.Get(t.Context(), l.log, ""); err != nil || len(got) != 0 {
			t.Errorf("after it was deleted: %v, %v", got, err)
		}
		if n := store.Wins(); n < 8 {
			t.Errorf("the other writer was faster %d times only", n)
		}
	})
}
