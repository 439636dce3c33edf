// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// Webhooks set before the task's Leader was known are notified of the task. If the caller chooses the ids of webhooks,
// to set one twice replaces it.
func TestMove(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer w.e.Close()
		ctx := t.Context()
		anyone := "tpartner\x00*\x00a"
		_, err := w.e.Move(ctx, w.e, anyone, taskLog("a")) // there is nothing yet
		must(t, err)
		one := w.hook(anyone, here, At{})
		named, err := w.e.Set(ctx, anyone, task.Webhook{ID: "mine", URL: here + "/2", Dialect: "aip"}, At{Named: true})
		must(t, err)
		if named.ID != "mine" {
			t.Errorf("the caller's own id became %q", named.ID)
		}
		named.Token = "t"
		_, err = w.e.Set(ctx, anyone, named, At{Named: true})
		must(t, err)

		_, err = w.e.Move(ctx, w.e, anyone, taskLog("a"))
		must(t, err)
		if left, err := w.e.Get(ctx, anyone, ""); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		moved, err := w.e.Get(ctx, taskLog("a"), "")
		must(t, err)
		diff := cmp.Diff([]string{one.ID, "mine"}, []string{moved[0].ID, moved[1].ID})
		if diff != "" || moved[1].Token != "t" {
			t.Errorf("%+v\n%s", moved, diff)
		}

		must(t, w.task("a").move(task.Accepted, task.Working))
		synctest.Wait()
		for _, url := range []string{here, here + "/2"} {
			if diff := cmp.Diff([]task.State{task.Accepted, task.Working}, w.sink.history(t, url)); diff != "" {
				t.Errorf("%s got (-want +got):\n%s", url, diff)
			}
		}
	})
}
