// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func artifactTexts(t aunpeer.Task) (texts []string) {
	for _, a := range t.Artifacts {
		text, _ := a.Content.(string)
		texts = append(texts, text)
	}
	return texts
}

// TestAUNTasks calls every method of task.* as the owner of a task, and as another.
func TestAUNTasks(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	alice, bob := s.Online("alice.aid.test"), s.Online("bob.aid.test")

	t.Run("outcomes", func(t *testing.T) {
		for script, want := range map[string]struct{ status, artifact string }{
			"hello": {"completed", "echo: hello"}, "fail": {"failed", ""}, "slow 1": {"completed", ""},
			"stream 3 1": {"completed", "chunk-0 chunk-1 chunk-2 "}, "ask": {"input_required", ""},
		} {
			created := site.Must(alice.Create(s.Soon(), site.AUNAgent, script))(t)
			// The agent may have finished before the answer is written; then the answer does not say when it was created.
			early := created.Status == "submitted" || created.Status == "working"
			if created.Owner != "alice.aid.test" || created.Assignee != site.AUNAgent || created.TaskID == "" ||
				created.Status == "submitted" && created.CreatedAt == "" || !early && created.Status != want.status {
				t.Errorf("%s: created as %+v", script, created)
			}
			got := s.Rests(alice, created.TaskID)
			if got.Status != want.status || strings.Join(artifactTexts(got), "|") != want.artifact ||
				got.Visibility != "private" || got.Input.String() != script {
				t.Errorf("%s: it is %+v", script, got)
			}
		}
	})
	t.Run("a question", func(t *testing.T) {
		task := site.Must(alice.Create(s.Soon(), site.AUNAgent, "ask"))(t)
		asked := s.Rests(alice, task.TaskID)
		if asked.Message.String() != "which colour?" {
			t.Errorf("it has asked %+v", asked)
		}
		site.Must(alice.Subscribe(s.Soon(), task.TaskID))(t)
		open := s.Listed("streams", url.Values{"task": {task.TaskID}})
		if len(open) != 1 || open[0].Get("transport").String() != "AUN" ||
			open[0].Get("user_id").String() != "alice.aid.test" {
			t.Errorf("the streams of the task are %s", open)
		}
		answered := site.Must(alice.Do(s.Soon(), "task.send_input", site.AUNTask(task.TaskID, map[string]any{
			"input": aunpeer.Text("blue"),
		})))(t)
		if answered.TaskID != task.TaskID || answered.Status != "working" && answered.Status != "completed" {
			t.Errorf("answered: %+v", answered)
		}
		ev := site.Must(alice.TaskEvent(s.Soon(), "event/task.completed", task.TaskID, "completed"))(t)
		if got := s.Rests(alice, task.TaskID); strings.Join(artifactTexts(got), "") != "you said: blue" {
			t.Errorf("it is %+v after %+v", got, ev)
		}
	})
	t.Run("the ends", func(t *testing.T) {
		for script, want := range map[string]int{"hello": -32171, "fail": -32186, "slow 60000": -32173} {
			task := site.Must(alice.Create(s.Soon(), site.AUNAgent, script))(t)
			if strings.HasPrefix(script, "slow") {
				canceled := site.Must(alice.Do(s.Soon(), "task.cancel", site.AUNTask(task.TaskID, map[string]any{
					"reason": "user_abort",
				})))(t)
				if canceled.Status != "canceled" {
					t.Errorf("canceled: %+v", canceled)
				}
			}
			s.Rests(alice, task.TaskID)
			_, err := alice.Do(s.Soon(), "task.send_input", site.AUNTask(task.TaskID, map[string]any{
				"input": aunpeer.Text("more"),
			}))
			s.Fails(script+": send_input at the end", err, want)
			_, err = alice.Do(s.Soon(), "task.cancel", site.AUNTask(task.TaskID))
			s.Fails(script+": cancel at the end", err, want)
		}
	})
	t.Run("roles", func(t *testing.T) {
		task := site.Must(alice.Create(s.Soon(), site.AUNAgent, "ask"))(t)
		s.Rests(alice, task.TaskID)
		input := map[string]any{
			"input": aunpeer.Text("x"), "to": site.AUNAgent, "artifacts": []aunpeer.Artifact{}, "reason": "x",
		}
		for _, method := range []string{"task.accept", "task.reject", "task.complete", "task.fail"} {
			_, err := alice.Do(s.Soon(), method, site.AUNTask(task.TaskID, input))
			s.Fails(method+" by the owner", err, -32175)
		}
		for _, method := range []string{
			"task.get", "task.accept", "task.reject", "task.send_input", "task.delegate", "task.complete", "task.fail",
			"task.cancel", "task.children",
		} {
			_, err := bob.Do(s.Soon(), method, site.AUNTask(task.TaskID, input))
			s.Fails(method+" by another", err, -32170)
			_, err = alice.Do(s.Soon(), method, site.AUNTask("task_none", input))
			s.Fails(method+" of no task", err, -32170)
			_, err = alice.Do(s.Soon(), method, map[string]any{})
			s.Fails(method+" without a task", err, -32602)
		}
		_, err := bob.Subscribe(s.Soon(), task.TaskID)
		s.Fails("task.subscribe by another", err, -32170)
		list := string(site.Must(bob.Call(s.Soon(), "task.list", map[string]any{"limit": 100}))(t))
		if strings.Contains(list, task.TaskID) {
			t.Errorf("another's list has it: %s", list)
		}
		if got := s.Rests(alice, task.TaskID); got.Status != "input_required" {
			t.Errorf("after all that it is %+v", got)
		}
		children := string(site.Must(alice.Call(s.Soon(), "task.children", site.AUNTask(task.TaskID)))(t))
		if strings.Contains(children, "task_id\":\"") {
			t.Errorf("it has children: %s", children)
		}
	})
	t.Run("a public task", func(t *testing.T) {
		task := site.Must(alice.Do(s.Soon(), "task.create", map[string]any{
			"to": site.AUNAgent, "input": aunpeer.Text("ask"), "visibility": "public",
		}))(t)
		s.Rests(alice, task.TaskID)
		if got := site.Must(bob.Do(s.Soon(), "task.get", site.AUNTask(task.TaskID)))(t); got.Owner != "alice.aid.test" {
			t.Errorf("another reads %+v", got)
		}
		for method, want := range map[string]int{
			"task.cancel": -32175, "task.send_input": -32175, "task.complete": -32175, "task.delegate": -32178,
		} {
			_, err := bob.Do(s.Soon(), method, site.AUNTask(task.TaskID, map[string]any{
				"input": aunpeer.Text("x"), "to": site.AUNAgent,
			}))
			s.Fails(method+" by another", err, want)
		}
	})
	t.Run("lists", func(t *testing.T) {
		carol := s.Online("carol.aid.test")
		var want, got []string
		for range 5 {
			want = append(want, site.Must(carol.Create(s.Soon(), site.AUNAgent, "hello"))(t).TaskID)
		}
		for _, id := range want {
			s.Rests(carol, id)
		}
		for cursor := any(nil); len(got) < 100; {
			result := site.Must(carol.Call(s.Soon(), "task.list", map[string]any{
				"status": "completed", "limit": 2, "cursor": cursor,
			}))(t)
			var page struct {
				Tasks      []aunpeer.Task
				NextCursor any `json:"next_cursor"`
			}
			if err := json.Unmarshal(result, &page); err != nil || len(page.Tasks) > 2 {
				t.Fatalf("%s: %v", result, err)
			}
			for _, task := range page.Tasks {
				got = append(got, task.TaskID)
			}
			if cursor = page.NextCursor; cursor == nil || cursor == "" {
				break
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("the list has %v, want %v", got, want)
		}
	})
	t.Run("params", func(t *testing.T) {
		for what, params := range map[string]any{
			"no input":              map[string]any{"to": site.AUNAgent},
			"no agent":              map[string]any{"input": aunpeer.Text("x")},
			"an input that is none": map[string]any{"to": site.AUNAgent, "input": 7},
			"another visibility":    map[string]any{"to": site.AUNAgent, "input": aunpeer.Text("x"), "visibility": "secret"},
			"a list":                []any{},
			"nothing":               nil,
		} {
			_, err := alice.Call(s.Soon(), "task.create", params)
			s.Fails(what, err, -32602)
		}
		_, err := alice.Create(s.Soon(), "elsewhere.aid.test", "hello")
		s.Fails("an agent that is not here", err, -32010)
	})
}

// TestAUNSubscription follows 100 tasks on one connection, which is cut, as the gateway is killed: the same device
// loses and repeats nothing, but for events with a number that it has had. Another device begins at now.
func TestAUNSubscription(t *testing.T) {
	t.Parallel()
	s := serveAUN(t)
	const tasks, pieces = 100, 20
	alice := s.Client("alice.aid.test")
	conn := site.Must(alice.Online(s.Soon()))(t)
	texts, seqs, ended := make(map[string]string), make(map[string]int), make(map[string]bool)
	var ids []string
	for range tasks {
		ids = append(ids, site.Must(conn.Create(s.Soon(), site.AUNAgent, fmt.Sprintf("stream %d 100", pieces)))(t).TaskID)
	}
	take := func(f aunpeer.Frame) {
		var ev aunpeer.TaskEvent
		if err := json.Unmarshal(f.Params, &ev); err != nil || ev.TaskID == "" || ev.Seq == 0 {
			t.Fatalf("%s %s: %v", f.Method, f.Params, err)
		}
		if ev.Seq <= seqs[ev.TaskID] { // it is sent again
			return
		}
		seqs[ev.TaskID] = ev.Seq
		switch f.Method {
		case "event/task.artifact":
			piece, _ := ev.Artifact.Content.(string)
			texts[ev.TaskID] += piece
		case "event/task.completed":
			ended[ev.TaskID] = true
		}
	}
	site.Must(conn.Subscribe(s.Soon(), ids...))(t)
	for received := 1; len(ended) < tasks; received++ {
		take(site.Must(conn.Event(s.Soon(), nil))(t))
		if received == 600 {
			s.Process.Kill()
			s.Run(filepath.Join(s.Dir, "Caddyfile"))
		} else if received != 300 && received != 900 {
			continue
		}
		conn.Cut()
		for { // what has arrived before the cut
			f, err := conn.Event(s.Soon(), nil)
			if err != nil {
				break
			}
			take(f)
		}
		conn = site.Must(alice.Online(s.Soon()))(t)
		site.Must(conn.Subscribe(s.Soon(), ids...))(t)
	}
	want := ""
	for i := range pieces {
		want += fmt.Sprintf("chunk-%d ", i)
	}
	for _, id := range ids {
		if texts[id] != want {
			t.Errorf("the pieces of %s are %q", id, texts[id])
		}
	}
	conn.Cut()

	other := s.Client("alice.aid.test")
	other.Device = "device-2"
	late := site.Must(other.Online(s.Soon()))(t)
	defer late.Cut()
	site.Must(late.Subscribe(s.Soon(), ids[0]))(t)
	site.Must(late.Call(s.Soon(), "meta.ping", nil))(t)
	for _, f := range late.Received() {
		if strings.Contains(f, "event/task.artifact") {
			t.Errorf("another device, which begins at now, receives %s", f)
		}
	}
}
