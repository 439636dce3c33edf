// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// callbacks has an agent push what it does to each of the gateways, whichever works on the task.
func (c *aunCluster) callbacks(t *testing.T, agent *site.PushAgent) {
	const js = "application/json"
	for i := range c.plain {
		c.Gateways[i].KnowsCard(agent.URL)
		agent.Is(site.Step{State: "working"})
		leader := site.CallerWith(t, c.plain[i]+"/pushes", fmt.Sprint("pushed-", i))
		start := site.StartCall(fmt.Sprint("pushed-", i), "hello")
		start.Terms.Response = time.Millisecond
		leader.Send(start)
		id := (<-agent.Asked).Params.ID
		agent.Answers <- struct{}{}
		hook := agent.Hook(id)
		path, ok := strings.CutPrefix(hook.URL, c.hops)
		if !ok {
			t.Fatalf("the agent was given the webhook %+v", hook)
		}
		var artifacts []string
		for j, at := range c.plain {
			for want, url := range map[int]string{401: at + path, 404: at + path + "x"} {
				if got, words := agent.Push("POST", url, "wrong", js, "{}"); got != want {
					t.Errorf("a wrong push to gateway %d is answered %d %s, want %d", j, got, words, want)
				}
			}
			artifacts = append(artifacts, fmt.Sprint("part ", j))
			now := site.Step{State: "working", Says: fmt.Sprint("step ", j), Artifacts: artifacts}
			if j == 2 {
				now.State = "completed"
			}
			agent.Is(now)
			for range 2 { // a repeated push changes nothing
				if got, words := agent.Push("POST", at+path, hook.Token, js, now.Task(id)); got != 200 && j < 2 {
					t.Errorf("a push to gateway %d is answered %d %s", j, got, words)
				}
			}
			site.Eventually(t, "the Leader sees "+now.Says, func() bool {
				got := leader.Get(start.Message.TaskID)
				return site.Says(got.Status.DataItems) == now.Says && len(got.Products) == len(artifacts)
			})
		}
		got := site.CallerWith(t, c.plain[(i+1)%3]+"/pushes", leader.Sender).Rests(start.Message.TaskID)
		site.CheckHistory(t, got)
		if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Says: "step 2", Products: artifacts},
			site.AnswerOf(got)); diff != "" {
			t.Errorf("the task (-want +got):\n%s", diff)
		}
	}
}

// atOnce sends each command to all gateways at once: it is carried out once, and all are answered alike.
func (c *aunCluster) atOnce(t *testing.T, agent *site.FakeAgent) {
	const tasks = 6
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			id := fmt.Sprint("once-", i)
			start, more := site.StartCall(id, "echo start-"+id), site.CommandCall(task.Continue, id, "echo more-"+id)
			for _, call := range []*task.Call{start, more} {
				call.Message.ID = "m-" + call.Message.DataItems[0].Text
				var sending sync.WaitGroup
				for _, s := range c.Gateways {
					leader := site.CallerWith(t, s.URL()+"/open", "leader-"+id)
					sending.Go(func() {
						if _, err := leader.Try(call); err != nil { // a repeated one is answered with the task as it is
							t.Errorf("%s of %s: %v", call.Message.Command, id, site.Explain(err))
						}
					})
				}
				sending.Wait()
			}
			got := site.CallerWith(t, c.Gateways[i%3].URL()+"/open", "leader-"+id).Rests(id)
			site.CheckHistory(t, got)
			if diff := cmp.Diff([]task.Command{task.Start, task.Continue}, site.Commands(got.MessageHistory)); diff != "" {
				t.Errorf("the commands of %s (-want +got):\n%s", id, diff)
			}
		})
	}
	all.Wait()
	sent := make(map[string]int)
	for _, h := range agent.Requests("") {
		if h.Method != "tasks/get" && len(h.Params.Message.Parts) > 0 {
			sent[h.Params.Message.Parts[0].Text]++
		}
	}
	for i := range tasks {
		for _, word := range []string{"start", "more"} {
			if text := fmt.Sprintf("echo %s-once-%d", word, i); sent[text] != 1 {
				t.Errorf("%q was sent to the agent %d times", text, sent[text])
			}
		}
	}
}

// disables disables an endpoint at one gateway: all of them see it, and none delivers anything to it, until it is
// enabled at another one.
func (c *aunCluster) disables(t *testing.T) {
	to := site.NewSink(t)
	c.Gateways[0].Turn("disable", to.Origin())
	for i, s := range c.Gateways {
		if !slices.ContainsFunc(s.Endpoints(), func(e site.Endpoint) bool {
			return e.Endpoint == to.Origin() && e.State == "disabled"
		}) {
			t.Errorf("gateway %d does not see that the endpoint is disabled: %+v", i, s.Endpoints())
		}
	}
	ended := make(map[string][]task.Status)
	for i := range 6 {
		id := fmt.Sprint("held-", i)
		at := site.CallerWith(t, c.Gateways[i%3].URL()+"/open", id)
		at.SetHook(site.Hook{URL: to.Origin() + "/" + id, Token: id, TaskID: id})
		at.Start(id, "hello")
		at.Complete(id)
		ended["/"+id] = at.Get(id).StatusHistory
	}
	for i, s := range c.Gateways {
		site.Eventually(t, fmt.Sprintf("gateway %d holds back the notifications of all tasks", i), func() bool {
			tasks := make(map[string]bool)
			for _, d := range s.Deliveries("status=disabled") {
				tasks[d.Task] = true
			}
			return len(tasks) == len(ended)
		})
	}
	if n := len(to.Arrived("")); n != 0 {
		t.Errorf("a disabled endpoint was sent %d notifications", n)
	}
	c.Gateways[2].Turn("enable", to.Origin())
	for path, history := range ended {
		to.WaitForChanges(path, history)
	}
}
