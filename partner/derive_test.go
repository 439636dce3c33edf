// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestDerive: agents know sessions, and older tasks, by derived names, so they must never change.
func TestDerive(t *testing.T) {
	if got := derive("session", "a", "b"); got != "session-minvjcb4yxuad7qfs6mja4ii" {
		t.Error(got)
	}
	if got := derive("task", strings.Repeat("x", 600)); got != "task-2243zfesrccvija7hcjdfmva" {
		t.Error(got)
	}
	if got := deriveUUID([]byte("secret"), "task", "a"); got != "0a2600eb-492a-4a39-826e-5d93b9b290d2" {
		t.Error(got)
	}
}

// TestNamesForAgents: the name of a task at the agent cannot be told from the task itself. A start repeated after its
// task was lost has the same one.
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
			for _, id := range []string{first.Task, first.Session} {
				if u, err := uuid.Parse(id); err != nil || u.Version() != 4 || u.Variant() != uuid.RFC4122 {
					t.Errorf("%s: %s is no UUID of version 4", name, id)
				}
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

// TestNamesFromBefore: a task keeps its name from an older build, and is resumed by it as one named by the gateway. So
// do the sessions of a store with such tasks.
func TestNamesFromBefore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		of := naming{secret: make([]byte, secretSize)}
		err := store.Append(t.Context(), replay.Append{Log: logname.SecretOfTasks, Metadata: encodeSecret(of)})
		if err != nil {
			t.Fatal(err)
		}
		before := []string{
			derive("task", logname.New("agent", leader, "t0")),
			deriveWith(of.secret, "task", logname.New("agent", leader, "t1")),
			"", // this build names it
		}
		first := setUp(t, store, hangs())
		for i, name := range before {
			first.do(call(task.Start, fmt.Sprint("t", i), func(c *Request) {
				c.AgentTask, c.Terms.Response = name, time.Second
			}))
		}
		first.engine.Close()

		resumed := make(chan agent.Turn, 3)
		setUp(t, store, &script{resume: func(_ context.Context, turn *agent.Turn,
			yield func(agent.Report, error) bool) {
			resumed <- *turn
			yield(finished("done"), nil)
		}})
		var names []string
		for range before {
			turn := <-resumed
			if turn.Named {
				t.Errorf("%s is taken for a name that the agent has made", turn.Ref.Task)
			}
			if session := derive("session", "agent", leader, "session-1"); turn.Ref.Session != session {
				t.Errorf("the session is %s, want %s", turn.Ref.Session, session)
			}
			names = append(names, turn.Ref.Task)
		}
		for _, name := range before[:2] {
			if !slices.Contains(names, name) {
				t.Errorf("resumed as %v, want one of them to be %s", names, name)
			}
		}
		synctest.Wait()
	})
}

// TestSessionsFromBefore: a store with tasks and no secret goes on with the present names of its sessions.
func TestSessionsFromBefore(t *testing.T) {
	for name, tasks := range map[string]int{"new": 0, "with a task": 1} {
		t.Run(name, func(t *testing.T) {
			store := memory(t)
			for range tasks {
				older := replay.Append{Log: logname.New("agent", leader, "t"), Metadata: []byte("{}")}
				if err := store.Append(t.Context(), older); err != nil {
					t.Fatal(err)
				}
			}
			made, err := new(secret).get(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			again := new(secret)
			if _, err := again.read(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(made, *again.value.Load(), cmp.AllowUnexported(naming{})); diff != "" {
				t.Errorf("read from the store (-made +read):\n%s", diff)
			}
			if made.uuidSessions != (tasks == 0) {
				t.Errorf("sessions are UUIDs: %v", made.uuidSessions)
			}
		})
	}
}
