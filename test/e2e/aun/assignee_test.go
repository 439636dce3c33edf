// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// serveAssignee starts a gateway in front of an agent that connects to it.
func serveAssignee(t testing.TB) *site.AUNSite {
	t.Helper()
	s := site.NewAUN(t)
	s.Start(s.Config("aun-assignee "+site.AUNWorker, "timeouts {", "response 2s", "}"))
	return s
}

// TestAUNAssignee: an agent that connects to the gateway executes the tasks of AUN clients and of AIP Leaders.
func TestAUNAssignee(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]*aunpeer.Assignee{
		"by events": {}, "by messages": {ByMessage: true, To: site.AUNGateway},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveAssignee(t)
			assign(s, agent)
			alice, leader := s.Online("alice.aid.test"), site.LeaderOf(t, s.URL())
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
				created := site.Must(alice.Create(s.Soon(), site.AUNAgent, c.script))(t)
				if created.Status != "submitted" && !strings.HasPrefix(c.script, "reject") {
					t.Logf("%s: created as %s", c.script, created.Status)
				}
				if got := s.Rests(alice, created.TaskID); got.Status != c.status ||
					strings.Join(artifactTexts(got), "") != c.text {
					t.Errorf("%s by AUN: it is %+v", c.script, got)
				}
				id := fmt.Sprintf("t%d", i)
				leader.Patiently(id, c.script)
				if got := leader.Rests(id); got.Status.State != c.state || productTexts(got) != c.text {
					t.Errorf("%s by AIP: it is %s with %q", c.script, got.Status.State, productTexts(got))
				}
			}
			asked := site.Must(alice.Create(s.Soon(), site.AUNAgent, "ask"))(t)
			if got := s.Rests(alice, asked.TaskID); got.Status != "input_required" ||
				got.Message.String() != "which colour?" {
				t.Errorf("asked by AUN: %+v", got)
			}
			site.Must(alice.Do(s.Soon(), "task.send_input", site.AUNTask(asked.TaskID, map[string]any{
				"input": aunpeer.Text("blue"),
			})))(t)
			site.Eventually(t, "the task is completed", func() bool {
				got := s.Rests(alice, asked.TaskID)
				return got.Status == "completed" && strings.Join(artifactTexts(got), "") == "you said: blue"
			})
			leader.Start("ask", "ask")
			if got := leader.Rests("ask"); got.Status.State != task.AwaitingInput {
				t.Errorf("asked by AIP: %s", got.Status.State)
			}
			leader.GoOn("ask", "blue")
			if got := leader.Rests("ask"); productTexts(got) != "you said: blue" {
				t.Errorf("answered by AIP: %s with %q", got.Status.State, productTexts(got))
			}
			leader.Start("cancel", "slow 60000")
			if got := leader.Cancel("cancel"); got.Status.State != task.Canceled {
				t.Errorf("canceled: %s", got.Status.State)
			}
			site.Eventually(t, "the agent has learned of the cancel", func() bool {
				return strings.Contains(strings.Join(agent.Seen(), "|"), " canceled")
			})
		})
	}
}

