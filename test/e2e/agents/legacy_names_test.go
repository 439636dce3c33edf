// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// TestKillAfterAnOwnName kills the gateway right after it has stored the name that an agent of A2A v0.1 has made for a
// task, whether a Leader has seen the task or not. Afterwards the agent is asked for the task by that name, and is not
// sent the message again.
func TestKillAfterAnOwnName(t *testing.T) {
	t.Parallel()
	var done atomic.Bool
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		state := "working"
		if done.Load() {
			state = "completed"
		}
		switch {
		case h.Method == "tasks/send":
			h.Params.ID = "job-of-" + h.Params.Message.Parts[0].Text
			site.WriteTask(w, h, "working", "")
		case h.Method == "tasks/get" && (h.Params.ID == "job-of-seen" || h.Params.ID == "job-of-unseen"):
			site.WriteTask(w, h, state, "the result of "+h.Params.ID)
		default:
			site.WriteError(w, h, -32001, "Task not found")
		}
	})
	s := site.New(t)
	conf := site.Config{
		Store:  "store pebble " + s.Dir + "/store {\nsync state\n}",
		Handle: "aip_gateway a2a/legacy " + agent.URL,
	}
	s.Start(conf)
	leader := site.LeaderOf(t, s.URL())
	go leader.Try(site.StartCall("unseen", "unseen"))
	leader.Start("seen", "seen")
	asked := func(name string) bool {
		for _, h := range agent.Requests("tasks/get") {
			if h.Params.ID == name {
				return true
			}
		}
		return false
	}
	site.Eventually(t, "both tasks are asked for by their names", func() bool {
		return asked("job-of-seen") && asked("job-of-unseen")
	})
	s.Kill()
	done.Store(true)
	s.Start(conf)
	leader = site.LeaderOf(t, s.URL())
	for _, id := range []string{"seen", "unseen"} {
		got, err := leader.Settled(id)
		if err != nil {
			t.Fatal(site.Explain(err))
		}
		if diff := cmp.Diff([]string{fmt.Sprintf("the result of job-of-%s", id)}, site.Product(got)); diff != "" ||
			got.Status.State != task.AwaitingCompletion {
			t.Errorf("%s is %s (-want +got):\n%s", id, got.Status.State, diff)
		}
		site.CheckHistory(t, got)
	}
	if n := len(agent.Requests("tasks/send")); n != 2 {
		t.Errorf("the agent was sent %d messages", n)
	}
}

// TestKillOfWorkThatIsStoredAtItsEnd kills the gateway while an agent of A2A v0.1 works that stores a task at its end
// only. The work is done once, whether a Leader has seen the task or not: what the agent has stored then is the result,
// and a task that it does not know fails, and says why.
func TestKillOfWorkThatIsStoredAtItsEnd(t *testing.T) {
	t.Parallel()
	var done atomic.Bool
	texts := new(sync.Map) // of the tasks, by their ids
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		text, known := texts.Load(h.Params.ID)
		switch {
		case h.Method == "tasks/send":
			texts.Store(h.Params.ID, h.Params.Message.Parts[0].Text)
			<-r.Context().Done()
		case h.Method == "tasks/get" && known && done.Load() && strings.HasPrefix(text.(string), "stored"):
			site.WriteTask(w, h, "completed", "the result")
		default:
			site.WriteError(w, h, -32001, "Task not found")
		}
	})
	s := site.New(t)
	conf := site.Config{
		Store:  "store pebble " + s.Dir + "/store {\nsync state\n}",
		Handle: "aip_gateway {\nagent a2a/legacy " + agent.URL + " {\nresend after 200ms\n}\n}",
	}
	s.Start(conf)
	leader := site.LeaderOf(t, s.URL())
	ids := []string{"stored, seen", "stored, unseen", "lost, seen", "lost, unseen"}
	for _, id := range ids {
		call := site.StartCall(id, id)
		if strings.HasSuffix(id, ", seen") {
			call.Terms.Response = time.Millisecond
			leader.Send(call)
			continue
		}
		go leader.Try(call)
	}
	site.Eventually(t, "the agent works on all tasks",
		func() bool { return len(agent.Requests("tasks/send")) == len(ids) })
	s.Kill()
	done.Store(true)
	s.Start(conf)
	leader = site.LeaderOf(t, s.URL())
	for _, id := range ids {
		got := leader.Rests(id)
		site.CheckHistory(t, got)
		want, said := task.AwaitingCompletion, "the result"
		if strings.HasPrefix(id, "lost") {
			want, said = task.Failed, "a new start does the work again"
		}
		is := site.Says(got.Status.DataItems) + strings.Join(site.Product(got), "")
		if got.Status.State != want || !strings.Contains(is, said) {
			t.Errorf("%q is %+v, and says %q", id, site.AnswerOf(got), is)
		}
	}
	if n := len(agent.Requests("tasks/send")); n != len(ids) {
		t.Errorf("the agent was sent %d messages for %d tasks", n, len(ids))
	}
}
