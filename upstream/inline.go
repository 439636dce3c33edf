// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"iter"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

var _ partner.InlineAgent = (*Agent)(nil)

// inlineTurn implements partner.InlineTurn: the first exchange of a turn, without the policy of a run. If it does not
// end the turn, run.carryOut gets the exchange as it stands, and continues as if it had begun it.
type inlineTurn struct {
	run
	ends Interrupt // of Wait
	end  func()    // of the context
}

// begun is the first exchange of a turn, begun inline.
type begun struct {
	routes []Route // of the message; it was sent by the first
	x      asked   // in a slot; none if it has ended, with got and err
	got    received
	err    error
}

// Inline implements partner.InlineAgent.
func (a *Agent) Inline(t *agent.Turn) partner.InlineTurn {
	return &inlineTurn{run: run{Agent: a, turn: t}}
}

// Interrupt implements partner.InlineTurn.
func (t *inlineTurn) Interrupt() { t.ends.End() }

// Wait implements partner.InlineTurn.
func (t *inlineTurn) Wait(ctx context.Context, until time.Time) (rep agent.Report, ended bool) {
	r := &t.run
	t.ends.Until = until
	r.ctx, t.end = r.untilLost(ctx, &t.ends)
	r.interrupt = &t.ends
	defer func() {
		if ended {
			t.end()
		}
		if r.interrupt = nil; ended || r.begun == nil && r.inbox == nil {
			r.unname() // carryOut begins anew
			r.Endpoint = nil
		}
	}()
	if !r.isOneRequest() || !r.config.Slots.turns.try(r.turn.Leader, 1) {
		return rep, false
	}
	routes := r.transport.Routes(translate.Send)
	x, err := r.open(routes[0], translate.Send)
	if isHeldBack(err) {
		return rep, false
	}
	if err != nil {
		r.begun = &begun{routes: routes, err: err}
		return rep, false
	}
	got, err := r.receive(x, false)
	switch {
	case err == ErrInterrupted:
		r.begun = &begun{routes: routes, x: x, got: got}
		return rep, false
	case err != nil || !r.endsWith(&got.report):
		r.begun = &begun{routes: routes, got: got, err: err}
		return rep, false
	}
	routes[0].Confirm()
	r.config.Secrets.hideInEnd(&got.report)
	r.claimSession(&got.report)
	r.name(&got.report)
	return got.report, true
}

// isOneRequest sets the endpoint, and reports whether the turn begins with a request of one answer, and nothing else.
// An agent with unasked messages has more to say.
func (r *run) isOneRequest() bool {
	e := r.config.Resolver.Known()
	if e == nil {
		return false
	}
	r.use(e)
	if r.inbox = r.listen(); r.inbox != nil {
		return false
	}
	return !r.asksForStream(false)
}

// Rest implements partner.InlineTurn.
func (t *inlineTurn) Rest() iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		t.yield = yield
		defer t.end()
		defer t.unname()
		t.expectName()
		t.finish(t.carryOut(false))
	}
}
