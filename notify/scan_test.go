// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// A damaged outbox holds up no other one, although it is due before all of them.
func TestDamagedOutbox(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory()
		must(t, store.Append(t.Context(), replay.Append{
			Log: logname.OutboxOf(taskLog("damaged")), Metadata: []byte("}"), DueAt: time.Unix(1, 0),
		}))
		w := newWorld(t, store)
		defer func() { w.e.Close() }()
		status := 500
		w.sink.set(func(*notice) (time.Duration, int, error) {
			defer func() { status = 200 }()
			return 0, status, nil
		})
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(w.sink.all()); n != 2 {
			t.Errorf("%d attempts, want one that fails and one that does not", n)
		}
		if diff := cmp.Diff([]task.State{task.Accepted}, w.sink.history(t, here)); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if n := strings.Count(w.log.String(), "an outbox cannot be read"); n < 1 || n > 10 {
			t.Errorf("%d lines in a minute say that the outbox is damaged", n)
		}
	})
}
