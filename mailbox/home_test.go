// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestInboxesMove: the owner of a shard continues the conversations in it. The process that has owned it before sends
// nothing more, and hands messages to the owner, which knows those that it has.
func TestInboxesMove(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		shards := replaytest.NewShards(1)
		w.store = shards.Logs(0)
		var nodes [2]*replaytest.Node
		var boxes [2]*Mailbox
		for i := range boxes {
			nodes[i] = shards.Node()
			set := shard.Join(nodes[i], slog.New(slog.DiscardHandler))
			defer set.Close()
			var err error
			if boxes[i], err = Open(set, w, nil, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			boxes[i].Set(map[string]Agent{agentAID: w.agent()})
		}
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
