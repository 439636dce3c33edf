// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// call sends a command to one of the processes, whichever owns the shard.
func (w *world) call(ctx context.Context, leader, method, command, taskID, message string) (reply, *gateway.Stream) {
	r, s, err := w.processes[rand.N(2)].send(ctx, leader, method, command, taskID, message)
	if err != nil {
		w.Errorf("%s of %s: %v", command, taskID, err)
	}
	return r, s
}

// watch sets a webhook for a task.
func (w *world) watch(ctx context.Context, leader, taskID string) {
	r, _, err := w.processes[rand.N(2)].post(ctx, leader, "notification/set",
		fmt.Sprintf(`{"taskId":%q,"url":%q,"token":%q}`, taskID, w.receiver.URL, leader+" "+taskID))
	if err != nil || r.Error != nil {
		w.Errorf("the webhook of %s: %v %+v", taskID, err, r.Error)
	}
}

// wait waits before something is tried again.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// settled returns the task when its turn has ended.
func (w *world) settled(ctx context.Context, leader, taskID string) task.State {
	for {
		r, _ := w.call(ctx, leader, "rpc", "get", taskID, "get")
		if s := r.Result.Status.State; s.Settled() || r.Error != nil || ctx.Err() != nil {
			if r.Error != nil {
				w.Errorf("%s is lost: %+v", taskID, r.Error)
			}
			if s == task.Failed {
				w.Logf("%+v", r.Result.Status)
			}
			return s
		}
		wait(ctx, time.Millisecond)
	}
}

// sink gathers the numbers of events.
type sink struct {
	seqs []uint64
	last string // the name of the last frame, or the error
}

func (s *sink) Event(seq uint64, build func([]byte) ([]byte, string, bool)) {
	if _, _, more := build(nil); !more {
		s.seqs = append(s.seqs, seq)
	}
}
func (s *sink) Data(build func([]byte) []byte) { s.last = string(build(nil)) }
func (s *sink) Comment(string)                 {}
func (s *sink) Buffered() int                  { return 0 }
func (s *sink) Flush() error                   { return nil }

// follow follows a task from its first event to its end, and proves that no event is missing.
func (w *world) follow(ctx context.Context, leader, taskID, message string) {
	_, s := w.call(ctx, leader, "stream", "start", taskID, message)
	if s == nil {
		w.Errorf("%s has no stream", taskID)
		return
	}
	defer s.Close()
	var got sink
	s.Run(&got)
	for i, seq := range got.seqs {
		if seq != uint64(i+1) {
			w.Errorf("the stream of %s has the events %v", taskID, got.seqs)
			break
		}
	}
	if len(got.seqs) < 3 || got.last != "" {
		w.Errorf("the stream of %s ends after the events %v: %s", taskID, got.seqs, got.last)
	}
}

// converse has a Leader start a task, continue it, and complete or cancel it. It returns the messages the agent must
// have carried out.
func (w *world) converse(ctx context.Context, leader, taskID string, cancels bool) (messages []string) {
	message := func(n int) string {
		messages = append(messages, fmt.Sprintf("%s-%s-%d", leader, taskID, n))
		return messages[n]
	}
	first := message(0)
	w.watch(ctx, leader, taskID)
	var streams sync.WaitGroup
	streams.Go(func() { w.follow(ctx, leader, taskID, first) })
	defer streams.Wait()
	if r, _ := w.call(ctx, leader, "rpc", "start", taskID, first); r.Error != nil {
		w.Errorf("start of %s: %+v", taskID, r.Error)
		return messages
	}
	for n := 1; n < 4; n++ {
		if s := w.settled(ctx, leader, taskID); s != task.AwaitingCompletion {
			w.Errorf("%s is %s", taskID, s)
			return messages
		}
		next := message(n)
		if r, _ := w.call(ctx, leader, "rpc", "continue", taskID, next); r.Error != nil {
			w.Errorf("continue of %s: %+v", taskID, r.Error)
		}
	}
	end, want := "complete", task.Completed
	if cancels {
		end, want = "cancel", task.Canceled
	} else if s := w.settled(ctx, leader, taskID); s != task.AwaitingCompletion {
		w.Errorf("%s is %s before it is completed", taskID, s)
	}
	if r, _ := w.call(ctx, leader, "rpc", end, taskID, "end"); r.Error != nil {
		w.Errorf("%s of %s: %+v", end, taskID, r.Error)
	}
	if s := w.settled(ctx, leader, taskID); s != want && !(cancels && s == task.AwaitingCompletion) {
		w.Errorf("%s is %s at last, want %s", taskID, s, want)
	} else if s == task.AwaitingCompletion {
		w.call(ctx, leader, "rpc", "complete", taskID, "end")
	}
	return messages
}

