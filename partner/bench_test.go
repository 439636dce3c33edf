// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// BenchmarkSettled measures a get of a settled task, after some turns.
func BenchmarkSettled(b *testing.B) {
	for _, name := range []string{"memory", "pebble"} {
		for _, turns := range []int{1, 20} {
			b.Run(fmt.Sprintf("%s/turns=%d", name, turns), func(b *testing.B) {
				store := openStore(b, name)
				defer store.Close()
				e, err := Open(b.Context(), store, Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				p := e.Register(Config{Name: "agent", Agent: answers(strings.Repeat("hello ", 100)), Terms: terms, MaxEvents: 1000,
					MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
				defer p.Unregister()
				for i := range turns {
					c := call(task.Start, "t1")
					if i > 0 {
						c = call(task.Continue, "t1")
						c.Message.ID = ""
					}
					if _, err := p.Do(b.Context(), leader, c); err != nil {
						b.Fatal(err)
					}
				}
				get := call(task.Get, "t1")
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Do(b.Context(), leader, get); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkStart measures a start answered by its agent at once, many of them one after the other.
func BenchmarkStart(b *testing.B) {
	for _, name := range []string{"memory", "pebble"} {
		b.Run(name, func(b *testing.B) {
			store := openStore(b, name)
			defer store.Close()
			e, err := Open(b.Context(), store, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			p := e.Register(Config{Name: "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4", Terms: terms, MaxEvents: 1000,
				Agent: answers(strings.Repeat("hello ", 100)), MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler)})
			defer p.Unregister()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := p.Do(b.Context(), leader, call(task.Start, fmt.Sprint("task-", n))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// openStore opens a store of a kind.
func openStore(b *testing.B, kind string) replay.Store {
	if kind == "memory" {
		return replay.NewMemory(replay.Settings{})
	}
	s, err := pebble.Open(b.TempDir(), replay.Settings{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkReport measures a piece of text of an agent's stream, from its report to the task, with so many of them
// together.
func BenchmarkReport(b *testing.B) {
	for _, many := range []int{1, 100} {
		b.Run(fmt.Sprint("together=", many), func(b *testing.B) {
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			e, err := Open(b.Context(), store, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			var pieces task.Pieces
			measured := make(chan struct{})
			b.ReportAllocs()
			reporting := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				defer close(measured)
				for left := 1; b.Loop(); {
					pieces.AddText("p1", "", []byte("a piece of a text, as long as a model gives it\\n"), true, false)
					if left--; left > 0 {
						continue
					}
					if left = many; !yield(agent.Report{Pieces: &pieces}, nil) {
						b.Error("the turn is over")
					}
					pieces.Reset()
				}
				yield(finished("done"), nil)
			}}
			p := e.Register(Config{Name: "agent", Agent: reporting, Terms: terms, MaxEvents: 1 << 30, MaxBytes: 1 << 40,
				Log: slog.New(slog.DiscardHandler)})
			defer p.Unregister()
			if _, err := p.Stream(b.Context(), leader, call(task.Start, "t1")); err != nil {
				b.Fatal(err)
			}
			<-measured
		})
	}
}

// BenchmarkReStream measures the stream of a long task outside of memory: until its first events are there, and until
// all of them are read.
func BenchmarkReStream(b *testing.B) {
	const events = 10_000
	store, err := pebble.Open(b.TempDir(), replay.Settings{}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	config := Config{Name: "agent", Terms: terms, MaxEvents: 1 << 30, MaxBytes: 1 << 40,
		Log: slog.New(slog.DiscardHandler)}
	config.Agent = &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		var pieces task.Pieces
		for range events {
			pieces.AddText("p1", "", []byte("a piece of a text, as long as a model gives it"), true, false)
			if !yield(agent.Report{Pieces: &pieces}, nil) {
				b.Error("the turn is over")
			}
			pieces.Reset()
		}
		yield(finished("done"), nil)
	}}
	engine := func() (*Engine, *Partner) {
		e, err := Open(b.Context(), store, Options{})
		if err != nil {
			b.Fatal(err)
		}
		return e, e.Register(config)
	}
	e, p := engine()
	if _, err := p.Do(b.Context(), leader, call(task.Start, "t1")); err != nil {
		b.Fatal(err)
	}
	e.Close()
	var first time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		e, p := engine()
		b.StartTimer()
		began := time.Now()
		s, err := p.Stream(b.Context(), leader, call(task.ReStream, "t1"))
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		reader := Read(p.engine.store, s.Log, s.After)
		for more := true; more; {
			var records []replay.Record
			if records, more, err = reader.Next(b.Context(), nil); err != nil {
				b.Fatal(err)
			}
			if n == 0 {
				first += time.Since(began)
			}
			n += len(records)
		}
		reader.Close()
		if n < events {
			b.Fatalf("%d events", n)
		}
		b.StopTimer()
		e.Close()
		b.StartTimer()
	}
	b.ReportMetric(float64(first.Microseconds())/float64(b.N), "µs-to-first")
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}
