// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestAnywhere: a call is answered with the same bytes by the owner and by another node, errors too.
func TestAnywhere(t *testing.T) {
	inBubble(t, func(w *world) {
		for _, owner := range w.nodes {
			other := w.nodes[0]
			if owner == other {
				other = w.nodes[1]
			}
			leader := w.leader(owner)
			r, _ := other.send(w.Context(), leader, "start", "t1", "m1", "")
			if r.Result.Status.State != task.AwaitingCompletion {
				t.Errorf("the start is answered %+v", r)
			}
			for _, c := range []struct{ command, task, message, extra string }{
				{"get", "t1", "g", ""}, {"get", "none", "g", ""}, {"start", "t1", "m1", ""}, {"continue", "t1", "", ""},
				{"cancel", "none", "c", ""}, {"get", "t1", "g", `,"commandParams":{"lastMessageSentAt":"x"}`},
			} {
				_, there := other.send(w.Context(), leader, c.command, c.task, c.message, c.extra)
				_, here := owner.send(w.Context(), leader, c.command, c.task, c.message, c.extra)
				if c.command != "continue" && string(here) != string(there) {
					t.Errorf("%+v: the owner answers\n%s\nand the other node\n%s", c, here, there)
				}
			}
			for i := range 6 {
				id := string(rune('a' + i))
				r, _ := other.send(w.Context(), leader, "start", "full-"+id, "m", "")
				if (r.Error != nil) != (i >= 3) || i >= 3 && r.Error.Code != -32050 {
					t.Errorf("start %d is answered %+v", i, r.Error)
				}
			}
		}
		w.end(w.nodes[:]...)
	})
}

// TestOwnerDies: a start waiting for the agent waits at the next owner when its owner dies, and is answered when the
// agent has ended its work. The message is sent once.
func TestOwnerDies(t *testing.T) {
	for _, how := range []string{"dies", "ends"} {
		inBubble(t, func(w *world) {
			w.agent.setSlow()
			owner, other := w.nodes[0], w.nodes[1]
			leader := w.leader(owner)
			answered := make(chan reply)
			go func() {
				r, _ := other.send(w.Context(), leader, "start", "t", "m", "")
				answered <- r
			}()
			bubble.Pass(5 * time.Second)
			begun := time.Now()
			if how == "dies" {
				owner.die()
			} else {
				owner.end()
			}
			time.AfterFunc(4500*time.Millisecond, func() { close(w.agent.find("t m").done) })
			r := <-answered
			if r.Error != nil || r.Result.ID != "t" || r.Result.Status.State != task.AwaitingCompletion {
				t.Errorf("the owner %s: the start is answered %+v, %+v", how, r.Result, r.Error)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("the owner %s: the answer took %v", how, took)
			}
			bubble.Pass(time.Second)
			j := w.agent.find("t m")
			if j.sent != 1 || j.resumed != 1 {
				t.Errorf("the owner %s: the agent was sent the message %d times, and asked %d times", how, j.sent, j.resumed)
			}
			if r, _ := other.send(w.Context(), leader, "get", "t", "g", ""); r.Result.Status.State != task.AwaitingCompletion {
				t.Errorf("the owner %s: the task is %+v", how, r)
			}
			w.end(other)
		})
	}
}

// TestMissing: while the owner has no such Partner, a call waits; in the end its error names the node.
func TestMissing(t *testing.T) {
	inBubble(t, func(w *world) {
		owner, other := w.nodes[0], w.nodes[1]
		leader := w.leader(owner)
		owner.setMissing(true)
		time.AfterFunc(3*time.Second, func() { owner.setMissing(false) })
		begun := time.Now()
		if r, _ := other.send(w.Context(), leader, "start", "t", "", ""); r.Error != nil {
			t.Errorf("the start is answered %+v", r.Error)
		}
		if took := time.Since(begun); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("it took %v", took)
		}
		owner.setMissing(true)
		begun = time.Now()
		r, _ := other.send(w.Context(), leader, "continue", "t", "", "") // without an id: it is not begun, so it may wait
		if r.Error == nil || r.Error.Code != -32603 || r.Error.Data.Node != "node-0" {
			t.Errorf("the continue is answered %+v", r.Error)
		}
		if took := time.Since(begun); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("it took %v", took)
		}
		w.end(w.nodes[:]...)
	})
}

