// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/internal/bug"
	"github.com/aip-gateway/aip-gateway/translate"
)

// watch is a new stream of a polled task: a sign of when to ask, and of the agent's presence. A nil watch is none.
type watch struct {
	run    *run
	news   chan struct{} // an event has come
	ctx    context.Context
	stop   context.CancelFunc
	begun  bool
	open   atomic.Bool
	reader sync.WaitGroup
}

// newWatch returns a watch of the turn's task. It must be closed. Nothing is sent before it begins.
func (r *run) newWatch() *watch {
	w := &watch{run: r, news: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(r.ctx)
	return w
}

// begin asks for the stream, once. One connection of a run is enough until its agent reports to be still at work, and a
// new turn needs it more.
func (w *watch) begin() {
	if w == nil || w.begun {
		return
	}
	w.begun = true
	r := w.run
	if r.facets.Resubscriber == nil || r.streamless.Load() || r.hasNoStreams() {
		return
	}
	turns := &r.config.Slots.turns
	if !turns.try(r.turn.Leader, 2) {
		return
	}
	q := r.query(translate.Resubscribe)
	leader := r.turn.Leader
	w.reader.Go(func() {
		defer turns.release(leader)
		w.read(q)
	})
}

// renew has begin ask again, because the agent was gone.
func (w *watch) renew() {
	if w != nil && !w.open.Load() {
		w.begun = false
	}
}

// events signals an event; never without a watch.
func (w *watch) events() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.news
}

// isOpen reports whether the agent keeps the stream open.
func (w *watch) isOpen() bool { return w != nil && w.open.Load() }

// close ends the stream, and waits for its reader.
func (w *watch) close() {
	w.stop()
	w.reader.Wait()
}

// read signals every event of the stream. It runs beside the run's own goroutine, and uses no changing field. A bug in
// it costs the stream only: the task is polled as well.
func (w *watch) read(q *query) {
	defer w.open.Store(false)
	defer func() {
		if p := recover(); p != nil {
			bug.Log(w.ctx, w.run.log,
				"the gateway failed while it read a stream of the agent; this is a bug of the gateway", p,
				slog.String("agent_task", q.Ref.Task))
		}
	}()
	q.Body = q.codec.(translate.Resubscriber).AppendResubscribe(nil, q.Ref)
	x, err := begin(w.ctx, w.run.transport.Routes(translate.Resubscribe)[0], q)
	if err != nil {
		return
	}
	defer x.Close(ErrAbandoned)
	if !x.Streams() {
		return
	}
	w.open.Store(true)
	for {
		if _, err := x.Next(); err != nil {
			return
		}
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}
