// SPDX-License-Identifier: Apache-2.0

package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

// long is longer than the store keeps a task that has ended.
const long = replay.DefaultRetention + time.Hour

// cancelTask has a task started and canceled.
func (w *world) cancelTask(id string) {
	w.send("start", id, "start "+id, "")
	time.Sleep(1500 * time.Millisecond)
	w.send("cancel", id, "cancel "+id, "")
	synctest.Wait()
}

// checkOver checks that nothing is left to publish, and that no copy counts.
func (w *world) checkOver() {
	w.t.Helper()
	time.Sleep(time.Minute)
	if _, open := w.ended(); open != 0 || w.group.traffic().Tasks != 0 || w.group.copied != 0 {
		w.t.Errorf("%d followers have not ended, %d tasks are left, and %d bytes of copies", open,
			w.group.traffic().Tasks, w.group.copied)
	}
}

// TestLongSilence: however long a broker cannot be reached, or does not confirm, or the Partner is muted, all of a task
// is published in the end, though the store has dropped it.
func TestLongSilence(t *testing.T) {
	all := []string{"t accepted", "t working", "t canceled a"}
	for _, tc := range []struct {
		name   string
		trims  bool
		during func(w *world) // what happens to a group without a link
		want   []string       // what is published at the end
	}{
		{"no link", false, func(w *world) {
			w.cancelTask("t")
			time.Sleep(long)
		}, all},
		{"a crash after the copy", false, func(w *world) {
			w.cancelTask("t")
			time.Sleep(time.Minute)
			w.crash()
			time.Sleep(long)
			w.crash()
		}, all},
		{"a crash before the copy", false, func(w *world) {
			w.cancelTask("t")
			w.crash()
			time.Sleep(long)
		}, all},
		{"an end of the process before the copy", false, func(w *world) {
			w.cancelTask("t")
			w.group.close()
			time.Sleep(long)
			w.open()
		}, all},
		{"muted", false, func(w *world) {
			w.group.mute(true)
			w.connect(true)
			w.cancelTask("t")
			time.Sleep(long)
			w.group.mute(false)
			synctest.Wait()
			w.check("unmuted", all...)
		}, nil},
		{"not confirmed", false, func(w *world) {
			link := w.connect(false)
			w.cancelTask("t")
			w.check("not confirmed", "t accepted", "t working", "t working a", "t canceled a")
			time.Sleep(long)
			link.confirm(2)
			link.end()
		}, []string{"t canceled a"}}, // the product is in it
		{"trimmed", true, func(w *world) {
			for _, id := range []string{"1", "2", "3"} {
				w.send("start", "t", "start", "")
				time.Sleep(10 * time.Second)
				w.send("continue", "t", "continue "+id, "")
				time.Sleep(10 * time.Second)
			}
			w.send("cancel", "t", "cancel", "")
			time.Sleep(long)
		}, []string{"t accepted", "t working", "t awaiting-completion", "t working", "t awaiting-completion",
			"t working ab", "t awaiting-completion ab", "t working", "t awaiting-completion ab", "t canceled ab"}},
		{"an append of which the store does not know", false, func(w *world) {
			w.cancelTask("t")
			w.store.setAmbiguous(logname.GroupTask)
			time.Sleep(long)
		}, all},
		{"another task of the same id", false, func(w *world) {
			w.cancelTask("t")
			time.Sleep(long)
			w.rpc("start", "t", "")
		}, all},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t, works, func(c *gateway.Config) {
					if tc.trims {
						c.Partner.MaxEvents = 8
					}
				})
				tc.during(w)
				if _, err := w.store.Head(t.Context(), logname.New("agent", leaderAIC, "t")); err == nil &&
					tc.name != "another task of the same id" {
					t.Fatal("the store still has the task")
				}
				w.connect(true)
				time.Sleep(time.Second)
				w.check("published", tc.want...)
				w.checkOver()
			})
		})
	}
}

// TestCopiesAreBounded: beyond a number of bytes, tasks are not copied.
func TestCopiesAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.cancelTask("t")
		w.group.mu.Lock()
		w.group.copied = maxCopies
		w.group.mu.Unlock()
		time.Sleep(long)
		w.group.mu.Lock()
		w.group.copied -= maxCopies
		w.group.mu.Unlock()
		w.connect(true)
		time.Sleep(time.Second)
		w.check("a task that is dropped")
		w.checkOver()
		w.send("start", "t", "m3", "")
		time.Sleep(10 * time.Second)
		w.check("a task of the same id", "t accepted", "t working", "t working a", "t working ab",
			"t awaiting-completion ab")
	})
}