// TestOwnTime: a call waits for an owner no longer than its caller waits for the agent, both together.
func TestOwnTime(t *testing.T) {
	inBubble(t, func(w *world) {
		w.agent.setSlow()
		owner, other := w.nodes[0], w.nodes[1]
		leader := w.leader(owner)
		const params = `,"commandParams":{"responseTimeout":8000}`
		owner.setMissing(true)
		begun := time.Now()
		if r, _ := other.send(w.Context(), leader, "start", "t", "m", params); r.Error == nil || r.Error.Code != -32603 {
			t.Errorf("the start is answered %+v", r)
		}
		if took := time.Since(begun); took < 7*time.Second || took > 8500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		time.AfterFunc(3*time.Second, func() { owner.setMissing(false) })
		begun = time.Now()
		if r, _ := other.send(w.Context(), leader, "start", "t", "m", params); r.Error != nil {
			t.Errorf("the start is answered %+v", r)
		}
		if took := time.Since(begun); took < 7*time.Second || took > 8500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		w.end(w.nodes[:]...)
	})
}

// TestCutOff: a node cut off answers for ended tasks, and sends nothing to the agent.
func TestCutOff(t *testing.T) {
	inBubble(t, func(w *world) {
		node, other := w.nodes[0], w.nodes[1]
		leader := w.leader(node)
		node.send(w.Context(), leader, "start", "ended", "m", "")
		node.send(w.Context(), leader, "complete", "ended", "c", "")
		node.send(w.Context(), leader, "start", "open", "m", "")
		node.link.Cut(true)
		bubble.Pass(2 * lease)
		if r, _ := node.send(w.Context(), leader, "get", "ended", "g", ""); r.Result.Status.State != task.Completed {
			t.Errorf("an ended task: %+v", r)
		}
		bubble.Pass(20 * time.Second)
		if r, _ := other.send(w.Context(), leader, "start", "elsewhere", "m", ""); r.Error != nil {
			t.Errorf("a start at the other node: %+v", r.Error)
		}
		for _, call := range []string{"get open", "get elsewhere", "complete elsewhere", "get nowhere"} {
			command, id, _ := strings.Cut(call, " ")
			ctx, cancel := context.WithTimeout(w.Context(), 20*time.Second)
			r, _ := node.send(ctx, leader, command, id, "n", "")
			cancel()
			if r.Error == nil || r.Error.Code != -32603 || r.Error.Data.Reason != "STORE_UNAVAILABLE" {
				t.Errorf("%s: %+v %+v", call, r.Result, r.Error)
			}
		}
		node.link.Cut(false)
		bubble.Pass(20 * time.Second)
		if r, _ := node.send(w.Context(), leader, "get", "open", "g", ""); r.Result.Status.State != task.AwaitingCompletion {
			t.Errorf("afterwards: %+v", r)
		}
		w.end(w.nodes[:]...)
	})
}

// TestStays: a shard with a turn no other node can resume stays with a draining node. The node takes starts meanwhile,
// and the shard moves when the turn has ended.
func TestStays(t *testing.T) {
	inBubble(t, func(w *world) {
		w.agent.setSlow()
		w.agent.forgets = true
		owner, other := w.nodes[0], w.nodes[1]
		leader := w.leader(owner)
		const at = `,"commandParams":{"responseTimeout":1000}`
		other.send(w.Context(), leader, "start", "t", "m", at)
		ctx, cancel := context.WithTimeout(w.Context(), 10*time.Minute)
		defer cancel()
		drained := make(chan struct{})
		go func() {
			owner.cluster.Drain(ctx)
			close(drained)
		}()
		bubble.Pass(time.Minute)
		if r, _ := other.send(w.Context(), leader, "start", "t2", "m", at); r.Error != nil {
			t.Errorf("a start is answered %+v", r.Error)
		}
		if got := w.leader(owner); got != leader {
			t.Errorf("the node owns the shard of %s", got)
		}
		for _, key := range []string{"t m", "t2 m"} {
			close(w.agent.find(key).done)
		}
		<-drained
		if n := owner.cluster.Stats().Owned; n != 0 {
			t.Errorf("the node owns %d shards", n)
		}
		if r, _ := other.send(w.Context(), leader, "get", "t", "g", ""); r.Result.Status.State != task.AwaitingCompletion {
			t.Errorf("the task is %+v", r)
		}
		w.end(w.nodes[:]...)
	})
}
