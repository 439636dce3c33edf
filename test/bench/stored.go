// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// few is the number of stored tasks that many are compared with.
const few = 1000

// stored measures what stored tasks cost: memory each, and the get of one among few and among many, in pairs.
// Memory is measured twice. At the start, it is what the tasks need; after the gets, the store's cache
// holds some of them, which has a bound, so that dividing it by the tasks means little.
func stored(ctx context.Context, o settings) error {
	counts := []int{few, o.tasks}
	var sites [2]*site
	var targets [2]target
	var filled, atStart [2]float64
	for i, n := range counts {
		began := time.Now()
		s, err := newSite(ctx, o.caddy, siteConfig{fill: filling(ctx, n)})
		if err != nil {
			return err
		}
		defer s.close()
		sites[i], targets[i], filled[i] = s, getOne(s, n), time.Since(began).Seconds()
		if atStart[i], err = s.rss(); err != nil {
			return err
		}
		if _, err := load(ctx, targets[i], 1, o.round/2); err != nil { // warm up
			return err
		}
	}
	var rounds [2][]result
	var ratios []float64
	for round := range o.rounds {
		for i := range targets {
			i = (i + round) % 2
			r, err := load(ctx, targets[i], 1, o.round/2)
			if err != nil {
				return err
			}
			rounds[i] = append(rounds[i], r)
		}
		ratios = append(
			ratios,
			float64(percentile(rounds[1][round].latencies, 0.5))/float64(percentile(rounds[0][round].latencies, 0.5)),
		)
	}
	gets := o.table("get of a stored task, one connection, pebble", "per s", "p50 µs", "p99 µs", "made in s")
	for i, n := range counts {
		gets.row(fmt.Sprintf("among %d", n), append(summary(rounds[i])[:3], filled[i])...)
	}
	o.table("p50 among many to p50 among few", "median", "least", "greatest").
		row(fmt.Sprintf("%d pairs", len(ratios)), spread(ratios)...)
	var after [2]float64
	for i := range sites {
		var err error
		if after[i], err = sites[i].rss(); err != nil {
			return err
		}
	}
	memory := o.table("RSS of the gateway", "MiB of few", "MiB of many", "B per task")
	for _, at := range []struct {
		when  string
		bytes [2]float64
	}{{"at the start", atStart}, {"after the gets, the cache filled", after}} {
		memory.row(at.when, at.bytes[0]/(1<<20), at.bytes[1]/(1<<20), (at.bytes[1]-at.bytes[0])/float64(o.tasks-few))
	}
	return nil
}

// getOne asks for one of n stored tasks, any of them alike.
func getOne(s *site, n int) target {
	// The number of a request decides which, and spreads them: they are sorted in the store.
	which := func(request int64) uint64 { return (uint64(request) * 0x9e3779b97f4a7c15 >> 16) % uint64(n) }
	t := plain.target(s, "get", portGateway)
	t.path, t.also = "/rpc", []byte(`"state":"awaiting-completion"`)
	t.body = func(dst []byte, request int64) []byte {
		return fmt.Appendf(dst, `{"jsonrpc":"2.0","method":"rpc","id":"1","params":{"message":{"senderId":"leader",`+
			`"command":"get","taskId":"stored-%d"}}}`, which(request))
	}
	t.want = func(dst []byte, request int64) []byte { return fmt.Appendf(dst, `"stored-%d"`, which(request)) }
	return t
}

// filling returns a function that stores n tasks under the name of a Partner.
func filling(ctx context.Context, n int) func(dir, name string) error {
	return func(dir, name string) error { return fill(ctx, dir, name, n) }
}

// fill starts n tasks under a Partner's name, as the gateway would, with an agent that answers at once.
func fill(ctx context.Context, dir, name string, n int) error {
	store, err := pebble.Open(dir, replay.Settings{Sync: replay.SyncNever}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer store.Close()
	engine, err := partner.Open(ctx, store, partner.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()
	p := engine.Register(
		partner.Config{Name: name, Agent: prompt{}, MaxEvents: 10000, MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
			Terms: task.Terms{Response: time.Minute, AwaitingInput: 24 * time.Hour, AwaitingCompletion: 24 * time.Hour}},
	)
	defer p.Unregister()
	ctx, stop := context.WithCancelCause(ctx) // by the first error
	defer stop(nil)
	var group sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				call := task.Call{Message: task.Message{ID: "m", SenderRole: task.Leader, SenderID: "leader", Command: task.Start,
					TaskID: fmt.Sprint("stored-", i), SessionID: "s", DataItems: []task.DataItem{task.Text("hello there")}}}
				if _, err := p.Do(ctx, "leader", &partner.Request{Call: call}); err != nil {
					stop(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// prompt is an agent that has always finished.
type prompt struct{}

func (prompt) Run(context.Context, *agent.Turn, bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		yield(agent.Report{State: task.AwaitingCompletion, Items: []task.DataItem{task.Text("ok")}, Full: true,
			Products: []task.Product{{ID: "artifact-0", DataItems: []task.DataItem{task.Text("echo: hello there")}}}}, nil)
	}
}

func (p prompt) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return p.Run(ctx, t, false)
}

func (prompt) Complete(context.Context, *agent.Turn) error { return nil }

func (prompt) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	return agent.Report{State: task.Canceled}, nil
}
