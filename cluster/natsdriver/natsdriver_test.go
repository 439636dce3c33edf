// SPDX-License-Identifier: Apache-2.0

package natsdriver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/cluster/clustertest"
	"github.com/aip-gateway/aip-gateway/cluster/natsdriver"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
)

// servers are shared by the tests. Each test has a prefix of its own.
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

const (
	shards = 8
	lease  = 2 * time.Second // a slow machine renews it in time
)

func connect(t *testing.T, url string, options ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append(options, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.PingInterval(lease/3), nats.MaxPingsOutstanding(3), nats.RetryOnFailedConnect(true))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// node is a process with its shards in memory.
type node struct {
	*cluster.Cluster
	nc   *nats.Conn
	stop context.CancelFunc
	done chan struct{}
	owns atomic.Int64
}

func start(t *testing.T, w *clustertest.World, url, prefix, name string) *node {
	t.Helper()
	n := &node{nc: connect(t, url), done: make(chan struct{})}
	registry, err := natsdriver.NewRegistry(n.nc, prefix, 3)
	if err != nil {
		t.Fatal(err)
	}
	n.Cluster, err = cluster.Open(cluster.Config{Name: name, Streams: w.Link(), Registry: registry,
		Network: natsdriver.NewNetwork(n.nc, prefix), Lease: lease, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := n.Joined(ctx); err != nil {
		t.Fatal(err)
	}
	var keep context.Context
	keep, n.stop = context.WithCancel(context.Background())
	go n.keep(keep)
	n.Handle("echo", func(_ context.Context, _ int, q []byte) ([]byte, error) {
		return append([]byte(name), q...), nil
	})
	return n
}

// keep opens the shards the node is to own.
func (n *node) keep(ctx context.Context) {
	defer close(n.done)
	left := make(chan struct{})
	for i := range shards {
		go func() {
			defer func() { left <- struct{}{} }()
			for {
				s, lost, err := n.Open(ctx, i)
				if err != nil {
					return
				}
				n.owns.Add(1)
				select {
				case <-lost:
				case <-ctx.Done():
				}
				n.owns.Add(-1)
				s.Close()
			}
		}()
	}
	for range shards {
		<-left
	}
}

func (n *node) end() {
	n.stop()
	<-n.done
	n.Close()
	n.nc.Close()
}

// until waits until something holds, and returns the time it took.
func until(t *testing.T, what string, holds func() bool) time.Duration {
	t.Helper()
	begun := time.Now()
	asynctest.Within(t, time.Minute, what, holds)
	return time.Since(begun)
}

// renewals is the number of times nodes renew their leases in two leases. Each time, a node declares silent ones gone.
const renewals = 6

// renewed waits until each of some nodes has renewed its lease for two leases.
func renewed(t *testing.T, nc *nats.Conn, prefix string, names ...string) {
	t.Helper()
	registry, err := natsdriver.NewRegistry(nc, prefix, 3)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan string)
	stop, err := registry.Watch(func(r cluster.Record) {
		select {
		case written <- r.Name:
		case <-t.Context().Done():
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	count := make(map[string]int)
	for slices.ContainsFunc(names, func(name string) bool { return count[name] < renewals }) {
		count[<-written]++
	}
}

func own(want ...int64) func(nodes ...*node) bool {
	return func(nodes ...*node) bool {
		for i, n := range nodes {
			if n.owns.Load() != want[i] {
				return false
			}
		}
		return true
	}
}

// TestCluster has three nodes over three servers: calls, the death of a node, a node cut off, and the death of the
// server leading the registry.
func TestCluster(t *testing.T) {
	const prefix = "cluster"
	w := clustertest.New(shards)
	proxy, err := natstest.NewProxy(servers.Servers[1])
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	a := start(t, w, servers.URL(), prefix, "a")
	b := start(t, w, proxy.URL(), prefix, "b")
	until(t, "two nodes share the shards", func() bool { return own(4, 4)(a, b) })

	for _, size := range []int{0, 1, 1 << 20, 9 << 20} {
		q := bytes.Repeat([]byte{7}, size)
		for i := range shards {
			var got []byte
			var node string
			var err error
			until(t, "the shard has an owner that answers", func() bool {
				got, node, err = a.CallOwner(t.Context(), i, "echo", q, nil)
				_, moved := errors.AsType[*cluster.MovedError](err) // its record may just have changed
				return !moved
			})
			if err != nil || len(got) != size+1 || string(got[:1]) != node || node != w.Owner(i).Node {
				t.Errorf("%d bytes to shard %d: %d bytes of %q, %v", size, i, len(got), node, err)
			}
		}
	}

	other := connect(t, servers.URL())
	registry, err := natsdriver.NewRegistry(other, prefix, 3)
	if err != nil {
		t.Fatal(err)
	}
	second, err := cluster.Open(cluster.Config{Name: "a", Streams: w.Link(), Registry: registry,
		Network: natsdriver.NewNetwork(other, prefix), Lease: lease, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*cluster.NameTakenError](second.Joined(t.Context())); !ok {
		t.Error("a second node of the name is not refused")
	}
	second.Close()

	c := start(t, w, servers.URL(), prefix, "c")
	until(t, "three nodes share the shards", func() bool {
		return a.owns.Load() <= 3 && b.owns.Load() <= 3 && c.owns.Load() >= 2
	})
	c.nc.Close() // others see nothing else of its death
	took := until(t, "the others have the shards of one that is dead", func() bool { return own(4, 4)(a, b) })
	t.Logf("a node is dead: %v (lease %v)", took, lease)
	c.stop()
	c.Close()

	proxy.Mute(true)
	proxy.Deaf(true)
	took = until(t, "the other has the shards of one that is cut off", func() bool { return own(8)(a) })
	t.Logf("a node is cut off: %v", took)
	if err := b.Ready(); !errors.Is(err, replay.ErrUnavailable) {
		t.Errorf("the node that is cut off is ready: %v", err)
	}
	proxy.Mute(false)
	proxy.Deaf(false)
	took = until(t, "it has its share again", func() bool { return own(4, 4)(a, b) })
	t.Logf("it is back: %v", took)

	gone := a.Stats().Gone + b.Stats().Gone
	js, err := jetstream.New(a.nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), prefix+"-nodes")
	if err != nil {
		t.Fatal(err)
	}
	leader := servers.Named(stream.CachedInfo().Cluster.Leader)
	leader.Kill()
	took = until(t, "a lease lapses", func() bool { return a.Ready() != nil || b.Ready() != nil })
	took += until(t, "both hold again", func() bool { return a.Ready() == nil && b.Ready() == nil })
	t.Logf("the leader is dead: %v", took)
	renewed(t, a.nc, prefix, "a", "b")
	if n := a.Stats().Gone + b.Stats().Gone; n != gone || !own(4, 4)(a, b) {
		t.Errorf("nodes were declared gone: %+v, %+v", a.Stats(), b.Stats())
	}
	if err := leader.Run(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	b.end()
	until(t, "the last one has all", func() bool { return own(8)(a) })
	t.Logf("handed over: %v", time.Since(begun))
	a.end()
}

// TestWrong: a wrong stream is refused by a sentence.
func TestWrong(t *testing.T) {
	if err := servers.Ready(); err != nil {
		t.Fatal(err)
	}
	nc := connect(t, servers.URL())
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "wrong-nodes", Subjects: []string{"wrong.nodes.*"}})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := natsdriver.NewRegistry(nc, "wrong", 3)
	if err != nil {
		t.Fatal(err)
	}
	_, err = registry.All(t.Context())
	if err == nil || !strings.Contains(err.Error(), "wrong-nodes has replicas 1, but must have 3") {
		t.Errorf("the error is %v", err)
	}
}

// TestMadeAgain: if the stream of the registry is removed while nodes run, they make it again, and it is known as
// another one.
func TestMadeAgain(t *testing.T) {
	if err := servers.Ready(); err != nil {
		t.Fatal(err)
	}
	nc := connect(t, servers.URL())
	name := "again-" + nuid.Next() // the servers may have run this test before
	registry, err := natsdriver.NewRegistry(nc, name, 3)
	if err != nil {
		t.Fatal(err)
	}
	all := func() (found []cluster.Record) {
		until(t, "the registry answers", func() bool {
			found, err = registry.All(t.Context())
			return err == nil
		})
		return found
	}
	write := func(expect uint64) (revision uint64) {
		until(t, "the record is written", func() bool {
			revision, err = registry.Write(t.Context(), "a", []byte("record"), expect)
			return err == nil || errors.Is(err, cluster.ErrConflict)
		})
		return revision
	}
	all()
	had := write(write(0))
	before := all()
	js, err := jetstream.New(nc)
	if err == nil {
		err = js.DeleteStream(t.Context(), name+"-nodes")
	}
	if err != nil {
		t.Fatal(err)
	}
	if write(had); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("a record that expects one of before: %v", err)
	}
	if write(0); err != nil {
		t.Error(err)
	}
	after := all()
	if len(before) != 1 || len(after) != 1 || before[0].Registry == "" || before[0].Registry == after[0].Registry {
		t.Errorf("before it was %+v, and then %+v", before, after)
	}
}
