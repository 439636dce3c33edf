// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Stream executes a start, continue or re-stream, and returns the number of the event before its answer. The answer is
// all events of a start, the events caused by a continue, or the events after the given one of a re-stream. A start of
// an existing task is a re-stream from the beginning. An ignored continue is a re-stream from the end, and a repeated
// one a re-stream of the events it caused.
//
// The Task of the Result has the ID, SessionID and GroupID for the frame of every event. If a snapshot was asked for,
// it is the whole task without its histories. After a start it says whether the agent has made no task, as far as the
// agent has answered already.
func (p *Partner) Stream(ctx context.Context, leader string, c *Request) (Result, error) {
	if cmd := c.Message.Command; (cmd == task.ReStream || cmd == task.Start) && !c.Continues() {
		tk := p.engine.acquire(logname.New(p.Name, leader, c.Message.TaskID))
		s, ok := p.reStream(ctx, tk, c)
		tk.release()
		if ok {
			return s, nil
		}
	}
	r, err := p.carryOut(ctx, leader, c, true)
	if err != nil {
		return Result{}, err
	}
	defer r.tk.release()
	s := r.Result
	s.After = 0
	switch {
	case c.Snapshot && !r.New:
		s.After = r.After
	case c.Message.Command == task.Continue || c.Continues() && !r.New:
		s.After = r.before
	case c.Message.Command == task.ReStream:
		if s.After = c.AfterSeq; s.After > r.before {
			err := task.Errorf(task.InvalidParams, "the task has no event %d yet; the last one is %d", s.After, r.before)
			return Result{}, err.WithField("params.message.commandParams.lastEventSeq").WithData("lastEventSeq", r.before)
		}
	}
	if r.turn != nil && c.Message.Command == task.Start {
		if err := r.tk.awaitFirstReport(ctx, r.turn, p.FirstReport); err != nil {
			return Result{New: r.New}, err
		}
		r.tk.mu.Lock()
		s.Task.WithoutTask = r.tk.meta.WithoutTask
		r.tk.mu.Unlock()
	}
	return s, nil
}

// awaitFirstReport waits until the agent has reported something about a task just started, but not for longer than
// most.
func (tk *activeTask) awaitFirstReport(ctx context.Context, turn *run, most time.Duration) error {
	tk.mu.Lock()
	reported, settled := turn.reported.wait(), turn.settled.wait()
	tk.mu.Unlock()
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	var left error
	select {
	case <-reported:
	case <-settled:
	case <-timeout.C:
	case <-ctx.Done():
		left = ctx.Err()
	}
	if refusal := turn.leave(); left != nil || refusal != nil {
		return cmp.Or(left, refusal)
	}
	tk.mu.Lock()
	defer tk.mu.Unlock()
	return tk.update(ctx, func() error { return tk.commitPending(ctx) })
}

// LastEvent returns the number of the last event of a log now; 0 if the store cannot be read, or has dropped the log.
func LastEvent(ctx context.Context, logs replay.Logs, log string) uint64 {
	head, err := logs.Head(ctx, log)
	if err != nil {
		return 0
	}
	return head.Last
}

// Read returns a Reader of the stored form of the events of a log after one. Its errors are io.EOF when the task has
// ended, the error of ctx, or a *task.Error: of kind TaskNotFound, with the numbers of the kept events, if the next
// ones are not kept.
func Read(logs replay.Logs, log string, after uint64) replay.Reader {
	return events{logs.Read(log, after)}
}

// events is a Reader with the errors of a stream.
type events struct{ replay.Reader }

// Next implements replay.Reader.
func (e events) Next(ctx context.Context, reserve replay.Reserve) ([]replay.Record, bool, error) {
	records, more, err := e.Reader.Next(ctx, reserve)
	if err != nil && err != io.EOF {
		err = streamError(ctx, err)
	}
	return records, more, err
}

// streamError returns the error of a stream for an error of the store.
func streamError(ctx context.Context, err error) error {
	if gone, ok := errors.AsType[*replay.CompactedError](err); ok {
		err := task.Errorf(task.TaskNotFound,
			"the events after %d are no longer kept; get the task, and re-stream from %d on", gone.After, gone.First-1)
		return err.WithData("reason", "EVENTS_EXPIRED").
			WithData("firstEventSeq", gone.First).WithData("lastEventSeq", gone.Last)
	}
	if refused, ok := errors.AsType[*task.Error](err); ok {
		return refused // by reserve
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, replay.ErrNotFound):
		return task.Errorf(task.TaskNotFound, "the task has ended and been dropped")
	case errors.Is(err, replay.ErrClosed):
		return task.Errorf(task.Internal, "the gateway is stopping; re-stream from the last event")
	}
	return StoreError(err, "the store cannot be read")
}
