// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/front/aunfront"
	"github.com/aip-gateway/aip-gateway/front/aunfront/directory"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/task"
)

// Settings are what a configuration sets, in plain values.
type Settings struct {
	Notify   notify.Config // the node knows its TracerProvider and Stopped
	Partners Partners
	Active   *Active       // which of them the registry has as active; nil for no registry
	Drain    time.Duration // the longest time for streams to end

	AUN        *AUN        // nil for none
	Monitoring *Monitoring // nil for none

	agents []catalog.Agent // as the catalogue has the Partners
	Host   any             // of the host alone: its side of the configuration
}

// Configuration is one of a process, from its reading to the end of its last call. Its host calls Open and Start, then
// Drain and Stop, and at last Close; after a failed start, Close alone.
//
//	Open -> Start -> (in force) -> Drain -> Stop -> Close
//
// Calls come at any time: Ready has them wait until it is in force, and refuses them over a closed store.
type Configuration struct {
	Draining context.Context // done when the streams of the configuration must end
	drain    context.CancelFunc

	Trust Trust // in the certificates of callers

	// Set by Start, and read after Ready.
	Discoverer *adp.Server     // answers queries about the Partners
	Front      *aunfront.Front // of AUN; nil for none
	Site       *directory.Site // likewise

	process  *Process
	started  chan struct{}        // closed when the configuration is in force
	settings Settings             // set by Start
	work     sync.WaitGroup       // of Go
	node     atomic.Pointer[Node] // set by Open, and never unset; it may be closed when holds is false
	held     atomic.Pointer[Node] // see Held

	records  *amp.Log                     // of the monitoring; nil for none
	reporter atomic.Pointer[amp.Reporter] // likewise, and nil before it is in force

	mu     sync.Mutex
	store  Store
	holds  bool        // this configuration keeps the store open
	calls  int         // requests in flight; they outlive Close, since a reload does not wait for them
	ended  bool        // Close has run: the last call releases the store
	closed atomic.Bool // the store was closed before a late request arrived
}

// NewConfiguration returns a configuration before its start. It opens nothing.
func (p *Process) NewConfiguration() *Configuration {
	c := &Configuration{process: p, started: make(chan struct{})}
	c.Trust.of = c
	c.Draining, c.drain = context.WithCancel(context.Background())
	return c
}

// Open opens the store, or takes over the open store of the running configuration.
func (c *Configuration) Open(s Store) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, err := c.process.open(s)
	if err == nil {
		c.store, c.holds = s, true
		c.node.Store(n)
	}
	return err
}

// Start readies the configuration to come in force: at once if no other one is, and else when that is drained, which a
// host does when it keeps this one. Open has succeeded. An error, or a stop before that, leaves nothing behind.
func (c *Configuration) Start(s Settings) error {
	if err := c.prepare(s); err != nil {
		return err
	}
	c.process.inForce.enter(c)
	return nil
}

// prepare does all of a start that can fail, and changes nothing that another configuration uses.
func (c *Configuration) prepare(s Settings) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.node.Load()
	c.settings = s
	for _, p := range s.Partners {
		if err := p.prepare(n); err != nil {
			return err
		}
	}
	c.settings.agents, c.Discoverer = s.Partners.catalog(), c.discoverer()
	if err := c.startAUN(s.AUN); err != nil {
		return err
	}
	c.checkAgents()
	c.followActive(s.Active)
	c.Go(c.Trust.recheck)
	return nil
}

// Go has work done from when the configuration is in force until it is drained. Stop waits for it.
func (c *Configuration) Go(f func(ctx context.Context)) {
	c.work.Go(func() {
		if c.Ready(c.Draining) == nil {
			f(c.Draining)
		}
	})
}

// Partners returns the Partners, after Start. The list is not to be changed.
func (c *Configuration) Partners() Partners { return c.settings.Partners }

// Host returns the Host of the Settings, after Start.
func (c *Configuration) Host() any { return c.settings.Host }

// Node returns the node of the configuration; nil before Open. It may be closed.
func (c *Configuration) Node() *Node { return c.node.Load() }

// Held returns the node while the configuration keeps it open; nil before it is in force, and when the store has
// closed, not before. It takes no lock, since one is held while a store is closed.
func (c *Configuration) Held() *Node { return c.held.Load() }

