// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// agentAPISites fronts one agent twice: with a path by which runs are stopped, and without.
func agentAPISites(a *site.RuntimeAgent) site.Config {
	return site.Config{Handle: fmt.Sprintf(`aip_gateway /stop* {
		agent agentapi %[1]s/process {
			cancel_path /stop
		}
	}
	aip_gateway /cut* {
		agent agentapi %[1]s/process?cut {
			expose product
		}
	}`, a.URL)}
}

// begins starts a task whose agent works on it when it returns.
func begins(c *site.Caller, a *site.RuntimeAgent, id, session, text string) {
	c.T.Helper()
	call := site.InSession(id, session, text)
	call.Terms.Response = time.Millisecond
	c.Send(call)
	site.Eventually(c.T, "the agent works", func() bool {
		_, _, begun := a.State(text)
		return begun > 0
	})
}

// TestAgentAPI drives an agent of the Agent API: the answers of the real server, questions, cancels and busy sessions.
func TestAgentAPI(t *testing.T) {
	t.Parallel()
	a := site.NewRuntimeAgent(t)
	s := site.Serve(t, agentAPISites(a))
	stops, cuts := site.LeaderOf(t, s.URL()+"/stop"), site.LeaderOf(t, s.URL()+"/cut")

	for name, want := range map[string]site.Answered{
		"hello": {State: task.AwaitingCompletion, Products: []string{"Hello"}},
		"tool":  {State: task.AwaitingCompletion, Products: []string{"Hello"}},
		"boom": {State: task.Failed, Says: "AGENT_UNKNOWN_ERROR: Unknown agent error: RuntimeError: kaput",
			Products: []string{"Hi"}},
		"badreq": {State: task.Failed,
			Says: "the agent's server reports an error, and not a response: 1 validation error for " +
				"AgentRequest input Field required [type=missing, input_value={'session_id': 'x'}, input_type=dict] For further " +
				"information visit https://errors.pydantic.dev/2.10/v/missing"},
		"stop": {State: task.Failed,
			Says: "the connection to the agent is gone, and agentapi cannot ask how a task stands; " +
				"the message is not sent again, since the agent may have acted on it",
			Products: []string{"xxxxxxxx"}},
	} {
		stops.Start("replay-"+name, "replay "+name)
		got := stops.Get("replay-" + name)
		site.CheckHistory(t, got)
		if of := site.AnswerOf(got); fmt.Sprint(of) != fmt.Sprint(want) {
			t.Errorf("%s is %q, want %q", name, of, want)
		}
		if _, _, begun := a.State("replay " + name); begun != 1 {
			t.Errorf("%s was sent %d times", name, begun)
		}
	}
	if got := cuts.Start("tools", "replay tool"); len(got.Products) != 4 || got.Products[1].Name != "plugin_call" {
		t.Errorf("with all messages exposed, the products are %+v", got.Products)
	}

	// Questions, and how they are answered.
	asks := stops.Start("asks", "ask")
	if asks.Status.State != task.AwaitingInput || len(asks.Status.DataItems) != 2 {
		t.Errorf("the question is %+v", asks.Status)
	}
	if got := stops.GoOn("asks", "blue"); got.Status.State != task.AwaitingCompletion ||
		strings.Join(site.Product(got), "") != "you said: blue" {
		t.Errorf("the answer is %+v", got)
	}
	stops.Start("approves", "approve")
	approve := site.CommandCall(task.Continue, "approves")
	approve.Message.DataItems = []task.DataItem{{Kind: task.DataKind, Data: []byte(`{"approve":true}`)}}
	if got := stops.Send(approve); strings.Join(site.Product(got), "") != "you said: true" {
		t.Errorf("the approval is %+v", got)
	}

	// A cancel by the path of the application.
	begins(stops, a, "c1", "s1", "slow 300 one")
	if got := stops.Cancel("c1"); got.Status.State != task.Canceled || len(got.Status.DataItems) > 0 {
		t.Errorf("the cancel is answered %+v", got.Status)
	}
	site.Eventually(t, "the run has been stopped", func() bool {
		runs, _, _ := a.State("")
		return runs == 0
	})
	if got := stops.Get("c1"); got.Status.State != task.Canceled {
		t.Errorf("the canceled task is %+v", got.Status)
	}

	// A cancel by closing the connection: the run continues, and the next message of the session waits for its end.
	begins(cuts, a, "c2", "s2", "slow 300 two")
	if got := cuts.Cancel("c2"); got.Status.State != task.Canceled ||
		!strings.Contains(site.Says(got.Status.DataItems), "the agent may continue its work") {
		t.Errorf("the cancel is answered %+v", got.Status)
	}
	next := site.InSession("c3", "s2", "hello")
	next.Terms.Response = time.Millisecond
	cuts.Send(next)
	site.Eventually(t, "the next message is refused", func() bool {
		_, busy, _ := a.State("")
		return busy > 1
	})
	// Another task of the session cannot stop a run that is not its own.
	begins(stops, a, "c4", "s4", "slow 300 four")
	queued := site.InSession("c5", "s4", "slow 300 five")
	queued.Terms.Response = time.Millisecond
	_, before, _ := a.State("")
	stops.Send(queued)
	site.Eventually(t, "the message waits", func() bool {
		_, busy, _ := a.State("")
		return busy > before+1
	})
	if got := stops.Cancel("c5"); got.Status.State != task.Canceled {
		t.Errorf("the cancel is answered %+v", got.Status)
	}
	if got := stops.Get("c4"); got.Status.State != task.Working {
		t.Errorf("the run of another task is %+v", got.Status)
	}
	a.End("")
	if got := cuts.Rests("c3"); strings.Join(site.Product(got), "") != "echo: hello" {
		t.Errorf("the next message is answered %+v", got)
	}
	if _, _, begun := a.State("hello"); begun != 1 {
		t.Errorf("the next message was begun %d times", begun)
	}
	if _, _, begun := a.State("slow 300 five"); begun != 0 {
		t.Errorf("the canceled message was begun %d times", begun)
	}
}

