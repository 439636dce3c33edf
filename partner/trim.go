// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// exceedsLimits reports whether a write would exceed the limits of a task's log. tk.mu is held.
func (tk *activeTask) exceedsLimits(events int, size int64) bool {
	p, h := tk.partner(), &tk.logState.held
	return p != nil && (tk.logState.kept+events > max(p.MaxEvents, h.events) ||
		tk.logState.bytes+size > max(p.MaxBytes, h.bytes))
}

// held is the part of a log kept for followers with a cursor (see replay.Pin) still to read it: up to twice the limits,
// in steps, since each attempt to trim the log reads it.
type held struct {
	events int
	bytes  int64
}

const (
	heldTimes = 2 // the limits
	heldSteps = 8 // from the limits to the next multiple of them
)

// pinned returns the number of the record up to which a log may be trimmed because of its followers. tk.mu is held.
func (tk *activeTask) pinned(ctx context.Context) (upTo uint64, err error) {
	p, upTo := tk.partner(), tk.logState.last
	if tk.logState.kept >= heldTimes*p.MaxEvents || tk.logState.bytes >= heldTimes*p.MaxBytes {
		return upTo, nil
	}
	after, pinned, err := replay.Pinned(ctx, tk.engine.store, tk.log)
	if err != nil {
		return 0, StoreError(err, "the store cannot be read")
	}
	if pinned {
		upTo = min(upTo, after)
	}
	return upTo, nil
}

// Before the older half of a log is dropped, readers still to read it get some time, if they do read: an agent can send
// faster than streams can be sent on. A stopped reader loses its events, and delays the agent only once.
const (
	readersWait = 250 * time.Millisecond // at most, for each trim of a log
	readersPoll = time.Millisecond
)

// awaitReaders waits for the readers of a log about to be trimmed for a report. The goroutine of the run calls it
// without any lock: it delays the agent, but no command.
func (tk *activeTask) awaitReaders(ctx context.Context, rep *agent.Report) {
	events, size := len(rep.Chunks)+rep.Pieces.Len(), int64(0)
	switch {
	case events == 0:
		return
	case rep.Pieces != nil:
		size = int64(rep.Pieces.Stored())
	}
	tk.mu.Lock()
	trims := tk.loaded && tk.exceedsLimits(events+maxMoves, size)
	dropped := tk.logState.last - uint64(tk.logState.kept)/2
	tk.mu.Unlock()
	if !trims || !tk.engine.store.Unread(tk.log, dropped) {
		return
	}
	poll := time.NewTicker(readersPoll)
	defer poll.Stop()
	for end := time.Now().Add(readersWait); time.Now().Before(end) && tk.engine.store.Unread(tk.log, dropped); {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return
		}
	}
}

// maxMoves is the greatest number of states on a legal path from one state to another.
const maxMoves = 3

// trim adds to a write the replacement of the older half of the log by a snapshot of the task, as far as followers have
// read it. tk.mu is held.
func (tk *activeTask) trim(ctx context.Context, a *replay.Append) error {
	head, snapshot, records, err := tk.stored().Load(ctx)
	if err != nil {
		return StoreError(err, "the store cannot be read")
	}
	upTo, err := tk.pinned(ctx)
	if err != nil {
		return err
	}
	p := tk.partner()
	n, bytes := 0, head.Bytes
	tk.logState.held = held{}
	for n < len(records) && (len(records)-n > p.MaxEvents/2 || bytes > p.MaxBytes/2) {
		if records[n].Seq > upTo {
			tk.logState.held = held{
				min(len(records)-n+p.MaxEvents/heldSteps, heldTimes*p.MaxEvents),
				min(bytes+p.MaxBytes/heldSteps, heldTimes*p.MaxBytes),
			}
			break
		}
		bytes -= int64(len(records[n].Data))
		n++
	}
	if n == 0 {
		return nil
	}
	fold, err := foldAll(head, snapshot, records[:n], p.maxSaid())
	if err != nil {
		return damaged(err)
	}
	a.Trim = records[n-1].Seq
	whole := task.Event{Task: fold.Task()}
	if !fold.Status().State.Settled() { // else the turn is over, and the next one withdraws for itself
		whole.Withdrawn = fold.Withdrawn
	}
	a.Snapshot = task.AppendEvent(nil, &whole)
	tk.logState.kept -= n
	tk.logState.bytes = bytes
	tk.size = int64(len(a.Snapshot)) + bytes
	tk.logger().InfoContext(tk.traced(ctx), "dropping a task's oldest events", "through", a.Trim)
	return nil
}
