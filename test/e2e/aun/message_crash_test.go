// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestAUNAssigneeCrash: the gateway dies in the middle of 100 tasks of an agent that connects to it. The agent gets
// the tasks that have not ended again, and each of them ends as it should.
func TestAUNAssigneeCrash(t *testing.T) {
	t.Parallel()
	s := site.NewAUN(t)
	c := s.Config("aun-assignee worker.aid.test")
	s.Start(c)
	ctx, cancel := context.WithTimeout(t.Context(), 5*site.Patience)
	defer cancel()
	worker := &aunpeer.Assignee{Client: s.Client("worker.aid.test")}
	working, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() {
		for working.Err() == nil {
			_ = worker.Serve(working)
			select { // an SDK pauses before it connects again
			case <-working.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	alice := s.Client("alice.aid.test")
	conn := s.Again(ctx, alice)
	const tasks = 100
	ids := make([]string, tasks)
	for i := range ids {
		made, err := conn.Create(ctx, site.AUNAgent, fmt.Sprintf("slow %d", 20*(i%40)))
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = made.TaskID
		if i == tasks/2 {
			crash(s, c)
			conn = s.Again(ctx, alice)
		}
	}
	crash(s, c)
	conn = s.Again(ctx, alice)
	for i, id := range ids {
		var got aunpeer.Task
		site.Eventually(t, "a task ends", func() (ended bool) {
			var err error
			if got, err = conn.Do(ctx, "task.get", map[string]any{"task_id": id}); err != nil {
				t.Fatalf("task %d: %v", i, err)
			}
			return aunpeer.Ended(got.Status)
		})
		if got.Status != "completed" || len(got.Artifacts) != 1 || fmt.Sprint(got.Artifacts[0].Content) != "slow done" {
			t.Errorf("task %d is %+v", i, got)
		}
	}
	times := make(map[string]int)
	for _, line := range worker.Seen() {
		id, _, _ := strings.Cut(line, " ")
		times[id]++
	}
	if len(times) != tasks {
		t.Errorf("the agent was sent %d tasks, want %d", len(times), tasks)
	}
}

// TestAUNMessagesCrash: the gateway dies in the middle of 100 conversations. The client repeats what was not answered,
// and its inbox has each message of each conversation once.
func TestAUNMessagesCrash(t *testing.T) {
	t.Parallel()
	var texts sync.Map // by task
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if parts := h.Params.Message.Parts; len(parts) > 0 {
			texts.Store(h.Params.ID, parts[0].Text)
		}
		text, ok := texts.Load(h.Params.ID)
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Millisecond):
			if !ok {
				site.WriteError(w, h, -32001, "no such task")
				return
			}
			site.WriteTask(w, h, "completed", fmt.Sprint("heard ", text))
		}
	})
	s := site.NewAUN(t)
	c := s.Config("a2a/legacy "+agent.URL, "agent {\nresend always\n}") // it does no work twice
	s.Start(c)
	ctx, cancel := context.WithTimeout(t.Context(), 5*site.Patience)
	defer cancel()
	alice := s.Client("alice.aid.test")
	conn := s.Again(ctx, alice)
	const threads = 100
	for i := range threads {
		text := fmt.Sprintf("m%03d", i)
		if i%40 == 20 { // while the ones before are under way
			crash(s, c)
		}
		for {
			_, err := conn.Call(ctx, "message.send", map[string]any{"to": site.AUNAgent, "message_id": text,
				"payload": aunpeer.Payload{Type: "text", Text: text, ThreadID: "thread " + text}})
			if err == nil {
				break
			}
			if ctx.Err() != nil || aunpeer.Code(err) != 0 {
				t.Fatalf("%s: %v", text, err)
			}
			conn = s.Again(ctx, alice)
		}
	}
	said := make(map[string][]string) // by thread
	site.Eventually(t, "all conversations end", func() bool {
		clear(said)
		ended := 0
		for after := int64(0); ; {
			result, err := conn.Call(ctx, "message.pull", map[string]any{"after_seq": after, "limit": 200})
			if err != nil {
				t.Fatal(err)
			}
			messages := gjson.GetBytes(result, "messages").Array()
			if len(messages) == 0 {
				return ended == threads
			}
			for _, m := range messages {
				if m.Get("seq").Int() <= after {
					t.Fatalf("the seq %d comes after %d", m.Get("seq").Int(), after)
				}
				after = m.Get("seq").Int()
				p := m.Get("payload")
				said[p.Get("thread_id").Str] = append(said[p.Get("thread_id").Str], p.Get("event").Str+p.Get("text").Str)
				if p.Get("event").Str == "task.completed" {
					ended++
				}
			}
		}
	})
	for i := range threads {
		text := fmt.Sprintf("m%03d", i)
		want := []string{"task.started", "heard " + text, "task.completed"}
		if got := said["thread "+text]; !slices.Equal(got, want) {
			t.Errorf("the conversation %s has %q, want %q", text, got, want)
		}
	}
	starts := make(map[string]int)
	for _, h := range agent.Requests("tasks/sendSubscribe") { // the inbox follows what the agent does
		starts[h.Params.ID]++
	}
	if len(starts) != threads {
		t.Errorf("the agent has %d tasks, want %d", len(starts), threads)
	}
}
