// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
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

// servers are those of all tests that kill none.
var servers *natstest.Cluster

func TestMain(m *testing.M) {
	var err error
	if servers, err = natstest.Start(3, natstest.Config{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	servers.Close()
	os.Exit(code)
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
	c.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := Open(t.Context(), nc, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for i := range c.Shards {
			_ = s.js.DeleteStream(ctx, s.config.stream(i)) // to free memory and disk
		}
	})
	return s
}

// claim opens a shard as a node.
func claim(t testing.TB, s *Streams, shard int, node string) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	owner, err := s.Owner(ctx, shard)
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Claim(ctx, shard, owner, node, "1")
	if err != nil {
		t.Fatal(err)
	}
	return st
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
	next, err := Open(t.Context(), of.nc, c)
	if err != nil {
		t.Fatal(err)
	}
	return opened{claim(t, next, 0, "a"), next}
}
