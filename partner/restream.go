// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// reStream answers a re-stream, or a repeated start, of a task outside of memory, as Stream does, but without loading
// it: a long log takes long to fold, and its events need only the ids of the task. It reports false if more must be
// known, or the task is not settled; the rest of Stream then decides.
func (p *Partner) reStream(ctx context.Context, tk *activeTask, c *Request) (Result, bool) {
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if tk.loaded || tk.idle || c.Snapshot || c.Strict || c.changesTask() {
		return Result{}, false
	}
	head, err := tk.head(ctx)
	var meta metadata
	if err != nil || head.First != 1 || json.Unmarshal(head.Metadata, &meta) != nil {
		return Result{}, false
	}
	if meta.Pending != nil || meta.SelfResuming || !meta.State.Settled() {
		return Result{}, false
	}
	s := Result{Last: head.Last, Log: tk.log}
	if c.Message.Command == task.ReStream {
		s.After = c.AfterSeq
	}
	if s.After >= s.Last { // is an error, or depends on the dialect's end of a stream
		return Result{}, false
	}
	begin, err := firstEvent(ctx, p.engine.store, tk.log)
	if err != nil || begin.Task == nil {
		return Result{}, false
	}
	s.Task = task.Task{ID: begin.Task.ID, SessionID: begin.Task.SessionID, GroupID: begin.Task.GroupID}
	return s, true
}

// errLarge refuses an event too large for the short way.
var errLarge = errors.New("partner: the first events are large")

// firstEvent returns the first event of a task.
func firstEvent(ctx context.Context, store replay.Store, log string) (task.Event, error) {
	reader := store.Read(log, 0)
	defer reader.Close()
	records, _, err := reader.Next(ctx, func(context.Context, int64) error { return errLarge })
	if err != nil || len(records) == 0 {
		return task.Event{}, errors.Join(err, errDamaged)
	}
	return task.DecodeEvent(records[0].Data)
}
