// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestAUNChildren: the assignee of a task delegates a part of it, and cannot complete the task before the part has
// ended. Another client may see the task and not delegate it.
func TestAUNChildren(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice, bob, worker := s.online("alice.aid.test"), s.online("bob.aid.test"), s.online(aunWorker)
	part := map[string]any{"to": aunAgent, "input": aunpeer.Text("a part")}
	done := map[string]any{"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: "done"}}}
	for _, end := range []string{"completed", "failed", "canceled"} {
		id := must(alice.Do(s.soon(), "task.create", map[string]any{
			"to": aunAgent, "input": aunpeer.Text(end), "visibility": "public",
		}))(t).TaskID
		must(alice.Subscribe(s.soon(), id))(t)
		given := s.given(worker, end)
		must(worker.Do(s.soon(), "task.accept", aunTask(given)))(t)
		_, err := bob.Do(s.soon(), "task.delegate", aunTask(id, part))
		s.fails("task.delegate by another", err, -32178)
		child := must(worker.Do(s.soon(), "task.delegate", aunTask(given, part)))(t)
		if child.ParentTaskID != id || child.Owner != aunWorker || child.Assignee != aunAgent {
			t.Errorf("delegated: %+v", child)
		}
		must(alice.Event(s.soon(), func(f aunpeer.Frame) bool {
			return f.Method == "event/task.delegated" && strings.Contains(string(f.Params), child.TaskID)
		}))(t)
		if got := must(alice.Do(s.soon(), "task.get", aunTask(child.TaskID)))(t); got.Status != "submitted" {
			t.Errorf("the part, for the owner of the task: %+v", got)
		}
		blocked := func(when string) {
			t.Helper()
			_, err := worker.Do(s.soon(), "task.complete", aunTask(given, done))
			s.fails("task.complete while the part is "+when, err, -32185)
			var refusal *aunpeer.Error
			if errors.As(err, &refusal) && !strings.Contains(string(refusal.Data), child.TaskID) {
				t.Errorf("task.complete while the part is %s: %s", when, refusal.Data)
			}
		}
		blocked("submitted")
		givenPart := s.given(worker, "a part")
		must(worker.Do(s.soon(), "task.accept", aunTask(givenPart)))(t)
		blocked("working")
		switch end {
		case "completed":
			must(worker.Do(s.soon(), "task.complete", aunTask(givenPart, done)))(t)
		case "failed":
			must(worker.Do(s.soon(), "task.fail", aunTask(givenPart, map[string]any{"reason": "x"})))(t)
		case "canceled":
			must(worker.Do(s.soon(), "task.cancel", aunTask(child.TaskID)))(t)
		}
		if got := s.rests(worker, child.TaskID); got.Status != end {
			t.Errorf("the part is %+v, want %s", got, end)
		}
		must(worker.Do(s.soon(), "task.complete", aunTask(given, done)))(t)
		if got := s.rests(alice, id); got.Status != "completed" || strings.Join(artifactTexts(got), "") != "done" {
			t.Errorf("after the part has %s: %+v", end, got)
		}
		_, err = worker.Do(s.soon(), "task.delegate", aunTask(given, part))
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
	alice, leader := s.online("alice.aid.test"), leaderOf(t, s.url())
	start := func(id string) {
		t.Helper()
		if got := leader.start(id, id); got.Status.State != task.Working {
			t.Errorf("%s: the start is answered with %s", id, got.Status.State)
		}
	}
	start("offline")
	waiting := must(alice.Create(s.soon(), aunAgent, "offline, of AUN"))(t).TaskID
	worker := s.online(aunWorker)
	for _, text := range []string{"offline", "offline, of AUN"} { // the oldest first
		given := s.given(worker, text)
		must(worker.Do(s.soon(), "task.reject", aunTask(given, map[string]any{"reason": "no"})))(t)
	}
	if got := leader.rests("offline"); got.Status.State != task.Failed {
		t.Errorf("refused too late: %s", got.Status.State)
	}
	if got := s.rests(alice, waiting); got.Status != "rejected" || got.Reason != "no" {
		t.Errorf("refused too late, for an owner of AUN: %+v", got)
	}

	start("silent")
	given := s.given(worker, "silent")
	if got := leader.get("silent"); got.Status.State != task.Working || got.StatusHistory[0].State != task.Accepted {
		t.Errorf("before the agent accepts: %+v", got)
	}
	_, err := worker.Do(s.soon(), "task.delegate", aunTask(given, map[string]any{
		"to": aunAgent, "input": aunpeer.Text("a part"),
	}))
	s.fails("task.delegate of a Leader's task", err, -32178)
	must(worker.Do(s.soon(), "task.accept", aunTask(given)))(t)
	must(worker.Do(s.soon(), "task.complete", aunTask(given, map[string]any{
		"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: "late"}},
	})))(t)
	if got := leader.rests("silent"); got.Status.State != task.AwaitingCompletion || productTexts(got) != "late" {
		t.Errorf("accepted late: %s with %q", got.Status.State, productTexts(got))
	}
}
