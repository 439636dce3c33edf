// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
)

// deafen has a log be followed without republished messages.
func deafen(t testing.TB, st *stream, log string) {
	t.Helper()
	f := st.follower(log)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sub == nil || f.sub.Unsubscribe() != nil {
		t.Errorf("%s had no notifications before", log)
	}
}

// TestChecks: readers on another node find all changes without a notification, be it records, a head in parts, or the
// drop of their log; and while nothing is written, one look is enough for all logs of a shard.
func TestChecks(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	const logs = 120
	own := cluster(t, 1, natstest.Config{MaxPayload: 16 << 10})
	a := streams(t, connect(t, own.URL()), Config{Replicas: 1})
	c := a.config
	c.CheckAfter = 50 * time.Millisecond
	b := openStreams(t, connect(t, own.URL()), c)
	owner := claim(t, a, 0, "a")
	defer owner.Close()
	name := func(i int) string { return fmt.Sprint("log-", i) }
	write := func(i int, next replay.Append) {
		next.Log = name(i)
		if err := owner.Append(ctx, next); err != nil {
			t.Fatalf("%s: %v", next.Log, err)
		}
	}
	found := make([]error, logs) // the end of each reader
	var readers, begun sync.WaitGroup
	for i := range logs {
		write(i, replay.Append{Records: [][]byte{fmt.Append(nil, name(i), "/1")}})
	}
	for i := range logs {
		begun.Add(1)
		readers.Go(func() {
			found[i] = followLog(ctx, b.Logs(0), name(i), 0, func(seq uint64) {
				if seq == 1 {
					begun.Done()
				}
			})
		})
	}
	begun.Wait()
	for i := range logs {
		deafen(t, b.shards[0], name(i))
	}
	for i := range logs {
		switch i % 3 {
		case 0:
			write(i, replay.Append{Expect: 1, Records: [][]byte{fmt.Append(nil, name(i), "/2")}, End: true})
		case 1:
			write(i, replay.Append{Expect: 1, Metadata: make([]byte, 40<<10), End: true})
		case 2:
			write(i, replay.Append{Expect: 1, Drop: true})
		}
	}
	readers.Wait()
	for i, err := range found {
		if dropped := i%3 == 2; errors.Is(err, replay.ErrNotFound) != dropped || !dropped && err != nil {
			t.Errorf("the reader of %s ends with %v", name(i), err)
		}
	}
	if n := b.Counts().Missed; n != logs {
		t.Errorf("the checks have found %d, want %d", n, logs)
	}
	if st := b.shards[0]; st.checks != nil || st.watched != 0 {
		t.Errorf("the checks go on with %d logs", st.watched)
	}

	for i := range logs {
		if i%3 == 2 {
			write(i, replay.Append{Records: [][]byte{fmt.Append(nil, name(i), "/1")}})
			r := b.Logs(0).Read(name(i), 0)
			defer r.Close()
			if _, _, err := r.Next(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	var batches atomic.Int64
	looks := make(chan *nats.Msg, 4096)
	nc := connect(t, own.URL())
	for subject, f := range map[string]func(*nats.Msg){
		"$JS.API.DIRECT.GET." + b.shards[0].name:  func(*nats.Msg) { batches.Add(1) },
		"$JS.API.STREAM.INFO." + b.shards[0].name: func(m *nats.Msg) { looks <- m },
	} {
		if _, err := nc.Subscribe(subject, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	settled := int64(-1)
	for n := 0; n < 2*wholeChecks; { // successive checks without a look at a head
		select {
		case <-looks:
		case <-ctx.Done():
			t.Fatal("the checks do not come to rest")
		}
		if now := batches.Load(); now != settled {
			settled, n = now, 0
		} else {
			n++
		}
	}
	if settled == 0 {
		t.Error("no check has looked at the logs after they were written")
	}
}

// TestChecksOfMany: a check of many logs reads the heads written since the last one, and asks for no log that was not.
func TestChecksOfMany(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const logs = 2*checkedHeads + 1
	own := cluster(t, 1, natstest.Config{MaxPayload: 16 << 10})
	a := streams(t, connect(t, own.URL()), Config{Replicas: 1, CheckAfter: time.Hour})
	b := openStreams(t, connect(t, own.URL()), a.config)
	st := b.shards[0]
	owner := claim(t, a, 0, "a")
	defer owner.Close()
	write := func(i int, next replay.Append) {
		next.Log = fmt.Sprint("log-", i)
		if err := owner.Append(ctx, next); err != nil {
			t.Fatalf("%s: %v", next.Log, err)
		}
	}
	for i := range logs {
		write(i, replay.Append{Records: [][]byte{[]byte("1")}})
		r := b.Logs(0).Read(fmt.Sprint("log-", i), 0)
		defer r.Close()
		if _, _, err := r.Next(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	st.check() // of all
	deafen(t, st, "log-7")
	deafen(t, st, "log-8")
	write(7, replay.Append{Expect: 1, Records: [][]byte{[]byte("2")}})
	write(8, replay.Append{Expect: 1, Metadata: make([]byte, 40<<10), End: true})
	asked := make(chan *nats.Msg, 4096)
	nc := connect(t, own.URL())
	if _, err := nc.ChanSubscribe("$JS.API.DIRECT.GET."+st.name, asked); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	st.check()
	if n := b.Counts().Missed; n != 2 {
		t.Errorf("the check has found %d, want 2", n)
	}
	st.check() // nothing is written since, and nothing is asked
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	var requests []string
	for range len(asked) {
		requests = append(requests, string((<-asked).Data))
	}
	if len(requests) == 0 || len(requests) > 2 {
		t.Errorf("the checks have asked %d times", len(requests))
	}
	for _, r := range requests {
		if strings.Contains(r, "multi_last") {
			t.Errorf("a check has asked for each log: %.200s", r)
		}
	}
	for log, want := range map[string]uint64{"log-7": 2, "log-8": 1} {
		if h, _ := st.follower(log).state(0); h == nil || h.Last != want || h.Ended.IsZero() == (log == "log-8") {
			t.Errorf("%s has the head %+v", log, h)
		}
	}
}

// TestTakenOverBehind: readers of a node find missed records when the node takes the shard over, though nothing more is
// written then, and no check looks any more.
func TestTakenOverBehind(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := streams(t, connect(t, servers.URL()), Config{Replicas: 1, CheckAfter: time.Hour})
	b := openStreams(t, connect(t, servers.URL()), a.config)
	owner := claim(t, a, 0, "a")
	later := map[string]replay.Append{
		"more":    {Records: [][]byte{[]byte("more/2")}},
		"ended":   {End: true},
		"dropped": {Drop: true},
	}
	readers := make(map[string]replay.Reader)
	woken := make(map[string]chan struct{})
	for log := range later {
		if err := owner.Append(ctx, replay.Append{Log: log, Records: [][]byte{[]byte(log + "/1")}}); err != nil {
			t.Fatal(err)
		}
		r := b.Logs(0).Read(log, 0)
		defer r.Close()
		if page, _, err := r.Next(ctx, nil); err != nil || len(page) != 1 {
			t.Fatalf("%s begins with %v, %v", log, page, err)
		}
		deafen(t, b.shards[0], log)
		readers[log], woken[log] = r, make(chan struct{})
		r.Wake(func() { close(woken[log]) })
	}
	for log, next := range later {
		next.Log, next.Expect = log, 1
		if err := owner.Append(ctx, next); err != nil {
			t.Fatal(err)
		}
	}
	if err := owner.Release(ctx); err != nil {
		t.Fatal(err)
	}
	defer claim(t, b, 0, "b").Close()
	for log, want := range map[string]error{"more": nil, "ended": io.EOF, "dropped": replay.ErrNotFound} {
		select {
		case <-woken[log]:
		case <-ctx.Done():
			t.Errorf("the reader of %q is not woken", log)
			continue
		}
		page, _, err := readers[log].Next(ctx, nil)
		if err != want || want == nil && (len(page) != 1 || string(page[0].Data) != "more/2") {
			t.Errorf("%q goes on with %v, %v, want %v", log, page, err, want)
		}
	}
}
