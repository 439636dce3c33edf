// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// callbacks has an agent push what it does to each of the gateways, whichever works on the task.
func (c *aunCluster) callbacks(t *testing.T, agent *pushAgent) {
	const js = "application/json"
	for i := range c.plain {
		c.gateways[i].knowsCard(agent.url)
		agent.is(step{"working", "", nil})
		leader := callerWith(t, c.plain[i]+"/pushes", fmt.Sprint("pushed-", i))
		start := startCall(fmt.Sprint("pushed-", i), "hello")
		start.Terms.Response = time.Millisecond
		leader.do(start)
		id := (<-agent.asked).Params.ID
		agent.answers <- struct{}{}
		hook := agent.hook(id)
		path, ok := strings.CutPrefix(hook.URL, c.hops)
		if !ok {
			t.Fatalf("the agent was given the webhook %+v", hook)
		}
		var artifacts []string
		for j, at := range c.plain {
			for want, url := range map[int]string{401: at + path, 404: at + path + "x"} {
				if got, words := agent.push("POST", url, "wrong", js, "{}"); got != want {
					t.Errorf("a wrong push to gateway %d is answered %d %s, want %d", j, got, words, want)
				}
			}
			artifacts = append(artifacts, fmt.Sprint("part ", j))
			now := step{"working", fmt.Sprint("step ", j), artifacts}
			if j == 2 {
				now.state = "completed"
			}
			agent.is(now)
			for range 2 { // a repeated push changes nothing
				if got, words := agent.push("POST", at+path, hook.Token, js, now.task(id)); got != 200 && j < 2 {
					t.Errorf("a push to gateway %d is answered %d %s", j, got, words)
				}
			}
			eventually(t, "the Leader sees "+now.says, func() bool {
				got := leader.get(start.Message.TaskID)
				return says(got.Status.DataItems) == now.says && len(got.Products) == len(artifacts)
			})
		}
		got := callerWith(t, c.plain[(i+1)%3]+"/pushes", leader.Sender).rests(start.Message.TaskID)
		checkHistory(t, got)
		if diff := cmp.Diff(answered{task.AwaitingCompletion, "step 2", artifacts}, of(got)); diff != "" {
			t.Errorf("the task (-want +got):\n%s", diff)
		}
	}
}

// atOnce sends each command to all gateways at once: it is carried out once, and all are answered alike.
func (c *aunCluster) atOnce(t *testing.T, agent *fakeAgent) {
	const tasks = 6
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			id := fmt.Sprint("once-", i)
			start, more := startCall(id, "echo start-"+id), commandCall(task.Continue, id, "echo more-"+id)
			for _, call := range []*task.Call{start, more} {
				call.Message.ID = "m-" + call.Message.DataItems[0].Text
				var sending sync.WaitGroup
				for _, s := range c.gateways {
					leader := callerWith(t, s.url()+"/open", "leader-"+id)
					sending.Go(func() {
						if _, err := leader.try(call); err != nil { // a repeated one is answered with the task as it is
							t.Errorf("%s of %s: %v", call.Message.Command, id, explain(err))
						}
					})
				}
				sending.Wait()
			}
			got := callerWith(t, c.gateways[i%3].url()+"/open", "leader-"+id).rests(id)
			checkHistory(t, got)
			if diff := cmp.Diff([]task.Command{task.Start, task.Continue}, commands(got.MessageHistory)); diff != "" {
				t.Errorf("the commands of %s (-want +got):\n%s", id, diff)
			}
		})
	}
	all.Wait()
	sent := make(map[string]int)
	for _, h := range agent.requests("") {
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
	to := newSink(t)
	c.gateways[0].turn("disable", to.origin())
	for i, s := range c.gateways {
		if !slices.ContainsFunc(s.endpoints(), func(e endpoint) bool {
			return e.Endpoint == to.origin() && e.State == "disabled"
		}) {
			t.Errorf("gateway %d does not see that the endpoint is disabled: %+v", i, s.endpoints())
		}
	}
	ended := make(map[string][]task.Status)
	for i := range 6 {
		id := fmt.Sprint("held-", i)
		at := callerWith(t, c.gateways[i%3].url()+"/open", id)
		at.setHook(hook{URL: to.origin() + "/" + id, Token: id, TaskID: id})
		at.start(id, "hello")
		at.complete(id)
		ended["/"+id] = at.get(id).StatusHistory
	}
	for i, s := range c.gateways {
		tasks := make(map[string]bool)
		for _, d := range s.deliveries("status=disabled") {
			tasks[d.Task] = true
		}
		if len(tasks) != len(ended) {
			t.Errorf("gateway %d holds back the notifications of %d tasks, want %d", i, len(tasks), len(ended))
		}
	}
	if n := len(to.arrived("")); n != 0 {
		t.Errorf("a disabled endpoint was sent %d notifications", n)
	}
	c.gateways[2].turn("enable", to.origin())
	for path, history := range ended {
		to.waitForChanges(path, history)
	}
}
