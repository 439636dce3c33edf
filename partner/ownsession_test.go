// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// namesSessions is an agent with its own names for its tasks, and for sessions as it wants.
func namesSessions(name func(t *agent.Turn) string) *script {
	return &script{run: func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
		rep := finished("done")
		rep.Ref = &agent.Ref{Task: "own-" + turn.Message.TaskID, Session: name(turn)}
		rep.OwnSession = rep.Ref.Session != turn.Ref.Session
		yield(rep, nil)
	}}
}

// TestOwnSessions: an agent's name for a session is the name of the session in later tasks, too: of its Leader alone,
// by whichever engine, and for as long as a task of the session is kept.
func TestOwnSessions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		made := 0
		fake := namesSessions(func(turn *agent.Turn) string {
			if turn.OwnSession {
				return turn.Ref.Session
			}
			made++
			return fmt.Sprint("own-", made)
		})
		start := func(b *bench, leader, session, id string) string {
			t.Helper()
			c := call(task.Start, id, func(c *Request) { c.Message.SessionID = session })
			got, err := b.Do(t.Context(), leader, c)
			if err != nil {
				t.Fatal(err)
			}
			if session != "" && got.Task.SessionID != session {
				t.Errorf("the caller's session has become %s", got.Task.SessionID)
			}
			turn := fake.turns[len(fake.turns)-1]
			if derived := deriveUUID(nil, "session", "agent", leader, session); turn.Ref.Session == derived {
				return "derived"
			} else if !turn.OwnSession {
				return "another"
			}
			return turn.Ref.Session
		}
		first := setUp(t, store, fake)
		var got []string
		got = append(got, start(first, "ann", "s", "1"), start(first, "ann", "s", "2"), start(first, "ann", "other", "3"),
			start(first, "bob", "s", "4"), start(first, "bob", "s", "5"), start(first, "ann", "", "6"))
		first.engine.Close()

		second := setUp(t, store, fake)
		got = append(got, start(second, "ann", "s", "7"), start(second, "bob", "s", "8"), start(second, "ann", "new", "9"))
		second.engine.Close()
		for _, id := range []string{"4", "5", "8"} {
			log := logname.New("agent", "bob", id)
			head, err := store.Head(t.Context(), log)
			if err == nil {
				err = store.Append(t.Context(), replay.Append{Log: log, Expect: head.Revision, Drop: true})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		third := setUp(t, store, fake)
		got = append(got, start(third, "bob", "s", "10"), start(third, "ann", "s", "11"))
		want := []string{"derived", "own-1", "derived", "derived", "own-3", "another",
			"own-1", "own-3", "derived", "derived", "own-1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// countedReads counts the reads of a store.
type countedReads struct {
	replay.Store
	reads atomic.Int64
}

func (s *countedReads) Head(ctx context.Context, log string) (replay.Head, error) {
	s.reads.Add(1)
	return s.Store.Head(ctx, log)
}

func (s *countedReads) Listed(
	ctx context.Context, list string, after replay.ListedLog,
) iter.Seq2[replay.ListedLog, error] {
	s.reads.Add(1)
	return s.Store.Listed(ctx, list, after)
}

// TestKeptSessionsCostNothing: a start at an agent taking the session's name reads nothing for it. At another agent it
// reads only the first time.
func TestKeptSessionsCostNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			keeps bool
			want  []int64
		}{{true, []int64{0, 0, 0}}, {false, []int64{0, 0, 0}}} {
			store := &countedReads{Store: memory(t)}
			b := setUp(t, store, namesSessions(func(turn *agent.Turn) string {
				if tc.keeps {
					return turn.Ref.Session
				}
				return "own"
			}))
			b.do(call(task.Start, "0"))
			var got []int64
			for i := range tc.want {
				before := store.reads.Load()
				b.do(call(task.Start, fmt.Sprint(i+1)))
				got = append(got, store.reads.Load()-before)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("keeps %v: reads (-want +got):\n%s", tc.keeps, diff)
			}
		}
	})
}

// TestReferences: a message refers to tasks of its Leader by the agent's names for them, and to no others.
func TestReferences(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		fake := namesSessions(func(turn *agent.Turn) string { return turn.Ref.Session })
		plain := answers("named by the gateway")
		b := setUp(t, store, fake)
		b.do(call(task.Start, "mine"))
		if _, err := b.Do(t.Context(), "bob", call(task.Start, "bobs")); err != nil {
			t.Fatal(err)
		}
		b.engine.Close()
		b = setUp(t, store, plain)
		b.do(call(task.Start, "derived"))
		refer := func(cmd task.Command, id string) *Request {
			return call(cmd, id, func(c *Request) {
				c.Message.ID, c.Message.References = "of "+string(cmd), []string{"mine", "bobs", "derived", "none", "own-mine"}
			})
		}
		b.do(refer(task.Start, "next"))
		b.do(refer(task.Continue, "next"))
		for _, turn := range plain.turns[1:] {
			if diff := cmp.Diff([]string{"own-mine"}, turn.References); diff != "" {
				t.Errorf("%s (-want +got):\n%s", turn.Message.Command, diff)
			}
		}
		if got := b.do(call(task.Get, "next")).MessageHistory; len(got[0].References) != 5 {
			t.Errorf("the history has %+v", got[0])
		}
	})
}
