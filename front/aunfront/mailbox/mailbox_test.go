// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestConversation: a client talks to an agent. The agent delivers, asks, and finishes; then another task begins.
func TestConversation(t *testing.T) {
	t.Run("alone", func(t *testing.T) { converse(t, func(*world) {}) })
	t.Run("with another writer of the inbox", func(t *testing.T) {
		var rival *replaytest.Rival
		converse(t, func(w *world) {
			rival = &replaytest.Rival{Store: w.store, Classes: string(logname.Inbox)}
			w.box.Close()
			w.store = rival
			w.open()
		})
		if rival.Wins() < 4 {
			t.Errorf("the other writer was faster %d times only", rival.Wins())
		}
	})
}

func converse(t *testing.T, change func(*world)) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		change(w)
		result := w.say(alice, agentAID, "m1", "Review it")
		if gjson.Get(result, "status").Str != "sent" || gjson.Get(result, "message_id").Str != "m1" {
			t.Errorf("the result is %s", result)
		}
		id := w.said[0].TaskID
		check(t, "the beginning", w.got(alice), []string{"1 agent.aid.pub event: task.started"})
		w.deliver(id, "p", "One", false)
		w.deliver(id, "p", " two", true)
		check(t, "pieces", w.got(alice), []string(nil))
		w.move(id, task.AwaitingInput, "Which?", nil)
		check(t, "the question", w.got(alice), []string{
			"2 agent.aid.pub text: One two", "3 agent.aid.pub text: Which?", "4 agent.aid.pub status: input_required"})
		w.say(alice, agentAID, "m2", "The second")
		check(t, "the answer", w.said[1].DataItems[0].Text+" "+string(w.said[1].Command), "The second continue")
		if got := w.say(alice, agentAID, "m3", "And more"); got != "-32171" {
			t.Errorf("a message while the agent works: %s", got)
		}
		w.deliver(id, "q", "Done", false)
		w.move(id, task.AwaitingCompletion, "Good bye", nil)
		w.move(id, task.Completed, "Good bye", nil)
		check(t, "the end", w.got(alice), []string{"5 agent.aid.pub event: task.started",
			"6 agent.aid.pub text: Done", "7 agent.aid.pub text: Good bye", "8 agent.aid.pub event: task.completed"})
		w.say(alice, agentAID, "m4", "Another one")
		if next := w.said[2]; next.Command != task.Start || next.TaskID == id || next.SessionID != w.said[0].SessionID {
			t.Errorf("the next message is %+v", next)
		}
		synctest.Wait()
		check(t, "all", len(w.pulled(alice, 0)), 9)
		check(t, "a part", w.pulled(alice, 7), []string{
			"8 agent.aid.pub event: task.completed", "9 agent.aid.pub event: task.started"})
	})
}

// TestRepeated: a message is sent again after its answer was lost, and changes nothing.
func TestRepeated(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 2 {
			if got := w.say(alice, agentAID, "m1", "Review it"); gjson.Get(got, "status").Str != "sent" {
				t.Errorf("the result is %s", got)
			}
		}
		check(t, "tasks", len(w.said), 1)
		check(t, "events", w.got(alice), []string{"1 agent.aid.pub event: task.started"})
	})
}

// TestWithoutThread: a client without a name for its thread may answer in the one named by the agent's messages.
func TestWithoutThread(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.call(alice, "message.send", `{"to":"agent.aid.pub","message_id":"m1","payload":{"type":"text","text":"x"}}`)
		id := w.said[0].TaskID
		w.move(id, task.AwaitingInput, "Which?", nil)
		synctest.Wait()
		messages := gjson.Get(w.call(alice, "message.pull", `{}`), "messages.#.payload.thread_id").Array()
		if len(messages) != 3 || messages[2].Str != id {
			t.Fatalf("the threads are %v", messages)
		}
		w.call(alice, "message.send", fmt.Sprintf(
			`{"to":"agent.aid.pub","message_id":"m2","payload":{"type":"text","text":"y","thread_id":%q}}`, id))
		if len(w.said) != 2 || w.said[1].Command != task.Continue || w.said[1].SessionID != w.said[0].SessionID {
			t.Errorf("the agent is asked %+v", w.said)
		}
	})
}

