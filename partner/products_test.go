// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

func products(texts ...string) []task.Product {
	var list []task.Product
	for i := 0; i < len(texts); i += 2 {
		list = append(list, task.Product{ID: texts[i], DataItems: []task.DataItem{task.Text(texts[i+1])}})
	}
	return list
}

// TestProductsOfTheLastTurn: a task offers the products of its last turn, and within a turn those listed in the agent's
// whole report, in its order.
func TestProductsOfTheLastTurn(t *testing.T) {
	whole := func(state task.State, texts ...string) agent.Report {
		return agent.Report{State: state, NativeState: string(state), Full: true, Products: products(texts...)}
	}
	piece := func(id, text string) agent.Report {
		return agent.Report{Chunks: []task.Chunk{{Product: products(id, text)[0], Append: true, Last: true}}}
	}
	for _, tc := range []struct {
		name          string
		first, second []agent.Report // of the two turns
		rests         task.State     // after the first
		between       []task.Product
		want          []task.Product
	}{
		{"others", []agent.Report{whole(task.AwaitingCompletion, "a", "1")},
			[]agent.Report{whole(task.AwaitingCompletion, "b", "2")},
			task.AwaitingCompletion, nil, products("b", "2")},
		{"the same again", []agent.Report{whole(task.AwaitingCompletion, "a", "1", "b", "2")},
			[]agent.Report{whole(task.AwaitingCompletion, "a", "1")},
			task.AwaitingCompletion, nil, products("a", "1")},
		{"pieces", []agent.Report{piece("a", "1"), {State: task.AwaitingCompletion}},
			[]agent.Report{piece("a", "2"), piece("a", "3"), {State: task.AwaitingCompletion}},
			task.AwaitingCompletion, nil, products("a", "23")},
		{"none", []agent.Report{whole(task.AwaitingCompletion, "a", "1")},
			[]agent.Report{{State: task.Failed, NativeState: "failed"}},
			task.AwaitingCompletion, nil, nil},
		{"asked for input", []agent.Report{whole(task.AwaitingInput, "a", "1")},
			[]agent.Report{{State: task.AwaitingCompletion}},
			task.AwaitingInput, products("a", "1"), products("a", "1")},
		{"in another order, one less", []agent.Report{whole(task.AwaitingInput, "a", "1", "b", "2", "c", "3")},
			[]agent.Report{whole(task.AwaitingCompletion, "c", "3", "a", "1")},
			task.AwaitingInput, products("a", "1", "b", "2", "c", "3"), products("c", "3", "a", "1")},
		{"a new one in front", []agent.Report{whole(task.AwaitingInput, "a", "1")},
			[]agent.Report{whole(task.AwaitingCompletion, "z", "0", "a", "12")},
			task.AwaitingInput, products("a", "1"), products("z", "0", "a", "12")},
		{"a list of nothing takes nothing back", []agent.Report{whole(task.AwaitingInput, "a", "1")},
			[]agent.Report{whole(task.AwaitingCompletion)},
			task.AwaitingInput, products("a", "1"), products("a", "1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := memory(t)
				gate := make(chan struct{})
				fake := &script{run: func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
					reports := tc.first
					if turn.Message.Command == task.Continue {
						<-gate
						reports = tc.second
						if (len(turn.Withdrawn) > 0) != (turn.From == task.AwaitingCompletion) {
							t.Errorf("the agent is asked with the withdrawn products %v", turn.Withdrawn)
						}
					}
					for _, rep := range reports {
						if !yield(rep, nil) {
							return
						}
					}
				}}
				b := setUp(t, store, fake)
				if got := b.do(call(task.Start, "t1")); got.Status.State != tc.rests {
					t.Fatalf("the first turn rests in %s", got.Status.State)
				}
				s, err := b.Stream(t.Context(), leader, call(task.Continue, "t1"))
				if err != nil {
					t.Fatal(err)
				}
				equal := func(when string, want, got []task.Product) {
					t.Helper()
					if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
						t.Errorf("products %s (-want +got):\n%s", when, diff)
					}
				}
				equal("in the answer to a continue", tc.between, s.Task.Products)
				equal("while the second turn works", tc.between, b.do(call(task.Get, "t1")).Products)
				close(gate)
				synctest.Wait()
				equal("after the second turn", tc.want, b.do(call(task.Get, "t1")).Products)
				b.engine.Close()
				b = setUp(t, store, hangs())
				equal("after a restart", tc.want, b.do(call(task.Get, "t1")).Products)
			})
		})
	}
}

// TestWithdrawnAfterATrim: the products withdrawn by a continue are known after a crash, even if the continue is no
// longer in the log, so the agent's answer of before is not taken for a new one.
func TestWithdrawnAfterATrim(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		var resumed *agent.Turn
		fake := &script{
			run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
				if turn.Message.Command == task.Start {
					yield(agent.Report{State: task.AwaitingCompletion, Full: true, Products: products("a", "1"), Revision: "first"},
						nil)
					return
				}
				for range 40 {
					if !yield(agent.Report{Chunks: []task.Chunk{{Product: products("b", "x")[0], Append: true}}}, nil) {
						return
					}
				}
				<-ctx.Done()
			},
			resume: func(ctx context.Context, turn *agent.Turn, _ func(agent.Report, error) bool) {
				resumed = turn
				<-ctx.Done()
			},
		}
		trims := func(c *Config) { c.MaxEvents = 16 }
		b := setUp(t, store, fake, trims)
		b.do(call(task.Start, "t1"))
		if _, err := b.Stream(t.Context(), leader, call(task.Continue, "t1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.engine.Close()
		b = setUp(t, store, fake, trims)
		synctest.Wait()
		b.engine.Close()
		if resumed == nil {
			t.Fatal("the turn was not resumed")
		}
		if diff := cmp.Diff(products("a", "1"), resumed.Withdrawn); diff != "" {
			t.Errorf("withdrawn (-want +got):\n%s", diff)
		}
	})
}
