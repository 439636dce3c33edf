// SPDX-License-Identifier: Apache-2.0

// Package upstreamtest has the things shared by the tests of the rooms speaking with agents.
package upstreamtest

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// Listener is a net.Listener. Its connections are pipes, so the time of a synctest bubble stands still for them.
type Listener struct {
	conns chan net.Conn
	done  chan struct{}
	close sync.Once
	dials atomic.Int32
}

// NewListener returns a listener for connections by its own Dial.
func NewListener() *Listener { return &Listener{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to the listener, whatever the address.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	l.dials.Add(1)
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, errors.New("refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Dials returns the number of calls of Dial.
func (l *Listener) Dials() int { return int(l.dials.Load()) }

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error { l.close.Do(func() { close(l.done) }); return nil }

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{} }
