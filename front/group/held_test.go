// SPDX-License-Identifier: Apache-2.0

package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestHeld: nothing is published while another process may have taken the shard over, and all afterwards.
func TestHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		done := agent.Report{State: task.AwaitingCompletion}
		w := newWorld(t, func(*agent.Turn) []step { return []step{{time.Second, done}} }, nil)
		link := w.connect(true)
		w.store.holdsAfter(time.Hour)
		w.send("start", "t", "m", "")
		w.send("get", "none", "g", "") // is answered by an error
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if n := len(link.taken()); n != 0 {
			t.Errorf("%d messages were published", n)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := len(link.taken()); n < 3 {
			t.Errorf("%d messages were published", n)
		}
		w.store.holdsAfter(time.Hour)
		w.send("start", "t2", "m2", "")
		time.Sleep(time.Minute) // and the process ends meanwhile
	})
}
