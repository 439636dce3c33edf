// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// read reports the events of a stream until the turn ends or the caller takes no more. The events of one read of the
// agent's stream are one report, as far as possible. So a fast agent does not cost a write, a lock and a wake-up for
// each piece of a product.
func (r *run) read(x asked) (brought, error) {
	s := reading{run: r, from: x, codec: x.codec.NewStream(r.turn.Known)}
	s.texts, _ = s.codec.(translate.TextStream)
	defer s.arrived.release()
	for {
		if over, err := s.next(); over || err != nil {
			return s.brought, err
		}
	}
}

// reading is a stream read by run.read.
type reading struct {
	brought
	run     *run
	from    asked
	codec   translate.Stream
	texts   translate.TextStream // nil if the codec reads no texts apart
	arrived arrivals
	held    *agent.Report   // the settled state, perhaps the end of the turn; nil for none
	shown   bool            // the agent's words with it, if it is one on the way, were reported
	closing bool            // the agent has called the stream ended, without such a state
	until   time.Time       // when the agent has been silent for long enough behind it; zero for never
	said    []task.DataItem // with the last state
}

// brought is the content of a stream so far.
type brought struct {
	seen, acted bool            // there was an event; there was one proving the agent's action on the message
	delivered   bool            // there was a product of the turn
	last        []task.DataItem // the agent's last words before it called the stream ended
}

// next reads one message. It returns true if the turn has ended, or the caller takes no more.
func (s *reading) next() (over bool, _ error) {
	if s.isSilent() { // though messages without a meaning come
		return s.silent()
	}
	m, err := s.from.Next()
	if err != nil && s.run.ctx.Err() == nil && s.isSilent() {
		return s.silent()
	}
	if err == nil && s.texts != nil && s.texts.Text(m.Name, m.Data, s.arrived.pieces()) {
		s.seen, s.acted, s.run.acted, s.delivered = true, true, true, true
		if (s.held != nil || s.closing) && !s.heldFollowed() {
			return true, nil
		}
		return s.hasPiece(), nil
	}
	var rep agent.Report
	if err == nil {
		if rep, err = s.codec.Event(m.Name, m.Data); err == nil {
			err = s.run.renamed(&rep)
		} else {
			err = s.run.paired(err)
		}
	}
	if err != nil && s.held != nil && s.run.ctx.Err() == nil {
		return s.end(*s.held)
	}
	if err != nil && s.closing && s.run.ctx.Err() == nil {
		err = errStreamEnded
	}
	if err != nil {
		if rep, ok := s.concluded(err); ok {
			return s.end(rep)
		}
		return s.fail(err)
	}
	rep.Stored = m.Stored
	if s.note(&rep); rep.Last && s.held != nil && rep.State == task.None {
		return s.end(*s.held)
	}
	if empty(&rep) {
		return s.merge(rep), nil
	}
	s.seen, s.run.turn = true, named(s.run.turn, &rep)
	if !s.acted && early(s.run.turn, &rep) {
		return !s.run.report(agent.Report{Delivery: agent.DeliveryAcknowledged, Verbatim: rep.Verbatim}), nil
	}
	s.acted = true
	if s.held != nil {
		if rep, over = s.follows(rep); over {
			return true, nil
		}
	}
	switch {
	case !rep.EndsTurn():
		s.run.acted = true
		return s.merge(rep), nil
	case rep.Follows != agent.FollowsNothing:
		return s.hold(rep), nil
	}
	return s.end(rep)
}

// end reports the end of the turn.
func (s *reading) end(rep agent.Report) (over bool, _ error) {
	rep = s.run.restated(rep)
	if err := s.run.ignored(&rep); err != nil {
		return false, err
	}
	return s.merge(rep), nil
}

// fail ends the reading of a stream by an error, once all arrived pieces are reported.
func (s *reading) fail(err error) (over bool, _ error) {
	if s.arrived.any() && !s.reportPieces() {
		return true, nil
	}
	return false, err
}

// moreFollows reports whether the next message need not be waited for, and can be a part of the same report.
func (s *reading) moreFollows() bool { return !s.arrived.full() && s.from.Ready() }

// hasPiece reports the arrived pieces, unless more follows. It returns true if the caller takes no more.
func (s *reading) hasPiece() (over bool) {
	if s.moreFollows() {
		return false
	}
	if !s.reportPieces() {
		return true
	}
	s.arrived.release()
	return false
}

// reportPieces reports the arrived pieces. It returns false if the caller takes no more.
func (s *reading) reportPieces() bool { return s.run.report(agent.Report{Pieces: s.arrived.held}) }

// merge makes the arrived pieces a part of a report, and reports it, unless it has only pieces and more follows. It
// returns true if the turn has ended, or the caller takes no more.
func (s *reading) merge(rep agent.Report) (over bool) {
	if s.arrived.any() && apart(&rep) {
		if !s.reportPieces() {
			return true
		}
		s.arrived.held.Reset()
	}
	s.arrived.add(&rep)
	if nothingElse(&rep) && rep.Stored == nil && (!s.arrived.any() || s.moreFollows()) {
		return false
	}
	if !s.run.report(rep) || rep.EndsTurn() {
		return true
	}
	s.arrived.release()
	if rep.SelfResuming { // the agent may take as long as the task may await input
		s.from.SetIdleTimeout(0)
	}
	return false
}

