// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"iter"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Position is the place a follower has read the log of a task up to. The zero Position is the beginning. The names of
// the members are stored.
type Position struct {
	Seq uint64 `json:"seq,omitempty"` // of the last event
	// At is the time the last read state was entered: times rise strictly within a task, so states held only by a snapshot
	// of the log are found again by it.
	At    time.Time  `json:"at,omitzero"`
	State task.State `json:"state,omitempty"` // of the task then
}

// take moves the position to an event, and reports whether the task has entered another state by it.
func (p *Position) take(ev *task.Event) (entered bool) {
	p.Seq = ev.Seq
	status := ev.Status
	if ev.Task != nil {
		status = &ev.Task.Status
	}
	if status == nil {
		return false
	}
	entered = status.State != p.State
	p.At, p.State = status.ChangedAt, status.State
	return entered
}

// Step is an event of a task as a follower reads it.
type Step struct {
	// Event stands for itself, or, if it is a Task with a number other than 1, for events held only by a snapshot of the
	// log: the Task as it was at its last one.
	task.Event
	Entered bool     // the task has entered another state, not read before
	After   Position // the position behind the step
}

// Steps yields the events of a log, as returned by Store.Load, in order. Those up to from.Seq were read before and
// enter no state. A snapshot of unread events is yielded as a step for each unread state. So no state is left out,
// whatever was trimmed; but the products of the task are known for the last one only. An error means a damaged log.
func Steps(from Position, head replay.Head, snapshot []byte, records []replay.Record) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		var at Position
		if snapshot != nil {
			ev, err := task.DecodeEvent(snapshot)
			if err != nil {
				yield(Step{}, err)
				return
			}
			ev.Seq = head.First - 1
			for _, s := range fromSnapshot(from, ev) {
				if !yield(s, nil) {
					return
				}
				at = s.After
			}
		}
		for _, r := range records {
			s, err := at.step(r)
			if err == nil && s.Seq <= from.Seq {
				s.Entered = false
			}
			if !yield(s, err) || err != nil {
				return
			}
			at = s.After
		}
	}
}

// step returns the step of a record behind a position.
func (p Position) step(r replay.Record) (Step, error) {
	ev, err := task.DecodeEvent(r.Data)
	if err != nil {
		return Step{}, err
	}
	ev.Seq = r.Seq
	entered := p.take(&ev)
	return Step{ev, entered, p}, nil
}

// fromSnapshot returns the steps for a snapshot. The numbers of the events entering the states are no longer known:
// they get the last numbers before the end of the snapshot.
func fromSnapshot(from Position, ev task.Event) []Step {
	whole := ev.Task
	if whole == nil { // data other than a snapshot of a task has no history
		return []Step{{Event: ev}}
	}
	history := whole.StatusHistory
	if len(history) == 0 {
		history = []task.Status{whole.Status}
	}
	first := 0 // of the unread ones
	for first < len(history) && !history[first].ChangedAt.After(from.At) {
		first++
	}
	unread := uint64(0)
	if ev.Seq > from.Seq {
		unread = ev.Seq - from.Seq
	}
	if n := uint64(len(history) - first); n > unread {
		first += int(n - unread)
	}
	var steps []Step
	for i := first; i < len(history); i++ {
		s := Step{Event: ev, Entered: true}
		if i < len(history)-1 {
			then := *whole
			then.Status, then.StatusHistory, then.Products = history[i], history[:i+1], nil
			s.Event = task.Event{Seq: ev.Seq - uint64(len(history)-1-i), Task: &then}
		}
		s.After.take(&s.Event)
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		s := Step{Event: ev}
		s.After.take(&s.Event)
		steps = append(steps, s)
	}
	return steps
}
