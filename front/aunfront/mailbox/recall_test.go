// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	bob   = "bob.aid.pub"
	carol = "carol.aid.pub"
	eve   = "eve.aid.pub"
)

// recall recalls a message, and returns the reason of a failure; empty for none.
func (w *world) recall(aid, id string) string {
	w.t.Helper()
	result := w.call(aid, "message.recall", fmt.Sprintf(`{"message_ids":[%q]}`, id))
	if gjson.Get(result, "recalled").Int() == 1 {
		return ""
	}
	return gjson.Get(result, "errors.0.error").Str
}

// fillAndRecall sends as many messages as a client may, and recalls all of them.
func (w *world) fillAndRecall(from, to, name string) (n int) {
	w.t.Helper()
	for ; gjson.Get(w.say(from, to, fmt.Sprint(name, n), "x"), "status").Str == "sent"; n++ {
		if n > maxMessages {
			w.t.Fatal("a client may send without an end")
		}
	}
	for i := range n {
		if why := w.recall(from, fmt.Sprint(name, i)); why != "" {
			w.t.Fatalf("message %d is not recalled: %s", i, why)
		}
	}
	return n
}

// TestRecalledCountsForNobodyElse: a client recalling its messages does not close an inbox for others, and drops
// nothing its client has not read.
//
// Promise: a client of AUN closes the inbox of another one for others, or has their recalls forgotten
func TestRecalledCountsForNobodyElse(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pulled(bob, 0)
		w.say(bob, agentAID, "b1", "Review it")
		synctest.Wait()
		check(t, "what eve may send", w.fillAndRecall(eve, bob, "first"), maxMessages/4)
		check(t, "and again, with a message before it that bob has not read", w.fillAndRecall(eve, bob, "second"), 0)
		if got := w.say(carol, bob, "c1", "Hello"); gjson.Get(got, "seq").Int() != maxMessages/4+2 {
			t.Errorf("carol is answered with %s", got)
		}
		want := []string{"1 agent.aid.pub event: task.started", "252 carol.aid.pub text: Hello"}
		check(t, "what bob pulls", w.pulled(bob, 0), want)
		w.restart()
		check(t, "what bob pulls after a restart", w.pulled(bob, 0), want)

		w.call(bob, "message.ack", `{"seq":252}`)
		for i := range 4 {
			n := w.fillAndRecall(eve, bob, fmt.Sprint("more", i, "-"))
			check(t, "what eve may send to who has read all", n, maxMessages/4)
		}
		if got := w.say(carol, bob, "c2", "And now?"); gjson.Get(got, "status").Str != "sent" {
			t.Errorf("carol is answered with %s", got)
		}
		check(t, "what is left for bob", w.pulled(bob, 0), []string{"1253 carol.aid.pub text: And now?"})
		head, _, records, err := w.store.Load(t.Context(), logname.InboxOf(bob))
		if err != nil || len(records) > maxMessages {
			t.Errorf("%d records are kept: %v", len(records), err)
		}
		if len(head.Metadata) > 16<<10 {
			t.Errorf("the metadata has %d bytes", len(head.Metadata))
		}
	})
}

// TestQueuedIsOver: messages no device sees any more are not waited for.
func TestQueuedIsOver(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.online[bob] = true
		send := func(i int) string {
			return w.call(eve, "message.send", fmt.Sprintf(
				`{"to":%q,"message_id":"q%d","payload":{"type":"text","text":"x"},"delivery_mode":{"mode":"queue"}}`, bob, i))
		}
		for i := range maxMessages / 4 {
			send(i)
		}
		check(t, "one more", send(maxMessages), "-32050")
		time.Sleep(queueFor)
		check(t, "one more, later", gjson.Get(send(maxMessages), "status").Str, "sent")
	})
}

// TestSameIDAtTwoProcesses: using the id of another one's message at another process takes no recall away.
func TestSameIDAtTwoProcesses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		shards := replaytest.NewShards(2)
		nodes, boxes := w.openTwo(shards)
		first := w.box
		defer func() { w.box = first }()
		to := [2]string{} // by shard
		for i := 0; to[0] == "" || to[1] == ""; i++ {
			aid := fmt.Sprintf("to%d.aid.pub", i)
			to[logname.ShardOfAID(2, aid)] = aid
			w.online[aid] = true
		}
		shards.Assign(0, nodes[0], false)
		shards.Assign(1, nodes[1], false)
		synctest.Wait()
		for i, box := range boxes {
			from := []string{carol, eve}[i]
			w.box = box
			check(t, from+" sends", gjson.Get(w.say(from, to[i], "m", "x"), "status").Str, "sent")
		}
		check(t, "carol recalls, where eve's message is known", w.recall(carol, "m"), "")
		check(t, "alice recalls", w.recall(alice, "m"), "not_sender")
	})
}

// TestLoneMessageIsDropped: the only message of an inbox is dropped when its time is over, as others are.
func TestLoneMessageIsDropped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pulled(bob, 0)
		for i := range 2 {
			w.say(carol, bob, fmt.Sprint("m", i), "a secret")
			time.Sleep(keepFor + 2*scanEvery)
			synctest.Wait()
			if _, _, records, err := w.store.Load(t.Context(), logname.InboxOf(bob)); err != nil || len(records) > 0 {
				t.Errorf("%d messages are in the store after their time: %v", len(records), err)
			}
		}
		w.say(bob, agentAID, "m", "Review it")
		w.move(w.said[0].TaskID, task.Completed, "", nil)
		time.Sleep(keepFor + 2*scanEvery)
		if _, _, records, err := w.store.Load(t.Context(), logname.InboxOf(bob)); err != nil || len(records) > 0 {
			t.Errorf("%d messages of an agent are in the store after their time: %v", len(records), err)
		}
	})
}
