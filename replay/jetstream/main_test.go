// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
)

// servers are the servers of all tests that kill none. So they need not sync. This saves most of the time.
var servers *natstest.Cluster

func TestMain(m *testing.M) {
	// The tests wait for servers more than they compute.
	flag.Parse()
	err := flag.Set("test.parallel", "24")
	if err != nil {
		panic(err)
	}
	if flag.Lookup("test.fuzz").Value.String() != "" { // no target needs servers
		os.Exit(m.Run())
	}
	if servers, err = natstest.Start(3, natstest.Config{SyncInterval: "2m"}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	servers.Close()
	os.Exit(code)
}

// cluster returns servers of a test's own.
func cluster(t testing.TB, n int, c natstest.Config) *natstest.Cluster {
	t.Helper()
	own, err := natstest.Start(n, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	return own
}

// connect returns a connection for the time of a test.
func connect(t testing.TB, url string, o ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append([]nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond),
		nats.RetryOnFailedConnect(true)}, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

var prefixes atomic.Int64

// streams returns streams of their own for a test.
func streams(t testing.TB, nc *nats.Conn, c Config) *Streams {
	t.Helper()
	if c.Prefix == "" {
		c.Prefix = fmt.Sprintf("t%d", prefixes.Add(1))
	}
	c.Shards = max(c.Shards, 1)
	c.GiveUp = cmp.Or(c.GiveUp, time.Minute) // for a slow machine
	c.purgeAfter = cmp.Or(c.purgeAfter, 80*time.Millisecond)
	c.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := openStreams(t, nc, c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for i := range c.Shards {
			_ = s.js.DeleteStream(ctx, s.config.stream(i)) // to free memory and disk
		}
	})
	return s
}

// openStreams opens streams, and tries again while servers have no leader.
func openStreams(t testing.TB, nc *nats.Conn, c Config) (s *Streams) {
	t.Helper()
	patiently(t, func(ctx context.Context) (err error) {
		s, err = Open(ctx, nc, c)
		return err
	})
	return s
}

// claim opens a shard as a node.
func claim(t testing.TB, s *Streams, shard int, node string) (st *Store) {
	t.Helper()
	patiently(t, func(ctx context.Context) error {
		owner, err := s.Owner(ctx, shard)
		if err == nil {
			st, err = s.Claim(ctx, shard, owner, node, "1")
		}
		return err
	})
	return st
}

// patiently calls f until it succeeds, for a minute.
func patiently(t testing.TB, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			t.Fatal(err)
		}
	}
}

// opened is a store with its streams.
type opened struct {
	*Store
	of *Streams
}

func open(t testing.TB, c Config) opened {
	t.Helper()
	s := streams(t, connect(t, servers.URL()), c)
	return opened{claim(t, s, 0, "a"), s}
}

// reopen closes a store, and opens it as another process does.
func reopen(t *testing.T, st replay.Store, s replay.Settings) replay.Store {
	t.Helper()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	of := st.(opened).of
	c := of.config
	c.Settings = s
	next := openStreams(t, of.nc, c)
	return opened{claim(t, next, 0, "a"), next}
}
