// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestPiecesAreChunks: pieces of products make the same log and the same task, however many of them come in one report,
// as chunks in a report each.
func TestPiecesAreChunks(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(12, seed))
		news := randomNews(rnd)
		most := int64(0)
		if seed%3 == 0 {
			most = 20 + rnd.Int64N(200)
		}
		want, shown := logOf(t, single(news), most, 1000)
		for cut := range uint64(4) {
			got, also := logOf(t, together(news, rand.New(rand.NewPCG(seed, cut))), most, 1000)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, cut %d: the log (-chunks +pieces):\n%s", seed, cut, diff)
			}
			if diff := cmp.Diff(shown, also); diff != "" {
				t.Fatalf("seed %d, cut %d: the task (-chunks +pieces):\n%s", seed, cut, diff)
			}
		}
	}
}

// TestPiecesAreTrimmed: a log trimmed while pieces are written makes the same task, and one report of many pieces does
// not make it longer than its limit.
func TestPiecesAreTrimmed(t *testing.T) {
	for seed := range uint64(20) {
		news := randomNews(rand.New(rand.NewPCG(13, seed)))
		_, want := logOf(t, single(news), 0, 1000)
		for _, limit := range []int{2, 7, 20} {
			log, got := logOf(t, together(news, rand.New(rand.NewPCG(seed, 1))), 0, limit)
			if diff := cmp.Diff(want.Products, got.Products); diff != "" || len(log) > limit+2 {
				t.Fatalf("seed %d, limit %d: %d records, products (-all +trimmed):\n%s", seed, limit, len(log), diff)
			}
		}
	}
}

// randomNews returns the news of an agent in a turn: a chunk or a status each.
func randomNews(rnd *rand.Rand) (news []agent.Report) {
	texts := []string{"", "a", "two words ", "line\nfeed", `"quoted" \ `, "é💡", "\x00\x1f"}
	for range rnd.IntN(60) {
		id := fmt.Sprint("p", rnd.IntN(3))
		c := task.Chunk{Append: rnd.IntN(8) > 0, Last: rnd.IntN(8) == 0, Product: task.Product{
			ID: id, DataItems: []task.DataItem{task.Text(texts[rnd.IntN(len(texts))])},
		}}
		switch rnd.IntN(12) {
		case 0:
			c.Product.Name = "name of " + id
		case 1:
			c.Product.Description = "a product"
		case 2:
			c.Product.DataItems = append(c.Product.DataItems, task.DataItem{Kind: task.FileItem, URI: "http://x"})
		case 3:
			c.Product.DataItems[0].Metadata = json.RawMessage(`{"a":1}`)
		case 4:
			c.Extensions = json.RawMessage(`{"x":{"y":1}}`)
		case 5:
			c.Product.DataItems = nil
		case 6:
			news = append(news, agent.Report{State: task.Working, Items: []task.DataItem{task.Text(fmt.Sprint(len(news)))}})
		}
		news = append(news, agent.Report{Chunks: []task.Chunk{c}})
	}
	return append(news, agent.Report{State: task.AwaitingCompletion, Items: []task.DataItem{task.Text("done")}})
}

// single reports each of the news alone.
func single(news []agent.Report) func(yield func(agent.Report, error) bool) {
	return func(yield func(agent.Report, error) bool) {
		for _, rep := range news {
			if !yield(rep, nil) {
				return
			}
		}
	}
}

// together reports the chunks as pieces, and a random number of them, with the next report, as one report.
func together(news []agent.Report, rnd *rand.Rand) func(yield func(agent.Report, error) bool) {
	return func(yield func(agent.Report, error) bool) {
		var pieces task.Pieces
		most := rnd.IntN(100)
		for _, rep := range news {
			for i := range rep.Chunks {
				pieces.AddChunk(&rep.Chunks[i])
			}
			if rep.State == task.None && rnd.IntN(100) < most {
				continue
			}
			rep.Chunks, rep.Pieces = nil, &pieces
			if !yield(rep, nil) {
				return
			}
			pieces.Reset()
		}
	}
}

// logOf returns the records of a task with these reports of its agent, and the task.
func logOf(
	t *testing.T, reports func(yield func(agent.Report, error) bool), most int64, events int,
) (records []string, shown task.Task) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		b := setUp(t, store, &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			reports(yield)
		}}, func(c *Config) { c.MaxEvents = events })
		shown = b.do(call(task.Start, "t1", func(c *Request) { c.Terms.MaxProductsBytes = most }))
		_, _, stored, err := store.Load(t.Context(), logname.New("agent", leader, "t1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range stored {
			records = append(records, fmt.Sprint(rec.Seq, " ", string(rec.Data)))
		}
	})
	return records, shown
}
