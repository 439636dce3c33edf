// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

// busy is an agent without room for waiting turns.
type busy struct {
	*script
	full bool
}

func (b *busy) Admit(string) error {
	if b.full {
		return task.Errorf(task.LimitExceeded, "the agent is busy")
	}
	return nil
}

// TestAdmit: a start or continue without room at its agent leaves no trace, and may come again.
func TestAdmit(t *testing.T) {
	fake := &busy{script: answers("x")}
	b := setUp(t, memory(t), fake, func(c *Config) { c.MaxTasks = 1 })
	b.do(call(task.Start, "t1"))
	fake.full = true
	for _, c := range []*Request{call(task.Start, "t2"), call(task.Continue, "t1")} {
		if _, err := b.Do(t.Context(), leader, c); task.KindOf(err) != task.LimitExceeded {
			t.Errorf("%s: %v", c.Message.Command, err)
		}
	}
	if got := b.do(call(task.Get, "t1")); got.Status.State != task.AwaitingCompletion || len(got.MessageHistory) != 1 {
		t.Errorf("a refused continue leaves the task %s with %d messages", got.Status.State, len(got.MessageHistory))
	}
	if _, err := b.Do(t.Context(), leader, call(task.Get, "t2")); task.KindOf(err) != task.TaskNotFound {
		t.Errorf("a refused start leaves a task: %v", err)
	}
	fake.full = false
	b.do(call(task.Continue, "t1"))
	b.do(call(task.Complete, "t1"))
	b.do(call(task.Start, "t2"))
	if n := fake.turnCount(); n != 3 {
		t.Errorf("the agent was given %d turns", n)
	}
}
