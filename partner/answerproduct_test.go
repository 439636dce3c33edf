// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestAnswerIsProduct: if the callers of a dialect look for results among the products, an agent finishing without one
// gives one: its last words. They are not in the status as well.
func TestAnswerIsProduct(t *testing.T) {
	says := func(state task.State, texts ...string) agent.Report {
		rep := agent.Report{State: state, NativeState: string(state)}
		for _, text := range texts {
			rep.Items = append(rep.Items, task.Text(text))
		}
		return rep
	}
	with := func(rep agent.Report, change func(*agent.Report)) agent.Report {
		change(&rep)
		return rep
	}
	for _, tc := range []struct {
		name     string
		reports  []agent.Report
		products []task.Product
		status   []task.DataItem
		state    task.State // awaiting-completion if empty
	}{
		{name: "a status", reports: []agent.Report{says(task.AwaitingCompletion, "42")}, products: products("answer", "42")},
		{name: "of more than one item", reports: []agent.Report{says(task.AwaitingCompletion, "4", "2")},
			products: []task.Product{{ID: "answer", DataItems: []task.DataItem{task.Text("4"), task.Text("2")}}}},
		{name: "no news of products", reports: []agent.Report{with(says(task.AwaitingCompletion, "42"),
			func(r *agent.Report) { r.Full = true })}, products: products("answer", "42")},
		{name: "in pieces on the way", reports: []agent.Report{says(task.Working, "4"), says(task.Working, "2"),
			says(task.AwaitingCompletion)}, products: products("answer", "42")},
		{name: "the last word", reports: []agent.Report{says(task.Working, "one moment"),
			says(task.AwaitingCompletion, "42")}, products: products("answer", "42")},
		{name: "nothing", reports: []agent.Report{says(task.AwaitingCompletion)}},
		{name: "an empty text", reports: []agent.Report{says(task.AwaitingCompletion, "", " \n")},
			status: []task.DataItem{task.Text(""), task.Text(" \n")}},
		{name: "a product beside", reports: []agent.Report{with(says(task.AwaitingCompletion, "done"),
			func(r *agent.Report) { r.Full, r.Products = true, products("p", "42") })},
			products: products("p", "42"), status: []task.DataItem{task.Text("done")}},
		{name: "a product before", reports: []agent.Report{{Chunks: []task.Chunk{{Product: products("p", "42")[0]}}},
			says(task.AwaitingCompletion, "done")},
			products: products("p", "42"), status: []task.DataItem{task.Text("done")}},
		{name: "a question", reports: []agent.Report{says(task.AwaitingInput, "which?")}, state: task.AwaitingInput,
			status: []task.DataItem{task.Text("which?")}},
		{name: "a failure", reports: []agent.Report{says(task.Working, "one moment"), says(task.Failed, "no")},
			state: task.Failed, status: []task.DataItem{task.Text("no")}},
		{name: "a refusal", reports: []agent.Report{says(task.Rejected, "no")}, state: task.Rejected,
			status: []task.DataItem{task.Text("no")}},
		{name: "a Partner of AIP", reports: []agent.Report{with(says(task.AwaitingCompletion, "42"),
			func(r *agent.Report) { r.Verbatim = true })}, status: []task.DataItem{task.Text("42")}},
		{name: "more than the Leader takes",
			reports: []agent.Report{says(task.AwaitingCompletion, "a longer text")}, state: task.Failed, status: []task.DataItem{
				task.Text("the products have 13 bytes, but the Leader allows no more than 12 (maxProductsBytes)")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				for _, rep := range tc.reports {
					if !yield(rep, nil) {
						return
					}
				}
			}}
			b := setUp(t, memory(t), fake)
			start := call(task.Start, "t1", func(c *Request) {
				c.AnswerIsProduct, c.Terms.MaxProductsBytes = true, 12
			})
			want := task.AwaitingCompletion
			if tc.state != task.None {
				want = tc.state
			}
			b.do(start)
			got := b.do(call(task.Get, "t1"))
			if got.Status.State != want {
				t.Errorf("the task is %s, want %s", got.Status.State, want)
			}
			if diff := cmp.Diff(tc.products, got.Products); diff != "" {
				t.Errorf("products (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.status, got.Status.DataItems); diff != "" {
				t.Errorf("the status says (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswerOfEachTurn: the answer of the next turn takes the place of the one before, also in the log. There the
// product comes before the state. Tasks of other callers have no such product.
func TestAnswerOfEachTurn(t *testing.T) {
	fake := &script{run: func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
		yield(agent.Report{State: task.AwaitingCompletion, NativeState: "completed",
			Items: []task.DataItem{task.Text("to " + turn.Message.DataItems[0].Text)}}, nil)
	}}
	store := memory(t)
	b := setUp(t, store, fake)
	ours := func(c *Request) { c.AnswerIsProduct = true }
	b.do(call(task.Start, "t1", ours))
	b.engine.Close()
	b = setUp(t, store, fake) // the terms of the task outlive the process
	got := b.do(call(task.Continue, "t1", ours))
	if diff := cmp.Diff(products("answer", "to please continue"), got.Products); diff != "" {
		t.Errorf("products after the second turn (-want +got):\n%s", diff)
	}
	b.do(call(task.Complete, "t1", ours))
	s, err := b.Stream(t.Context(), leader, call(task.ReStream, "t1"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for rec, err := range b.follow(t.Context(), &s) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, kindOf(t, rec))
	}
	want := []string{"accepted", "working", "answer: to please start", "awaiting-completion",
		"working", "answer: to please continue", "awaiting-completion", "completed"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}

	other := b.do(call(task.Start, "t2"))
	if len(other.Products) > 0 || len(other.Status.DataItems) == 0 {
		t.Errorf("a task of another dialect is %+v", other)
	}
	auto := b.do(call(task.Start, "t3", ours, func(c *Request) { c.AutoComplete = true }))
	if auto.Status.State != task.Completed || len(auto.Products) != 1 || len(auto.Status.DataItems) > 0 {
		t.Errorf("a task that is completed by itself is %+v", auto)
	}
}

func kindOf(t *testing.T, rec replay.Record) string {
	t.Helper()
	ev, err := task.DecodeEvent(rec.Data)
	switch {
	case err != nil:
		t.Fatal(err)
	case ev.Task != nil:
		return string(ev.Task.Status.State)
	case ev.Chunk != nil:
		return ev.Chunk.Product.ID + ": " + ev.Chunk.Product.DataItems[0].Text
	}
	return string(ev.Status.State)
}
