// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestNextMessageComesFirst: a client writing again in a thread before its inbox has the answer of the agent gets all
// answers, in order, also if the process dies in between.
func TestNextMessageComesFirst(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies ", dies), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.box.Close()
				store := &outage{Store: w.store}
				w.store = store
				w.open()
				w.say(alice, agentAID, "m1", "Review it")
				w.got(alice)
				store.left.Store(1) // the next messages are written to the inbox after retryAfter
				for i := range 3 {
					id := w.said[i].TaskID
					w.deliver(id, "p", fmt.Sprint("Answer ", i+1), false)
					w.move(id, task.AwaitingCompletion, "", nil)
					w.move(id, task.Completed, "", nil)
					synctest.Wait()
					w.say(alice, agentAID, fmt.Sprint("m", i+2), "Another one")
					if i == 1 && dies {
						w.restart()
					}
				}
				check(t, "the agent's tasks", len(w.said), 4)
				bubble.Pass(2 * retryAfter)
				want := []string{"1 agent.aid.pub event: task.started",
					"2 agent.aid.pub text: Answer 1", "3 agent.aid.pub event: task.completed",
					"4 agent.aid.pub event: task.started",
					"5 agent.aid.pub text: Answer 2", "6 agent.aid.pub event: task.completed",
					"7 agent.aid.pub event: task.started",
					"8 agent.aid.pub text: Answer 3", "9 agent.aid.pub event: task.completed",
					"10 agent.aid.pub event: task.started"}
				check(t, "the inbox", w.pulled(alice, 0), want)
				w.move(w.said[3].TaskID, task.AwaitingInput, "Which?", nil)
				check(t, "the events", w.got(alice)[9:],
					[]string{"11 agent.aid.pub text: Which?", "12 agent.aid.pub status: input_required"})
				w.say(alice, agentAID, "m5", "That one")
				check(t, "the last message", w.said[4].Command, task.Continue)
				check(t, "conversations", w.conversations(alice), 1)
				for i := range 3 {
					if _, err := w.store.Head(context.Background(), "t"+w.said[i].TaskID); err != nil {
						t.Errorf("task %d: %v", i+1, err)
					}
				}
				bubble.Pass(replay.DefaultRetention + 2*scanEvery)
			})
		})
	}
}

// conversations returns the number of conversations of an AID.
func (w *world) conversations(aid string) (n int) {
	err := w.box.with(aid, func(b *inbox) error {
		err := b.load(w.t.Context())
		n = len(b.meta.Conversations)
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
	return n
}
