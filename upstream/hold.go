// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// The longest silence of a stream after a settled state.
const (
	grace  = 2 * time.Second        // until a state not called final by the agent ends the turn
	tail   = 250 * time.Millisecond // until one called final by the agent does
	asking = 10 * time.Second       // until the Leader is asked, though the agent goes on by its own word
)

// hold keeps back a settled state if more may follow in the stream: a product, or another state. The held report is
// made when the stream ends, or is silent for long enough. It returns true if the caller takes no more.
func (s *reading) hold(rep agent.Report) (over bool) {
	ends := rep.Follows == agent.FollowsStragglers && !rep.Full && len(rep.Chunks) == 0
	if s.arrived.any() && !ends { // otherwise the end of the turn is one report with the pieces before it
		if !s.reportPieces() {
			return true
		}
		s.arrived.release()
	}
	s.held, s.shown = &rep, false
	s.renew()
	return false
}

// patience returns the longest silence of a stream after a held report, with its words shown already or not.
func patience(held *agent.Report, shown bool) time.Duration {
	switch {
	case held == nil || held.Follows == agent.FollowsMore:
		return grace
	case shown:
		return asking
	}
	return tail
}

// renew begins the time of the stream's silence again.
func (s *reading) renew() {
	s.until = time.Now().Add(patience(s.held, s.shown))
	s.run.endAt(s.from, s.until)
}

// isSilent reports whether the stream has been silent for long enough behind a possible last word.
func (s *reading) isSilent() bool {
	return (s.held != nil || s.closing) && !s.until.IsZero() && !time.Now().Before(s.until)
}

// silent ends the turn with the held report. If the agent goes on, by its own word, its words are shown; later the
// Leader is asked, while the stream is read on.
func (s *reading) silent() (over bool, _ error) {
	switch {
	case s.held == nil:
		return s.fail(errStreamEnded)
	case s.held.Follows != agent.FollowsWork:
		return s.end(*s.held)
	case !s.shown:
		over = !s.show()
		s.renew()
		return over, nil
	}
	asked := *s.held
	asked.SelfResuming, s.until = true, time.Time{}
	s.run.endAt(s.from, s.until)
	return s.merge(asked), nil
}

// show reports the agent's words with a state, after the state has turned out to be one on the way. It returns false if
// the caller takes no more.
func (s *reading) show() bool {
	h := s.held
	if s.shown {
		return true
	}
	s.shown = true
	way := *h
	way.State, way.Follows = task.Working, agent.FollowsNothing
	if h.Message {
		way = agent.Report{State: task.Working, NativeState: h.NativeState, Items: h.Items}
		for _, p := range h.Products {
			way.Items = append(slices.Clip(way.Items), p.DataItems...)
		}
		h.Ref = nil
	}
	says := !h.Message || len(h.Items) > 0 || hasContent(h)
	h.Full, h.Products, h.Chunks = false, nil, nil
	return !says || s.run.report(way)
}

// A beating is an Exchange with an agent that may send heartbeats. These are no messages, but signs of life.
type beating interface {
	// EndAt has Next fail at a time unless a message comes before, regardless of heartbeats; zero is for never. It takes
	// such a failure back.
	EndAt(t time.Time)
}

// endAt limits the wait for the next message of a stream; zero is for as long as the request allows.
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

// heldFollowed reports the products of the held report, because others follow. It returns false if the caller takes no
// more.
func (s *reading) heldFollowed() bool {
	h := s.held
	s.renew()
	switch {
	case h == nil:
		return true
	case h.Message || h.Follows == agent.FollowsWork:
		return s.show()
	case !h.Full && len(h.Chunks) == 0:
		return true
	}
	first := agent.Report{Full: h.Full, Products: h.Products, Chunks: h.Chunks}
	h.Full, h.Products, h.Chunks = false, nil, nil
	return s.run.report(first)
}

// follows returns the report to go on with when another follows the held one: the new report itself if it has a state.
// Otherwise the held one stays, but for its products: they come first. over is true if the caller takes no more.
func (s *reading) follows(rep agent.Report) (_ agent.Report, over bool) {
	h := s.held
	goesOn := rep.State != task.None && !rep.State.Settled()
	if h.Follows == agent.FollowsStragglers && h.State != task.AwaitingInput && (goesOn || rep.Message) {
		late := agent.Report{Chunks: rep.Chunks} // the turn has ended, whatever the state
		if len(rep.Items) > 0 {
			over = !s.run.report(agent.Report{State: task.Working, NativeState: rep.NativeState, Items: rep.Items})
		}
		if rep, goesOn = late, false; over || empty(&rep) {
			return rep, over
		}
	}
	switch {
	case h.Message && rep.Message: // it has the products of both
		if said := (agent.Report{Full: true, Products: h.Products}); hasContent(h) {
			over = !s.run.report(said)
		}
	case h.Message && rep.State != task.None, goesOn && len(h.Items) > 0 && len(rep.Items) > 0,
		h.Follows == agent.FollowsWork && rep.State != task.None:
		over = !s.show()
	case rep.State == task.None || len(rep.Chunks) > 0:
		over = !s.heldFollowed() // it begins the time again
	}
	if rep.State == task.None {
		return rep, over
	}
	if s.until.IsZero() { // the Leader was asked
		s.from.SetIdleTimeout(s.run.config.IdleTimeout)
	}
	if !s.shown || rep.State == h.State {
		rep = after(h, rep)
	}
	s.held = nil
	if !s.closing {
		s.run.endAt(s.from, time.Time{})
	}
	return rep, over
}

// hasContent reports whether any product of a report has any.
func hasContent(rep *agent.Report) bool {
	for _, p := range rep.Products {
		if !p.IsEmpty() {
			return true
		}
	}
	return false
}

// after returns a report with the contents of the held one before it, as far as the report lacks them. An agent often
// repeats the state without the words.
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