// TestAgentAPICrash kills the gateway while an agent works on one task and another one waits for its session. The run
// is not begun again, and its task fails with a reason; the message that waits is sent once at most.
func TestAgentAPICrash(t *testing.T) {
	t.Parallel()
	a := site.NewRuntimeAgent(t)
	with := agentAPISites(a)
	s := site.Serve(t, with)
	c := site.LeaderOf(t, s.URL()+"/cut")
	begins(c, a, "runs", "s", "slow 300 one")
	waits := site.InSession("waits", "s", "hello")
	waits.Terms.Response = time.Millisecond
	c.Send(waits)
	site.Eventually(t, "the second task waits", func() bool {
		_, busy, _ := a.State("")
		return busy > 1
	})
	s.Kill()
	s.Start(with)
	if got := c.Rests("runs"); got.Status.State != task.Failed ||
		!strings.Contains(site.Says(got.Status.DataItems), "the connection to the agent is gone") {
		t.Errorf("the run of before is %+v", got.Status)
	}
	a.End("")
	got := c.Rests("waits")
	switch _, _, begun := a.State("hello"); {
	case begun == 1 && strings.Join(site.Product(got), "") == "echo: hello":
	case begun == 0 && got.Status.State == task.Failed: // it was just being tried again, so it was in doubt
	default:
		t.Errorf("the task that waited was begun %d times: %+v", begun, got)
	}
	if _, _, begun := a.State("slow 300 one"); begun != 1 {
		t.Errorf("the run was begun %d times", begun)
	}
}

// TestAgentAPIReload cancels a run that was begun by the configuration before.
func TestAgentAPIReload(t *testing.T) {
	t.Parallel()
	a := site.NewRuntimeAgent(t)
	with := agentAPISites(a)
	s := site.Serve(t, with)
	c := site.LeaderOf(t, s.URL()+"/stop")
	begins(c, a, "one", "s", "slow 300 one")
	if bad := s.Reload(with); bad != "" {
		t.Fatal(bad)
	}
	if got := c.Cancel("one"); got.Status.State != task.Canceled || len(got.Status.DataItems) > 0 {
		t.Errorf("the cancel is answered %+v", got.Status)
	}
	site.Eventually(t, "the run has been stopped", func() bool {
		runs, _, _ := a.State("")
		return runs == 0
	})
}

// TestAgentAPIChaos kills the gateway in the middle of many runs. None is begun twice, every task ends, and what a task
// offers is a beginning of what the agent has said.
func TestAgentAPIChaos(t *testing.T) {
	t.Parallel()
	a := site.NewRuntimeAgent(t)
	with := agentAPISites(a)
	s := site.Serve(t, with)
	c := site.LeaderOf(t, s.URL()+"/cut")
	const tasks = 40
	text := func(i int) string {
		if i%2 == 0 {
			return fmt.Sprintf("slow 300 task-%d", i)
		}
		return fmt.Sprintf("stream %d 20 task-%d", 5+i, i)
	}
	whole := func(i int) string {
		if i%2 == 0 {
			return strings.Repeat("tick ", 300)
		}
		return site.Chunks(5 + i)
	}
	for i := range tasks {
		call := site.InSession(fmt.Sprint("task-", i), fmt.Sprint("session-", i), text(i))
		call.Terms.Response = time.Millisecond
		c.Send(call)
	}
	for i := range tasks {
		site.Eventually(t, "all have begun", func() bool {
			_, _, begun := a.State(text(i))
			return begun > 0
		})
	}
	site.Eventually(t, "some have ended", func() bool {
		runs, _, _ := a.State("")
		return runs < tasks*3/4
	})
	c.Rests("task-1") // whose end the gateway has heard
	s.Kill()
	s.Start(with)
	completed, failed := 0, 0
	for i := range tasks {
		got := c.Rests(fmt.Sprint("task-", i))
		site.CheckHistory(t, got)
		said := strings.Join(site.Product(got), "")
		switch got.Status.State {
		case task.AwaitingCompletion:
			if completed++; said != whole(i) {
				t.Errorf("task %d offers %q", i, said)
			}
		case task.Failed:
			if failed++; !strings.HasPrefix(whole(i), said) {
				t.Errorf("task %d has failed, and offers %q", i, said)
			}
		default:
			t.Errorf("task %d is %s", i, got.Status.State)
		}
		if _, _, begun := a.State(text(i)); begun != 1 {
			t.Errorf("task %d was begun %d times", i, begun)
		}
	}
	if completed == 0 || failed == 0 {
		t.Errorf("%d tasks are completed, and %d have failed", completed, failed)
	}
}
