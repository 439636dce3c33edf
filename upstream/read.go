// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxTogether is how many pieces that arrived together are reported together.
const maxTogether = 256

// read reports the events of a stream until the turn ends or the caller takes no more. Pieces of products that arrived
// together are reported together, so that a fast agent does not cost a write for each. seen says whether there was any
// event, and acted whether there was one that shows that the agent has acted on the message.
func (r *run) read(x Exchange) (seen, acted bool, _ error) {
	codec := r.codec.NewStream(r.turn.Known)
	var together agent.Report
	for {
		var rep agent.Report
		m, err := x.Next()
		if err == nil {
			rep, err = codec.Event(m.Name, m.Data)
		}
		if err != nil {
			if len(together.Chunks) > 0 && !r.report(together) {
				return seen, acted, nil
			}
			return seen, acted, err
		}
		if empty(&rep) && len(together.Chunks) == 0 {
			continue
		}
		seen, r.turn = true, named(r.turn, &rep)
		if !acted && early(r.turn, &rep) {
			if !r.report(agent.Report{Delivery: agent.DeliveryAcknowledged}) {
				return seen, acted, nil
			}
			continue
		}
		acted = true
		if len(together.Chunks) > 0 {
			rep.Chunks = append(together.Chunks, rep.Chunks...)
		}
		if together = (agent.Report{}); pieces(&rep) && len(rep.Chunks) < maxTogether && x.Ready() {
			together = rep
			continue
		}
		if !r.report(rep) || rep.EndsTurn() {
			return seen, acted, nil
		}
		if rep.SelfResuming { // the agent may take as long as the task may await input
			x.SetIdleTimeout(0)
		}
	}
}

// maxDrain is how many bytes of events a stream that answers a question may have.
const maxDrain = 16 << 20

// drain reads a stream that answers a question, as one report: until the task is settled, or the stream ends.
func (r *run) drain(x Exchange, known []task.Product) (agent.Report, error) {
	codec := r.codec.NewStream(known)
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

// pieces reports whether a report is of nothing but pieces of products.
func pieces(r *agent.Report) bool {
	return len(r.Chunks) > 0 && r.State == task.None && len(r.Items) == 0 && !r.Full && r.Ref == nil
}

func empty(r *agent.Report) bool {
	return r.State == task.None && r.NativeState == "" && len(r.Items) == 0 && len(r.Chunks) == 0 && !r.Full &&
		r.Ref == nil
}

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