// Ends reports whether no new tasks are taken: another configuration has replaced this one, the process is about to
// exit, or the operator drains the gateway. It is called after Open.
func (c *Configuration) Ends() bool {
	return c.Draining.Err() != nil || c.process.IsExiting() || !c.Node().Tasks.Process().Draining().IsZero()
}

// Drain puts the next configuration in force, if one has started, and ends the streams of this one.
func (c *Configuration) Drain() {
	c.process.inForce.leave(c)
	c.drain()
}

// detachedGrace is the time beyond Drain for streams without a request to end.
const detachedGrace = 5 * time.Second

// Stop hands the Partners' tasks without a running turn to the next configuration, if there is one. Calls in flight
// continue, and so do other streams, as far as the next configuration accepts their callers. At an exit it waits for
// the streams without a request: no host knows them any more.
func (c *Configuration) Stop() {
	c.Drain()
	switch {
	case !c.wasInForce():
	case c.process.IsExiting():
		c.process.Detached.Wait(c.settings.Drain + detachedGrace)
	default:
		c.process.CutRefused(c.process.Gateways)
	}
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unregister()
}

// unregister undoes comeInForce. c.mu is held.
func (c *Configuration) unregister() {
	if !c.wasInForce() {
		return
	}
	for _, p := range c.settings.Partners {
		p.unregister()
	}
	c.node.Load().forget(c)
}

// Close releases the store as soon as no request of this configuration is in flight. The last release closes it.
func (c *Configuration) Close() error {
	c.Drain() // after a failed start there was no Stop
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unregister()
	c.ended = true
	return c.release()
}

// release releases the store if this configuration no longer needs it. c.mu is held.
func (c *Configuration) release() error {
	if !c.holds || !c.ended || c.calls > 0 {
		return nil
	}
	c.holds = false
	if c.records != nil {
		c.records.Close()
	}
	err := c.node.Load().release()
	c.held.Store(nil) // not before: a closing store exports its metrics for the last time
	return err
}

// HandOver has other processes take over the tasks of a shared store. Calls go on meanwhile, and wait no
// longer than a task moves: the other processes execute them then.
func (c *Configuration) HandOver(ctx context.Context) {
	if n := c.Node(); n != nil && n.Shared != nil {
		n.Shared.HandOver(ctx)
	}
}

// Enter begins a request; Leave ends it. Requests arrive even after Close, on older connections. They are served as
// long as another configuration keeps the same store open.
func (c *Configuration) Enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.ended && !c.holds && !c.closed.Load() {
		n := c.node.Load()
		c.holds = n != nil && n.retain()
		c.closed.Store(!c.holds)
		if c.holds {
			c.held.Store(n)
		}
	}
}

// Leave ends a request.
func (c *Configuration) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls--
	if err := c.release(); err != nil {
		c.process.log("aip").Error("the store was not closed cleanly", "error", err)
	}
}

// Detach keeps the store open for a connection of this configuration, until end is called.
func (c *Configuration) Detach() (end func()) {
	c.Enter()
	c.process.Detached.Add(1)
	return func() {
		c.Leave()
		c.process.Detached.Add(-1)
	}
}

// TakeOver is Detach for a stream with a connection of its own.
func (c *Configuration) TakeOver() (end func()) {
	left := c.Detach()
	c.process.TakenOver.Add(1)
	return func() {
		c.process.TakenOver.Add(-1)
		left()
	}
}

// Ready returns as soon as the configuration is in force: calls may come before it.
func (c *Configuration) Ready(ctx context.Context) error {
	if c.closed.Load() {
		return errReplaced("the configuration of this connection was replaced; send the request again")
	}
	if c.wasInForce() { // a context makes its channel on demand
		return nil
	}
	select {
	case <-c.started:
		return nil
	case <-c.Draining.Done():
		return errReplaced("the configuration of this connection was not put in force; send the request again")
	case <-ctx.Done():
		return task.Errorf(task.Internal, "the gateway is starting").WithCause(ctx.Err())
	}
}

// errReplaced has a caller send a request again, by a connection to the configuration in force.
func errReplaced(text string) error {
	return task.Errorf(task.StoreUnavailable, "%s", text).WithData("reason", "STORE_UNAVAILABLE")
}