// TestRestart: whenever the process dies, each message is in the inbox once.
func TestRestart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.quiet = true
		w.say(alice, agentAID, "m1", "Review it")
		id := w.said[0].TaskID
		synctest.Wait()
		w.restart()
		w.quiet = false
		w.move(id, task.Working, "", &w.said[0])
		synctest.Wait()
		w.restart()
		w.deliver(id, "p", "One", false)
		synctest.Wait()
		w.restart()
		w.deliver(id, "p", " two", true)
		w.box.Close()
		w.move(id, task.AwaitingInput, "Which?", nil)
		w.open()
		synctest.Wait()
		w.restart()
		w.say(alice, agentAID, "m2", "The second")
		w.box.Close()
		w.move(id, task.Failed, "Broken", nil)
		w.open()
		want := []string{"1 agent.aid.pub event: task.started", "2 agent.aid.pub text: One two",
			"3 agent.aid.pub text: Which?", "4 agent.aid.pub status: input_required",
			"5 agent.aid.pub event: task.started", "6 agent.aid.pub text: Broken", "7 agent.aid.pub event: task.error"}
		synctest.Wait()
		check(t, "the inbox", w.pulled(alice, 0), want)
		check(t, "the events", w.got(alice), want)
		w.restart()
		check(t, "the inbox afterwards", w.pulled(alice, 0), want)
	})
}

// TestLongStop: a task ended while the gateway did not run is kept until its messages are in the inbox. If its events
// were trimmed, there is a message for each state all the same.
func TestLongStop(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.say(alice, agentAID, "m1", "Review it")
		id := w.said[0].TaskID
		synctest.Wait()
		w.box.Close()
		w.deliver(id, "p", "One", false)
		time.Sleep(time.Millisecond)
		w.move(id, task.AwaitingInput, "Which?", nil)
		time.Sleep(time.Millisecond)
		w.move(id, task.Working, "", &w.said[0])
		time.Sleep(time.Millisecond)
		w.move(id, task.AwaitingInput, "And now?", nil)
		w.trim(id)
		time.Sleep(time.Millisecond)
		w.move(id, task.Failed, "Broken", nil)
		time.Sleep(replay.DefaultRetention + 2*time.Hour)
		w.open()
		synctest.Wait()
		check(t, "the inbox", w.pulled(alice, 1), []string{"2 agent.aid.pub text: Which?",
			"3 agent.aid.pub status: input_required", "4 agent.aid.pub event: task.started",
			"5 agent.aid.pub text: One", "6 agent.aid.pub text: And now?", "7 agent.aid.pub status: input_required",
			"8 agent.aid.pub text: Broken", "9 agent.aid.pub event: task.error"})
		time.Sleep(2 * time.Hour)
		if _, err := w.store.Head(t.Context(), "t"+id); !errors.Is(err, replay.ErrNotFound) {
			t.Errorf("the task is still there: %v", err)
		}
	})
}

// TestForward: messages between clients, with their acknowledgements and recalls.
func TestForward(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		const bob = "bob.aid.pub"
		check(t, "to one who is unknown", w.say(alice, bob, "m1", "Hello"), "-32010")
		w.online[bob] = true
		check(t, "seq", gjson.Get(w.say(alice, bob, "m1", "Hello"), "seq").Int(), int64(1))
		check(t, "seq of the same again", gjson.Get(w.say(alice, bob, "m1", "Hello"), "seq").Int(), int64(1))
		check(t, "an id that is taken", w.say("carol.aid.pub", bob, "m1", "Hello"), "-32602")
		check(t, "what bob gets", w.got(bob), []string{"1 alice.aid.pub text: Hello"})
		delete(w.online, bob)
		w.say(alice, bob, "m2", "Are you there?")
		check(t, "while bob is offline", w.got(bob), []string(nil))
		w.online[bob] = true
		check(t, "what bob pulls", w.pulled(bob, 0), []string{
			"1 alice.aid.pub text: Hello", "2 alice.aid.pub text: Are you there?"})

		check(t, "ack", w.call(bob, "message.ack", `{"seq":1,"device_id":"d","slot_id":""}`), `{"ack_seq":1,"success":true}`)
		check(t, "ack of less", w.call(bob, "message.ack", `{"seq":0}`), `{"ack_seq":1,"success":true}`)
		check(t, "ack of what is not there", w.call(bob, "message.ack", `{"seq":99}`), `{"ack_seq":2,"success":true}`)
		check(t, "what alice learns", w.got(alice), []string{"ack bob.aid.pub 1", "ack bob.aid.pub 2"})
		for _, params := range []string{
			`{"seq":1,"device_id":"x"}`, `{"seq":1,"slot_id":"x"}`, `{}`, `{"seq":"1"}`, `{"seq":1.5}`,
		} {
			check(t, "ack "+params, w.call(bob, "message.ack", params), "-32602")
		}
		check(t, "pull of another device", w.call(bob, "message.pull", `{"device_id":"x"}`), "-32602")

		w.online["carol.aid.pub"] = true
		w.say(bob, "carol.aid.pub", "m2", "Mine?")
		check(t, "recall", w.call(alice, "message.recall", `{"message_ids":["m2","m9"]}`),
			`{"accepted":2,"errors":[{"message_id":"m9","error":"not_found"}],"recalled":1,"success":true}`)
		check(t, "recall again", w.call(alice, "message.recall", `{"message_ids":["m2"]}`),
			`{"accepted":1,"errors":[{"message_id":"m2","error":"already_recalled"}],"recalled":0,"success":true}`)
		check(t, "recall by another", w.call(bob, "message.recall", `{"message_ids":["m1"]}`),
			`{"accepted":1,"errors":[{"message_id":"m1","error":"not_sender"}],"recalled":0,"success":true}`)
		check(t, "what bob learns", w.got(bob), []string{`recalled ["m2"]`})
		check(t, "what bob pulls then", w.pulled(bob, 0), []string{"1 alice.aid.pub text: Hello"})
		time.Sleep(recallFor + time.Second)
		check(t, "too late", w.call(alice, "message.recall", `{"message_ids":["m1"]}`),
			`{"accepted":1,"errors":[{"message_id":"m1","error":"expired"}],"recalled":0,"success":true}`)
		w.restart()
		check(t, "after a restart", w.pulled(bob, 0), []string{"1 alice.aid.pub text: Hello"})
		check(t, "online", w.call(alice, "message.query_online", `{"aids":["bob.aid.pub","x.aid.pub","agent.aid.pub"]}`),
			`{"online":{"agent.aid.pub":true,"bob.aid.pub":true,"x.aid.pub":false}}`)
	})
}

