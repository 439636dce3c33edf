// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// openTwo opens mailboxes at two processes over the same shards, until the end of the test.
func (w *world) openTwo(shards *replaytest.Shards) (nodes [2]*replaytest.Node, boxes [2]*Mailbox) {
	for i := range boxes {
		nodes[i] = shards.Node()
		set := shard.Join(nodes[i], slog.New(slog.DiscardHandler))
		w.t.Cleanup(func() { set.Close() })
		var err error
		if boxes[i], err = Open(set, w, nil, slog.New(slog.DiscardHandler)); err != nil {
			w.t.Fatal(err)
		}
		boxes[i].Set(map[string]Agent{agentAID: w.agent()})
	}
	return nodes, boxes
}

// TestInboxMovesMeanwhile: a message without an id is sent to the agent once, if another process takes over its inbox
// when the agent has it already.
func TestInboxMovesMeanwhile(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		shards := replaytest.NewShards(1)
		w.store = shards.Logs(0)
		nodes, boxes := w.openTwo(shards)
		shards.Assign(0, nodes[0], false)
		synctest.Wait()
		first := w.box
		w.box = boxes[0]
		defer func() { w.box = first }()
		w.acted = func() {
			w.acted = nil
			shards.Assign(0, nodes[1], true)
			for boxes[1].homes.Of(0) == nil { // its goroutines work
				runtime.Gosched()
			}
		}
		got := w.call(alice, "message.send", `{"to":"`+agentAID+`","payload":{"type":"text","text":"hello"}}`)
		if gjson.Get(got, "status").String() != "sent" || len(w.said) != 1 {
			t.Errorf("the answer is %s, and the agent has %d messages", got, len(w.said))
		}
	})
}

// TestInboxesMove: the owner of a shard continues the conversations in it. The process that has owned it before sends
// nothing more, and hands messages to the owner, which knows those it has.
func TestInboxesMove(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		shards := replaytest.NewShards(1)
		w.store = shards.Logs(0)
		nodes, boxes := w.openTwo(shards)
		first := w.box
		defer func() { w.box = first }()
		for i, seize := range []bool{false, false, true, true} {
			shards.Assign(0, nodes[i%2], seize)
			synctest.Wait()
			w.box = boxes[i%2]
			want := w.say(alice, agentAID, fmt.Sprint("m", i), fmt.Sprint("hello ", i))
			synctest.Wait()
			said := len(w.said)
			id := w.said[said-1].TaskID
			w.box = boxes[1-i%2]
			if got := w.say(alice, agentAID, fmt.Sprint("m", i), fmt.Sprint("hello ", i)); got != want || len(w.said) != said {
				t.Errorf("the process that does not own the inbox answers %s, want %s", got, want)
			}
			shards.Assign(0, nodes[1-i%2], seize)
			synctest.Wait()
			before := len(w.events[alice])
			w.move(id, task.Completed, fmt.Sprint("bye ", i), nil)
			synctest.Wait()
			if got := w.events[alice][before:]; len(got) == 0 {
				t.Error("the new owner continues no conversation")
			} else if more := len(got); more > 2 { // the text, and the event
				t.Errorf("both processes have sent it: %q", got)
			}
		}
	})
}

// TestShardOfAID: the inbox of an AID is in the shard of its tasks at any Partner.
func TestShardOfAID(t *testing.T) {
	for n := range 50 {
		aid := fmt.Sprintf("a%d.aid.pub", n)
		leader := identity.Peer{Kind: identity.AIDKind, ID: aid}.Leader()
		at := logname.ShardOf(16, logname.New("partner of "+aid, leader, "t"))
		if inbox := logname.ShardOfAID(16, aid); at != inbox {
			t.Errorf("the tasks of %s are in shard %d, and its inbox is in %d", aid, at, inbox)
		}
	}
}

