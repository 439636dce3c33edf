// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// long is longer than the store keeps an ended task.
const long = replay.DefaultRetention + time.Hour

// cancelTask has a task started and canceled.
func (w *world) cancelTask(id string) {
	w.send("start", id, "start "+id, "")
	time.Sleep(1500 * time.Millisecond)
	w.send("cancel", id, "cancel "+id, "")
	synctest.Wait()
}

// checkOver fails if anything is left to publish.
func (w *world) checkOver() {
	w.t.Helper()
	time.Sleep(time.Minute)
	if n := w.cursors(); n != 0 || w.group.traffic().Tasks != 0 {
		w.t.Errorf("%d cursors and %d tasks are left", n, w.group.traffic().Tasks)
	}
}

// TestLongSilence: however long a broker cannot be reached, or does not confirm, or the Partner is muted, all of a task
// is published in the end, since the store keeps it.
func TestLongSilence(t *testing.T) {
	all := []string{"t accepted", "t working", "t canceled a"}
	turns := func(w *world) {
		for _, id := range []string{"1", "2", "3"} {
			w.send("start", "t", "start", "")
			time.Sleep(10 * time.Second)
			w.send("continue", "t", "continue "+id, "")
			time.Sleep(10 * time.Second)
		}
		w.send("cancel", "t", "cancel", "")
		time.Sleep(long)
	}
	for _, tc := range []struct {
		name   string
		events int            // kept of a task; 0 for many
		during func(w *world) // the events at a group without a link
		want   []string       // published at the end
	}{
		{"no link", 0, func(w *world) {
			w.cancelTask("t")
			time.Sleep(long)
		}, all},
		{"two crashes", 0, func(w *world) {
			w.cancelTask("t")
			time.Sleep(time.Minute)
			w.crash()
			time.Sleep(long)
			w.crash()
		}, all},
		{"a crash", 0, func(w *world) {
			w.cancelTask("t")
			w.crash()
			time.Sleep(long)
		}, all},
		{"an end of the process", 0, func(w *world) {
			w.cancelTask("t")
			w.group.close()
			time.Sleep(long)
			w.open()
		}, all},
		{"muted", 0, func(w *world) {
			w.group.mute(true)
			w.connect(true)
			w.cancelTask("t")
			time.Sleep(long)
			w.group.mute(false)
			synctest.Wait()
			w.check("unmuted", all...)
		}, nil},
		{"not confirmed", 0, func(w *world) {
			link := w.connect(false)
			w.cancelTask("t")
			w.check("not confirmed", "t accepted", "t working", "t working a", "t canceled a")
			time.Sleep(long)
			link.confirm(2)
			link.end()
		}, []string{"t canceled a"}}, // the product is in it
		{"trimmed, but not what is to be published", 12, turns, []string{"t accepted", "t working",
			"t awaiting-completion ab", "t working", "t awaiting-completion ab", "t working", "t awaiting-completion ab",
			"t working", "t awaiting-completion ab", "t canceled ab"}},
		{"trimmed", 8, turns, []string{"t accepted", "t working", "t awaiting-completion", "t working",
			"t awaiting-completion", "t working ab", "t awaiting-completion ab", "t working", "t awaiting-completion ab",
			"t canceled ab"}},
		{"an append of which the store does not know", 0, func(w *world) {
			w.cancelTask("t")
			w.store.setAmbiguous(logname.GroupTask)
			time.Sleep(long)
		}, all},
		{"the same start again", 0, func(w *world) {
			w.cancelTask("t")
			time.Sleep(long)
			if got := w.rpc("start", "t", ""); got != "canceled" {
				w.t.Errorf("the task is %s", got)
			}
		}, all},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, works, func(c *gateway.Config) {
					c.Partner.MaxEvents = cmp.Or(tc.events, c.Partner.MaxEvents)
				})
				tc.during(w)
				if _, err := w.store.Head(t.Context(), logname.New("agent", leaderAIC, "t")); err != nil && tc.want != nil {
					t.Fatal("the store has dropped the task")
				}
				w.connect(true)
				time.Sleep(time.Second)
				w.check("published", tc.want...)
				w.checkOver()
			})
		})
	}
}

// TestKeptForSomeDays: the store does not keep an unpublishable task for ever.
func TestKeptForSomeDays(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.cancelTask("t")
		time.Sleep(replay.DefaultPinFor + time.Hour)
		w.rpc("start", "t", "") // is another task, outside of the group
		w.connect(true)
		time.Sleep(time.Second)
		w.check("a task that is dropped")
		w.group.close()
		w.open()
		w.connect(true)
		w.send("start", "u", "m3", "")
		time.Sleep(10 * time.Second)
		w.check("a task", "u accepted", "u working", "u working a", "u working ab", "u awaiting-completion ab")
		w.send("complete", "u", "m4", "")
		time.Sleep(time.Second)
		w.check("the end", "u completed ab")
		w.rpc("cancel", "t", "")
		w.checkOver()
	})
}
