// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
)

const aunWorker = "worker.aid.test"

// serveAssignee starts a gateway in front of an agent that connects to it.
func serveAssignee(t testing.TB) *aunSite {
	t.Helper()
	s := newAUN(t)
	s.start(s.config("aun-assignee "+aunWorker, "timeouts {", "response 2s", "}"))
	return s
}

// assign connects the agent, until the end of the test or stop.
func (s *aunSite) assign(a *aunpeer.Assignee) (stop func()) {
	s.t.Helper()
	a.Client = s.client(aunWorker)
	conn := must(a.Client.Online(s.soon()))(s.t)
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { _ = a.ServeOn(ctx, conn) })
	stop = func() {
		cancel()
		serving.Wait()
	}
	s.t.Cleanup(stop)
	return stop
}

// TestAUNAssignee: an agent that connects to the gateway executes the tasks of AUN clients and of AIP Leaders.
func TestAUNAssignee(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]*aunpeer.Assignee{
		"by events": {}, "by messages": {ByMessage: true, To: aunGateway},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveAssignee(t)
			s.assign(agent)
			alice, leader := s.online("alice.aid.test"), leaderOf(t, s.url())
			for i, c := range []struct {
				script, status string
				state          task.State
				text           string
			}{
				{"hello", "completed", task.AwaitingCompletion, "echo: hello"}, {"fail", "failed", task.Failed, ""},
				{"reject", "rejected", task.Rejected, ""}, {"late-reject 50", "rejected", task.Rejected, ""},
				{"slow 50", "completed", task.AwaitingCompletion, "slow done"},
				{"stream 3 20", "completed", task.AwaitingCompletion, "chunk-0 chunk-1 chunk-2 "},
			} {
				created := must(alice.Create(s.soon(), aunAgent, c.script))(t)
				if created.Status != "submitted" && !strings.HasPrefix(c.script, "reject") {
					t.Logf("%s: created as %s", c.script, created.Status)
				}
				if got := s.rests(alice, created.TaskID); got.Status != c.status ||
					strings.Join(artifactTexts(got), "") != c.text {
					t.Errorf("%s by AUN: it is %+v", c.script, got)
				}
				id := fmt.Sprintf("t%d", i)
				leader.patiently(id, c.script)
				if got := leader.rests(id); got.Status.State != c.state || productTexts(got) != c.text {
					t.Errorf("%s by AIP: it is %s with %q", c.script, got.Status.State, productTexts(got))
				}
			}
			asked := must(alice.Create(s.soon(), aunAgent, "ask"))(t)
			if got := s.rests(alice, asked.TaskID); got.Status != "input_required" ||
				got.Message.String() != "which colour?" {
				t.Errorf("asked by AUN: %+v", got)
			}
			must(alice.Do(s.soon(), "task.send_input", aunTask(asked.TaskID, map[string]any{
				"input": aunpeer.Text("blue"),
			})))(t)
			eventually(t, "the task is completed", func() bool {
				got := s.rests(alice, asked.TaskID)
				return got.Status == "completed" && strings.Join(artifactTexts(got), "") == "you said: blue"
			})
			leader.start("ask", "ask")
			if got := leader.rests("ask"); got.Status.State != task.AwaitingInput {
				t.Errorf("asked by AIP: %s", got.Status.State)
			}
			leader.goOn("ask", "blue")
			if got := leader.rests("ask"); productTexts(got) != "you said: blue" {
				t.Errorf("answered by AIP: %s with %q", got.Status.State, productTexts(got))
			}
			leader.start("cancel", "slow 60000")
			if got := leader.cancel("cancel"); got.Status.State != task.Canceled {
				t.Errorf("canceled: %s", got.Status.State)
			}
			eventually(t, "the agent has learned of the cancel", func() bool {
				return strings.Contains(strings.Join(agent.Seen(), "|"), " canceled")
			})
		})
	}
}

// given waits until an agent is sent a new task with a text, and returns the id by which the agent knows it.
func (s *aunSite) given(worker *aunpeer.Conn, text string) (id string) {
	s.t.Helper()
	must(worker.Event(s.soon(), func(f aunpeer.Frame) bool {
		var t aunpeer.Task
		if json.Unmarshal(f.Params, &t) != nil || f.Method != "event/task.updated" || t.Input.String() != text {
			return false
		}
		if id = t.TaskID; t.Assignee != aunWorker || t.Status != "submitted" {
			s.t.Errorf("the agent is sent %s", f.Params)
		}
		return true
	}))(s.t)
	return id
}

