// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// grace is how long a stream may be silent after a settled state that the agent has not called final, until that ends
// the turn.
const grace = 2 * time.Second

// hold keeps a settled state back after which more may follow in the stream: a product, or another state. What is held
// is reported when the stream ends, or is silent for the grace. It returns true if the caller takes no more.
func (s *reading) hold(rep agent.Report) (over bool) {
	if s.arrived.any() {
		if !s.reportPieces() {
			return true
		}
		s.arrived.release()
	}
	s.held = &rep
	s.renew()
	return false
}

// renew begins the grace again.
func (s *reading) renew() {
	s.until = time.Now().Add(grace)
	s.run.endAt(s.from, s.until)
}

// A beating is an Exchange whose agent may send heartbeats, which are no messages and are signs of life.
type beating interface {
	// EndAt has Next fail at a time, whatever the agent sends before that is no message; zero is for never.
	EndAt(t time.Time)
}

// endAt limits how long the next message of a stream is waited for; zero is for as long as the request allows.
func (r *run) endAt(x asked, t time.Time) {
	b, beats := x.Exchange.(beating)
	switch {
	case beats:
		b.EndAt(t)
	case t.IsZero():
		x.SetIdleTimeout(r.config.IdleTimeout)
	default:
		x.SetIdleTimeout(time.Until(t))
	}
}

// follows returns a report after one that is held, as what the turn has come to: the report itself where it has a
// state. Otherwise the held one stays, but for its products, which come first. over is true if the caller takes no
// more.
func (s *reading) follows(rep agent.Report) (_ agent.Report, over bool) {
	if s.renew(); rep.State == task.None || len(rep.Chunks) > 0 {
		over = !s.reportHeldProducts()
	}
	if rep.State == task.None {
		return rep, over
	}
	rep = after(s.held, rep)
	s.held = nil
	if !s.closing {
		s.run.endAt(s.from, time.Time{})
	}
	return rep, over
}

// reportHeldProducts reports the products of what is held, because others follow. It returns false if the caller takes
// no more.
func (s *reading) reportHeldProducts() bool {
	h := s.held
	if h == nil || !h.Full && len(h.Chunks) == 0 {
		return true
	}
	first := agent.Report{Full: h.Full, Products: h.Products, Chunks: h.Chunks}
	h.Full, h.Products, h.Chunks = false, nil, nil
	return s.run.report(first)
}

// after returns a report with what a provisional one before it has said, as far as the report does not say that itself.
// An agent often repeats the state without the words.
func after(held *agent.Report, rep agent.Report) agent.Report {
	if !rep.Full && len(rep.Chunks) == 0 {
		rep.Full, rep.Products, rep.Chunks = held.Full, held.Products, held.Chunks
	}
	if rep.Ref == nil {
		rep.Ref = held.Ref
	}
	if len(rep.Items) > 0 {
		return rep
	}
	if rep.Items = held.Items; len(rep.Extensions) == 0 {
		rep.Extensions = held.Extensions
	}
	if rep.State == held.State { // the agent repeats the status with its words when it is asked
		rep.Revision, rep.RevisionDated = held.Revision, held.RevisionDated
	}
	return rep
}
