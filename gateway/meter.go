// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// Meter counts everything concerning one agent, over all configurations. It may be used by any number of goroutines at
// once.
type Meter struct {
	Traffic upstream.Traffic // requests to the agent
	Tasks   partner.Meter
	Events  atomic.Uint64 // sent to callers by streams

	mu    sync.Mutex
	calls map[string]*dialectCalls // by dialect; replaced when a dialect is added, and never changed
	ready atomic.Pointer[map[string]*dialectCalls]
}

// dialectCalls are the calls in one dialect, by method and by the kind of error; the last kind is success.
type dialectCalls struct {
	count [numMethods][maxKinds + 1]atomic.Uint64
	took  [numMethods]measure.Durations
}

// maxKinds is the greatest number of counted error kinds.
const maxKinds = 32

// The methods of calls: the commands, then the operations of translate, then the calls refused before they were
// understood.
const (
	firstOp    = 6
	unknown    = firstOp + int(translate.JoinGroup)
	numMethods = unknown + 1
)

var methodNames = [numMethods]string{
	"get", "start", "continue", "cancel", "complete", "re-stream",
	"set-webhook", "get-webhooks", "delete-webhooks", "list", "extended-card", "join-group",
	Unread,
}

// Commands returns the names of calls: the commands of AIP, and the other operations.
func Commands() []string { return methodNames[:unknown] }

// methodOf returns the place of a call's method in methodNames.
func methodOf(c *translate.Call) int {
	if c.Op != translate.Command {
		return firstOp + int(c.Op) - 1
	}
	switch c.Message.Command {
	case task.Get:
		return 0
	case task.Start:
		return 1
	case task.Continue:
		return 2
	case task.Cancel:
		return 3
	case task.Complete:
		return 4
	case task.ReStream:
		return 5
	}
	return unknown
}

// serve prepares the counting of calls in dialects.
func (m *Meter) serve(dialects []translate.Server) {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := make(map[string]*dialectCalls, len(dialects))
	for name, c := range m.calls {
		calls[name] = c
	}
	for _, d := range dialects {
		if calls[d.Name()] == nil {
			calls[d.Name()] = new(dialectCalls)
		}
	}
	m.calls = calls
	m.ready.Store(&calls)
}

// count counts a call, ended with an error or nil after some time. For a stream, it is the time until it begins.
func (m *Meter) count(x *exchange, err error, took time.Duration) {
	c := (*m.ready.Load())[x.call.Dialect]
	if c == nil {
		return
	}
	method, kind := methodOf(&x.call.Call), maxKinds
	if err != nil {
		kind = min(int(task.KindOf(err)), maxKinds-1)
	}
	c.count[method][kind].Add(1)
	c.took[method].AddTraced(took, x.span)
}

// Calls are the calls of one method in one dialect.
type Calls struct {
	Dialect, Method string
	Took            *measure.Durations

	count *[maxKinds + 1]atomic.Uint64
}

// WithoutError is the name of the kind of calls without an error.
const WithoutError = "ok"

// ByKind yields the numbers of calls by the name of the kind of their error, or WithoutError.
func (c *Calls) ByKind() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for i := range c.count {
			name := WithoutError
			if i < maxKinds {
				name = task.Kind(i).String()
			}
			if n := c.count[i].Load(); n > 0 && !yield(name, n) {
				return
			}
		}
	}
}

// Calls yields the calls of every called method.
func (m *Meter) Calls() iter.Seq[Calls] {
	return func(yield func(Calls) bool) {
		for dialect, c := range *m.ready.Load() {
			for i := range numMethods {
				calls := Calls{Dialect: dialect, Method: methodNames[i], Took: &c.took[i], count: &c.count[i]}
				called := false
				for range calls.ByKind() {
					called = true
					break
				}
				if called && !yield(calls) {
					return
				}
			}
		}
	}
}

// meterOf returns the meter of an agent. Configurations share it.
func (p *Process) meterOf(name string) *Meter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.meters == nil {
		p.meters = make(map[string]*Meter)
	}
	if p.meters[name] == nil {
		p.meters[name] = new(Meter)
		p.meters[name].serve(nil)
	}
	return p.meters[name]
}

// Meter returns the counts of the agent.
func (g *Gateway) Meter() *Meter { return g.meter }

// Slots returns the slots of the agent; nil if the Partner was given its agent.
func (g *Gateway) Slots() *upstream.Slots {
	if g.agent == nil {
		return nil
	}
	return g.agent.Slots()
}
