// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestUnconfirmedBytes: a broker without confirms keeps few large publications from being written, and loses none.
func TestUnconfirmedBytes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const tasks, size = 6, 3 << 20
		text := strings.Repeat("x", size)
		// One append, and so one message.
		done := agent.Report{State: task.AwaitingCompletion, Chunks: product(text).Chunks}
		w := newWorld(t, func(*agent.Turn) []step { return []step{{0, done}} },
			func(c *gateway.Config) {
				c.Partner.MaxBytes = 2 * size
				c.Memory = limit.Limits{Total: 1 << 30, PerLeader: 1 << 30}
			})
		link := w.connect(false)
		for i := range tasks {
			w.send("start", fmt.Sprint("t", i), fmt.Sprint("m", i), "")
		}
		large := 0
		for range tasks {
			time.Sleep(time.Minute)
			bytes := 0
			for _, m := range link.taken() {
				if bytes += len(m.Body); len(m.Body) > size {
					large++
				}
			}
			if bytes > maxUnconfirmedBytes {
				t.Errorf("%d bytes are unconfirmed", bytes)
			}
			link.confirm(1000)
		}
		if large != tasks {
			t.Errorf("%d large messages were published", large)
		}
	})
}

// cursors returns the number of stored cursors of followers.
func (w *world) cursors() (n int) {
	for _, err := range w.store.List(w.t.Context(), string(logname.GroupTask), "") {
		if err != nil {
			w.t.Error(err)
		}
		n++
	}
	return n
}

// TestWithoutATask: nothing is left of a follower without a started task, of one left by a crash, or of one with a
// dropped task.
func TestWithoutATask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		log := logname.New("agent", leaderAIC, "t")
		accepted, err := w.group.follow(t.Context(), log, "aip", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := accepted.Undo(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if n := w.cursors(); n != 0 {
			t.Errorf("undone: %d cursors are left", n)
		}
		if _, err = w.group.follow(t.Context(), log, "aip", 0); err != nil {
			t.Fatal(err)
		}
		w.crash()
		w.connect(true)
		time.Sleep(time.Second)
		if n := w.cursors(); n != 0 {
			t.Errorf("after a crash: %d cursors are left", n)
		}
	})
}

// TestRefusalAfterWork: the work of an agent is published when it is reported. AIP's table leads from no state to
// rejected, so the task of an agent with a late refusal fails; in a direct call nothing was seen of the work.
func TestRefusalAfterWork(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*agent.Turn) []step {
			return []step{{0, working()}, {time.Second, agent.Report{State: task.Rejected, NativeState: "rejected"}}}
		}, nil)
		w.connect(true)
		w.send("start", "t", "m1", "")
		time.Sleep(time.Minute)
		w.check("a refusal after work", "t accepted", "t working", "t failed")
		if got := w.rpc("start", "u", ""); got != "rejected" {
			t.Errorf("a direct start is answered %q", got)
		}
	})
}

// TestRefusalIsNotLost: a start refused by a limit is acknowledged when the broker has confirmed the refusal, and not
// before. So after a crash it is delivered and refused again, by a message with the same id.
func TestRefusalIsNotLost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, func(c *gateway.Config) { c.Partner.MaxTasks = 1 })
		w.send("start", "t", "m1", "")
		time.Sleep(time.Second)
		w.checkAcked("a start", "m1")
		w.send("start", "u", "m2", "")
		time.Sleep(time.Second)
		w.checkAcked("without a link")
		w.crash()
		link := w.connect(false)
		w.send("start", "u", "m2", "")
		time.Sleep(time.Second)
		w.checkAcked("not confirmed")
		before := link.taken()
		w.crash()
		link = w.connect(true)
		w.send("start", "u", "m2", "")
		time.Sleep(time.Second)
		w.checkAcked("confirmed", "m2")
		refusals := 0
		for _, m := range append(before, link.taken()...) {
			if decode(t, m).ID == "u" {
				refusals++
				if want := messageID(logname.New("agent", leaderAIC, "u"), "start"+logname.Separator+"m2"); m.ID != want {
					t.Errorf("a refusal has the id %q, want %q", m.ID, want)
				}
			}
		}
		if refusals != 2 {
			t.Errorf("it was refused %d times", refusals)
		}
	})
}

// TestFailedStartWasStored: a start in the store, although the store claimed to be unavailable, is published once.
func TestFailedStartWasStored(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.connect(true)
		w.store.setAmbiguous(logname.Task)
		w.send("start", "t", "m1", "")
		time.Sleep(2 * time.Minute)
		w.checkAcked("a start", "m1")
		w.send("get", "t", "m2", "")
		time.Sleep(time.Minute)
		w.check("the task", "t accepted", "t working", "t working a", "t working ab", "t awaiting-completion ab",
			"t awaiting-completion ab")
	})
}

// buggy is a member that panics while it is managed, as a bug of the gateway would.
type buggy struct{ *desk }

func (buggy) manage(*task.Management, string, *broker.Delivery) { panic("a bug") }

// TestBug: a message meeting a bug of the gateway is acknowledged as poison, and the next ones are executed.
func TestBug(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.connect(true)
		at := w.group.member
		w.group.member = buggy{&desk{w}}
		w.deliver(`{"type":"group-mgmt-message","id":"x","senderRole":"leader","senderId":"`+leaderAIC+
			`","groupMgmtCommand":"mute","mentions":["all"]}`, "x", "")
		w.group.member = at
		w.send("start", "t", "m1", "")
		synctest.Wait()
		w.checkAcked("after a bug", "x", "m1")
		if n := w.group.traffic().Poison; n != 1 {
			t.Errorf("%d messages are poison", n)
		}
	})
}

// TestStartBesideACommand: a start by rpc is not held up by a command of the group for the same task, about to be
// executed, and the time until the start is accepted is its own.
func TestStartBesideACommand(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the lane of the command must begin after the start
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, slow, nil)
		w.connect(true)
		began := time.Now()
		w.send("start", "t", "m1", `,"commandParams":{"responseTimeout":1000}`)
		if got := w.rpc("start", "t", `,"groupId":"g"`); got != "accepted" && got != "working" {
			t.Errorf("a start is answered %q", got)
		}
		if took := time.Since(began); took != 25*time.Second {
			t.Errorf("it is answered after %v", took)
		}
		w.checkAcked("the start in the group", "m1")
		w.check("the task", "t accepted", "t working")
	})
}
