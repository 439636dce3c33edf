// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// brief returns the events of a log in a few words: a state, or a piece of a product.
func (b *bench) brief(id string) (list []string) {
	b.t.Helper()
	_, _, records, err := b.store.Load(b.t.Context(), logname.New("agent", leader, id))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range records {
		ev, err := task.DecodeEvent(r.Data)
		switch {
		case err != nil:
			b.t.Fatal(err)
		case ev.Task != nil:
			list = append(list, string(ev.Task.Status.State))
		case ev.Status != nil:
			list = append(list, string(ev.Status.State))
		case ev.Chunk != nil:
			list = append(list, briefChunk(ev.Chunk))
		}
	}
	return list
}

func briefChunk(c *task.Chunk) string {
	sign, end := "=", ""
	if c.Append {
		sign = "+"
	}
	if c.Last {
		end = " last"
	}
	var items []string
	for _, it := range c.Product.DataItems {
		items = append(items, it.Text+it.URI)
	}
	return c.Product.ID + " " + sign + strings.Join(items, ",") + end
}

// whole is a report of all products.
func whole(state task.State, texts ...string) agent.Report {
	return agent.Report{State: state, NativeState: string(state), Full: true, Products: products(texts...)}
}

// lastPieces are the reports of an agent, and the events that follow from them behind the state accepted.
var lastPieces = []struct {
	name    string
	reports []agent.Report
	want    []string
}{
	{"at once", []agent.Report{whole(task.AwaitingCompletion, "p", "a")},
		[]string{"working", "p =a last", "awaiting-completion"}},
	{"grows to the end",
		[]agent.Report{whole(task.Working, "p", "a"), whole(task.Working, "p", "ab"),
			whole(task.AwaitingCompletion, "p", "abc")},
		[]string{"working", "p =a", "p +b", "p +c last", "awaiting-completion"}},
	{"unchanged at the end", []agent.Report{whole(task.Working, "p", "a"), whole(task.AwaitingCompletion, "p", "a")},
		[]string{"working", "p =a", "p + last", "awaiting-completion"}},
	{"ended by a state alone", []agent.Report{whole(task.None, "p", "a"), {State: task.AwaitingInput}},
		[]string{"working", "p =a", "p + last", "awaiting-input"}},
	{"ended by an error", []agent.Report{whole(task.Working, "p", "a"), {State: task.Failed, NativeState: "failed"}},
		[]string{"working", "p =a", "p + last", "failed"}},
	{"ended by a state without a path to it", []agent.Report{whole(task.Working, "p", "a"), {State: task.Rejected}},
		[]string{"working", "p =a", "p + last", "failed"}},
	{"ended by a limit", []agent.Report{whole(task.Working, "p", "a"), whole(task.Working, "p", strings.Repeat("a", 101))},
		[]string{"working", "p =a", "p + last", "failed"}},
	{"ended by a limit of its words", []agent.Report{whole(task.Working, "p", "a"),
		{Full: true, Products: products("p", "ab", "q", "c"), Items: []task.DataItem{task.Text(strings.Repeat("a", 2<<20))}}},
		[]string{"working", "p =a", "p +b last", "q =c last", "failed"}},
	{"several", []agent.Report{whole(task.Working, "p", "a", "q", "b"),
		whole(task.AwaitingCompletion, "p", "a", "q", "bc", "r", "d")},
		[]string{"working", "p =a", "q =b", "q +c last", "r =d last", "p + last", "awaiting-completion"}},
	{"replaced", []agent.Report{whole(task.Working, "p", "a"), whole(task.Working, "p", "b"),
		whole(task.AwaitingCompletion, "p", "b")},
		[]string{"working", "p =a", "p =b", "p + last", "awaiting-completion"}},
	{"a file at its end", []agent.Report{{State: task.Working, Full: true, Products: []task.Product{
		{ID: "p", DataItems: []task.DataItem{{Kind: task.FileItem, URI: "u"}}}}}, {State: task.AwaitingCompletion}},
		[]string{"working", "p =u", "p + last", "awaiting-completion"}},
	{"withdrawn at the end", []agent.Report{whole(task.Working, "p", "a", "q", "b"),
		whole(task.AwaitingCompletion, "q", "b")},
		[]string{"working", "p =a", "q =b", "p + last", "q + last", "awaiting-completion"}},
	{"withdrawn before", []agent.Report{whole(task.Working, "p", "a", "q", "b"),
		{State: task.Working, Items: []task.DataItem{task.Text("hm")}, Full: true, Products: products("q", "b")},
		whole(task.AwaitingCompletion, "q", "b")},
		[]string{"working", "p =a", "q =b", "working", "q + last", "awaiting-completion"}},
	{"the agent's own pieces", []agent.Report{piece("p", "a", false, false), piece("p", "b", true, false),
		{State: task.AwaitingCompletion}},
		[]string{"working", "p =a", "p +b", "awaiting-completion"}},
	{"the agent's own pieces behind a whole report", []agent.Report{whole(task.Working, "p", "a", "q", "b"),
		piece("p", "b", true, false), piece("p", "c", true, true), {State: task.AwaitingCompletion}},
		[]string{"working", "p =a", "q =b", "p +b", "p +c last", "q + last", "awaiting-completion"}},
	{"resumes by itself", []agent.Report{
		{State: task.AwaitingInput, Full: true, Products: products("p", "a"), SelfResuming: true},
		whole(task.Working, "p", "ab"), whole(task.AwaitingCompletion, "p", "ab")},
		[]string{"working", "p =a last", "awaiting-input", "working", "p +b", "p + last", "awaiting-completion"}},
}

