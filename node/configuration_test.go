// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// memory is a driver of stores in memory.
type memory struct {
	location string
	err      error // of Open
}

func (m memory) Location() string { return m.location }
func (m memory) Open(*slog.Logger) (replay.Store, error) {
	return replay.NewMemory(m.Settings()), m.err
}
func (memory) Settings() (s replay.Settings) { return s }
func at(location string) Store               { return Store{Driver: memory{location: location}, Name: "memory"} }

func newestName(p *Process) string {
	if c := p.Newest(); c != nil {
		return fmt.Sprint(c.Host())
	}
	return ""
}

// start returns a configuration that has started over a store.
func start(t *testing.T, p *Process, s Store, settings Settings) *Configuration {
	t.Helper()
	c := p.NewConfiguration()
	begin(t, c, s, settings)
	return c
}

// begin starts a configuration over a store.
func begin(t *testing.T, c *Configuration, s Store, settings Settings) {
	t.Helper()
	if err := c.Open(s); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(settings); err != nil {
		t.Fatal(err)
	}
}

// end stops and closes configurations.
func end(t *testing.T, all ...*Configuration) {
	t.Helper()
	for _, c := range all {
		c.Stop()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReload: a configuration over the same store continues with its node, one over another store has a node of its
// own, and the last one closes the node.
func TestReload(t *testing.T) {
	p := NewProcess(Host{})
	one := start(t, p, at("a"), Settings{Host: "one"})
	two := start(t, p, at("a"), Settings{Host: "two"})
	if one.Node() != two.Node() || p.Running() != one.Node() || p.Users(at("a")) != 2 {
		t.Errorf("the store has %d users", p.Users(at("a")))
	}
	if c := p.Running().InForce(); c != one || p.Running().Configurations() != 1 {
		t.Errorf("in force is %v", c.Host())
	}
	one.Drain()
	if c := p.Running().InForce(); c != two || p.Running().Configurations() != 2 {
		t.Errorf("in force is %v", c.Host())
	}
	end(t, one)
	other := start(t, p, at("b"), Settings{Host: "other"})
	if other.Node() == two.Node() {
		t.Error("two stores have one node")
	}
	end(t, two)
	if p.Running() != other.Node() || p.Users(at("a")) != 0 {
		t.Errorf("the first store has %d users", p.Users(at("a")))
	}
	end(t, other)
	if p.Running() != nil {
		t.Error("a node runs without a configuration")
	}
}

// TestLateRequests: a request that comes after its configuration has ended is served while another one keeps the store
// open, and refused after that, also over the same store opened anew.
func TestLateRequests(t *testing.T) {
	p := NewProcess(Host{})
	one := start(t, p, at("a"), Settings{})
	one.Enter()
	end(t, one)
	if one.Held() == nil || p.Users(at("a")) != 1 {
		t.Error("a request under way does not keep the store open")
	}
	two := start(t, p, at("a"), Settings{})
	one.Leave()
	one.Enter()
	if err := one.Ready(t.Context()); err != nil || p.Users(at("a")) != 2 || one.Held() != two.Node() {
		t.Errorf("a late request is not served: %v", err)
	}
	one.Leave()
	end(t, two)
	three := start(t, p, at("a"), Settings{})
	one.Enter()
	if err := one.Ready(t.Context()); task.KindOf(err) != task.StoreUnavailable {
		t.Errorf("a request without a store: %v", err)
	}
	one.Leave()
	if n := p.Users(at("a")); n != 1 || three.Node() == two.Node() {
		t.Errorf("the store has %d users", n)
	}
	end(t, three)
}

// TestReady: calls wait for the start, and no longer than their callers.
func TestReady(t *testing.T) {
	c := NewProcess(Host{}).NewConfiguration()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("before the start: %v", err)
	}
	waits := make(chan error)
	go func() { waits <- c.Ready(t.Context()) }()
	if err := c.Open(at("a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(Settings{}); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil || c.Ready(ctx) != nil {
		t.Errorf("after the start: %v", err)
	}
	if c.Ends() {
		t.Error("a configuration ends that has begun")
	}
	if c.Drain(); !c.Ends() {
		t.Error("a drained configuration does not end")
	}
	end(t, c)
}

// TestFailedOpening: a store that cannot be opened is none of the process's.
func TestFailedOpening(t *testing.T) {
	p, bad := NewProcess(Host{}), errors.New("bad")
	c := p.NewConfiguration()
	if err := c.Open(Store{Driver: memory{err: bad}, Name: "memory"}); !errors.Is(err, bad) || c.Node() != nil {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil || p.Users(Store{Driver: memory{}, Name: "memory"}) != 0 {
		t.Errorf("%v", err)
	}
}

// fixed is a driver of a shared store, with settings that may not change.
type fixed struct {
	memory
	servers string
}

func (f fixed) Continues(newer Driver) error {
	if newer.(fixed).servers != f.servers {
		return errors.New("the servers cannot change")
	}
	return nil
}

func (f fixed) Join(_ *slog.Logger, host SharedHost) (SharedStore, error) {
	return sharedMemory{Store: replay.NewMemory(f.Settings()), host: host}, nil
}

// sharedMemory is a store in memory, as if others had a part in it.
type sharedMemory struct {
	replay.Store
	SharedStore
	host SharedHost
}

func (s sharedMemory) Count() int                  { return 1 }
func (s sharedMemory) Logs(int) replay.Logs        { return s.Store }
func (s sharedMemory) Writable() error             { return s.Store.Writable() }
func (s sharedMemory) Configure(c replay.Settings) { s.Store.Configure(c) }
func (s sharedMemory) Owners() gateway.Owners      { return nil }
func (s sharedMemory) Close() error                { return nil }
func (s sharedMemory) HandOver(context.Context)    {}
func (s sharedMemory) Open(context.Context, int) (replay.Store, <-chan struct{}, error) {
	return s.Store, nil, nil
}

// TestContinues: a configuration cannot change the fixed settings of an open store.
func TestContinues(t *testing.T) {
	p := NewProcess(Host{})
	store := func(servers string) Store { return Store{Driver: fixed{servers: servers}, Name: "shared"} }
	one := start(t, p, store("one"), Settings{})
	if err := p.NewConfiguration().Open(store("two")); err == nil || p.Users(store("two")) != 1 {
		t.Errorf("other servers: %v", err)
	}
	two := start(t, p, store("one"), Settings{Partners: nil})
	if host := two.Node().Shared.(sharedMemory).host; host != SharedHost(two.Node()) || host.Gateway("P") != nil {
		t.Errorf("the host of the store is %v", host)
	}
	end(t, one, two)
}

// beside is the host's side of a node.
type beside struct{ events *[]string }

func (b beside) Close() { *b.events = append(*b.events, "closed") }

// TestBeside: the host's side of a node is opened and closed with it.
func TestBeside(t *testing.T) {
	var events []string
	p := NewProcess(Host{})
	p.Beside = func(n *Node) Beside {
		events = append(events, "opened "+n.Store.Location())
		return beside{&events}
	}
	one, two := start(t, p, at("a"), Settings{}), start(t, p, at("a"), Settings{})
	end(t, one, two)
	if diff := cmp.Diff([]string{"opened a", "closed"}, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDetached: connections and streams without a request are counted, and keep the store open.
func TestDetached(t *testing.T) {
	p := NewProcess(Host{})
	c := start(t, p, at("a"), Settings{})
	connection, stream := c.Detach(), c.TakeOver()
	if all, streams := p.Detached.Total(), p.TakenOver.Total(); all != 2 || streams != 1 {
		t.Errorf("%d are detached, of which %d streams", all, streams)
	}
	end(t, c)
	if connection(); p.Users(at("a")) != 1 {
		t.Error("the stream does not keep the store open")
	}
	if stream(); p.Users(at("a")) != 0 || p.Detached.Total() != 0 || p.TakenOver.Total() != 0 {
		t.Errorf("%d are counted after their end", p.Detached.Total())
	}
}