// TestAUNAssigneeRoles: the methods of an assignee, by it, by others and in each state.
func TestAUNAssigneeRoles(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice, bob, worker := s.Online("alice.aid.test"), s.Online("bob.aid.test"), s.Online(site.AUNWorker)
	done := map[string]any{"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: "done"}}, "reason": "x"}
	n := 0
	create := func() (owned, given string) { // the ids by which the owner and the assignee know the task
		t.Helper()
		n++
		text := fmt.Sprintf("by hand %d", n)
		owned = site.Must(alice.Create(s.Soon(), site.AUNAgent, text))(t).TaskID
		if given = givenTask(s, worker, text); given != owned {
			t.Errorf("the task is %s for its assignee, and %s for its owner", given, owned)
		}
		return owned, given
	}
	id, given := create()
	for _, method := range []string{"task.accept", "task.reject", "task.complete", "task.fail"} {
		_, err := alice.Do(s.Soon(), method, site.AUNTask(id, done))
		s.Fails(method+" by the owner", err, -32175)
		for _, name := range []string{id, given} {
			_, err = bob.Do(s.Soon(), method, site.AUNTask(name, done))
			s.Fails(method+" by another", err, -32170)
		}
	}
	for _, method := range []string{"task.send_input", "task.cancel"} {
		_, err := worker.Do(s.Soon(), method, site.AUNTask(given, map[string]any{"input": aunpeer.Text("x")}))
		s.Fails(method+" by the assignee", err, -32175)
	}
	if got := site.Must(alice.Do(s.Soon(), "task.get", site.AUNTask(id)))(t); got.Status != "submitted" {
		t.Errorf("before it is accepted: %+v", got)
	}
	if got := site.Must(worker.Do(s.Soon(), "task.get", site.AUNTask(given)))(t); got.Status != "submitted" ||
		got.Input.String() != "by hand 1" || got.Owner != "alice.aid.test" {
		t.Errorf("before it is accepted, for the assignee: %+v", got)
	}
	accepted := site.Must(worker.Do(s.Soon(), "task.accept", site.AUNTask(given)))(t)
	if accepted.TaskID != given || accepted.Status != "working" {
		t.Errorf("accepted: %+v", accepted)
	}
	_, err := worker.Do(s.Soon(), "task.accept", site.AUNTask(given))
	s.Fails("task.accept again", err, -32176)
	if got := site.Must(worker.Do(s.Soon(), "task.complete", site.AUNTask(given, done)))(t); got.Status != "completed" {
		t.Errorf("completed: %+v", got)
	}
	if got := s.Rests(alice, id); got.Status != "completed" || strings.Join(artifactTexts(got), "") != "done" {
		t.Errorf("completed, for its owner: %+v", got)
	}
	for method, what := range map[string]string{"task.reject": "rejected", "task.fail": "failed"} {
		id, given := create()
		if method == "task.fail" {
			site.Must(worker.Do(s.Soon(), "task.accept", site.AUNTask(given)))(t)
		}
		if got := site.Must(worker.Do(s.Soon(), method, site.AUNTask(given, done)))(t); got.Status != what {
			t.Errorf("%s: %+v", method, got)
		}
		if got := s.Rests(alice, id); got.Status != what || got.Reason != "x" {
			t.Errorf("%s, for its owner: %+v", method, got)
		}
		for _, after := range []string{"task.accept", "task.complete", "task.fail"} {
			_, err := worker.Do(s.Soon(), after, site.AUNTask(given, done))
			s.Fails(after+" of a task that is "+what, err, map[string]int{"rejected": -32177, "failed": -32186}[what])
		}
	}
	id, given = create()
	site.Must(alice.Do(s.Soon(), "task.cancel", site.AUNTask(id)))(t)
	site.Must(worker.TaskEvent(s.Soon(), "event/task.updated", given, "canceled"))(t)
	_, err = worker.Do(s.Soon(), "task.accept", site.AUNTask(given))
	s.Fails("task.accept of a canceled task", err, -32173)
	_, err = worker.Do(s.Soon(), "task.complete", site.AUNTask("task_none", done))
	s.Fails("task.complete of no task", err, -32170)
	for what, params := range map[string]map[string]any{
		"artifacts that are no list": {"artifacts": 7}, "an artifact that is no object": {"artifacts": []any{7}},
	} {
		_, given := create()
		site.Must(worker.Do(s.Soon(), "task.accept", site.AUNTask(given)))(t)
		_, err = worker.Do(s.Soon(), "task.complete", site.AUNTask(given, params))
		s.Fails(what, err, -32602)
	}
}

// TestAUNDelegation: a task is delegated, and its depth and the number of its children are limited.
func TestAUNDelegation(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	alice, bob := s.Online("alice.aid.test"), s.Online("bob.aid.test")
	part := map[string]any{"to": site.AUNAgent, "input": aunpeer.Text("a part")}
	root := site.Must(alice.Create(s.Soon(), site.AUNAgent, "by hand"))(t).TaskID
	site.Must(alice.Subscribe(s.Soon(), root))(t)
	_, err := bob.Do(s.Soon(), "task.delegate", site.AUNTask(root, part))
	s.Fails("task.delegate by another", err, -32170)
	child := site.Must(alice.Do(s.Soon(), "task.delegate", site.AUNTask(root, part)))(t)
	if child.ParentTaskID != root || child.Assignee != site.AUNAgent || child.Status != "submitted" {
		t.Errorf("delegated: %+v", child)
	}
	site.Must(alice.Event(s.Soon(), func(f aunpeer.Frame) bool {
		return f.Method == "event/task.delegated" && strings.Contains(string(f.Params), child.TaskID)
	}))(t)
	children := string(site.Must(alice.Call(s.Soon(), "task.children", site.AUNTask(root)))(t))
	if !strings.Contains(children, child.TaskID) {
		t.Errorf("task.children: %s", children)
	}
	deepest := child.TaskID
	for depth := 2; depth <= 9; depth++ {
		next, err := alice.Do(s.Soon(), "task.delegate", site.AUNTask(deepest, part))
		if depth == 9 {
			s.Fails("task.delegate at depth 8", err, -32179)
		} else if err != nil {
			t.Fatalf("at depth %d: %v", depth, err)
		}
		deepest = next.TaskID
	}
	for n := 2; n <= 33; n++ {
		_, err := alice.Do(s.Soon(), "task.delegate", site.AUNTask(root, part))
		if n == 33 {
			s.Fails("task.delegate with 32 children", err, -32179)
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
	alice := s.Client("alice.aid.test")
	conn := site.Must(alice.Online(s.Soon()))(t)
	const tasks, pieces = 100, 5
	var ids []string
	for range tasks {
		ids = append(ids, site.Must(conn.Create(s.Soon(), site.AUNAgent, fmt.Sprintf("stream %d 100", pieces)))(t).TaskID)
	}
	stop := assign(s, new(aunpeer.Assignee))
	site.Eventually(t, "a task is worked on", func() bool {
		got := site.Must(conn.Do(s.Soon(), "task.get", site.AUNTask(ids[0])))(t)
		return got.Status != "submitted"
	})
	s.Process.Kill()
	s.Run(filepath.Join(s.Dir, "Caddyfile"))
	stop()
	conn.Cut()
	assign(s, new(aunpeer.Assignee))
	conn = site.Must(alice.Online(s.Soon()))(t)
	defer conn.Cut()
	want := ""
	for i := range pieces {
		want += fmt.Sprintf("chunk-%d ", i)
	}
	for _, id := range ids {
		if got := s.Rests(conn, id); got.Status != "completed" || strings.Join(artifactTexts(got), "") != want {
			t.Errorf("it is %+v", got)
		}
	}
}

// TestAUNAssigneeAnswers: what an assignee was answered holds, although the process dies right after the answer.
func TestAUNAssigneeAnswers(t *testing.T) {
	t.Parallel()
	s := serveAssignee(t)
	const tasks = 24
	client, agent := s.Client("alice.aid.test"), s.Client(site.AUNWorker)
	ids, given := make([]string, tasks), make([]string, tasks)
	alice, worker := site.Must(client.Online(s.Soon()))(t), site.Must(agent.Online(s.Soon()))(t)
	for i := range tasks {
		text := fmt.Sprintf("by hand %d", i)
		ids[i] = site.Must(alice.Create(s.Soon(), site.AUNAgent, text))(t).TaskID
		given[i] = givenTask(s, worker, text)
	}
	// Each step is called for all tasks at once, and the process is killed at an answer.
	for step, call := range []func(id string) (method string, params map[string]any){
		func(id string) (string, map[string]any) { return "task.accept", site.AUNTask(id) },
		func(id string) (string, map[string]any) {
			return "message.send", map[string]any{"to": "alice.aid.test", "message_id": "m-" + id,
				"payload": map[string]any{"type": "text", "text": "half", "task_id": id}}
		},
		func(id string) (string, map[string]any) {
			return "task.complete", site.AUNTask(id, map[string]any{
				"artifacts": []aunpeer.Artifact{{ID: "a", Type: "text", Content: " done"}}})
		},
	} {
		answered := make(chan int, tasks)
		for i := range tasks {
			go func() {
				method, params := call(given[i])
				if _, err := worker.Call(s.Soon(), method, params); err == nil {
					answered <- i
				}
			}()
		}
		known := []int{<-answered, <-answered}
		s.Process.Kill()
		for len(answered) > 0 {
			known = append(known, <-answered)
		}
		s.Run(filepath.Join(s.Dir, "Caddyfile"))
		alice, worker = site.Must(client.Online(s.Soon()))(t), site.Must(agent.Online(s.Soon()))(t)
		for i, id := range ids {
			if got := site.Must(alice.Do(s.Soon(), "task.get", site.AUNTask(id)))(t); slices.Contains(known, i) {
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
				_, err := worker.Call(s.Soon(), method, params)
				if err != nil && aunpeer.Code(err) != -32176 {
					t.Fatal(err)
				}
			}
		}
	}
}
