// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// exceedsLimits reports whether a write would exceed what is kept of a task. tk.mu is held.
func (tk *activeTask) exceedsLimits(events int, size int64) bool {
	p := tk.partner()
	return p != nil && (tk.logState.kept+events > p.MaxEvents || tk.logState.bytes+size > p.MaxBytes)
}

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
