// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// Config is the configuration of a node of a cluster.
type Config struct {
	Name    string // of the node; see CheckName
	Version string // of the program, for operators

	Streams  Streams
	Registry Registry
	Network  Network

	// Lease is the time a node may act after it has sent its record; 0 for DefaultLease. It is the same for all nodes.
	Lease time.Duration
	// Busy returns the reason a shard of this node should not move now; empty if it may. It is asked often, under no lock,
	// and should not wait: nothing else moves meanwhile. Nil for never.
	Busy func(shard int) string
	Log  *slog.Logger

	// Clock returns the time since a fixed moment; nil for the clock of the machine, which counts suspension. For tests.
	Clock func() time.Duration

	protocol int // 0 for Protocol
}

// DefaultLease is the length of a lease.
const DefaultLease = 3 * time.Second

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// CheckName returns an error with the rule for the name of a node, if name breaks it.
func CheckName(name string) error {
	if validName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("the name of a node has 1 to 64 letters, digits, hyphens and underscores, but this is %q", name)
}

// Cluster is this node, with its knowledge of the others. It implements replay.Shards and shard.Peers. Its methods may
// be called by any number of goroutines at once.
type Cluster struct {
	config      Config
	log         *slog.Logger
	incarnation string
	stats       stats

	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	urgent chan struct{} // has the record of this node written now
	look   chan struct{} // has balance look again
	stops  []func()

	lease  atomic.Int64  // until when this node may act, on the clock; 0 for not at all
	doubts atomic.Uint64 // number of times shards may have been lost unseen
	odd    atomic.Int64  // when an unreadable message was last logged, on the clock; 0 for never

	mu       lockorder.Mutex[lockorder.Cluster] // no other room is called under it
	changed  chan struct{}                      // closed at the next change of the fields below
	self     self
	members  map[string]*member       // by name
	registry string                   // see Record.Registry; empty before it was asked
	lapsed   map[string]time.Duration // by replaced incarnation: time its record was last seen to change
	since    time.Duration            // since when the own lease holds without a break; 0 if it does not
	joined   bool                     // the registry has the record of this incarnation
	problem  error                    // reason the node has not joined
	shards   []shardState
	moving   int           // the released shard without an owner yet; -1 for none
	moved    time.Duration // when it was released
	calm     time.Duration // the time to begin moving misplaced shards: those of a gone node come first

	calls calls
}

// self is the content of the record of this node.
type self struct {
	revision uint64
	draining bool
	force    bool // busy shards move, too
	wants    []want
	started  time.Time
	sent     time.Duration // when the record was last sent
	urgent   bool          // it has changed since
	lapsed   bool          // the lease had lapsed, and nodes joined since were not looked for yet
}

// shardState is this node's knowledge of a shard.
type shardState struct {
	store *store    // nil while this node does not own the shard
	since time.Time // start of the ownership
	stray bool      // its record may name this node, though the node has not opened it or could not release it
	refusal
	route route
}

// Open opens a node. It joins the cluster in the background, and tries again until Close; see Joined. The drivers stay
// the caller's, and must outlive the node.
func Open(c Config) (*Cluster, error) {
	if err := CheckName(c.Name); err != nil {
		return nil, err
	}
	c.Lease, c.protocol = cmp.Or(c.Lease, DefaultLease), cmp.Or(c.protocol, Protocol)
	if c.Clock == nil {
		c.Clock = now
	}
	if c.Busy == nil {
		c.Busy = func(int) string { return "" }
	}
	var id [8]byte
	rand.Read(id[:])
	n := &Cluster{config: c, log: c.Log.With("node", c.Name), incarnation: hex.EncodeToString(id[:]),
		urgent: make(chan struct{}, 1), look: make(chan struct{}, 1), changed: make(chan struct{}),
		members: make(map[string]*member),
		lapsed:  make(map[string]time.Duration), shards: make([]shardState, c.Streams.Count()), moving: -1,
		self: self{started: time.Now()}, problem: errors.New("the registry of nodes was not reached yet")}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.calls.init(n)
	n.operate()
	for _, address := range []string{n.incarnation, allNodes} {
		stop, err := c.Network.Listen(address, n.receive)
		if err != nil {
			n.end()
			return nil, fmt.Errorf("the network of the cluster cannot be used: %w", err)
		}
		n.stops = append(n.stops, stop)
	}
	stop, err := c.Registry.Watch(func(r Record) { n.see(r) })
	if err != nil {
		n.end()
		return nil, fmt.Errorf("the registry of nodes cannot be watched: %w", err)
	}
	n.stops = append(n.stops, stop)
	n.work.Go(n.live)
	n.work.Go(n.keep)
	n.work.Go(n.check)
	n.work.Go(n.watchCalls)
	return n, nil
}

