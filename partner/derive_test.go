// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestDerive: agents know sessions, and older tasks, by derived names, so they must never change.
func TestDerive(t *testing.T) {
	if got := derive("session", "a", "b"); got != "session-minvjcb4yxuad7qfs6mja4ii" {
		t.Error(got)
	}
	if got := derive("task", strings.Repeat("x", 600)); got != "task-2243zfesrccvija7hcjdfmva" {
		t.Error(got)
	}
}

// TestNamesForAgents: nobody can tell from what a task is which name it has at the agent. A start that is repeated
// after its task was lost has the same one.
//
// Promise: the secret in the names that [tasks have at their agents](mapping.md#ids-and-history)
func TestNamesForAgents(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		start := func(store replay.Store, change ...func(*Request)) agent.Ref {
			fake := answers("done")
			b := setUp(t, store, fake)
			b.do(call(task.Start, "t1", change...))
			b.engine.Close()
			log := logname.New("agent", leader, "t1")
			head, err := store.Head(t.Context(), log)
			if err == nil {
				err = store.Append(t.Context(), replay.Append{Log: log, Expect: head.Revision, Drop: true})
			}
			if err != nil {
				t.Fatal(err)
			}
			return fake.turns[0].Ref
		}
		one, other := memory(t), memory(t)
		for name, change := range map[string]func(*Request){
			"by its log":     func(*Request) {},
			"by its session": func(c *Request) { c.BySession = true },
			"no session":     func(c *Request) { c.Message.SessionID = "" },
		} {
			first, again, elsewhere := start(one, change), start(one, change), start(other, change)
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("%s: a start that is repeated (-first +second):\n%s", name, diff)
			}
			if first.Task == elsewhere.Task {
				t.Errorf("%s: the same in every store: %s", name, first.Task)
			}
			if name == "no session" && first.Session == elsewhere.Session {
				t.Errorf("%s: the same session in every store: %s", name, first.Session)
			}
		}
	})
}

// TestNamesFromBefore: a task keeps the name that it got before names had a secret in them, and is resumed by it as one
// that the gateway has named.
func TestNamesFromBefore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		log := logname.New("agent", leader, "t1")
		before := derive("task", log)
		first := setUp(t, store, hangs())
		first.do(call(task.Start, "t1", func(c *Request) { c.AgentTask, c.Terms.Response = before, time.Second }))
		first.do(call(task.Start, "t2", func(c *Request) { c.Terms.Response = time.Second }))
		first.engine.Close()

		resumed := make(chan agent.Turn, 2)
		setUp(t, store, &script{resume: func(_ context.Context, turn *agent.Turn,
			yield func(agent.Report, error) bool) {
			resumed <- *turn
			yield(finished("done"), nil)
		}})
		names := make(map[string]bool)
		for range 2 {
			turn := <-resumed
			if names[turn.Ref.Task] = true; turn.Named {
				t.Errorf("%s is taken for a name that the agent has made", turn.Ref.Task)
			}
		}
		if !names[before] || len(names) != 2 {
			t.Errorf("resumed as %v, want one of them to be %s", names, before)
		}
		synctest.Wait()
	})
}