// TestInboxesAtTwoProcesses: a client reads, sends, acknowledges and recalls at any process, whichever has the inbox.
func TestInboxesAtTwoProcesses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		shards := replaytest.NewShards(8)
		nodes, boxes := w.openTwo(shards)
		const bob = "bob.aid.pub"
		for i := range 8 {
			owner := nodes[0]
			if i == logname.ShardOfAID(8, bob) {
				owner = nodes[1]
			}
			shards.Assign(i, owner, false)
		}
		synctest.Wait()
		first := w.box
		defer func() { w.box = first }()
		for i := range boxes {
			w.box = boxes[i]
			w.pulled(bob, 0) // it has an inbox from now on
			id := fmt.Sprint("m", i)
			sent := w.say(alice, bob, id, "hello")
			w.box = boxes[1-i]
			if again := w.say(alice, bob, id, "hello"); again != sent {
				t.Errorf("the same message again is answered %s, want %s", again, sent)
			}
			if got := w.pulled(bob, 0); len(got) != i+1 {
				t.Errorf("bob has %q", got)
			}
			check(t, "bob recalls", gjson.Get(w.call(bob, "message.recall", `{"message_ids":["`+id+`"]}`), "recalled").Int(),
				int64(0))
			recalled := w.call(alice, "message.recall", `{"message_ids":["`+id+`","unknown"]}`)
			check(t, "alice recalls", gjson.Get(recalled, "recalled").Int(), int64(1))
			check(t, "an unknown message", gjson.Get(recalled, "errors.0.error").String(), "not_found")
			w.say(alice, bob, id+"-kept", "hello")
			acked := w.call(bob, "message.ack", `{"seq":2}`)
			check(t, "bob acknowledges", gjson.Get(acked, "ack_seq").Int(), int64(2))
		}
		if got := w.say(alice, agentAID, "to an agent", "hello"); gjson.Get(got, "status").String() != "sent" {
			t.Errorf("a message to an agent is answered %s", got)
		}
	})
}

// TestFloor: a client learns with its first pull the number before its first message, and the first one has the next
// number, however late it comes, also in an inbox made by an earlier version. Dropped messages are below the floor,
// too.
func TestFloor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		earlier := replay.Append{Log: logname.InboxOf(alice), Metadata: []byte("{}")} // by a version before floors
		if err := w.store.Append(t.Context(), earlier); err != nil {
			t.Fatal(err)
		}
		for name, of := range map[string]string{"message.pull": alice, "message.v2.pull": "carol.aid.pub"} {
			pull := func() (floor, latest int64) {
				synctest.Wait()
				c := Caller{AID: of, Peer: identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: of}}
				page, err := w.box.Call(t.Context(), c, name, gjson.Parse(`{"limit":1}`))
				if err != nil {
					t.Fatal(err)
				}
				return gjson.GetBytes(page, "server_ack_seq").Int(), gjson.GetBytes(page, "latest_seq").Int()
			}
			floor, _ := pull()
			w.box.Close()
			w.open()
			bubble.Pass(time.Hour)
			w.say("bob.aid.pub", of, "m", "Hello")
			if again, first := pull(); floor == 0 || again != floor || first != floor+1 {
				t.Errorf("%s: the floor is %d, and then %d, and the first message has %d", name, floor, again, first)
			}
			bubble.Pass(keepFor)
			w.say("bob.aid.pub", of, "n", "Hello")
			if got, first := pull(); got != floor+1 || first != floor+2 {
				t.Errorf("%s: the floor is %d above the first one, and the next message has %d", name, got-floor, first-floor)
			}
		}
	})
}

// TestNumbersNeverFall: if the store is gone, the numbers of an inbox go on above those its client has seen.
func TestNumbersNeverFall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		last := func() (seq int64) {
			synctest.Wait()
			c := Caller{AID: alice, Peer: identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: alice}}
			page, err := w.box.Call(t.Context(), c, "message.pull", gjson.Parse(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			return gjson.GetBytes(page, "latest_seq").Int()
		}
		for i := range 20 {
			w.say("bob.aid.pub", alice, fmt.Sprint("m", i), "Hello")
		}
		before := last()
		w.box.Close()
		if err := w.store.Close(); err != nil {
			t.Fatal(err)
		}
		bubble.Pass(time.Second)
		w.store = replay.NewMemory(replay.Settings{})
		w.open()
		w.say("bob.aid.pub", alice, "again", "Hello")
		if after := last(); after <= before {
			t.Errorf("the next number is %d, after %d", after, before)
		}
	})
}
