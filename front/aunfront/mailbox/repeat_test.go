// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestRepeatedID: a message with the id of an earlier one is answered as the earlier one was, also after a restart, or
// refused if it is another one. It never has the agent run again.
func TestRepeatedID(t *testing.T) {
	const to = `"to":"` + agentAID + `"`
	for name, tc := range map[string]struct {
		first, again string // the params, without the id
		same         bool
		reaches      string // the recipient of the message's content
	}{
		"to an agent": {to + `,"payload":{"type":"text","text":"x","thread_id":"a"}`,
			`"payload":{"thread_id":"a","text":"x","type":"text"},` + to, true, agentAID},
		"other content": {to + `,"payload":{"type":"text","text":"x","thread_id":"a"}`,
			to + `,"payload":{"type":"text","text":"y","thread_id":"a"}`, false, agentAID},
		"another thread": {to + `,"payload":{"type":"text","text":"x","thread_id":"a"}`,
			to + `,"payload":{"type":"text","text":"x","thread_id":"b"}`, false, agentAID},
		"to a client": {`"to":"bob.aid.pub","payload":{"type":"json","data":{"a":1,"b":[2]}}`,
			`"to":"bob.aid.pub","payload":{"type":"json","data":{"b":[2],"a":1}},"delivery_mode":{"mode":"queue"}`, true,
			"bob.aid.pub"},
		"other content to a client": {`"to":"bob.aid.pub","payload":{"type":"text","text":"x"}`,
			`"to":"bob.aid.pub","payload":{"type":"text","text":"y"}`, false, "bob.aid.pub"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.online["bob.aid.pub"] = true
				send := func(params string) string {
					bubble.Pass(time.Second)
					return w.call(alice, "message.send", `{"message_id":"m1",`+params+`}`)
				}
				first := send(tc.first)
				want := "-32602"
				if tc.same {
					want = first
				}
				check(t, "again", send(tc.again), want)
				w.restart()
				check(t, "after a restart", send(tc.again), want)
				reached := len(w.said)
				if tc.reaches != agentAID {
					reached = len(w.got(tc.reaches))
				}
				check(t, "how often it arrives", reached, 1)
			})
		})
	}
}

// TestRepeatedAnswer: the same holds for a message continuing a task, and in a thread of its own.
func TestRepeatedAnswer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.say(alice, agentAID, "m1", "Review it")
		w.move(w.said[0].TaskID, task.AwaitingInput, "Which?", nil)
		answer := w.say(alice, agentAID, "m2", "The second")
		check(t, "again", w.say(alice, agentAID, "m2", "The second"), answer)
		check(t, "in another thread", w.call(alice, "message.send",
			`{"to":"`+agentAID+`","message_id":"m2","payload":{"type":"text","text":"The second","thread_id":"b"}}`), "-32602")
		for i := range maxAnswers { // so many later, it is forgotten
			w.call(alice, "message.send", fmt.Sprintf(
				`{"to":"`+agentAID+`","message_id":"n%d","payload":{"type":"text","text":"x","thread_id":"n%d"}}`, i, i))
		}
		check(t, "answers that are kept", strings.Contains(w.say(alice, agentAID, "m1", "Review it"), "sent"), true)
		check(t, "tasks and inputs", len(w.said), 2+maxAnswers)
	})
}

// reporting are assignees with one task.
type reporting struct{ said []string }

func (*reporting) Has(agent, id string) bool { return agent == alice && id == "task_1" }

func (r *reporting) Say(_ context.Context, _, _, _ string, params gjson.Result) (string, error) {
	r.said = append(r.said, params.Get("payload.text").Str)
	return "working", nil
}

// TestRepeatedReport: an assignee's repeated message about its task is not reported again. The task_id in the data of a
// json payload is a part of its content.
func TestRepeatedReport(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		agent := new(reporting)
		w.box.assignees = agent
		say := func(payload string) string {
			bubble.Pass(time.Second)
			return w.call(alice, "message.send", `{"to":"bob.aid.pub","message_id":"m1","payload":`+payload+`}`)
		}
		first := say(`{"type":"text","text":"half","data":{"task_id":"task_1"}}`)
		check(t, "again", say(`{"type":"text","text":"half","data":{"task_id":"task_1"}}`), first)
		check(t, "other content", say(`{"type":"text","text":"all","data":{"task_id":"task_1"}}`), "-32602")
		check(t, "what it says", agent.said, []string{"half"})
		check(t, "to another client", say(`{"type":"json","data":{"task_id":"task_1"}}`), "-32010")
	})
}

// TestPullV2: the official clients read their inboxes by the methods for encrypted messages. One in plaintext is shown
// as they expect it.
func TestPullV2(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const bob = "bob.aid.pub"
		check(t, "an empty inbox", w.call(bob, "message.v2.pull", `{"after_seq":0,"limit":50}`),
			`{"messages":[],"count":0,"latest_seq":0,"has_more":false,"server_ack_seq":946684800000}`)
		for i := range 3 {
			w.say(alice, bob, fmt.Sprint("m", i+1), "Hello")
		}
		result := w.call(bob, "message.v2.pull", `{"after_seq":1,"limit":1,"force":true}`)
		at := gjson.Get(result, "messages.0.t_server").Raw
		check(t, "a page", result, `{"messages":[{"version":"v1","seq":2,"message_id":"m2","from_aid":"alice.aid.pub",`+
			`"t_server":`+at+`,"legacy_v1":{"seq":2,"from":"alice.aid.pub","to":"bob.aid.pub","message_id":"m2",`+
			`"payload":{"type":"text","text":"Hello","thread_id":"th"},"timestamp":`+at+`,"delivery_mode":"fanout",`+
			`"encrypted":false}}],"count":1,"latest_seq":2,"has_more":true,"server_ack_seq":0}`)
		check(t, "ack", w.call(bob, "message.v2.ack", `{"up_to_seq":2}`), `{"ack_seq":2,"success":true}`)
		check(t, "ack without a seq", w.call(bob, "message.v2.ack", `{"seq":2}`), "-32602")
		result = w.call(bob, "message.v2.pull", `{"after_seq":2}`)
		check(t, "the rest", []string{gjson.Get(result, "messages.#.seq").Raw, gjson.Get(result, "has_more").Raw,
			gjson.Get(result, "server_ack_seq").Raw}, []string{"[3]", "false", "2"})
	})
}

// TestRecallByStrangers: only the sender of a message may recall it, whatever became of it.
func TestRecallByStrangers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.online["bob.aid.pub"] = true
		w.say(alice, agentAID, "to-agent", "Review it")
		w.say(alice, "bob.aid.pub", "to-bob", "Hello")
		w.call(alice, "message.send",
			`{"to":"bob.aid.pub","message_id":"queued","payload":{"type":"text","text":"x"},"delivery_mode":{"mode":"queue"}}`)
		why := func(aid, id string) string {
			return gjson.Get(w.call(aid, "message.recall", `{"message_ids":["`+id+`"]}`), "errors.0.error").Str
		}
		for _, id := range []string{"to-agent", "to-bob", "queued"} {
			check(t, id, why("eve.aid.pub", id), "not_sender")
		}
		w.got(alice)
		started := gjson.Get(w.call(alice, "message.pull", `{}`), "messages.0.message_id").Str
		check(t, "what an agent has sent", why(alice, started), "not_sender")
		check(t, "an agent has acted on it", why(alice, "to-agent"), "not_found")
		check(t, "what was never sent", why(alice, "x"), "not_found")
	})
}
