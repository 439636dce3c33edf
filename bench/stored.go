// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
)

// stored measures what stored tasks cost: memory each, and the get of one among few and among many.
func stored(ctx context.Context, o settings) error {
	const few = 1000
	fmt.Printf("\ntasks in the store\n%-34s %10s %10s %10s %12s\n", "get, one connection", "per s", "p50", "p99", "RSS")
	var memory [2]int64
	var p50 [2]float64
	for i, n := range []int{few, o.tasks} {
		s, err := newSite(ctx, o.caddy, "pebble DIR", func(dir, name string) error { return fill(ctx, dir, name, n) })
		if err != nil {
			return err
		}
		defer s.close()
		get := target{"get", s.addr(portGateway), "/rpc", func(dst []byte, _ int64) []byte {
			return fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"rpc","id":"1","params":{"message":{"senderId":"leader","command":"get","taskId":"stored-%d"}}}`, rand.IntN(n))
		}, []byte(`"awaiting-completion"`)}
		if _, err := load(ctx, get, 1, o.round); err != nil {
			return err
		}
		var rounds []result
		for range o.rounds {
			r, err := load(ctx, get, 1, o.round/2)
			if err != nil {
				return err
			}
			rounds = append(rounds, r)
		}
		if memory[i], err = s.rss(); err != nil {
			return err
		}
		var rate, mid, late []float64
		for _, r := range rounds {
			rate = append(rate, r.rate)
			mid = append(mid, float64(percentile(r.latencies, 0.5)))
			late = append(late, float64(percentile(r.latencies, 0.99)))
		}
		p50[i] = median(mid)
		fmt.Printf("among %-28d %10.0f %10s %10s %8.0f MiB\n", n, median(rate), us(time.Duration(median(mid))), us(time.Duration(median(late))), float64(memory[i])/(1<<20))
		s.close()
	}
	fmt.Printf("%-34s %9.2fx, %.0f B of memory for each further task\n", "", p50[1]/p50[0], float64(memory[1]-memory[0])/float64(o.tasks-few))
	return nil
}

// fill starts n tasks under a Partner's name, as the gateway would, with an agent that answers at once.
func fill(ctx context.Context, dir, name string, n int) error {
	store, err := pebble.Open(dir, replay.Settings{Sync: replay.SyncNever}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := partner.Open(ctx, store)
	if err != nil {
		return err
	}
	defer engine.Close()
	p := engine.Register(partner.Config{Name: name, Agent: prompt{}, MaxEvents: 10000, MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
		Terms: task.Terms{Response: time.Minute, AwaitingInput: 24 * time.Hour, AwaitingCompletion: 24 * time.Hour}})
	defer p.Unregister()
	var group sync.WaitGroup
	var next atomic.Int64
	var failed atomic.Value
	for range 32 {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && failed.Load() == nil; i = next.Add(1) - 1 {
				call := &task.Call{Message: task.Message{ID: "m", SenderRole: task.Leader, SenderID: "leader", Command: task.Start,
					TaskID: fmt.Sprint("stored-", i), SessionID: "s", DataItems: []task.DataItem{task.Text("hello there")}}}
				if _, err := p.Do(ctx, "leader", call); err != nil {
					failed.Store(err)
				}
			}
		})
	}
	group.Wait()
	if err, ok := failed.Load().(error); ok {
		return err
	}
	return nil
}

// prompt is an agent that has always finished.
type prompt struct{}

func (prompt) Run(context.Context, *task.Turn, bool) iter.Seq2[task.Report, error] {
	return func(yield func(task.Report, error) bool) {
		yield(task.Report{State: task.AwaitingCompletion, Items: []task.DataItem{task.Text("ok")}, Whole: true,
			Products: []task.Product{{ID: "artifact-0", DataItems: []task.DataItem{task.Text("echo: hello there")}}}}, nil)
	}
}

func (p prompt) Resume(ctx context.Context, t *task.Turn) iter.Seq2[task.Report, error] {
	return p.Run(ctx, t, false)
}

func (prompt) Cancel(context.Context, *task.Turn) (task.Report, error) {
	return task.Report{State: task.Canceled}, nil
}