// crowd has a Leader start more tasks than it may have, and proves that it gets no more.
func (w *world) crowd(ctx context.Context, leader string) {
	var starts sync.WaitGroup
	for n := range 3 * maxTasks {
		starts.Go(func() {
			id := fmt.Sprint("crowd-", n)
			r, _ := w.call(ctx, leader, "rpc", "start", id, id)
			if r.Error != nil && r.Error.Data.Limit != "tasks_per_leader" {
				w.Errorf("start of %s: %+v", id, r.Error)
			}
		})
	}
	starts.Wait()
	open := 0
	name := peerOf(leader).Leader()
	for entry, err := range w.shards.Logs(shardOf(name)).List(ctx, logname.OfLeader(partnerName, name), "") {
		if err != nil {
			w.Error(err)
		}
		if entry.Head.Ended.IsZero() {
			open++
		}
	}
	if open != maxTasks {
		w.Errorf("%s has %d unfinished tasks, want %d", leader, open, maxTasks)
	}
}

// move moves shards between the processes until ctx ends: by half of the moves, the owner closes its engines before,
// and by the others it learns of it when it is fenced. Some shards have no owner for a while.
func (w *world) move(ctx context.Context) {
	for ctx.Err() == nil {
		i := rand.N(shardCount)
		to := w.processes[rand.N(2)].node
		if rand.N(8) == 0 {
			w.shards.Assign(i, nil, false)
		} else {
			w.shards.Assign(i, to, rand.N(2) == 0)
		}
		wait(ctx, time.Millisecond)
	}
	for i := range shardCount {
		w.shards.Assign(i, w.processes[i%2].node, false)
	}
}

// TestMove proves that shards move between two processes under load, and nothing is lost, nothing done twice, limits
// hold, and streams go on.
func TestMove(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	before := runtime.NumGoroutine()
	defer asynctest.Eventually(t, "no goroutine stays", func() bool { return runtime.NumGoroutine() <= before })
	w := newWorld(t)
	defer w.close()
	moving, arrived := context.WithCancel(ctx)
	var mover, leaders sync.WaitGroup
	mover.Go(func() { w.move(moving) })
	var mu sync.Mutex
	done := make(map[string][]string) // messages, by Leader and task
	for n := range 2 * shardCount {
		leader := fmt.Sprint("leader-", n)
		leaders.Go(func() {
			var tasks sync.WaitGroup
			for k := range maxTasks {
				id := fmt.Sprint("task-", k)
				tasks.Go(func() {
					messages := w.converse(ctx, leader, id, k == 0)
					mu.Lock()
					defer mu.Unlock()
					done[logname.New(partnerName, peerOf(leader).Leader(), id)] = messages
				})
			}
			tasks.Wait()
			w.crowd(ctx, leader)
		})
	}
	leaders.Wait()
	arrived()
	mover.Wait()
	if ctx.Err() != nil {
		t.Error("the load did not come to its end")
	}
	if w.agent.twice > 0 {
		t.Errorf("the agent was given %d messages twice", w.agent.twice)
	}
	for log, messages := range done {
		w.check(log, messages)
	}
}

// check proves that the log of a task has each message once, in order.
func (w *world) check(log string, messages []string) {
	_, leader, id := logname.Split(log)
	_, _, records, err := w.shards.Logs(shardOf(leader)).Load(context.Background(), log)
	if err != nil {
		w.Errorf("%q: %v", log, err)
		return
	}
	var got []string
	var states []task.State
	for _, r := range records {
		ev, err := task.DecodeEvent(r.Data)
		if err != nil {
			w.Error(err)
		}
		if ev.Cause != nil {
			got = append(got, ev.Cause.ID)
		}
		if s := stateOf(&ev); s != task.None && (len(states) == 0 || states[len(states)-1] != s) {
			states = append(states, s)
		}
	}
	token := strings.TrimPrefix(leader, "test:") + " " + id
	asynctest.Eventually(w, "all notifications of "+token, func() bool {
		return len(w.receiver.states(token)) >= len(states)
	})
	if notified := w.receiver.states(token); !slices.Equal(states, notified) {
		w.Errorf("%q was %v, but its webhook was notified of %v", log, states, notified)
	}
	if !slices.Equal(got, messages) && !slices.Equal(got, append(slices.Clone(messages), "end")) {
		w.Errorf("%q has the messages %q, want %q", log, got, messages)
	}
}

// stateOf returns the state an event brings its task into; None if it changes none.
func stateOf(ev *task.Event) task.State {
	switch {
	case ev.Task != nil:
		return ev.Task.Status.State
	case ev.Status != nil:
		return ev.Status.State
	}
	return task.None
}
