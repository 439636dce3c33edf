// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"errors"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestAUNChildren: the assignee of a task delegates a part of it, and cannot complete the task before the part has
// ended. Another client may see the task and not delegate it.
func TestAUNChildren(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice, bob, worker := s.Online("alice.aid.test"), s.Online("bob.aid.test"), s.Online(site.AUNWorker)
	part := map[string]any{"to": site.AUNAgent, "input": aunpeer.Text("a part")}
	done := map[string]any{"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: "done"}}}
	for _, end := range []string{"completed", "failed", "canceled"} {
		id := site.Must(alice.Do(s.Soon(), "task.create", map[string]any{
			"to": site.AUNAgent, "input": aunpeer.Text(end), "visibility": "public",
		}))(t).TaskID
		site.Must(alice.Subscribe(s.Soon(), id))(t)
		given := givenTask(s, worker, end)
		site.Must(worker.Do(s.Soon(), "task.accept", site.AUNTask(given)))(t)
		_, err := bob.Do(s.Soon(), "task.delegate", site.AUNTask(id, part))
		s.Fails("task.delegate by another", err, -32178)
		child := site.Must(worker.Do(s.Soon(), "task.delegate", site.AUNTask(given, part)))(t)
		if child.ParentTaskID != id || child.Owner != site.AUNWorker || child.Assignee != site.AUNAgent {
			t.Errorf("delegated: %+v", child)
		}
		site.Must(alice.Event(s.Soon(), func(f aunpeer.Frame) bool {
			return f.Method == "event/task.delegated" && strings.Contains(string(f.Params), child.TaskID)
		}))(t)
		if got := site.Must(alice.Do(s.Soon(), "task.get", site.AUNTask(child.TaskID)))(t); got.Status != "submitted" {
			t.Errorf("the part, for the owner of the task: %+v", got)
		}
		blocked := func(when string) {
			t.Helper()
			_, err := worker.Do(s.Soon(), "task.complete", site.AUNTask(given, done))
			s.Fails("task.complete while the part is "+when, err, -32185)
			var refusal *aunpeer.Error
			if errors.As(err, &refusal) && !strings.Contains(string(refusal.Data), child.TaskID) {
				t.Errorf("task.complete while the part is %s: %s", when, refusal.Data)
			}
		}
		blocked("submitted")
		givenPart := givenTask(s, worker, "a part")
		site.Must(worker.Do(s.Soon(), "task.accept", site.AUNTask(givenPart)))(t)
		blocked("working")
		switch end {
		case "completed":
			site.Must(worker.Do(s.Soon(), "task.complete", site.AUNTask(givenPart, done)))(t)
		case "failed":
			site.Must(worker.Do(s.Soon(), "task.fail", site.AUNTask(givenPart, map[string]any{"reason": "x"})))(t)
		case "canceled":
			site.Must(worker.Do(s.Soon(), "task.cancel", site.AUNTask(child.TaskID)))(t)
		}
		if got := s.Rests(worker, child.TaskID); got.Status != end {
			t.Errorf("the part is %+v, want %s", got, end)
		}
		site.Must(worker.Do(s.Soon(), "task.complete", site.AUNTask(given, done)))(t)
		if got := s.Rests(alice, id); got.Status != "completed" || strings.Join(artifactTexts(got), "") != "done" {
			t.Errorf("after the part has %s: %+v", end, got)
		}
		_, err = worker.Do(s.Soon(), "task.delegate", site.AUNTask(given, part))
		if aunpeer.Code(err) == 0 {
			t.Error("a part of a completed task is delegated")
		}
	}
}

// TestAUNAssigneeSilent: a Leader of AIP is answered after the response timeout when the agent is offline, or does not
// accept the task. What the agent says later counts: a late refusal is a failure.
func TestAUNAssigneeSilent(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice, leader := s.Online("alice.aid.test"), site.LeaderOf(t, s.URL())
	start := func(id string) {
		t.Helper()
		if got := leader.Start(id, id); got.Status.State != task.Working {
			t.Errorf("%s: the start is answered with %s", id, got.Status.State)
		}
	}
	start("offline")
	waiting := site.Must(alice.Create(s.Soon(), site.AUNAgent, "offline, of AUN"))(t).TaskID
	worker := s.Online(site.AUNWorker)
	for _, text := range []string{"offline", "offline, of AUN"} { // the oldest first
		given := givenTask(s, worker, text)
		site.Must(worker.Do(s.Soon(), "task.reject", site.AUNTask(given, map[string]any{"reason": "no"})))(t)
	}
	if got := leader.Rests("offline"); got.Status.State != task.Failed {
		t.Errorf("refused too late: %s", got.Status.State)
	}
	if got := s.Rests(alice, waiting); got.Status != "rejected" || got.Reason != "no" {
		t.Errorf("refused too late, for an owner of AUN: %+v", got)
	}

	start("silent")
	given := givenTask(s, worker, "silent")
	if got := leader.Get("silent"); got.Status.State != task.Working || got.StatusHistory[0].State != task.Accepted {
		t.Errorf("before the agent accepts: %+v", got)
	}
	_, err := worker.Do(s.Soon(), "task.delegate", site.AUNTask(given, map[string]any{
		"to": site.AUNAgent, "input": aunpeer.Text("a part"),
	}))
	s.Fails("task.delegate of a Leader's task", err, -32178)
	site.Must(worker.Do(s.Soon(), "task.accept", site.AUNTask(given)))(t)
	site.Must(worker.Do(s.Soon(), "task.complete", site.AUNTask(given, map[string]any{
		"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: "late"}},
	})))(t)
	if got := leader.Rests("silent"); got.Status.State != task.AwaitingCompletion || productTexts(got) != "late" {
		t.Errorf("accepted late: %s with %q", got.Status.State, productTexts(got))
	}
}