func piece(id, text string, add, last bool) agent.Report {
	return agent.Report{Chunks: []task.Chunk{{Product: products(id, text)[0], Append: add, Last: last}}}
}

// TestLastPieces: the piece of a product in a whole report is its last one if the task settles. Otherwise more may
// follow, and the product has its last piece when the task settles.
func TestLastPieces(t *testing.T) {
	for _, tc := range lastPieces {
		t.Run(tc.name, func(t *testing.T) {
			for name, asPieces := range map[string]bool{"chunks": false, "pieces": true} {
				bubble.Test(t, func(t *testing.T) {
					fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
						reportAll(tc.reports, asPieces, yield)
					}}
					b := setUp(t, memory(t), fake)
					b.do(call(task.Start, "t1", func(c *Request) { c.Terms.MaxProductsBytes = 100 }))
					synctest.Wait()
					if diff := cmp.Diff(append([]string{"accepted"}, tc.want...), b.brief("t1")); diff != "" {
						t.Errorf("the log, with %s (-want +got):\n%s", name, diff)
					}
				})
			}
		})
	}
}

func reportAll(reports []agent.Report, asPieces bool, yield func(agent.Report, error) bool) {
	for _, rep := range reports {
		if asPieces && len(rep.Chunks) > 0 {
			rep.Pieces = new(task.Pieces)
			for i := range rep.Chunks {
				rep.Pieces.AddChunk(&rep.Chunks[i])
			}
			rep.Chunks = nil
		}
		if !yield(rep, nil) {
			return
		}
	}
}

// TestMetadataOfOpenProducts: the metadata change with the products left open alone, not with each report of them.
func TestMetadataOfOpenProducts(t *testing.T) {
	b := &batch{tk: new(activeTask)}
	chunks := func(ids ...string) (list []task.Chunk) {
		for _, id := range ids {
			list = append(list, task.Chunk{Product: task.Product{ID: id}})
		}
		return list
	}
	b.leaveOpen(chunks("p", "q"))
	before := b.tk.meta
	if b.leaveOpen(chunks("q")); b.tk.meta != before {
		t.Error("a report of known products changes the metadata")
	}
	b.leaveOpen(chunks("q", "r"))
	if diff := cmp.Diff([][]string{{"p", "q"}, {"p", "q", "r"}}, [][]string{*before.Open, *b.tk.meta.Open}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLastPiecesOutlive: an engine knows the products left open by the engine before it, also if their pieces are no
// longer in the log.
func TestLastPiecesOutlive(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(b *bench)
		want []string
	}{
		{"by a report", func(*bench) {}, []string{"p + last", "q + last", "awaiting-completion"}},
		{"by a cancel", func(b *bench) { b.do(call(task.Cancel, "t1")) }, []string{"p + last", "q + last", "canceled"}},
		{"by the operator", func(b *bench) {
			if _, err := b.engine.Fail(b.t.Context(), b.Name, leader, "t1", ""); err != nil {
				b.t.Error(err)
			}
		}, []string{"p + last", "q + last", "failed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				fake := hangs()
				fake.run = func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					text := "a"
					for i := range 40 { // the log is trimmed
						text += "b"
						if !yield(whole(task.Working, "p", "x", "q", text), nil) {
							t.Errorf("report %d is refused", i)
							return
						}
					}
					<-ctx.Done()
				}
				if tc.name == "by a report" {
					fake.resume = func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
						yield(whole(task.AwaitingCompletion, "p", "x", "q", "a"+strings.Repeat("b", 40)), nil)
					}
				}
				trims := func(c *Config) { c.MaxEvents = 16 }
				store := memory(t)
				b := setUp(t, store, fake, trims)
				if _, err := b.Stream(t.Context(), leader, call(task.Start, "t1")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				before := b.brief("t1")
				b.engine.Close()
				b = setUp(t, store, fake, trims)
				synctest.Wait()
				tc.end(b)
				synctest.Wait()
				got := b.brief("t1")
				if diff := cmp.Diff(tc.want, got[max(0, len(got)-len(tc.want)):]); diff != "" {
					t.Errorf("the end of the log (-want +got):\n%s\nbefore: %q", diff, before)
				}
				if slices.ContainsFunc(before, func(ev string) bool { return strings.HasSuffix(ev, " last") }) {
					t.Errorf("a piece is called the last one while the agent works: %q", before)
				}
				all := products("p", "x", "q", "a"+strings.Repeat("b", 40))
				if diff := cmp.Diff(all, b.do(call(task.Get, "t1")).Products); diff != "" {
					t.Errorf("the products (-want +got):\n%s", diff)
				}
			})
		})
	}
}
