// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// exceedsLimits reports whether a write would exceed what is kept of a task. tk.mu is held.
func (tk *activeTask) exceedsLimits(events int, size int64) bool {
	p := tk.partner()
	return p != nil && (tk.logState.kept+events > p.MaxEvents || tk.logState.bytes+size > p.MaxBytes)
}

// Before the older half of a log is dropped, readers that have still to read it get some time, if they do read: an
// agent can send faster than streams can be sent on. One that has stopped loses its events, and delays the agent only
// once.
const (
	readersWait = 250 * time.Millisecond // at most, for each time that a log is trimmed
	readersPoll = time.Millisecond
)

// awaitReaders waits for the readers of a log that a report will have trimmed. It is called by the goroutine of the run
// without any lock, so that it delays the agent, but no command.
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

// trim adds to a write that the older half of the log is replaced by a snapshot of the task. tk.mu is held.
func (tk *activeTask) trim(ctx context.Context, a *replay.Append) error {
	head, snapshot, records, err := tk.engine.store.Load(ctx, tk.log)
	if err != nil {
		return StoreError(err, "the store cannot be read")
	}
	p := tk.partner()
	n, bytes := 0, head.Bytes
	for n < len(records) && (len(records)-n > p.MaxEvents/2 || bytes > p.MaxBytes/2) {
		bytes -= int64(len(records[n].Data))
		n++
	}
	if n == 0 {
		return nil
	}
	fold, err := foldAll(head, snapshot, records[:n])
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
	tk.logger().Info("dropping a task's oldest events", "through", a.Trim)
	return nil
}
