// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// nodes are the open ones of a process, by the keys of their stores. A new configuration continues with the store, and
// the turns, of the one before. The zero value is ready for use.
type nodes struct {
	opening sync.Mutex // held while a store is opened, retained or released: none is opened while it is being closed

	mu   sync.Mutex
	open map[string]*Node // changed with opening held, too
}

// open returns the node of a store, and opens the store for the first one. The caller must release the node once.
func (p *Process) open(s Store) (*Node, error) {
	p.nodes.opening.Lock()
	defer p.nodes.opening.Unlock()
	n := p.nodes.open[s.key()]
	if n == nil {
		n = &Node{Store: s}
		if err := n.openNew(p); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		p.nodes.put(n)
	} else if shared, ok := n.Store.Driver.(SharedDriver); ok {
		if err := shared.Continues(s.Driver); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	n.users++
	return n, nil
}

func (all *nodes) put(n *Node) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.open == nil {
		all.open = make(map[string]*Node)
	}
	all.open[n.Store.key()] = n
}

// openNew opens the store of the node, and its engines. They outlive the configuration, and so they log to the process.
func (n *Node) openNew(p *Process) error {
	n.Process = p
	shards, err := n.openShards(p.log("aip.store"))
	if err != nil {
		return err
	}
	n.tracer = newTracer(context.Background(), p.log("aip"))
	c := Config{Process: p, Shards: shards, Tracer: n.tracer.provider(), Log: p.log}
	if n.Shared != nil {
		c.Owners = n.Shared.Owners()
	}
	if err := n.Open(c); err != nil {
		n.tracer.close()
		return errors.Join(err, n.leave())
	}
	if p.Beside != nil {
		n.Beside = p.Beside(n)
	}
	return nil
}

// retain is open for a node after its release. It reports false over a closed store.
func (n *Node) retain() bool {
	all := &n.Process.nodes
	all.opening.Lock()
	defer all.opening.Unlock()
	if n.users == 0 {
		return false
	}
	n.users++
	return true
}

// release ends the use of a node. The last release closes it.
func (n *Node) release() error {
	all := &n.Process.nodes
	all.opening.Lock()
	defer all.opening.Unlock()
	if n.users--; n.users > 0 {
		return nil
	}
	all.mu.Lock()
	delete(all.open, n.Store.key())
	all.mu.Unlock()
	defer n.tracer.close()
	if n.Beside != nil {
		n.Beside.Close()
	}
	return errors.Join(n.Close(), n.leave())
}

// Running returns the node of the running configuration; nil if none runs.
func (p *Process) Running() (found *Node) {
	p.nodes.mu.Lock()
	defer p.nodes.mu.Unlock()
	for _, n := range p.nodes.open {
		if n.InForce() != nil {
			found = n
		}
	}
	return found
}

// Users returns the number of configurations with a store open. It waits while one is opened or closed.
func (p *Process) Users(s Store) int {
	p.nodes.opening.Lock()
	defer p.nodes.opening.Unlock()
	if n := p.nodes.open[s.key()]; n != nil {
		return n.users
	}
	return 0
}
