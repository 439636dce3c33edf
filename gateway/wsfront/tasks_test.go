// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// TestTask: a task from its creation to its end, as its owner sees it.
func TestTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d1")
		created := alice.must("task.create", `{"to":"`+reviewer+`","input":{"type":"text","content":"go"}}`)
		id := created.Get("task_id").String()
		if got := created.Get("status").String() + " " + created.Get("owner").String() + " " +
			created.Get("assignee").String(); got != "submitted alice.aid.test reviewer.aid.test" || id == "" {
			t.Errorf("created: %s", created.Raw)
		}
		if got := alice.must("task.subscribe", `{"task_ids":["`+id+`"]}`).Get("subscribed.0").String(); got != id {
			t.Errorf("subscribed %q", got)
		}
		w.say(id, working, piece("0", false), piece("1", true), asks)
		var seen []string
		for range 5 {
			seen = append(seen, alice.next().String())
		}
		if got := alice.must("task.get", params(id)); got.Get("status").String() != "input_required" ||
			got.Get("message.content").String() != "which?" || got.Get("artifacts.0.content").String() != "01" {
			t.Errorf("get: %s", got.Raw)
		}
		if got := alice.must("task.send_input", `{"task_id":"`+id+`","input":{"type":"text","content":"blue"}}`).
			Get("status").String(); got != "working" {
			t.Errorf("send_input answers %s", got)
		}
		w.say(id, finished)
		for range 2 {
			seen = append(seen, alice.next().String())
		}
		if diff := cmp.Diff([]string{"updated submitted", "updated working", "artifact 0", "artifact 1",
			"updated input_required", "updated working", "completed completed"}, seen); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		got := alice.must("task.get", params(id))
		if got.Get("status").String() != "completed" || got.Get("input.content").String() != "go" ||
			got.Get("messages.0.content").String() != "blue" {
			t.Errorf("get: %s", got.Raw)
		}
		for method, more := range map[string]string{"task.cancel": "", "task.send_input": `,"input":"x"`} {
			if _, code := alice.call(method, `{"task_id":"`+id+`"`+more+`}`); code != -32171 {
				t.Errorf("%s of a completed task: %d", method, code)
			}
		}
		w.stop()
	})
}