// Close leaves the cluster. It is called after the close of the set of shards; that close releases them.
func (c *Cluster) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), c.config.Lease)
	defer cancel()
	c.lease.Store(0)
	c.stop()
	c.calls.failAll()
	c.work.Wait()
	c.config.Streams.StandBy(nil)
	c.leave(ctx)
	c.end()
}

func (c *Cluster) end() {
	c.stop()
	for _, stop := range c.stops {
		stop()
	}
}

// spawn has a goroutine of the node call f, unless the node is closed. c.mu may be held.
func (c *Cluster) spawn(f func()) bool {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	if c.ctx.Err() != nil {
		return false // Close has taken the mutex since, and waits
	}
	c.work.Go(f)
	return true
}

// Name returns the name of this node.
func (c *Cluster) Name() string { return c.config.Name }

// Count implements replay.Shards.
func (c *Cluster) Count() int { return len(c.shards) }

// Logs implements replay.Shards.
func (c *Cluster) Logs(shard int) replay.Logs { return c.config.Streams.Logs(shard) }

// kick has the node look again at its shards.
func (c *Cluster) kick() {
	select {
	case c.look <- struct{}{}:
	default:
	}
}

// hurry has the record of this node written now. c.mu is held.
func (c *Cluster) hurry() {
	c.self.urgent = true
	select {
	case c.urgent <- struct{}{}:
	default:
	}
}

// change wakes all waiting for a change. c.mu is held.
func (c *Cluster) change() {
	c.config.Streams.Speak(c.spoken())
	close(c.changed)
	c.changed = make(chan struct{})
}

// NameTakenError is the error of a node with its name taken by another living process.
type NameTakenError struct{ Name, Incarnation string }

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("another gateway of this cluster has the node name %q, and lives; give each gateway a name of its "+
		"own, or stop the other one", e.Name)
}

// Joined waits until this node has joined the cluster. The error is a NameTakenError at once if another living process
// has its name, and otherwise the reason it has not joined when ctx is done; it goes on trying.
func (c *Cluster) Joined(ctx context.Context) error {
	for {
		c.mu.Lock()
		joined, problem, changed := c.joined, c.problem, c.changed
		c.mu.Unlock()
		if joined {
			return nil
		}
		if _, taken := errors.AsType[*NameTakenError](problem); taken {
			return problem
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return problem
		case <-c.ctx.Done():
			return replay.ErrClosed
		}
	}
}

// Ready returns nil while this node takes part in the cluster and its lease holds; otherwise the reason.
func (c *Cluster) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.joined {
		return c.problem
	}
	return c.held()
}

// ErrNoLease is the error of acts a node may not do because its lease is over, or because it has to check the ownership
// of its shards first. It may pass.
var ErrNoLease = fmt.Errorf("this node cannot reach the quorum of its cluster: %w", replay.ErrUnavailable)

// held returns nil while the lease of the node holds.
func (c *Cluster) held() error {
	if int64(c.config.Clock()) >= c.lease.Load() {
		return ErrNoLease
	}
	return nil
}

var _ interface {
	replay.Shards
	shard.Peers
} = (*Cluster)(nil)
