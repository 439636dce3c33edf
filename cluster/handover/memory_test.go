// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/cluster/handover"
	"github.com/aip-gateway/aip-gateway/internal/limit"
)

// fill takes the memory one Leader may use at a node, and returns a function to give it back.
func (n *node) fill(leader string) (empty func()) {
	n.w.Helper()
	key := peerOf(leader).Leader()
	if err := n.state.Memory.Take(key, memory, limit.Limits{Total: memory, PerLeader: memory}); err != nil {
		n.w.Fatal(err)
	}
	return func() { n.state.Memory.Give(key, memory) }
}

// ask sends commands of a Leader for a task at once, and returns their answers as they come.
func (n *node) ask(count int, leader, command, taskID string) <-chan reply {
	all := make(chan reply, count)
	for range count {
		go func() {
			r, _ := n.send(n.w.Context(), leader, command, taskID, "m", "")
			all <- r
		}()
	}
	synctest.Wait()
	return all
}

// TestMemoryOfOwner: the memory of a Leader's calls at the owner, requests and replies come through another node,
// counts there in the quota of the Leader, and is taken before it is held.
//
// Promise: a Leader uses up the memory or the calls of another gateway of the cluster
func TestMemoryOfOwner(t *testing.T) {
	inBubble(t, func(w *world) {
		owner, other := w.nodes[0], w.nodes[1]
		leader := w.leader(owner)
		w.text = strings.Repeat("x", 200<<10)
		if r, _ := other.send(w.Context(), leader, "start", "t", "m", ""); r.Error != nil {
			t.Fatalf("the start is answered %+v", r.Error)
		}
		w.text = "hello"
		const calls = 30
		empty := other.fill(leader) // it waits for memory, and takes no reply
		answers := other.ask(calls, leader, "get", "t")
		held, of := owner.cluster.Stats().Held, owner.state.Memory.Total()
		if held < 200<<10 || held > memory || of > memory {
			t.Errorf("the owner holds %d bytes of replies, and has counted %d, of %d", held, of, memory)
		}
		empty()
		for range calls {
			if r := <-answers; r.Error != nil {
				t.Errorf("a get is answered %+v", r.Error)
			}
		}
		synctest.Wait()
		if held, of = owner.cluster.Stats().Held, owner.state.Memory.Total(); held+int(of) != 0 {
			t.Errorf("at last the owner holds %d bytes, and has counted %d", held, of)
		}
		empty = owner.fill(leader)
		w.text = strings.Repeat("y", 100<<10)
		var sent atomic.Int64
		other.link.Lose(func(m cluster.Message) bool {
			sent.Add(int64(len(m.Data)))
			return false
		})
		answers = other.ask(calls, leader, "continue", "t")
		if n := sent.Load(); n < calls*(32<<10) || n > calls*(33<<10) {
			t.Errorf("%d bytes of requests were sent to the owner, which has no memory for them", n)
		}
		time.Sleep(patience)
		for range calls {
			if r := <-answers; r.Error == nil || r.Error.Data.Limit != "memory_per_leader" {
				t.Errorf("a continue is answered %+v", r.Error)
			}
		}
		empty()
		w.text = "hello"
		w.end(w.nodes[:]...)
	})
}

// TestShareOfCalls: one Leader does not use up the calls a node executes for others.
//
// Promise: a Leader uses up the memory or the calls of another gateway of the cluster
func TestShareOfCalls(t *testing.T) {
	inBubble(t, func(w *world) {
		owner, other := w.nodes[0], w.nodes[1]
		leader := w.leader(owner)
		w.text = strings.Repeat("x", 33<<10)
		if r, _ := other.send(w.Context(), leader, "start", "t", "m", ""); r.Error != nil {
			t.Fatalf("the start is answered %+v", r.Error)
		}
		w.text = "hello"
		empty := owner.fill(leader)
		const more = 10
		answers := other.ask(handover.MaxServed+more, leader, "get", "t")
		for range more {
			if r := <-answers; r.Error == nil || r.Error.Data.Limit != "cluster_per_leader" {
				t.Errorf("a call beyond the share is answered %+v", r.Error)
			}
		}
		another := w.leader(owner, leader)
		if r, _ := other.send(w.Context(), another, "start", "t", "m", ""); r.Error != nil {
			t.Errorf("another Leader is answered %+v", r.Error)
		}
		empty()
		for range handover.MaxServed {
			if r := <-answers; r.Error != nil && r.Error.Data.Limit != "memory_per_leader" {
				t.Errorf("a get is answered %+v", r.Error)
			}
		}
		w.end(w.nodes[:]...)
	})
}
