// SPDX-License-Identifier: Apache-2.0

package http1

import (
	"sync"
	"time"
)

// Pool keeps the idle connections to one server. Its methods may be called by any number of goroutines at once.
type Pool struct {
	max     int
	timeout time.Duration

	mu     sync.Mutex
	idle   []*Conn // the last one is the one used last
	expire *time.Timer
	closed bool
}

// NewPool returns a pool. It keeps at most max connections, and each for at most timeout.
func NewPool(max int, timeout time.Duration) *Pool { return &Pool{max: max, timeout: timeout} }

// Get returns the idle connection used last, if the server has neither closed it nor sent anything on it; nil if there
// is none. The connection is the caller's.
func (p *Pool) Get() *Conn {
	for {
		c := p.take()
		if c == nil || time.Since(c.since) < p.timeout && c.leave() {
			return c
		}
		c.Close()
	}
}

func (p *Pool) take() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle) - 1
	if n < 0 {
		return nil
	}
	c := p.idle[n]
	p.idle[n], p.idle = nil, p.idle[:n]
	return c
}

// Put gives a connection back. It is closed if it cannot be used again: if the answer was not read to its end, is the
// last one, or is followed by something. No call of Stop may be running, and Abort must not have been called.
func (p *Pool) Put(c *Conn) {
	if !c.reusable() {
		c.Close()
		return
	}
	c.Resume()
	c.rest()
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < p.max
	if keep {
		p.idle = append(p.idle, c)
		if p.expire == nil {
			p.expire = time.AfterFunc(p.timeout, p.sweep)
		}
	}
	p.mu.Unlock()
	if !keep {
		c.Close()
	}
}

// sweep closes the connections idle for too long.
func (p *Pool) sweep() {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && time.Since(p.idle[n].since) >= p.timeout {
		n++
	}
	expired := append([]*Conn(nil), p.idle[:n]...)
	rest := copy(p.idle, p.idle[n:])
	clear(p.idle[rest:])
	p.idle = p.idle[:rest]
	p.expire = nil
	if rest > 0 && !p.closed {
		p.expire = time.AfterFunc(max(p.timeout-time.Since(p.idle[0].since), p.timeout/4), p.sweep)
	}
	p.mu.Unlock()
	for _, c := range expired {
		c.Close()
	}
}

// Close closes the idle connections, and connections given back later.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	if p.expire != nil {
		p.expire.Stop()
	}
	p.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
}
