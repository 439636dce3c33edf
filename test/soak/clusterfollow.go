// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// follow follows the task from its first event to its last one, at a gateway, and where that fails, at the next one, if
// it may.
func (e *errand) follow(ctx context.Context, gateway int, may bool) {
	var last uint64
	for ended := false; !ended && ctx.Err() == nil; {
		gateway %= clusterSize
		ended = e.followAt(ctx, gateway, &last)
		if !ended {
			wait(ctx, 200*time.Millisecond)
		}
		if may {
			gateway++
		}
	}
}

// followAt follows at one gateway. It reports whether the end was reached.
func (e *errand) followAt(ctx context.Context, gateway int, last *uint64) (ended bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	call := &task.Call{Message: task.Message{Command: task.ReStream, TaskID: e.id}, AfterSeq: *last}
	n := e.nodes[gateway]
	began, exists := time.Now(), e.exists.Load()
	for ev, err := range e.at[gateway].Follow(ctx, call, func(error) { cancel() }) {
		var refused *leader.Error
		switch {
		case errors.As(err, &refused) && refused.Code == errMissing && !exists:
			return false
		case errors.As(err, &refused):
			e.note(n, began, err, e.id+" re-stream")
			return false
		case err != nil:
			return false // it is cut off, as every connection may be
		}
		if ev.Seq != *last+1 {
			e.complain("%s: the event %d came after %d at %s", e.id, ev.Seq, *last, n.name)
		}
		*last = ev.Seq
		e.compare(n, ev.Seq, ev.Raw)
		ended = ev.Status != nil && ev.Status.State.Terminal() || ev.Task != nil && ev.Task.Status.State.Terminal()
	}
	return ended
}

// compare compares an event with what was streamed before under its number.
func (e *errand) compare(n *node, seq uint64, frame []byte) {
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal(frame, &answer); err != nil {
		e.complain("%s: the event %d is no JSON", e.id, seq)
		return
	}
	sum := sha256.Sum256(answer.Result)
	e.mu.Lock()
	before, streamed := e.events[seq]
	e.events[seq] = sum
	e.mu.Unlock()
	if streamed && before != sum {
		e.complain("%s: the event %d has other bytes at %s than before: %.500s", e.id, seq, n.name, answer.Result)
	}
}
