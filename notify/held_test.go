// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// lapsing is a store with an owner not free to act on its logs until a time.
type lapsing struct {
	replay.Store
	until time.Time
}

// Held is described at replay.HeldBy.
func (s *lapsing) Held() error {
	if time.Now().Before(s.until) {
		return replay.ErrUnavailable
	}
	return nil
}

// TestHeld: no webhook is notified while another process may have taken the shard over; afterwards all is, in order. An
// engine closed meanwhile notifies of nothing.
func TestHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &lapsing{memory(), time.Now().Add(time.Hour)}
		w := newWorld(t, store)
		defer func() { w.e.Close() }()
		l := w.task("a")
		w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted, task.Working, task.AwaitingInput))
		time.Sleep(time.Minute)
		w.restart()
		time.Sleep(58 * time.Minute)
		synctest.Wait()
		if n := len(w.sink.all()); n != 0 {
			t.Errorf("%d notifications were sent", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff(l.states, w.sink.history(t, here)); diff != "" {
			t.Errorf("it got (-want +got):\n%s", diff)
		}
	})
}