// TestAUNAssigneeRoles: the methods of an assignee, by it, by others and in each state.
func TestAUNAssigneeRoles(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice, bob, worker := s.online("alice.aid.test"), s.online("bob.aid.test"), s.online(aunWorker)
	done := map[string]any{"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: "done"}}, "reason": "x"}
	n := 0
	create := func() (owned, given string) { // the ids by which the owner and the assignee know the task
		t.Helper()
		n++
		text := fmt.Sprintf("by hand %d", n)
		owned = must(alice.Create(s.soon(), aunAgent, text))(t).TaskID
		if given = s.given(worker, text); given != owned {
			t.Errorf("the task is %s for its assignee, and %s for its owner", given, owned)
		}
		return owned, given
	}
	id, given := create()
	for _, method := range []string{"task.accept", "task.reject", "task.complete", "task.fail"} {
		_, err := alice.Do(s.soon(), method, aunTask(id, done))
		s.fails(method+" by the owner", err, -32175)
		for _, name := range []string{id, given} {
			_, err = bob.Do(s.soon(), method, aunTask(name, done))
			s.fails(method+" by another", err, -32170)
		}
	}
	for _, method := range []string{"task.send_input", "task.cancel"} {
		_, err := worker.Do(s.soon(), method, aunTask(given, map[string]any{"input": aunpeer.Text("x")}))
		s.fails(method+" by the assignee", err, -32175)
	}
	if got := must(alice.Do(s.soon(), "task.get", aunTask(id)))(t); got.Status != "submitted" {
		t.Errorf("before it is accepted: %+v", got)
	}
	if got := must(worker.Do(s.soon(), "task.get", aunTask(given)))(t); got.Status != "submitted" ||
		got.Input.String() != "by hand 1" || got.Owner != "alice.aid.test" {
		t.Errorf("before it is accepted, for the assignee: %+v", got)
	}
	accepted := must(worker.Do(s.soon(), "task.accept", aunTask(given)))(t)
	if accepted.TaskID != given || accepted.Status != "working" {
		t.Errorf("accepted: %+v", accepted)
	}
	_, err := worker.Do(s.soon(), "task.accept", aunTask(given))
	s.fails("task.accept again", err, -32176)
	if got := must(worker.Do(s.soon(), "task.complete", aunTask(given, done)))(t); got.Status != "completed" {
		t.Errorf("completed: %+v", got)
	}
	if got := s.rests(alice, id); got.Status != "completed" || strings.Join(artifactTexts(got), "") != "done" {
		t.Errorf("completed, for its owner: %+v", got)
	}
	for method, what := range map[string]string{"task.reject": "rejected", "task.fail": "failed"} {
		id, given := create()
		if method == "task.fail" {
			must(worker.Do(s.soon(), "task.accept", aunTask(given)))(t)
		}
		if got := must(worker.Do(s.soon(), method, aunTask(given, done)))(t); got.Status != what {
			t.Errorf("%s: %+v", method, got)
		}
		if got := s.rests(alice, id); got.Status != what || got.Reason != "x" {
			t.Errorf("%s, for its owner: %+v", method, got)
		}
		for _, after := range []string{"task.accept", "task.complete", "task.fail"} {
			_, err := worker.Do(s.soon(), after, aunTask(given, done))
			s.fails(after+" of a task that is "+what, err, map[string]int{"rejected": -32177, "failed": -32186}[what])
		}
	}
	id, given = create()
	must(alice.Do(s.soon(), "task.cancel", aunTask(id)))(t)
	must(worker.TaskEvent(s.soon(), "event/task.updated", given, "canceled"))(t)
	_, err = worker.Do(s.soon(), "task.accept", aunTask(given))
	s.fails("task.accept of a canceled task", err, -32173)
	_, err = worker.Do(s.soon(), "task.complete", aunTask("task_none", done))
	s.fails("task.complete of no task", err, -32170)
	for what, params := range map[string]map[string]any{
		"artifacts that are no list": {"artifacts": 7}, "an artifact that is no object": {"artifacts": []any{7}},
	} {
		_, given := create()
		must(worker.Do(s.soon(), "task.accept", aunTask(given)))(t)
		_, err = worker.Do(s.soon(), "task.complete", aunTask(given, params))
		s.fails(what, err, -32602)
	}
}

// TestAUNDelegation: a task is delegated, and its depth and the number of its children are limited.
func TestAUNDelegation(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice, bob := s.online("alice.aid.test"), s.online("bob.aid.test")
	part := map[string]any{"to": aunAgent, "input": aunpeer.Text("a part")}
	root := must(alice.Create(s.soon(), aunAgent, "by hand"))(t).TaskID
	must(alice.Subscribe(s.soon(), root))(t)
	_, err := bob.Do(s.soon(), "task.delegate", aunTask(root, part))
	s.fails("task.delegate by another", err, -32170)
	child := must(alice.Do(s.soon(), "task.delegate", aunTask(root, part)))(t)
	if child.ParentTaskID != root || child.Assignee != aunAgent || child.Status != "submitted" {
		t.Errorf("delegated: %+v", child)
	}
	must(alice.Event(s.soon(), func(f aunpeer.Frame) bool {
		return f.Method == "event/task.delegated" && strings.Contains(string(f.Params), child.TaskID)
	}))(t)
	children := string(must(alice.Call(s.soon(), "task.children", aunTask(root)))(t))
	if !strings.Contains(children, child.TaskID) {
		t.Errorf("task.children: %s", children)
	}
	deepest := child.TaskID
	for depth := 2; depth <= 9; depth++ {
		next, err := alice.Do(s.soon(), "task.delegate", aunTask(deepest, part))
		if depth == 9 {
			s.fails("task.delegate at depth 8", err, -32179)
		} else if err != nil {
			t.Fatalf("at depth %d: %v", depth, err)
		}
		deepest = next.TaskID
	}
	for n := 2; n <= 33; n++ {
		_, err := alice.Do(s.soon(), "task.delegate", aunTask(root, part))
		if n == 33 {
			s.fails("task.delegate with 32 children", err, -32179)
		} else if err != nil {
			t.Fatalf("child %d: %v", n, err)
		}
	}
}

// TestAUNAssigneeOffline: tasks wait for an agent that is not connected, and a gateway that is killed and connections
// that are cut in the middle of 100 tasks lose and repeat nothing.
func TestAUNAssigneeOffline(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice := s.client("alice.aid.test")
	conn := must(alice.Online(s.soon()))(t)
	const tasks, pieces = 100, 5
	var ids []string
	for range tasks {
		ids = append(ids, must(conn.Create(s.soon(), aunAgent, fmt.Sprintf("stream %d 100", pieces)))(t).TaskID)
	}
	stop := s.assign(new(aunpeer.Assignee))
	eventually(t, "a task is worked on", func() bool {
		got := must(conn.Do(s.soon(), "task.get", aunTask(ids[0])))(t)
		return got.Status != "submitted"
	})
	s.process.kill()
	s.run(filepath.Join(s.dir, "Caddyfile"))
	stop()
	conn.Cut()
	s.assign(new(aunpeer.Assignee))
	conn = must(alice.Online(s.soon()))(t)
	defer conn.Cut()
	want := ""
	for i := range pieces {
		want += fmt.Sprintf("chunk-%d ", i)
	}
	for _, id := range ids {
		if got := s.rests(conn, id); got.Status != "completed" || strings.Join(artifactTexts(got), "") != want {
			t.Errorf("it is %+v", got)
		}
	}
}

// TestAUNAssigneeAnswers: what an assignee was answered holds, although the process dies right after the answer.
func TestAUNAssigneeAnswers(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	const tasks = 24
	client, agent := s.client("alice.aid.test"), s.client(aunWorker)
	ids, given := make([]string, tasks), make([]string, tasks)
	alice, worker := must(client.Online(s.soon()))(t), must(agent.Online(s.soon()))(t)
	for i := range tasks {
		text := fmt.Sprintf("by hand %d", i)
		ids[i] = must(alice.Create(s.soon(), aunAgent, text))(t).TaskID
		given[i] = s.given(worker, text)
	}
	// Each step is called for all tasks at once, and the process is killed at an answer.
	for step, call := range []func(id string) (method string, params map[string]any){
		func(id string) (string, map[string]any) { return "task.accept", aunTask(id) },
		func(id string) (string, map[string]any) {
			return "message.send", map[string]any{"to": "alice.aid.test", "message_id": "m-" + id,
				"payload": map[string]any{"type": "text", "text": "half", "task_id": id}}
		},
		func(id string) (string, map[string]any) {
			return "task.complete", aunTask(id, map[string]any{
				"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: " done"}}})
		},
	} {
		answered := make(chan int, tasks)
		for i := range tasks {
			go func() {
				method, params := call(given[i])
				if _, err := worker.Call(s.soon(), method, params); err == nil {
					answered <- i
				}
			}()
		}
		known := []int{<-answered, <-answered}
		s.process.kill()
		for len(answered) > 0 {
			known = append(known, <-answered)
		}
		s.run(filepath.Join(s.dir, "Caddyfile"))
		alice, worker = must(client.Online(s.soon()))(t), must(agent.Online(s.soon()))(t)
		for i, id := range ids {
			if got := must(alice.Do(s.soon(), "task.get", aunTask(id)))(t); slices.Contains(known, i) {
				want, text := "working", []string{"", "half", "half done"}[step]
				if step == 2 {
					want = "completed"
				}
				if artifacts := strings.Join(artifactTexts(got), ""); got.Status != want || artifacts != text {
					t.Errorf("step %d: task %d was answered, and is %s with %q", step+1, i, got.Status, artifacts)
				}
			}
		}
		for i := range ids { // what was not answered is called again
			if method, params := call(given[i]); step < 2 && !slices.Contains(known, i) {
				_, err := worker.Call(s.soon(), method, params)
				if err != nil && aunpeer.Code(err) != -32176 {
					t.Fatal(err)
				}
			}
		}
	}
}
