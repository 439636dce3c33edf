// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// worker is an agent that connects. It has every task, and keeps what it has said.
type worker struct {
	said []string
	open []string // the inputs of its open tasks
}

func (*worker) Has(agent, id string) bool { return agent == "worker.aid.test" && id[:5] == "task-" }

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

// An agent that was away for long gets all its open tasks when it connects, however many and large they are.
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

// TestAssignee: an agent that connects gets its open tasks, and its calls and events reach them. It may delegate, and
// cannot complete a task whose parts have not ended.
func TestAssignee(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		agent := &worker{open: []string{"x"}}
		w.config.Assignees = agent
		w.start()
		alice, bob := w.connect("alice.aid.test", "d"), w.connect("worker.aid.test", "d")
		if e := bob.next(); e.String() != "updated submitted" {
			t.Errorf("the agent gets %s", e)
		}
		id := alice.create(reviewer, "")
		own := partner.AgentTask(logname.New(reviewer, "aid:alice.aid.test", id))
		for method, want := range map[string]int{
			codec.Get: 0, codec.Accept: 0, codec.Fail: 0, codec.Complete: 0, codec.Cancel: -32175, codec.SendInput: -32175,
		} {
			if _, code := bob.call(method, params(own)); code != want {
				t.Errorf("%s: %d, want %d", method, code, want)
			}
		}
		if err := bob.conn.Notify(t.Context(), "event/task.updated", []byte(params(own))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(agent.said); n != 4 || agent.said[3] != "event/task.updated" {
			t.Errorf("the agent has said %v", agent.said)
		}
		part := bob.must(codec.Delegate, fmt.Sprintf(`{"task_id":%q,"to":%q,"input":"part"}`, own, translator))
		child := part.Get("task_id").String()
		if part.Get("parent_task_id").String() != id || part.Get("owner").String() != "worker.aid.test" {
			t.Errorf("delegated: %s", part.Raw)
		}
		if data, code := bob.call(codec.Complete, params(own)); code != -32185 || data.Get("children.0").String() != child {
			t.Errorf("a task with an open part is completed: %d %s", code, data.Raw)
		}
		if got := alice.must(codec.Get, params(child)).Get("assignee").String(); got != translator {
			t.Errorf("the owner of the task sees its part as %q", got)
		}
		w.say(child, finished)
		synctest.Wait()
		if _, code := bob.call(codec.Complete, params(own)); code != 0 {
			t.Errorf("after the part has ended: %d", code)
		}
		if _, code := bob.call(codec.Delegate,
			fmt.Sprintf(`{"task_id":"task-of-aip","to":%q,"input":"part"}`, translator)); code != -32178 {
			t.Errorf("a task that AUN does not know is delegated: %d", code)
		}
		if _, code := alice.call(codec.Get, params(own)); code != -32170 {
			t.Errorf("the owner gets the task by the agent's id: %d", code)
		}
		w.stop()
	})
}
