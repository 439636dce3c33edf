// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// shape is what the tasks have in them whose size on disk is measured.
type shape struct {
	name     string
	message  int  // bytes of the Leader's message
	pieces   int  // events that the product comes in; 0 if it comes with the state
	product  int  // bytes of the product
	webhook  bool // a webhook whose receiver cannot be reached, so that all of its notifications are pending
	complete bool // the Leader completes the task
	tasks    int
}

// shapes are measured one after the other. Texts and ids are random, so that little can be compressed.
var shapes = []shape{
	{name: "16 B in, 16 B out", message: 16, product: 16, tasks: 1000},
	{name: "the same, completed", message: 16, product: 16, complete: true, tasks: 1000},
	{name: "the same, with a webhook that is not delivered", message: 16, product: 16, webhook: true, tasks: 1000},
	{name: "1 KiB in, 4 KiB out", message: 1 << 10, product: 4 << 10, tasks: 1000},
	{name: "16 B in, 16 KiB out in 1,000 events", message: 16, product: 16 << 10, pieces: 1000, tasks: 100},
	{name: "1 KiB in, 1 MiB out", message: 1 << 10, product: 1 << 20, tasks: 16},
}

// sizes measures what tasks take in the store: their bytes as max_size counts them, and the directory with many of
// them, before and after they are dropped.
func sizes(ctx context.Context, o settings) error {
	t := o.table("size of tasks in the store, before compression", "tasks", "content, B", "B each")
	for _, s := range shapes {
		counted, _, err := s.measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		t.row(s.name, float64(s.tasks), float64(s.message+s.product), counted/float64(s.tasks))
	}
	many := shape{message: 1 << 10, product: 4 << 10, complete: true, tasks: 40_000}
	counted, directory, err := many.measure(ctx)
	if err != nil {
		return err
	}
	d := o.table(fmt.Sprintf("directory with %d tasks, 1 KiB in and 4 KiB out", many.tasks), "MiB")
	d.row("as counted", counted/(1<<20))
	d.row("on disk", directory[0]/(1<<20))
	d.row("on disk, after all were dropped", directory[1]/(1<<20))
	return nil
}

// measure returns the bytes of the tasks as the store counts them, and of the directory: with them, and after those
// that have ended were dropped.
func (s *shape) measure(ctx context.Context) (counted float64, directory [2]float64, err error) {
	dir, err := os.MkdirTemp("", "aip-bench-")
	if err != nil {
		return 0, directory, err
	}
	defer os.RemoveAll(dir)
	if err := s.fill(ctx, dir); err != nil {
		return 0, directory, err
	}
	store, err := pebble.Open(dir, replay.Settings{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return 0, directory, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if counted, _, err = count(ctx, store); err != nil || !s.complete {
		return counted, directory, err
	}
	directory[0] = sizeOf(dir)
	store.Configure(replay.Settings{MaxSize: 1})
	for {
		select {
		case <-time.After(5 * time.Second): // for the sweep, and for the compactions after it
		case <-ctx.Done():
			return 0, directory, ctx.Err()
		}
		if _, left, err := count(ctx, store); err != nil || left == 0 {
			directory[1] = sizeOf(dir)
			return counted, directory, err
		}
	}
}

// count returns the bytes that the logs of a store have, and how many logs there are.
func count(ctx context.Context, store replay.Store) (size float64, logs int, err error) {
	for e, err := range store.List(ctx, "", "") {
		if err != nil {
			return 0, 0, err
		}
		size += float64(e.Head.Bytes) + float64(len(e.Head.Metadata)) + float64(len(e.Log))
		logs++
	}
	return size, logs, nil
}

// fill stores the tasks in a directory.
func (s *shape) fill(ctx context.Context, dir string) (err error) {
	quiet := slog.New(slog.DiscardHandler)
	store, err := pebble.Open(dir, replay.Settings{Sync: replay.SyncNever}, quiet)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	webhooks, err := notify.NewProcess(nil).Open(ctx, store)
	if err != nil {
		return err
	}
	defer webhooks.Close()
	wire := aip.Server()
	webhooks.Configure(notify.Config{
		Egress:   &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Dialects: func(*task.Webhook, string) translate.Notifier { return wire }, Log: quiet,
	})
	process := partner.NewProcess()
	process.AddAcceptor(acceptor{webhooks})
	engine, err := partner.Open(ctx, store, partner.Options{Watcher: webhooks, Process: process})
	if err != nil {
		return err
	}
	defer engine.Close()
	p := engine.Register(partner.Config{Name: "partner", Agent: writer{product: s.product, pieces: s.pieces}, Log: quiet,
		MaxEvents: 10_000, MaxBytes: 64 << 20,
		Terms: task.Terms{Response: time.Minute, AwaitingInput: 24 * time.Hour, AwaitingCompletion: 24 * time.Hour}})
	defer p.Unregister()
	ctx, stop := context.WithCancelCause(ctx) // by the first error
	defer stop(nil)
	var group sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		group.Go(func() {
			for i := next.Add(1); i <= int64(s.tasks) && ctx.Err() == nil; i = next.Add(1) {
				if err := s.store(ctx, p); err != nil {
					stop(err)
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// acceptor stores the webhooks of starts.
type acceptor struct{ webhooks *notify.Engine }

// Accept implements partner.Acceptor.
func (a acceptor) Accept(
	ctx context.Context, log string, at task.Position, c *partner.Request,
) (partner.Accepted, error) {
	return a.webhooks.Accept(ctx, nil, log, at, c)
}

// store has one task carried out.
func (s *shape) store(ctx context.Context, p *partner.Partner) error {
	m := task.Message{ID: rand.Text(), SenderRole: task.Leader, SenderID: "leader", Command: task.Start,
		TaskID: rand.Text(), SessionID: rand.Text(), DataItems: []task.DataItem{task.Text(text(s.message))}}
	start := &partner.Request{Call: task.Call{Message: m}}
	if s.webhook {
		start.Webhook = &task.Webhook{URL: "https://127.0.0.1:1/hook"}
	}
	_, err := p.Do(ctx, "leader", start)
	if err == nil && s.complete {
		m.ID, m.Command, m.DataItems = rand.Text(), task.Complete, nil
		_, err = p.Do(ctx, "leader", &partner.Request{Call: task.Call{Message: m}})
	}
	return err
}

// sizeOf returns the bytes of the files of a directory. It leaves out a file that is removed meanwhile.
func sizeOf(dir string) (n float64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				n += float64(info.Size())
			}
		}
		return nil
	})
	return n
}

// text returns so many random bytes of ASCII.
func text(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)[:n]
}

// writer is an agent that answers at once with a product of random bytes.
type writer struct {
	prompt
	product, pieces int
}

func (w writer) Run(context.Context, *agent.Turn, bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		size := w.product / cmp.Or(w.pieces, 1)
		product := task.Product{ID: "product", DataItems: []task.DataItem{task.Text(text(size))}}
		if w.pieces == 0 {
			yield(agent.Report{State: task.AwaitingCompletion, Full: true, Products: []task.Product{product}}, nil)
			return
		}
		for i := range w.pieces {
			product.DataItems[0] = task.Text(text(size))
			chunk := task.Chunk{Product: product, Append: i > 0, Last: i == w.pieces-1}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{chunk}}, nil) {
				return
			}
		}
		yield(agent.Report{State: task.AwaitingCompletion}, nil)
	}
}
