// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestProgress: what an agent says while it works comes as statuses, each once, also after a restart. Of many at a time
// the first one comes, and of a long turn so many that they do not fill the inbox.
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
		check(t, "another thread", of(alice, "", "no"), "")
		check(t, "that of another client", of("bob.aid.pub", "", "th"), "")
		bubble.Pass(time.Second)
		w.say(alice, another, "m3", "And you")
		check(t, "a thread with two agents", of(alice, "", "th"), "refused")
		check(t, "with one of them", of(alice, another, "th"), w.said[2].TaskID)
	})
}