// TestQueue: a message in mode queue is for one connection, and is soon forgotten.
func TestQueue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		send := func(id string) string {
			return w.call("bob.aid.pub", "message.send", fmt.Sprintf(
				`{"to":"alice.aid.pub","message_id":%q,"payload":{"type":"text","text":"x"},"delivery_mode":{"mode":"queue"}}`, id))
		}
		check(t, "the mode", gjson.Get(send("q0"), "delivery_mode").Str, "queue")
		for i := range maxQueued {
			send(fmt.Sprint("q", i+1))
		}
		result := w.call(alice, "message.pull", `{}`)
		check(t, "the first page", gjson.Get(result, "count").Int(), int64(100))
		check(t, "the earliest", gjson.Get(result, "ephemeral_earliest_available_seq").Int(), int64(2))
		check(t, "the dropped", gjson.Get(result, "ephemeral_dropped_count").Int(), int64(1))
		time.Sleep(queueFor)
		result = w.call(alice, "message.pull", `{}`)
		check(t, "later", gjson.Get(result, "count").Int(), int64(0))
		check(t, "none", gjson.Get(result, "ephemeral_earliest_available_seq").Raw, "null")
		check(t, "recall", gjson.Get(w.call("bob.aid.pub", "message.recall", `{"message_ids":["q1"]}`), "errors.0.error").Str,
			"not_found")
		delete(w.online, alice)
		check(t, "offline", send("q"), "-32010")
	})
}

// TestBounds: the oldest messages go after a day, and when there are too many. The numbers rise all the same.
func TestBounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.say("bob.aid.pub", alice, "m1", "Old")
		time.Sleep(keepFor + time.Hour)
		check(t, "what is left after a day", w.pulled(alice, 0), []string(nil))
		for i := range maxMessages / 4 {
			w.say("bob.aid.pub", alice, fmt.Sprint("n", i), "x")
		}
		check(t, "one more", w.say("bob.aid.pub", alice, "more", "x"), "-32050")
		w.say(alice, agentAID, "m", "Review it")
		id := w.said[0].TaskID
		for i := range maxMessages {
			w.deliver(id, fmt.Sprint("p", i), "x", false)
		}
		w.move(id, task.Completed, "", nil)
		synctest.Wait()
		first := w.pulled(alice, 0)
		check(t, "the page", len(first), 100)
		if _, _, records, err := w.store.Load(t.Context(), "i"+alice); err != nil || len(records) > maxMessages+1 {
			t.Errorf("%d records are kept: %v", len(records), err)
		}
	})
}

