// SPDX-License-Identifier: Apache-2.0

package natsdriver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/cluster/natsdriver"
	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
)

const streams = 4

// appender appends to the log of each shard it owns, again and again.
type appender struct {
	*cluster.Cluster
	nc   *nats.Conn
	h    *history
	work sync.WaitGroup
	stop context.CancelFunc

	mu     sync.Mutex
	stores [streams]replay.Store
}

// history is the times of appends to each shard, and their number.
type history struct {
	mu    sync.Mutex
	last  [streams]time.Time
	gap   [streams]time.Duration
	count [streams]uint64
}

func (h *history) note(shard int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if h.count[shard]++; h.count[shard] > 1 {
		h.gap[shard] = max(h.gap[shard], now.Sub(h.last[shard]))
	}
	h.last[shard] = now
}

// longest returns the longest time without appends to a shard since the last call.
func (h *history) longest() (most time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.gap {
		most = max(most, h.gap[i], time.Since(h.last[i]))
		h.gap[i] = 0
	}
	return most
}

func (h *history) counts() [streams]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

func startAppender(t *testing.T, h *history, url, prefix, name string) *appender {
	t.Helper()
	nc := connect(t, url, nats.IgnoreDiscoveredServers()) // a node cut off from its server must not find another one
	s, err := jetstream.Open(t.Context(), nc, jetstream.Config{Prefix: prefix, Shards: streams, Replicas: 3})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := natsdriver.NewRegistry(nc, prefix, 3)
	if err != nil {
		t.Fatal(err)
	}
	a := &appender{nc: nc, h: h}
	a.Cluster, err = cluster.Open(cluster.Config{Name: name, Streams: natsdriver.Streams{Streams: s}, Registry: registry,
		Network: natsdriver.NewNetwork(nc, prefix), Lease: lease, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = a.Joined(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, a.stop = context.WithCancel(context.Background())
	for i := range streams {
		a.work.Go(func() { a.keep(ctx, i) })
	}
	return a
}

// keep opens a shard whenever the node is to own it, and appends until it is lost.
func (a *appender) keep(ctx context.Context, shard int) {
	for {
		s, lost, err := a.Open(ctx, shard)
		if err != nil {
			return
		}
		a.set(shard, s)
		head, err := s.Head(ctx, "t")
		for over := err != nil && !errors.Is(err, replay.ErrNotFound); !over; {
			err := s.Append(ctx, replay.Append{Log: "t", Expect: head.Revision, Records: [][]byte{fmt.Append(nil, head.Last)}})
			if err == nil {
				head.Revision++
				head.Last++
				a.h.note(shard)
			}
			select {
			case <-lost:
				over = true
			case <-ctx.Done():
				over = true
			case <-time.After(5 * time.Millisecond):
			}
		}
		a.set(shard, nil)
		s.Close()
	}
}

func (a *appender) set(shard int, s replay.Store) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stores[shard] = s
}

func (a *appender) owned() (all []replay.Store) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.stores {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}

func (a *appender) end() {
	a.stop()
	a.work.Wait()
	a.Close()
}

// TestStreams: two nodes share real streams. A moving shard has no owner for a moment only; a node cut off for three
// leases is fenced; and all appended records are there, once.
func TestStreams(t *testing.T) {
	const prefix = "streams"
	if err := servers.Ready(); err != nil {
		t.Fatal(err)
	}
	proxy, err := natstest.NewProxy(servers.Servers[2])
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	h := new(history)
	a := startAppender(t, h, servers.URL(), prefix, "a")
	until(t, "the first node owns all", func() bool { return len(a.owned()) == streams })
	h.longest()
	b := startAppender(t, h, proxy.URL(), prefix, "b")
	share := func() bool { return len(a.owned()) == 2 && len(b.owned()) == 2 }
	until(t, "they share the shards", share)
	t.Logf("shards have moved; nothing was appended for %v at most", h.longest())

	had := b.owned()
	proxy.Mute(true)
	proxy.Deaf(true)
	until(t, "the other has all", func() bool { return len(a.owned()) == streams })
	renewed(t, a.nc, prefix, "a")
	t.Logf("a node was cut off; nothing was appended for %v at most", h.longest())
	for _, s := range had {
		if err := replay.HeldBy(s)(); !errors.Is(err, replay.ErrUnavailable) {
			t.Errorf("the node that is cut off may act: %v", err)
		}
	}
	proxy.Mute(false)
	proxy.Deaf(false)
	for _, s := range had {
		if err := s.Append(t.Context(), replay.Append{Log: "u"}); !errors.Is(err, replay.ErrClosed) {
			t.Errorf("it appends: %v", err)
		}
	}
	until(t, "they share the shards again", share)
	h.longest()
	b.end()
	until(t, "the first node owns all again", func() bool { return len(a.owned()) == streams })
	counts := h.counts()
	until(t, "something is appended to each shard", func() bool {
		for i, n := range h.counts() {
			if n == counts[i] {
				return false
			}
		}
		return true
	})
	t.Logf("a node has ended; nothing was appended for %v at most", h.longest())
	a.stop()
	a.work.Wait()
	for i := range streams {
		head, _, records, err := a.Logs(i).Load(t.Context(), "t")
		if err != nil || head.Last < h.count[i] || uint64(len(records)) != head.Last {
			t.Errorf("shard %d: %+v, %d records of %d, %v", i, head, len(records), h.count[i], err)
		}
		for n, r := range records {
			if string(r.Data) != fmt.Sprint(n) {
				t.Fatalf("shard %d: record %d is %s", i, n, r.Data)
			}
		}
	}
	a.Close()
}
