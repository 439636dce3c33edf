// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// saysAll returns an agent. It says texts while it works, and settles its turn without a word.
func saysAll(state task.State, texts ...string) *script {
	return &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		for _, text := range texts {
			if !yield(agent.Report{State: task.Working, Items: []task.DataItem{task.Text(text)}}, nil) {
				return
			}
		}
		yield(agent.Report{State: state, NativeState: string(state)}, nil)
	}}
}

// TestWhatIsSaidIsTheAnswer: a turn settling without a word is answered with all words of the agent in it, and so are a
// get and a webhook; the history has them in pieces, and the history of the states has no more rows.
func TestWhatIsSaidIsTheAnswer(t *testing.T) {
	for _, state := range []task.State{task.AwaitingInput, task.AwaitingCompletion} {
		for _, auto := range []bool{false, true} {
			w := &witness{hooks: make(map[string]bool), notified: make(map[string][]task.State)}
			b := setUpWith(t, memory(t), saysAll(state, "Hel", "lo"), Options{Watcher: w})
			w.hooks[b.LogOf(leader, "t1")] = true
			got := b.do(call(task.Start, "t1", func(c *Request) { c.AutoComplete = auto }))
			want := []task.DataItem{task.Text("Hello")}
			if d := cmp.Diff(want, got.Status.DataItems); d != "" || len(got.Products) > 0 {
				t.Errorf("%s: the start is answered with %+v", state, got)
			}
			got = b.do(call(task.Get, "t1"))
			if d := cmp.Diff(want, got.Status.DataItems); d != "" {
				t.Errorf("%s: a get says %v", state, got.Status.DataItems)
			}
			var said []string
			for _, m := range got.MessageHistory {
				for _, it := range m.DataItems {
					said = append(said, string(m.SenderRole)+" "+it.Text)
				}
			}
			if d := cmp.Diff([]string{"partner Hel", "partner lo"}, said[len(said)-2:]); d != "" {
				t.Errorf("%s: the history says %q", state, said)
			}
			path := []task.State{task.Accepted, task.Working, state}
			if auto && state == task.AwaitingCompletion {
				path = append(path, task.Completed)
			}
			b.wantStates("t1", path...)
			if !cmp.Equal(w.last.Status.DataItems, want) {
				t.Errorf("%s: a webhook says %v", state, w.last.Status.DataItems)
			}
		}
	}
}

// TestRemarksAreNoCommands: the agent's words are no message of the Leader, for the agent or for a repeated message.
func TestRemarksAreNoCommands(t *testing.T) {
	fake := saysAll(task.AwaitingInput, "a", "b")
	b := setUp(t, memory(t), fake)
	b.do(call(task.Start, "t1"))
	b.do(call(task.Continue, "t1", func(c *Request) { c.Message.ID = "m2" }))
	var of []task.Command
	for _, m := range fake.turns[1].History {
		of = append(of, m.Command)
	}
	if d := cmp.Diff([]task.Command{task.Start, task.Continue}, of); d != "" {
		t.Errorf("the agent is shown the messages %v", of)
	}
	tk := b.engine.acquire(b.LogOf(leader, "t1"))
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if err := tk.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := tk.turn().Message; m.ID != "m2" {
		t.Errorf("a turn that is resumed has the message %+v", m)
	}
}

// TestMuchIsSaid: the words of an agent are bounded, as everything kept of a task, and end no task.
func TestMuchIsSaid(t *testing.T) {
	const most = 64 << 10
	var texts []string
	for range 400 {
		texts = append(texts, strings.Repeat("x", 1000), strings.Repeat("y", 1000))
	}
	store := memory(t)
	b := setUp(t, store, saysAll(task.AwaitingInput, texts...), func(c *Config) { c.MaxBytes = most })
	b.do(call(task.Start, "t1"))
	for range 3 {
		b.do(call(task.Continue, "t1"))
	}
	got := b.do(call(task.Get, "t1"))
	if got.Status.State != task.AwaitingInput || got.Size() > 2*most {
		t.Errorf("the task is %s, and has %d bytes", got.Status.State, got.Size())
	}
	head, snapshot, _, err := store.Load(t.Context(), b.LogOf(leader, "t1"))
	if err != nil || len(snapshot) > 2*most || head.Bytes > 2*most {
		t.Errorf("%d bytes are kept behind a snapshot of %d, %v", head.Bytes, len(snapshot), err)
	}
}

// TestThoughts: the thoughts of an agent are in the history, and neither its answer nor a product.
func TestThoughts(t *testing.T) {
	for said, want := range map[string]string{"": "", "Hello": "Hello"} {
		b := setUp(t, memory(t), &script{run: func(_ context.Context, _ *agent.Turn,
			yield func(agent.Report, error) bool) {
			say := func(it task.DataItem) {
				yield(agent.Report{State: task.Working, Items: []task.DataItem{it}}, nil)
			}
			say(task.Thought("Who is it?"))
			if said != "" {
				say(task.Text(said))
			}
			say(task.Thought("That will do"))
			yield(agent.Report{State: task.AwaitingCompletion, NativeState: "completed"}, nil)
		}})
		b.do(call(task.Start, "t1", func(c *Request) { c.AnswerIsProduct = true }))
		got := b.do(call(task.Get, "t1"))
		answer := ""
		for _, p := range got.Products {
			answer += p.DataItems[0].Text
		}
		if answer != want || len(got.Status.DataItems) > 0 {
			t.Errorf("it is answered with %+v and %+v", got.Products, got.Status.DataItems)
		}
		var thoughts []string
		for _, m := range got.MessageHistory {
			for _, it := range m.DataItems {
				if len(it.Metadata) > 0 {
					thoughts = append(thoughts, it.Text)
				}
			}
		}
		if d := cmp.Diff([]string{"Who is it?", "That will do"}, thoughts); d != "" {
			t.Errorf("the history has other thoughts (-want +got):\n%s", d)
		}
	}
}
