// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestKillAfterAnOwnName kills the gateway right after it has stored the name that an agent of A2A v0.1 has made for a
// task, whether a Leader has seen the task or not. Afterwards the agent is asked for the task by that name, and is not
// sent the message again.
func TestKillAfterAnOwnName(t *testing.T) {
	t.Parallel()
	var done atomic.Bool
	agent := newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		state := "working"
		if done.Load() {
			state = "completed"
		}
		switch {
		case h.Method == "tasks/send":
			h.Params.ID = "job-of-" + h.Params.Message.Parts[0].Text
			writeTask(w, h, "working", "")
		case h.Method == "tasks/get" && (h.Params.ID == "job-of-seen" || h.Params.ID == "job-of-unseen"):
			writeTask(w, h, state, "the result of "+h.Params.ID)
		default:
			writeError(w, h, -32001, "Task not found")
		}
	})
	s := newSite(t)
	conf := config{
		store:  "store pebble " + s.dir + "/store {\nsync state\n}",
		handle: "aip_gateway a2a/legacy " + agent.url,
	}
	s.start(conf)
	leader := leaderOf(t, s.url())
	go leader.try(startCall("unseen", "unseen"))
	leader.start("seen", "seen")
	asked := func(name string) bool {
		for _, h := range agent.requests("tasks/get") {
			if h.Params.ID == name {
				return true
			}
		}
		return false
	}
	eventually(t, "both tasks are asked for by their names", func() bool {
		return asked("job-of-seen") && asked("job-of-unseen")
	})
	s.kill()
	done.Store(true)
	s.start(conf)
	leader = leaderOf(t, s.url())
	for _, id := range []string{"seen", "unseen"} {
		got, err := leader.settled(id)
		if err != nil {
			t.Fatal(explain(err))
		}
		if diff := cmp.Diff([]string{fmt.Sprintf("the result of job-of-%s", id)}, product(got)); diff != "" ||
			got.Status.State != task.AwaitingCompletion {
			t.Errorf("%s is %s (-want +got):\n%s", id, got.Status.State, diff)
		}
		checkHistory(t, got)
	}
	if n := len(agent.requests("tasks/send")); n != 2 {
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
	agent := newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
		text, known := texts.Load(h.Params.ID)
		switch {
		case h.Method == "tasks/send":
			texts.Store(h.Params.ID, h.Params.Message.Parts[0].Text)
			<-r.Context().Done()
		case h.Method == "tasks/get" && known && done.Load() && strings.HasPrefix(text.(string), "stored"):
			writeTask(w, h, "completed", "the result")
		default:
			writeError(w, h, -32001, "Task not found")
		}
	})
	s := newSite(t)
	conf := config{
		store:  "store pebble " + s.dir + "/store {\nsync state\n}",
		handle: "aip_gateway {\nagent a2a/legacy " + agent.url + " {\nresend after 200ms\n}\n}",
	}
	s.start(conf)
	leader := leaderOf(t, s.url())
	ids := []string{"stored, seen", "stored, unseen", "lost, seen", "lost, unseen"}
	for _, id := range ids {
		call := startCall(id, id)
		if strings.HasSuffix(id, ", seen") {
			call.Terms.Response = time.Millisecond
			leader.do(call)
			continue
		}
		go leader.try(call)
	}
	eventually(t, "the agent works on all tasks", func() bool { return len(agent.requests("tasks/send")) == len(ids) })
	s.kill()
	done.Store(true)
	s.start(conf)
	leader = leaderOf(t, s.url())
	for _, id := range ids {
		got := leader.rests(id)
		checkHistory(t, got)
		want, said := task.AwaitingCompletion, "the result"
		if strings.HasPrefix(id, "lost") {
			want, said = task.Failed, "a new start does the work again"
		}
		is := says(got.Status.DataItems) + strings.Join(product(got), "")
		if got.Status.State != want || !strings.Contains(is, said) {
			t.Errorf("%q is %+v, and says %q", id, of(got), is)
		}
	}
	if n := len(agent.requests("tasks/send")); n != len(ids) {
		t.Errorf("the agent was sent %d messages for %d tasks", n, len(ids))
	}
}
