// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"sync"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// read reports the events of a stream until the turn ends or the caller takes no more. What one read of the agent's
// stream has brought is one report, as far as it can be, so that a fast agent does not cost a write, a lock and a
// wake-up for each piece of a product. seen says whether there was any event, and acted whether there was one that
// shows that the agent has acted on the message.
func (r *run) read(x asked) (seen, acted bool, _ error) {
	codec := x.codec.NewStream(r.turn.Known)
	texts, _ := codec.(translate.TextStream)
	var arrived arrivals
	defer arrived.release()
	for {
		var rep agent.Report
		m, err := x.Next()
		if err == nil && texts != nil && texts.Text(m.Name, m.Data, arrived.pieces()) {
			seen, acted, r.acted = true, true, true
			if !arrived.full() && x.Ready() {
				continue
			}
			if !r.report(agent.Report{Pieces: arrived.held}) {
				return seen, acted, nil
			}
			arrived.release()
			continue
		}
		if err == nil {
			if rep, err = codec.Event(m.Name, m.Data); errors.Is(err, translate.ErrOtherAnswer) {
				err = r.refused(x, err)
			}
		}
		if err != nil {
			if arrived.any() && !r.report(agent.Report{Pieces: arrived.held}) {
				return seen, acted, nil
			}
			return seen, acted, err
		}
		rep.Stored = m.Stored
		if !empty(&rep) {
			seen, r.turn = true, named(r.turn, &rep)
			if !acted && early(r.turn, &rep) {
				if !r.report(agent.Report{Delivery: agent.DeliveryAcknowledged}) {
					return seen, acted, nil
				}
				continue
			}
			if acted = true; rep.EndsTurn() {
				rep = r.restated(rep)
				if err := r.ignored(&rep); err != nil {
					return seen, acted, err
				}
			} else {
				r.acted = true
			}
		}
		if arrived.any() && apart(&rep) {
			if !r.report(agent.Report{Pieces: arrived.held}) {
				return seen, acted, nil
			}
			arrived.held.Reset()
		}
		if arrived.add(&rep); nothingElse(&rep) && rep.Stored == nil && (!arrived.any() || !arrived.full() && x.Ready()) {
			continue
		}
		if !r.report(rep) || rep.EndsTurn() {
			return seen, acted, nil
		}
		arrived.release()
		if rep.SelfResuming { // the agent may take as long as the task may await input
			x.SetIdleTimeout(0)
		}
	}
}

// restated returns what an agent says of the task when it is asked once, in place of the event of a stream that has
// ended the turn: a piece of the stream may be lost, repeated or in the wrong place (translate.Restater). An answer
// of another state than the event, of the turn before, or without products is not to be believed more than the stream.
func (r *run) restated(event agent.Report) agent.Report {
	if !r.restates || event.Full {
		return event
	}
	ctx, cancel := context.WithTimeout(r.ctx, min(restTimeout, r.config.IdleTimeout))
	defer cancel()
	rep, err := r.get(ctx)
	if err != nil || !rep.Full || len(rep.Products) == 0 || rep.State != event.State || untouched(r.turn, &rep) {
		return event
	}
	return rep
}

// arrivals are the pieces of products that were read from a stream and have not been reported. Nothing is held while
// the stream is waited for.
type arrivals struct{ held *task.Pieces }

// How much arrives together at most: so many pieces, and so many bytes of them, but for the last piece.
const (
	maxPieces      = 1024
	maxPiecesBytes = 64 << 10
)

var piecesPool = sync.Pool{New: func() any { return new(task.Pieces) }}

// pieces returns where the next piece is added.
func (a *arrivals) pieces() *task.Pieces {
	if a.held == nil {
		a.held = piecesPool.Get().(*task.Pieces)
	}
	return a.held
}

// add moves the chunks of a report to the pieces that have arrived, and makes all these a part of the report.
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

// release drops the pieces, which have been reported.
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
// would depend on how the stream was read.
func apart(r *agent.Report) bool {
	return r.Full || r.State == task.Canceled || r.State == task.Rejected
}

// maxDrain is how many bytes of events a stream that answers a question may have.
const maxDrain = 16 << 20

// drain reads a stream that answers a question, as one report: until the task is settled, or the stream ends.
func (r *run) drain(x asked, known []task.Product) (agent.Report, error) {
	codec := x.codec.NewStream(known)
	fold := task.NewFold(task.Task{Products: known})
	var whole agent.Report
	for seen, size := false, 0; ; {
		m, err := x.Next()
		if seen && ReasonOf(err) == StreamCut {
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
		if errors.Is(err, translate.ErrOtherAnswer) {
			err = r.refused(x, err)
		}
		if err != nil {
			return agent.Report{}, err
		}
		seen = seen || !empty(&rep)
		if whole = merged(whole, rep, &fold); whole.EndsTurn() {
			return whole, nil
		}
	}
}

// merged returns what a report and the one after it say together. fold holds the products so far.
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
	if next.State == task.None {
		whole.Ref = next.Ref
		next = whole
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

// named returns t with the names that the agent has given the task.
func named(t *agent.Turn, rep *agent.Report) *agent.Turn {
	if rep.Ref == nil {
		return t
	}
	again := *t
	again.Ref = *rep.Ref
	return &again
}
