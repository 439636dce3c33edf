// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestContinueTwice: a caller sends the same message again after losing the answer. It is not carried out again, in
// whatever state the task is by then.
func TestContinueTwice(t *testing.T) {
	named := func(id string, more ...func(*Request)) func(*Request) {
		return func(c *Request) {
			c.Message.ID = id
			for _, f := range more {
				f(c)
			}
		}
	}
	strict := func(c *Request) { c.Strict = true }
	either := func(c *Request) { c.Message.Command, c.StartOrContinue, c.Strict = task.Start, true, true }
	for _, tc := range []struct {
		name string
		rest task.State
		how  func(*Request)
	}{
		{"aip, awaiting input", task.AwaitingInput, func(*Request) {}},
		{"aip, awaiting completion", task.AwaitingCompletion, func(*Request) {}},
		{"a2a, awaiting input", task.AwaitingInput, strict},
		{"a2a before 0.2", task.AwaitingInput, either},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := bringTo(tc.rest)
			b := setUp(t, memory(t), fake)
			b.do(call(task.Start, "t1"))
			b.do(call(task.Continue, "t1", named("pay 100", tc.how)))
			before := b.do(call(task.Get, "t1"))
			again := b.do(call(task.Continue, "t1", named("pay 100", tc.how)))
			if again.Status.State != tc.rest || again.MessageHistory != nil {
				t.Errorf("the repeated continue is answered %+v", again)
			}
			if diff := cmp.Diff(before, b.do(call(task.Get, "t1"))); diff != "" || fake.turnCount() != 2 {
				t.Errorf("%d turns; the task has changed (-before +after):\n%s", fake.turnCount(), diff)
			}
			b.do(call(task.Continue, "t1", named("pay 200", tc.how)))
			b.do(call(task.Continue, "t1", named("", tc.how)))
			b.do(call(task.Continue, "t1", named("", tc.how)))
			if n := fake.turnCount(); n != 5 {
				t.Errorf("%d turns: a message of another id, or of none, is a new one", n)
			}
			if tc.rest != task.AwaitingCompletion {
				b.do(call(task.Cancel, "t1"))
			} else {
				b.do(call(task.Complete, "t1"))
			}
			if got, err := b.Do(t.Context(), leader, call(task.Continue, "t1", named("pay 100", tc.how))); err != nil ||
				!got.Task.Status.State.Terminal() {
				t.Errorf("after the end, the repeated continue is answered %q, %v", got.Task.Status.State, err)
			}
		})
	}
}

// TestContinueTwiceByStream: a repeated continue has the stream of the first one.
func TestContinueTwiceByStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), answers("x"))
		b.do(call(task.Start, "t1"))
		again := func(c *Request) { c.Message.ID = "again" }
		first, err := b.Stream(t.Context(), leader, call(task.Continue, "t1", again))
		if err != nil {
			t.Fatal(err)
		}
		bubble.Pass(time.Second)
		b.do(call(task.Continue, "t1"))
		second, err := b.Stream(t.Context(), leader, call(task.Continue, "t1", again))
		if err != nil {
			t.Fatal(err)
		}
		if first.After == 0 || second.After != first.After {
			t.Errorf("the repeated continue is answered by the events after %d, the first by those after %d", second.After,
				first.After)
		}
	})
}

// TestContinueAgainWithOtherContent: a message with the id of another one is not taken for it, so none of its caller's
// words are dropped in silence. It changes nothing.
func TestContinueAgainWithOtherContent(t *testing.T) {
	says := func(items ...task.DataItem) func(*Request) {
		return func(c *Request) { c.Message.ID, c.Message.DataItems = "pay", items }
	}
	data := func(data, metadata string) task.DataItem {
		return task.DataItem{Kind: task.DataKind, Data: []byte(data), Metadata: []byte(metadata)}
	}
	first := says(task.Text("100"), data(`{"a":1,"b":[2.0]}`, `{"k":1}`))
	for name, tc := range map[string]struct {
		again func(*Request)
		same  bool
	}{
		"the same":             {first, true},
		"the same, reordered":  {says(task.Text("100"), data(`{"b": [2.0], "a": 1}`, `{ "k":1}`)), true},
		"another text":         {says(task.Text("200"), data(`{"a":1,"b":[2.0]}`, `{"k":1}`)), false},
		"other data":           {says(task.Text("100"), data(`{"a":1,"b":[2]}`, `{"k":1}`)), false},
		"other metadata":       {says(task.Text("100"), data(`{"a":1,"b":[2.0]}`, ``)), false},
		"less":                 {says(task.Text("100")), false},
		"nothing":              {says(), false},
		"the content of start": {func(c *Request) { c.Message.ID = "msg-start" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			fake := bringTo(task.AwaitingInput)
			b := setUp(t, memory(t), fake)
			b.do(call(task.Start, "t1"))
			b.do(call(task.Continue, "t1", first))
			before := b.do(call(task.Get, "t1"))
			if again := call(task.Continue, "t1", tc.again); tc.same {
				b.do(again)
			} else {
				b.want(again, task.InvalidParams)
				if _, err := b.Stream(t.Context(), leader, again); task.KindOf(err) != task.InvalidParams {
					t.Errorf("a stream is answered %v", err)
				}
			}
			if diff := cmp.Diff(before, b.do(call(task.Get, "t1"))); diff != "" || fake.turnCount() != 2 {
				t.Errorf("%d turns; the task has changed (-before +after):\n%s", fake.turnCount(), diff)
			}
		})
	}
}

// TestContinueOfAnotherSession: in dialects with the session in a message, a session foreign to the message's task is
// refused.
func TestContinueOfAnotherSession(t *testing.T) {
	fake := bringTo(task.AwaitingInput)
	b := setUp(t, memory(t), fake)
	b.do(call(task.Start, "t1"))
	in := func(session string, same bool) func(*Request) {
		return func(c *Request) { c.Message.ID, c.Message.SessionID, c.SameSession = "to "+session, session, same }
	}
	b.want(call(task.Continue, "t1", in("another", true)), task.InvalidParams)
	if n := fake.turnCount(); n != 1 {
		t.Errorf("the agent has had %d turns", n)
	}
	for _, how := range []func(*Request){in("session-1", true), in("", true), in("another", false)} {
		b.do(call(task.Continue, "t1", how))
	}
	if n := fake.turnCount(); n != 4 {
		t.Errorf("the agent has had %d turns", n)
	}
}
