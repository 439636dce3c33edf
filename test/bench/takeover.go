// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// takeOverTarget is what the first answer after the death of a gateway is to take at most, however much is stored.
const takeOverTarget = 3500 * time.Millisecond

// takeOvers measures take-overs by what is stored: how long calls wait when a gateway is killed, with 20,000 tasks and
// with many, and what the tasks take of all gateways, once as their owner and once as the one that stands by.
func takeOvers(ctx context.Context, o settings) error {
	const some = 20_000
	counts := []int{some, max(o.tasks, some)}
	type row struct{ waited, ready, bytes, gained []float64 }
	rows := make([]row, len(counts))
	for i, n := range slices.Compact(counts) {
		for range max(1, o.rounds/3) {
			if err := func() error {
				c, err := newTrio(ctx, o.caddy, n)
				if err != nil {
					return err
				}
				defer c.close()
				began := time.Now()
				if err := c.awaitStandbys(ctx, n); err != nil {
					return err
				}
				ready := time.Since(began).Seconds()
				held, err := c.held(ctx)
				if err != nil {
					return err
				}
				waited, err := c.killOne()
				if err != nil {
					return err
				}
				r := &rows[i]
				r.ready = append(r.ready, ready)
				r.bytes = append(r.bytes, held[0]/float64(n))
				r.waited = append(r.waited, micros(percentile(waited, 0.5))/1e3)
				r.gained = append(r.gained, micros(percentile(waited, 1))/1e3)
				return nil
			}(); err != nil {
				return err
			}
		}
	}
	t := o.table("several gateways: one is killed, by the tasks stored", "median ms", "greatest ms", "target ms",
		"s to stand by", "B of all three")
	for i, n := range slices.Compact(counts) {
		t.row(plural(n, "task"), median(rows[i].waited), slices.Max(rows[i].gained),
			float64(takeOverTarget.Milliseconds()), median(rows[i].ready), median(rows[i].bytes))
	}
	return nil
}

// awaitStandbys waits until the gateways keep so many tasks ready.
func (c *trio) awaitStandbys(ctx context.Context, n int) error {
	for deadline := time.Now().Add(30 * time.Minute); ; time.Sleep(time.Second) {
		ready := 0.0
		for _, s := range c.sites {
			one, err := s.metric(ctx, "aip_cluster_standby_logs")
			if err != nil {
				return err
			}
			ready += one
		}
		if ready >= float64(n) {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("%.0f of %d tasks are kept ready", ready, n)
		}
	}
}

// metric returns the value of one of the gateway's metrics; 0 if it has none.
func (s *site) metric(ctx context.Context, name string) (value float64, err error) {
	err = fetch(ctx, "http://"+s.addr(portAdmin)+"/metrics", func(body io.Reader) error {
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
				if value, err = strconv.ParseFloat(text, 64); err != nil {
					return err
				}
			}
		}
		return lines.Err()
	})
	return value, err
}

// fillStreams stores n tasks under the name of a Partner, of as many Leaders as there are, before any gateway is
// started. They are all like one started by the engine, but for their ids.
func fillStreams(ctx context.Context, urls, name string, n int) error {
	nc, err := nats.Connect(urls)
	if err != nil {
		return err
	}
	defer nc.Close()
	streams, err := jetstream.Open(ctx, nc, jetstream.Config{})
	if err != nil {
		return err
	}
	like, err := oneTask(ctx, name)
	if err != nil {
		return err
	}
	stores := make([]*jetstream.Store, streams.Count())
	for i := range stores {
		if stores[i], err = streams.Claim(ctx, i, jetstream.Owner{}, "fill", "1"); err != nil {
			return err
		}
	}
	err = together(len(stores), func(shard int) error {
		store := stores[shard]
		var failed error
		var once sync.Once
		var group sync.WaitGroup
		slots := make(chan struct{}, 256)
		for i := range n {
			leader := fmt.Sprint("leader-", i%manyLeaders)
			if logname.Shard(len(stores), name, leader) != shard {
				continue
			}
			slots <- struct{}{}
			group.Go(func() {
				defer func() { <-slots }()
				if err := store.Append(ctx, like(leader, i)); err != nil {
					once.Do(func() { failed = err })
				}
			})
		}
		group.Wait()
		if failed == nil {
			failed = store.Release(ctx)
		}
		return failed
	})
	return err
}

// oneTask starts a task, and returns a function to make appends of tasks like it.
func oneTask(ctx context.Context, name string) (func(leader string, i int) replay.Append, error) {
	const id, leader = "stored-00000000", "the-leader"
	store := replay.NewMemory(replay.Settings{})
	defer store.Close()
	engine, err := partner.Open(ctx, store, partner.Options{})
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	p := engine.Register(
		partner.Config{Name: name, Agent: prompt{}, MaxEvents: 10000, MaxBytes: 1 << 20, Log: slog.New(slog.DiscardHandler),
			Terms: task.Terms{Response: time.Minute, AwaitingInput: 24 * time.Hour, AwaitingCompletion: 24 * time.Hour}},
	)
	defer p.Unregister()
	call := task.Call{Message: task.Message{ID: "m", SenderRole: task.Leader, SenderID: leader, Command: task.Start,
		TaskID: id, SessionID: "session-00000000", DataItems: []task.DataItem{task.Text("hello there")}}}
	if _, err := p.Do(ctx, leader, &partner.Request{Call: call}); err != nil {
		return nil, err
	}
	head, _, records, err := store.Load(ctx, logname.New(name, leader, id))
	if err != nil {
		return nil, err
	}
	var ref struct {
		Ref struct{ Task, Session string }
	}
	if err := json.Unmarshal(head.Metadata, &ref); err != nil {
		return nil, err
	}
	return func(of string, i int) replay.Append {
		other := strings.NewReplacer(leader, of, id, fmt.Sprintf("stored-%08d", i), "session-00000000",
			fmt.Sprintf("session-%08d", i), ref.Ref.Task, another(ref.Ref.Task), ref.Ref.Session, another(ref.Ref.Session))
		a := replay.Append{Log: logname.New(name, of, fmt.Sprintf("stored-%08d", i)), DueAt: head.DueAt,
			Metadata: []byte(other.Replace(string(head.Metadata)))}
		for _, l := range head.Lists {
			l.List = other.Replace(l.List)
			a.Lists = append(a.Lists, l)
		}
		for _, r := range records {
			a.Records = append(a.Records, []byte(other.Replace(string(r.Data))))
		}
		return a
	}, nil
}

// another returns a name of the same form as that of an agent's task.
func another(name string) string {
	digits := []byte(name)
	for i, c := range digits {
		if c != '-' {
			digits[i] = "0123456789abcdef"[rand.N(16)]
		}
	}
	return string(digits)
}
