// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// inlineMost is the time for which the goroutine waiting for a turn carries it out itself. In this time it notices
// neither that its caller has left nor that the process stops.
const inlineMost = 250 * time.Millisecond

// awaitAnswer is waitAnswer for the caller at the beginning of the turn. The turn is carried out inline first, and
// handed over to the engine if it takes too long.
func (r *run) awaitAnswer(ctx context.Context, until time.Time, c *Request) error {
	if r.inline != nil && r.carryOutInline(time.Now().Add(min(time.Until(until), inlineMost))) {
		return nil
	}
	return r.waitAnswer(ctx, until, c)
}

// waitAnswer waits until the turn has settled, until a time at most, or until the process stops; with Policy.Direct
// until an agent of AIP has answered. With Policy.Begun the beginning of the task is shown meanwhile, if the turn takes
// longer than a stream waits for the first report. Another goroutine carries the turn out. The error is the one of ctx.
func (r *run) waitAnswer(ctx context.Context, until time.Time, c *Request) error {
	r.tk.mu.Lock()
	settled := r.settled.wait()
	var verbatim <-chan struct{}
	if c.Direct {
		verbatim = r.verbatim.wait()
	}
	shows := c.Begun && c.Terms.Response != task.NoWait && r.tk.meta.Pending != nil
	r.tk.mu.Unlock()
	first := until
	if begun := r.began.Add(r.partner.FirstReport); shows && begun.Before(until) {
		first = begun
	}
	timeout := time.NewTimer(time.Until(first))
	defer timeout.Stop()
	stopping := r.partner.Stopping
	for {
		select {
		case <-settled:
			return nil
		case <-verbatim:
			return nil
		case <-timeout.C:
			if first == until {
				return nil
			}
			r.show(ctx)
			first = until
			timeout.Reset(time.Until(until))
		case <-stopping:
			stopping, first = nil, until
			left := max(r.partner.Drain-inlineMost, 0) // the inline part may have been the beginning of the drain
			timeout.Reset(min(rand.N(left+1), time.Until(until)))
		case <-ctx.Done():
			if shows {
				r.show(context.WithoutCancel(ctx))
			}
			return ctx.Err()
		}
	}
}

// show stores the start of the turn as accepted, and the agent as working on it, unless more is known by now.
func (r *run) show(ctx context.Context) {
	tk := r.tk
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if tk.run != r || r.settled.happened {
		return
	}
	_ = tk.update(ctx, func() error { // if the store refuses it, it is stored with the next write
		r.shown = tk.meta.Pending != nil
		return tk.commitPending(ctx)
	})
}

// sent is Turn.Sent: it shows the beginning of the turn, if the answer takes longer than a stream waits for the first
// report.
func (r *run) sent() (answered func()) {
	shown := make(chan struct{})
	timer := time.AfterFunc(r.partner.FirstReport, func() {
		defer close(shown)
		r.show(r.ctx)
	})
	return func() {
		if !timer.Stop() {
			<-shown
		}
	}
}

// carryOutInline carries the turn out in the calling goroutine, and reports whether the run has ended. A goroutine of
// the engine continues whatever is not done at its return: only a turn that ends as most turns do ends here.
func (r *run) carryOutInline(until time.Time) bool {
	tk := r.tk
	var rep agent.Report
	var last uint64
	var ended bool
	answered, err := tk.guardRun(r.ctx, func() (answered bool, err error) {
		if rep, answered = r.inline.Wait(r.ctx, until); answered {
			ended, last, err = tk.tryReport(r.ctx, r, &rep)
		}
		return answered, err
	})
	switch {
	case ended && err == nil:
		r.end(nil)
		tk.engine.work.Done()
		return true
	case isTransient(err):
		r.retryLater(rep, last)
	case answered || err != nil:
		r.concludeLater(ended, err)
	default:
		r.start(func() (bool, error) { return tk.consume(r.ctx, r, r.inline.Rest()) })
	}
	return false
}

// retryLater has the engine record a report refused by the store (see retryReport).
func (r *run) retryLater(rep agent.Report, last uint64) {
	r.start(func() (bool, error) { return r.tk.retryReport(r.ctx, r, rep, last) })
}

// concludeLater has the engine conclude the turn (see conclude).
func (r *run) concludeLater(ended bool, err error) {
	r.start(func() (bool, error) { return ended, err })
}

// handOver has the engine carry out a turn without a waiter for its result.
func (r *run) handOver() {
	if r.inline != nil {
		r.start(func() (bool, error) { return r.tk.consume(r.ctx, r, r.partner.Agent.Run(r.ctx, &r.turn, false)) })
	}
}