// restated returns the agent's answer to one question for the task, in place of the stream's event at the end of the
// turn: a piece of the stream may be lost, repeated or in the wrong place (translate.Restater). An answer of another
// state than the event, of the turn before, or without products is not to be believed more than the stream. The agent
// is not asked about a canceled task: the answer to the cancel is the whole task.
func (r *run) restated(event agent.Report) agent.Report {
	if r.facets.Restater == nil || event.Full || event.State == task.Canceled {
		return event
	}
	rep, err := r.getWithin(restTimeout)
	if err != nil || !rep.Full || len(rep.Products) == 0 || rep.State != event.State || untouched(r.turn, &rep) {
		return event
	}
	return rep
}

// arrivals are the pieces of products read from a stream and not reported yet. Nothing is held while the stream is
// waited for.
type arrivals struct{ held *task.Pieces }

// The most to arrive together: so many pieces, and so many bytes of them, but for the last piece.
const (
	maxPieces      = 1024
	maxPiecesBytes = 64 << 10
)

var piecesPool = sync.Pool{New: func() any { return new(task.Pieces) }}

// pieces returns the place of the next piece.
func (a *arrivals) pieces() *task.Pieces {
	if a.held == nil {
		a.held = piecesPool.Get().(*task.Pieces)
	}
	return a.held
}

// add moves the chunks of a report to the arrived pieces, and makes all these a part of the report.
func (a *arrivals) add(rep *agent.Report) {
	if !rep.Full {
		for i := range rep.Chunks {
			a.pieces().AddChunk(&rep.Chunks[i])
		}
		rep.Chunks = nil
	}
	if a.any() {
		rep.Pieces = a.held
	}
}

func (a *arrivals) any() bool { return a.held.Len() > 0 }

func (a *arrivals) full() bool { return a.held.Len() >= maxPieces || a.held.Stored() >= maxPiecesBytes }

// release drops the pieces after they are reported.
func (a *arrivals) release() {
	if a.held == nil {
		return
	}
	if a.held.Reset(); a.held.Cap() <= 2*maxPiecesBytes {
		piecesPool.Put(a.held)
	}
	a.held = nil
}

// apart reports whether a report must not be merged with the pieces before it. It would make them void, so the result
// would depend on the reads of the stream.
func apart(r *agent.Report) bool {
	return r.Full || r.State == task.Canceled || r.State == task.Rejected
}

// maxDrain is the most bytes of events of a stream in answer to a question.
const maxDrain = 16 << 20

// drain reads a stream in answer to a question, as one report: until the task is settled for good, or the stream ends.
func (r *run) drain(x asked, known []task.Product) (agent.Report, error) {
	codec := x.codec.NewStream(known)
	fold := task.NewFold(task.Task{Products: known})
	var whole agent.Report
	for seen, size := false, 0; ; {
		m, err := x.Next()
		held := whole.Follows != agent.FollowsNothing
		if seen && ReasonOf(err) == StreamCut || err != nil && held && r.ctx.Err() == nil {
			return whole, nil
		}
		if err != nil {
			return agent.Report{}, err
		}
		if size += len(m.Data); size > maxDrain {
			return agent.Report{}, task.Errorf(task.InvalidAgentResponse, "the agent's answer is larger than %d bytes",
				maxDrain)
		}
		rep, err := codec.Event(m.Name, m.Data)
		if err != nil {
			return agent.Report{}, r.paired(err)
		}
		seen = seen || !empty(&rep)
		if whole = merged(whole, rep, &fold); whole.EndsTurn() && whole.Follows == agent.FollowsNothing {
			return whole, nil
		}
		if whole.Follows != agent.FollowsNothing && !empty(&rep) || rep.Last {
			r.endAt(x, time.Now().Add(patience(&whole, false)))
		}
	}
}

// merged returns a report and the one after it as one. fold holds the products so far.
func merged(whole, next agent.Report, fold *task.Fold) agent.Report {
	full := whole.Full || next.Full || len(next.Chunks) > 0
	if next.Full {
		*fold = task.NewFold(task.Task{Products: next.Products})
	}
	for i := range next.Chunks {
		fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &next.Chunks[i]})
	}
	if next.Ref == nil {
		next.Ref = whole.Ref
	}
	switch {
	case next.State == task.None:
		whole.Ref = next.Ref
		next = whole
	case whole.Follows != agent.FollowsNothing:
		next = after(&whole, next)
	}
	next.Full, next.Products, next.Chunks = full, fold.Task().Products, nil
	return next
}

// nothingElse reports whether a report says nothing but its pieces.
func nothingElse(r *agent.Report) bool {
	return r.State == task.None && r.NativeState == "" && len(r.Items) == 0 && !r.Full && r.Ref == nil
}

func empty(r *agent.Report) bool { return nothingElse(r) && len(r.Chunks) == 0 }

// early reports whether an agent has answered a message before it acted on it: its task is settled, and has not changed
// since the turn before.
func early(t *agent.Turn, rep *agent.Report) bool { return rep.RevisionDated && untouched(t, rep) }

// named returns t with the agent's names for the task.
func named(t *agent.Turn, rep *agent.Report) *agent.Turn {
	if rep.Ref == nil {
		return t
	}
	again := *t
	if again.Ref = *rep.Ref; again.Ref.Task != t.Ref.Task {
		again.Revision = "" // it is that of another task
	}
	return &again
}