// TestShares: no client fills an inbox for the others, and there is room again when messages are acknowledged.
func TestShares(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.pulled(alice, 0)
		fill := func(from string) (n int) {
			for w.say(from, alice, fmt.Sprint(from, time.Now().UnixNano(), n), "x") != "-32050" {
				n++
			}
			time.Sleep(time.Millisecond)
			return n
		}
		check(t, "the first sender", fill("evil.aid.pub"), maxMessages/4)
		check(t, "the second one", fill("worse.aid.pub"), maxMessages/8)
		check(t, "the third one", fill("worst.aid.pub"), maxMessages/16+1)
		if got := w.say("friend.aid.pub", alice, "hello", "x"); got == "-32050" {
			t.Error("the inbox is closed for another one")
		}
		w.call(alice, "message.ack", `{"seq":300}`)
		check(t, "the first sender, when all of its messages are acknowledged", fill("evil.aid.pub"), 181)
		w.call(alice, "message.ack", `{"seq":100000}`)
		check(t, "the second one, when all are", fill("worse.aid.pub"), maxMessages/4)
	})
}

// TestOpaque: a payload other than a message of a task passes between clients as it is, and starts no task of an agent.
// Texts may come without a type.
func TestOpaque(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.online["bob.aid.pub"] = true
		for i, payload := range []string{`"a string"`, `{"text":"no type"}`, `{"type":"menu.query","id":7}`, `{"any":[1]}`,
			`{"type":"thought","items":[]}`, `[1]`} {
			send := func(to string) string {
				return gjson.Get(w.call(alice, "message.send",
					fmt.Sprintf(`{"to":%q,"message_id":"m%d","payload":%s}`, to, i, payload)), "status").Str
			}
			check(t, "to bob: "+payload, send("bob.aid.pub"), "sent")
			said := len(w.said)
			if got, want := send(agentAID) == "sent", i < 3 || i == 4; got != want {
				t.Errorf("to the agent: %s: %t, want %t", payload, got, want)
			}
			check(t, "the agent's messages after "+payload, len(w.said)-said, map[bool]int{true: 1}[i < 2])
			if len(w.said) > said {
				w.move(w.said[said].TaskID, task.Completed, "", nil)
			}
		}
		all := w.call("bob.aid.pub", "message.pull", `{}`)
		check(t, "what bob pulls", gjson.Get(all, "messages.#.payload").Raw, `["a string",{"text":"no type"},`+
			`{"type":"menu.query","id":7},{"any":[1]},{"type":"thought","items":[]},[1]]`)
	})
}

// TestRefused: invalid calls, and those the gateway does not carry out.
func TestRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, c := range [][3]string{
			{"message.send", `{}`, "-32602"},
			{"message.send", `{"to":"agent.aid.pub"}`, "-32602"},
			{"message.send", `{"to":"agent.aid.pub","payload":{"type":"text"}}`, "-32602"},
			{"message.send", `{"to":"agent.aid.pub","payload":{"type":"event","event":"x"}}`, "-32602"},
			{"message.send", `{"to":"agent.aid.pub","encrypted":true,"payload":{"type":"text","text":"x"}}`, "-32602"},
			{"message.send", `{"to":"agent.aid.pub","type":"e2ee.encrypted","payload":{"type":"text","text":"x"}}`, "-32602"},
			{"message.send", `{"to":"agent.aid.pub","message_id":7,"payload":{"type":"text","text":"x"}}`, "-32602"},
			{"message.pull", `{"limit":0}`, "-32602"},
			{"message.pull", `{"after_seq":-1}`, "-32602"},
			{"message.recall", `{}`, "-32602"},
			{"message.recall", `{"message_ids":[1]}`, "-32602"},
			{"message.query_online", `{"aids":["-"]}`, "-32602"},
			{"message.v2.group_bootstrap", `{}`, "-32601"},
			{"message.thought.get", `{}`, "-32601"},
		} {
			if got := w.call(alice, c[0], c[1]); got != c[2] {
				t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
			}
		}
	})
}

// TestLargeResults: a long text is several messages, and an item too large for a frame is named.
func TestLargeResults(t *testing.T) {
	long := task.Text(strings.Repeat("é", maxText))
	file := task.DataItem{Kind: task.FileItem, Bytes: strings.Repeat("A", maxMessage)}
	payloads := appendItems(nil, []task.DataItem{long, file}, &conversation{Task: "t"})
	var text string
	for _, p := range payloads[:len(payloads)-1] {
		if len(p) > maxMessage || !json.Valid(p) {
			t.Errorf("a payload has %d bytes", len(p))
		}
		text += gjson.GetBytes(p, "text").Str
	}
	if text != long.Text {
		t.Error("the text is not whole")
	}
	last := gjson.GetBytes(payloads[len(payloads)-1], "text").Str
	if !strings.Contains(last, "too large for a message") {
		t.Errorf("the last payload says %q", last)
	}
}
