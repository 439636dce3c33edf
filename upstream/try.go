// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Trial is the record of an agent's acts on a message of a trial.
type Trial struct {
	Sent     []translate.Operation // the operations by which the message was sent; more than one if it was sent again
	Why      string                // the reason for them; empty if the agent's dialect decides
	Streamed bool                  // the agent has answered by a stream, the last time
	Cut      bool                  // the stream ended without a last state
	Events   int                   // the messages of its answer
	First    time.Duration         // the time from the beginning to the first of them

	States      []Stage // in order, the first maxStages; one that says nothing new is left out
	State       task.State
	Products    []task.Product
	WithoutTask bool  // the agent has made no task
	Err         error // the turn's failure; nil if the agent has ended it
	TimedOut    bool  // the agent was still at work when there was no more time

	Asked  bool   // it was asked for the task afterwards
	Known  string // the state of the task as it knows it, in its own word
	GetErr error  // the error of that question

	Canceled  bool            // it was asked to cancel the task, not ended yet
	Cancel    []task.DataItem // the remarks about the cancel
	CancelErr error           // the error of the cancel

	began time.Time
	fold  task.Fold
}

// Stage is a state of a Trial.
type Stage struct {
	Name  string // the agent's own word
	Items []task.DataItem
}

const (
	maxStages     = 100
	maxTrialBytes = 16 << 20 // of the products
)

// Try has the agent carry out a start with a text, as Run does for a caller asking for a stream, and returns a record
// of it. No caller is named, and nothing is stored. The agent is asked for the task afterwards, and none is left open:
// a question is not answered, but canceled, as is a task in work when ctx ends. Nothing is pushed, since the address
// for pushes is another process's.
func (a *Agent) Try(ctx context.Context, text string) *Trial {
	ref := agent.Ref{Task: uuid.NewString(), Session: uuid.NewString()}
	t := &agent.Turn{Ref: ref, Message: task.Message{
		ID: uuid.NewString(), SentAt: time.Now(), SenderRole: task.Leader, Command: task.Start,
		TaskID: ref.Task, SessionID: ref.Session, DataItems: []task.DataItem{task.Text(text)},
	}}
	seen := &Trial{began: time.Now()}
	way, why := a.Way(ctx)
	r := run{Agent: a, ctx: ctx, turn: t, trial: seen}
	r.yield = func(rep agent.Report, _ error) bool {
		r.turn = named(r.turn, &rep)
		return seen.take(&rep)
	}
	defer r.unname()
	r.expectName()
	if err := r.carryOut(true); seen.Err == nil {
		seen.Err = err
	}
	if seen.TimedOut = seen.Err != nil && ctx.Err() != nil; seen.TimedOut {
		seen.Err = nil
	}
	seen.Products = seen.fold.Task().Products
	if len(seen.Sent) > 0 && (way == streamed) == (seen.Sent[0] == translate.SendStream) {
		seen.Why = why
	}
	if r.Endpoint != nil && !seen.WithoutTask && (r.turn.Ref.Task != t.Ref.Task || !r.unnamed(t)) {
		r.unname()
		r.settle(seen)
	}
	return seen
}

// settle asks for a task on trial, and ends it if it has not ended.
func (r *run) settle(seen *Trial) {
	after, end := context.WithTimeout(context.WithoutCancel(r.ctx), 2*askTimeout)
	defer end()
	r.ctx = after
	if seen.Asked = r.heard && r.facets.Getter != nil; seen.Asked {
		rep, err := r.get(after)
		seen.Known, seen.GetErr = word(&rep), err
	}
	turn := *r.turn
	turn.From = seen.State
	switch mayWork := seen.TimedOut || r.heard || task.KindOf(seen.Err) == task.AgentTimeout; {
	case seen.State == task.AwaitingCompletion:
		_ = r.Complete(after, &turn) // as in the life-cycle, whatever the answer
	case !seen.State.Terminal() && mayWork && len(seen.Sent) > 0:
		seen.Canceled = true
		var rep agent.Report
		if rep, seen.CancelErr = r.Cancel(after, &turn); seen.CancelErr == nil && rep.State != task.Canceled {
			seen.CancelErr = task.Errorf(task.Internal, "the agent says of it %q", word(&rep))
		}
		seen.Cancel = rep.Items
	}
}

// word returns the agent's own word for the state in a report.
func word(rep *agent.Report) string {
	if rep.NativeState != "" {
		return rep.NativeState
	}
	return string(rep.State)
}

// take notes a report. It returns false if no more is wanted.
func (seen *Trial) take(rep *agent.Report) bool {
	if rep.Delivery != agent.DeliveryUnknown {
		return true
	}
	seen.fold.ApplyPieces(rep.Pieces, 0, rep.Pieces.Len(), 1)
	if rep.Full {
		seen.fold = task.NewFold(task.Task{Products: rep.Products})
	}
	for i := range rep.Chunks {
		seen.fold.Apply(task.Event{Seq: 1, Chunk: &rep.Chunks[i]})
	}
	if rep.State != task.None {
		seen.State = rep.State
	}
	seen.WithoutTask = seen.WithoutTask || rep.WithoutTask
	stage := Stage{word(rep), slices.Clone(rep.Items)}
	n := len(seen.States)
	old := n > 0 && seen.States[n-1].Name == stage.Name &&
		(len(stage.Items) == 0 || slices.EqualFunc(seen.States[n-1].Items, stage.Items, task.DataItem.Equal))
	if stage.Name != "" && !old && n < maxStages {
		seen.States = append(seen.States, stage)
	}
	if seen.fold.ProductsSize() > maxTrialBytes {
		seen.Err = task.Errorf(task.LimitExceeded, "the try was ended, because its products are larger than %d bytes",
			maxTrialBytes)
	}
	return seen.Err == nil && !seen.State.Settled()
}

// sends notes the sending of a message of the trial, and returns the Trial to note the answer; nil for any other
// operation, or without a Trial.
func (seen *Trial) sends(op translate.Operation) *Trial {
	if seen == nil || op != translate.Send && op != translate.SendStream {
		return nil
	}
	seen.Sent, seen.Events, seen.First = append(seen.Sent, op), 0, 0
	return seen
}

// note notes an arrived message of the answer.
func (seen *Trial) note(streamed bool, err error) {
	seen.Streamed = streamed
	if err != nil {
		return
	}
	if seen.Events++; seen.Events == 1 {
		seen.First = time.Since(seen.began)
	}
}
