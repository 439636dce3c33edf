// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// twoProcesses returns two processes; the first one owns the shard of a Leader.
func twoProcesses(t *testing.T, leader string) *world {
	w := newWorld(t)
	t.Cleanup(w.close)
	at := shardOf(peerOf(leader).Leader())
	for i := range shardCount {
		owner := w.processes[1]
		if i == at {
			owner = w.processes[0]
		}
		w.shards.Assign(i, owner.node, false)
	}
	return w
}

// at sends a command to one of the processes; it must take it.
func (w *world) at(i int, leader, command, taskID, message string) reply {
	w.Helper()
	r, _, err := w.processes[i].send(w.Context(), leader, "rpc", command, taskID, message)
	if err != nil || r.Error != nil {
		w.Fatalf("%s at process %d: %v %+v", command, i, err, r.Error)
	}
	return r
}

// TestOneStartAtTwoProcesses: a start coming to both processes at a time is one turn, and both answer with the same
// task.
func TestOneStartAtTwoProcesses(t *testing.T) {
	const leader = "leader"
	w := twoProcesses(t, leader)
	for n := range 20 {
		id := fmt.Sprint("task-", n)
		var both sync.WaitGroup
		for i := range w.processes {
			both.Go(func() {
				r, _, err := w.processes[i].send(t.Context(), leader, "rpc", "start", id, id)
				if err != nil || r.Error != nil || r.Result.ID != id {
					t.Errorf("process %d answers %+v, %v", i, r, err)
				}
			})
		}
		both.Wait()
		w.settled(t.Context(), leader, id)
		if diff := cmp.Diff(w.at(0, leader, "start", id, id), w.at(1, leader, "start", id, id)); diff != "" {
			t.Errorf("the answers to a start differ (-first +second):\n%s", diff)
		}
		w.at(n%2, leader, "complete", id, "end")
	}
	if n := len(w.agent.tasks); n != 20 || w.agent.twice > 0 {
		t.Errorf("the agent has begun %d tasks, and got %d messages twice", n, w.agent.twice)
	}
}

// TestGetElsewhere: getting a task, or following it, at a process not running it resumes nothing.
func TestGetElsewhere(t *testing.T) {
	const leader = "leader"
	w := twoProcesses(t, leader)
	w.agent.slow = true
	_, s, err := w.processes[1].send(t.Context(), leader, "stream", "start", "task", "1")
	if err != nil || s == nil {
		t.Fatalf("there is no stream: %v", err)
	}
	var got sink
	var stream sync.WaitGroup
	stream.Go(func() {
		defer s.Close()
		s.Run(&got)
	})
	state := func(i int) task.State { return w.at(i, leader, "get", "task", "get").Result.Status.State }
	asynctest.Eventually(t, "the agent works", func() bool { return state(0) == task.Working })
	if s := state(1); s != task.Working {
		t.Errorf("the other process shows the task as %s", s)
	}
	w.at(0, leader, "cancel", "task", "cancel")
	stream.Wait()
	if !slices.Equal(got.seqs, []uint64{1, 2, 3}) {
		t.Errorf("the stream of the other process has the events %v", got.seqs)
	}
	if w.agent.asked > 0 || w.agent.twice > 0 || len(w.agent.tasks) != 1 {
		t.Errorf("the agent was asked %d times, and got %d messages twice", w.agent.asked, w.agent.twice)
	}
}

// TestWebhookElsewhere: a webhook set at one process is notified of events at the other one.
func TestWebhookElsewhere(t *testing.T) {
	const leader = "leader"
	w := twoProcesses(t, leader)
	for i := range w.processes {
		id := fmt.Sprint("task-", i)
		r, _, err := w.processes[i].post(t.Context(), leader, "notification/set",
			fmt.Sprintf(`{"taskId":%q,"url":%q,"token":%q}`, id, w.receiver.URL, id))
		if err != nil || r.Error != nil {
			t.Fatalf("the webhook at process %d: %v %+v", i, err, r.Error)
		}
		w.at(1-i, leader, "start", id, id)
		w.at(i, leader, "complete", id, "end")
		want := []task.State{task.Accepted, task.Working, task.AwaitingCompletion, task.Completed}
		asynctest.Eventually(t, "all notifications of "+id, func() bool { return len(w.receiver.states(id)) >= len(want) })
		if diff := cmp.Diff(want, w.receiver.states(id)); diff != "" {
			t.Errorf("the webhook of process %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestListOfAllShards: an operator's list has the tasks of all shards of the process in one order, page by page.
func TestListOfAllShards(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(w.close)
	for i := range shardCount {
		w.shards.Assign(i, w.processes[0].node, false)
	}
	var want, got []string
	for n := range 20 {
		leader := fmt.Sprintf("leader-%02d", n)
		w.at(0, leader, "start", "task", leader)
		want = append(want, peerOf(leader).Leader())
	}
	for _, byName := range []bool{true, false} {
		got = nil
		filter := partner.TaskFilter{Limit: 7, ByName: byName}
		for more := true; more; more = filter.After != "" {
			page, next, err := w.processes[0].tasks.Engines().Tasks(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			for i := range page {
				got = append(got, page[i].Leader)
			}
			filter.After = next
		}
		if !byName {
			slices.Sort(got) // some began in the same millisecond
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by name %v: the tasks are those of (-want +got):\n%s", byName, diff)
		}
	}
	page, _, err := w.processes[1].tasks.Engines().Tasks(t.Context(), partner.TaskFilter{})
	if len(page) > 0 || err != nil {
		t.Errorf("the process that owns nothing lists %v, %v", page, err)
	}
}
