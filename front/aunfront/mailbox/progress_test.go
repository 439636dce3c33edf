// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestProgress: an agent's messages during its work come as statuses, each once, also after a restart. Of many at a
// time the first one comes, and of a long turn too few to fill the inbox.
func TestProgress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.say(alice, agentAID, "m1", "Review it")
		id := w.said[0].TaskID
		synctest.Wait()
		w.move(id, task.Working, "I read", nil)
		w.move(id, task.Working, "I read on", nil) // at once
		w.deliver(id, "p", "One", false)
		bubble.Pass(progressEvery)
		w.move(id, task.Working, "I write", nil)
		w.deliver(id, "p", " two", true)
		want := []string{"1 agent.aid.pub event: task.started", "2 agent.aid.pub status: I read",
			"3 agent.aid.pub status: I write"}
		check(t, "while it works", w.got(alice), want)
		w.restart()
		check(t, "after a restart", w.got(alice), []string(nil))
		for range maxProgress {
			bubble.Pass(progressEvery)
			w.move(id, task.Working, "Still", nil)
		}
		check(t, "of a long turn", len(w.got(alice)), maxProgress-2)
		w.move(id, task.AwaitingInput, "Which?", nil)
		check(t, "the end", w.got(alice), []string{fmt.Sprint(maxProgress+2, " agent.aid.pub text: One two"),
			fmt.Sprint(maxProgress+3, " agent.aid.pub text: Which?"),
			fmt.Sprint(maxProgress+4, " agent.aid.pub status: input_required")})
		first := gjson.Get(w.call(alice, "message.pull", `{}`), "messages.1.payload")
		for member, want := range map[string]string{"state": "working", "text": "I read", "task_id": id,
			"data.task_id": id, "thread_id": "th"} {
			check(t, member, first.Get(member).Str, want)
		}
	})
}

// TestTaskOfThread: a thread stands for its last task, at one agent.
func TestTaskOfThread(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const another = "another.aid.pub"
		w.box.Set(map[string]Agent{agentAID: w.agent(), another: w.agent()})
		w.say(alice, agentAID, "m1", "Review it")
		first := w.said[0].TaskID
		w.move(first, task.Failed, "", nil)
		synctest.Wait()
		w.say(alice, agentAID, "m2", "Again")
		second := w.said[1].TaskID
		of := func(aid, agent, thread string) string {
			id, err := w.box.TaskOf(t.Context(), Caller{AID: aid}, agent, thread)
			if err != nil {
				return "refused"
			}
			return id
		}
		check(t, "the thread", of(alice, "", "th"), second)
		check(t, "the thread with the agent", of(alice, agentAID, "th"), second)
		check(t, "the agent in upper case", of(alice, "Agent.AID.pub", "th"), second)
		check(t, "no agent", of(alice, "agent", "th"), "refused")
		check(t, "another thread", of(alice, "", "no"), "")
		check(t, "that of another client", of("bob.aid.pub", "", "th"), "")
		bubble.Pass(time.Second)
		w.say(alice, another, "m3", "And you")
		check(t, "a thread with two agents", of(alice, "", "th"), "refused")
		check(t, "with one of them", of(alice, another, "th"), w.said[2].TaskID)
	})
}

// TestProgressAfterRestart: after a restart, no status left out before comes behind later ones.
func TestProgressAfterRestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.quiet = true
		w.say(alice, agentAID, "m1", "Review it")
		id := w.said[0].TaskID
		w.quiet = false
		w.move(id, task.Accepted, "", &w.said[0])
		w.move(id, task.Working, "I begin", nil)
		bubble.Pass(progressEvery / 2)
		w.move(id, task.Working, "I go on", nil) // too early
		bubble.Pass(progressEvery)
		w.move(id, task.Working, "I write", nil)
		check(t, "while it works", w.got(alice), []string{"1 agent.aid.pub event: task.started",
			"2 agent.aid.pub status: I begin", "3 agent.aid.pub status: I write"})
		w.restart()
		check(t, "after a restart", w.got(alice), []string(nil))
	})
}

// TestProgressLeavesRoom: the statuses of many agents at work do not drop the answers that a client has not read.
func TestProgressLeavesRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const threads = 2 + maxMessages/maxProgress
		for i := range threads {
			w.call(alice, "message.send", fmt.Sprintf(`{"to":%q,"message_id":"m%d","payload":{"type":"text","text":"Go",`+
				`"thread_id":"t%d"}}`, agentAID, i, i))
		}
		first := w.said[0].TaskID
		w.deliver(first, "p", "One", false)
		w.move(first, task.Completed, "", nil)
		for range maxProgress {
			bubble.Pass(progressEvery)
			for _, m := range w.said[1:] {
				w.move(m.TaskID, task.Working, "Still", nil)
			}
		}
		statuses := 0
		for _, text := range w.got(alice) {
			if strings.HasSuffix(text, "status: Still") {
				statuses++
			}
		}
		check(t, "the answer", strings.Contains(w.call(alice, "message.pull", `{"limit":200}`), `"text":"One"`), true)
		w.call(alice, "message.ack", fmt.Sprintf(`{"seq":%d}`, 2*maxMessages))
		bubble.Pass(progressEvery)
		w.move(w.said[1].TaskID, task.AwaitingInput, "Which?", nil)
		w.move(w.said[1].TaskID, task.Working, "Again", nil)
		if got := w.got(alice); statuses == 0 || !strings.HasSuffix(got[len(got)-1], "status: Again") {
			t.Errorf("%d statuses, and after the client has read them %q", statuses, got)
		}
	})
}
