// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// stop implements tasks.
func (t *groupTasks) stop(ctx context.Context) error {
	select {
	case <-t.recovered:
	case <-ctx.Done():
		return ctx.Err()
	}
	return t.awaitCommands(ctx)
}

// cancel implements tasks. If its agent refuses, a task is left to itself.
func (t *groupTasks) cancel(ctx context.Context) error {
	if err := t.stop(ctx); err != nil {
		return err
	}
	for {
		reopened := t.store.Reopened()
		if t.cancelAll(ctx) {
			return nil
		}
		select {
		case <-reopened:
		case <-time.After(retryFirst):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitCommands has no task started from now on, and waits for the commands in work.
func (t *groupTasks) awaitCommands(ctx context.Context) error {
	defer context.AfterFunc(ctx, t.wakeAll)()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
	for len(t.lanes) > 0 || t.starting() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if t.closed {
			return errNotExecuted
		}
		t.changed.Wait()
	}
	return nil
}

// starting reports whether a task is about to be started. mu is held.
func (t *groupTasks) starting() bool {
	for _, f := range t.followers {
		if !f.begun {
			return true
		}
	}
	return false
}

// cancelParallel is the number of tasks canceled at a time.
const cancelParallel = 16

// cancelAll cancels the running tasks. It reports false if this has to be tried again.
func (t *groupTasks) cancelAll(ctx context.Context) bool {
	var logs []string
	t.mu.Lock()
	for _, f := range t.followers {
		if !f.finished {
			logs = append(logs, f.log)
		}
	}
	t.mu.Unlock()
	gw := t.member.gateway()
	if gw == nil {
		return len(logs) == 0
	}
	var work sync.WaitGroup
	var again atomic.Bool
	slots := make(chan struct{}, cancelParallel)
	for _, log := range logs {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			switch err := t.own(ctx, gw, log, cancelByMember()); {
			case err == nil, task.KindOf(err) == task.TaskNotFound:
			case task.KindOf(err) == task.StoreUnavailable, ctx.Err() != nil:
				again.Store(true)
			default:
				_, _, id := logname.Split(log)
				t.logger().WarnContext(ctx, "a task could not be canceled when its group ended", "task", id, "error", err)
			}
		})
	}
	work.Wait()
	return !again.Load()
}

// cancelByMember returns a cancel by the member to itself, in the name of its Leader.
func cancelByMember() task.Message {
	return task.Message{ID: rand.Text(), Command: task.Cancel, SenderRole: task.Leader,
		DataItems: []task.DataItem{task.Text("canceled: the agent leaves the group")}}
}

// own executes a command of the member's own for the task of a log, in the name of its Leader.
func (t *groupTasks) own(ctx context.Context, gw *gateway.Gateway, log string, m task.Message) error {
	c := gateway.Call{Leader: t.leader}
	_, m.SenderID, m.TaskID = logname.Split(log)
	c.Message = m
	_, err := gw.Execute(ctx, &c, nil)
	return err
}

// drop implements tasks.
func (t *groupTasks) drop(ctx context.Context) error {
	t.mu.Lock()
	t.ending = true
	t.link = nil
	t.epoch++
	t.changed.Broadcast()
	for t.running {
		t.changed.Wait()
	}
	t.replies, t.sent = nil, nil
	for _, f := range t.followers {
		t.remove(f)
		t.changedCursor(f)
	}
	t.mu.Unlock()
	t.save(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.dirty) > 0 {
		return task.Errorf(task.StoreUnavailable, "the tasks of the group cannot be dropped now")
	}
	return nil
}
