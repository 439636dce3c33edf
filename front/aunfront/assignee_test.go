// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// worker is a connecting agent. It has some tasks, and keeps its calls and reports.
type worker struct {
	has  []string // their ids
	said []string
	open []string // the inputs of its open tasks
}

func (w *worker) Has(agent, id string) bool {
	return agent == "worker.aid.test" && slices.Contains(w.has, id)
}

func (w *worker) Say(_ context.Context, _, _, method string, _ gjson.Result) (string, error) {
	w.said = append(w.said, method)
	return "working", nil
}

func (w *worker) Report(_, _, method string, _ gjson.Result) error {
	w.said = append(w.said, method)
	return nil
}

func (*worker) Task(_, id string) ([]byte, error) { return []byte(params(id)), nil }

func (*worker) Tasks(string) [][]byte { return nil }

func (w *worker) Connected(_ string, send func([]byte)) {
	for i, input := range w.open {
		send(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"event/task.updated","params":{"status":"submitted","n":%d,`+
			`"input":%q}}`, i, input))
	}
}

// TestManyOpenTasks: after a long absence, an agent gets all its open tasks when it connects, however many and large
// they are.
func TestManyOpenTasks(t *testing.T) {
	for name, open := range map[string][]string{
		"many":  make([]string, 3*maxPending),
		"large": slices.Repeat([]string{strings.Repeat("x", 900_000)}, 40),
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.stop()
				w.config.Assignees = &worker{open: open}
				w.start()
				c := w.connect("worker.aid.test", "d")
				for i := range open {
					if e := c.next(); e.params.Get("n").Int() != int64(i) {
						t.Fatalf("event %d is of task %s", i, e.params.Get("n"))
					}
				}
				w.stop()
			})
		})
	}
}

// TestAssignee: a connecting agent gets its open tasks, and its calls and events reach them, by the owner's ids for
// them. It may delegate, and cannot complete a task with open parts.
func TestAssignee(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		bobs := &worker{open: []string{"x"}}
		w.config.Assignees, w.worker = bobs, "worker.aid.test"
		w.start()
		alice, bob := w.connect("alice.aid.test", "d"), w.connect("worker.aid.test", "d")
		if e := bob.next(); e.String() != "updated submitted" {
			t.Errorf("the agent gets %s", e)
		}
		id := alice.create(reviewer, "")
		synctest.Wait()
		w.agent.mu.Lock()
		if got := w.agent.refs; !slices.Equal(got, []string{id}) {
			t.Errorf("for its agent the task is %v, want %s", got, id)
		}
		w.agent.mu.Unlock()
		bobs.has = []string{id}
		for method, want := range map[string]int{
			codec.Get: 0, codec.Accept: 0, codec.Fail: 0, codec.Complete: 0, codec.Children: 0, codec.Cancel: -32175,
			codec.SendInput: -32175,
		} {
			if _, code := bob.call(method, `{"task_id":"`+id+`","input":"x"}`); code != want {
				t.Errorf("%s: %d, want %d", method, code, want)
			}
		}
		if err := bob.conn.Notify(t.Context(), "event/task.updated", []byte(params(id))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(bobs.said); n != 4 || bobs.said[3] != "event/task.updated" {
			t.Errorf("the agent has said %v", bobs.said)
		}
		bob.must(codec.Subscribe, `{"task_ids":["`+id+`"]}`)
		w.say(id, working)
		if e := bob.next(); e.String() != "updated submitted" || e.params.Get("task_id").String() != id {
			t.Errorf("of its task, the agent gets %s %s", e, e.params.Raw)
		}
		part := bob.must(codec.Delegate, fmt.Sprintf(`{"task_id":%q,"to":%q,"input":"part"}`, id, translator))
		child := part.Get("task_id").String()
		if part.Get("parent_task_id").String() != id || part.Get("owner").String() != "worker.aid.test" {
			t.Errorf("delegated: %s", part.Raw)
		}
		if got := bob.must(codec.Children, params(id)).Get("children.0.task_id").String(); got != child {
			t.Errorf("the agent sees the part %q, want %q", got, child)
		}
		if data, code := bob.call(codec.Complete, params(id)); code != -32185 || data.Get("children.0").String() != child {
			t.Errorf("a task with an open part is completed: %d %s", code, data.Raw)
		}
		if got := alice.must(codec.Get, params(child)).Get("assignee").String(); got != translator {
			t.Errorf("the owner of the task sees its part as %q", got)
		}
		w.say(child, finished)
		synctest.Wait()
		if _, code := bob.call(codec.Complete, params(id)); code != 0 {
			t.Errorf("after the part has ended: %d", code)
		}
		w.stop()
	})
}

// TestAssigneeWithoutTheTask: an assignee's calls about a task it does not work on, be it waiting, or over and
// forgotten.
func TestAssigneeWithoutTheTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Assignees, w.worker = new(worker), "worker.aid.test"
		w.start()
		alice, bob := w.connect("alice.aid.test", "d"), w.connect("worker.aid.test", "d")
		id := alice.create(reviewer, "")
		for _, want := range []int{-32010, -32186} {
			if got := bob.must(codec.Get, params(id)).Get("assignee").String(); got != reviewer {
				t.Errorf("the assignee gets the task of %q", got)
			}
			for _, method := range []string{codec.Accept, codec.Reject, codec.Fail, codec.Complete} {
				if _, code := bob.call(method, params(id)); code != want {
					t.Errorf("%s: %d, want %d", method, code, want)
				}
			}
			w.say(id, agent.Report{State: task.Failed})
			synctest.Wait()
		}
		w.stop()
	})
}

// TestAssigneeOfAnotherDialect: a task with an owner not speaking AUN is known to its assignee only.
func TestAssigneeOfAnotherDialect(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Assignees, w.worker = &worker{has: []string{"task-of-aip"}}, "worker.aid.test"
		w.start()
		alice, bob := w.connect("alice.aid.test", "d"), w.connect("worker.aid.test", "d")
		for method, want := range map[string]int{codec.Get: 0, codec.Accept: 0, codec.Children: 0, codec.Subscribe: 0,
			codec.Cancel: -32175, codec.SendInput: -32175, codec.Delegate: -32178} {
			params := `{"task_id":"task-of-aip","task_ids":["task-of-aip"],"to":"` + translator + `","input":"x"}`
			if _, code := bob.call(method, params); code != want {
				t.Errorf("%s: %d, want %d", method, code, want)
			}
			if _, code := alice.call(method, params); code != -32170 {
				t.Errorf("%s by another: %d", method, code)
			}
		}
		w.stop()
	})
}
