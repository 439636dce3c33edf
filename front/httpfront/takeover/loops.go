// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// loops are the loops of one server.
type loops struct {
	server *http.Server

	ended atomic.Bool // the server is shutting down

	mu   sync.Mutex
	all  map[*loop]struct{}
	none chan struct{} // closed when the server is shutting down, and no loop is left
}

// servers has the loops of each server, until it has shut down.
var servers struct {
	mu    sync.Mutex
	loops map[*http.Server]*loops
}

// loopsOf returns the loops of a server, and has them end when it shuts down.
func loopsOf(s *http.Server) *loops {
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if g := servers.loops[s]; g != nil {
		return g
	}
	g := &loops{server: s, all: make(map[*loop]struct{}), none: make(chan struct{})}
	s.RegisterOnShutdown(g.stop)
	if isShutDown(s) {
		g.ended.Store(true) // and is not kept: it has no loops
		return g
	}
	if servers.loops == nil {
		servers.loops = make(map[*http.Server]*loops)
	}
	servers.loops[s] = g
	return g
}

// Wait waits until the loops of all servers shutting down have ended: each ends with its present call.
// http.Server.Shutdown does not wait for them.
func Wait(ctx context.Context) error {
	servers.mu.Lock()
	all := slices.Collect(maps.Values(servers.loops))
	servers.mu.Unlock()
	for _, g := range all {
		if !isShutDown(g.server) {
			continue
		}
		g.stop() // the server may not have done it yet
		select {
		case <-g.none:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// add reports whether the server serves further calls.
func (g *loops) add(l *loop) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended.Load() {
		return false
	}
	g.all[l] = struct{}{}
	return true
}

func (g *loops) remove(l *loop) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, l)
	g.forget()
}

// stop closes the resting connections, and those in a call at its end.
func (g *loops) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended.Swap(true) {
		return
	}
	for l := range g.all {
		l.stop()
	}
	g.forget()
}

// forget frees the memory of a server after its shutdown. g.mu is held.
func (g *loops) forget() {
	if !g.ended.Load() || len(g.all) > 0 {
		return
	}
	servers.mu.Lock()
	defer servers.mu.Unlock()
	if servers.loops[g.server] == g {
		delete(servers.loops, g.server)
		close(g.none)
	}
}
