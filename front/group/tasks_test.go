// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// works is an agent with work for 3 s. It makes a product after the first, and changes it after the second.
func works(*agent.Turn) []step {
	return []step{{0, working()}, {time.Second, product("a")}, {time.Second, product("ab")}, {time.Second, finished()}}
}

func (w *world) check(what string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, lines(w.t, w.link.taken())); diff != "" {
		w.t.Errorf("%s: published (-want +got):\n%s", what, diff)
	}
}

func (w *world) checkAcked(what string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.acknowledged()); diff != "" {
		w.t.Errorf("%s: acknowledged (-want +got):\n%s", what, diff)
	}
}

// TestTask: a task of a group goes through its life, each status and product is published in order under an id of its
// own, and commands are acknowledged when they are in the log.
func TestTask(t *testing.T) {
	t.Run("alone", func(t *testing.T) { lifeOfATask(t, nil) })
	t.Run("with another writer", func(t *testing.T) {
		rival := &replaytest.Rival{Classes: string(logname.GroupTask) + string(logname.Task)}
		lifeOfATask(t, rival)
		if rival.Wins() < 4 {
			t.Errorf("the other writer was faster %d times only", rival.Wins())
		}
	})
}

func lifeOfATask(t *testing.T, rival *replaytest.Rival) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.Store(replay.NewMemory(replay.Settings{}))
		if rival != nil {
			rival.Store = store
			store = rival
		}
		w := newWorldOver(t, store, works, nil)
		link := w.connect(true)
		w.send("start", "t", "m1", "")
		synctest.Wait()
		w.checkAcked("a start", "m1")
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		w.check("a product", "t accepted", "t working", "t working a")
		time.Sleep(2 * time.Second)
		w.check("the end of the work", "t working ab", "t awaiting-completion ab")

		w.send("start", "t", "m1", "")
		synctest.Wait()
		w.send("complete", "t", "m2", `,"mentions":["OTHER"]`)
		time.Sleep(time.Second)
		w.checkAcked("a repeated command, and one for others", "m1", "m2")
		w.check("a repeated command, and one for others")
		w.send("get", "t", "m3", "")
		synctest.Wait()
		sent := link.taken()
		if s := decode(t, sent[0]); len(sent) != 1 || s.Status.State != "awaiting-completion" || len(s.StatusHistory) != 3 {
			t.Errorf("a get is answered %+v", sent)
		}
		w.send("complete", "t", "m4", `,"mentions":["partner"]`)
		time.Sleep(time.Second)
		w.check("complete", "t completed ab")
		w.checkAcked("get and complete", "m3", "m4")
		if c := w.group.traffic(); c.Tasks != 0 || c.Published != 7 || c.Confirmed != 7 || c.Unconfirmed != 0 ||
			c.Executed != 4 || c.Ignored != 1 || c.Received != 5 {
			t.Errorf("counted %+v", c)
		}
		if n := w.cursors(); n != 0 {
			t.Errorf("%d cursors are left", n)
		}
		w.send("get", "t", "m5", "")
		synctest.Wait()
		w.check("a get of a task that has ended", "t completed ab")
		w.checkAcked("a get of a task that has ended", "m5")
	})
}

// TestIDs: each message has an id of its own, and the same one when it is published again.
func TestIDs(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		link := w.connect(false)
		w.send("start", "t", "m1", "")
		time.Sleep(4 * time.Second)
		first := link.taken()
		link.confirm(3)
		link.end()
		w.connect(true)
		synctest.Wait()
		again := w.link.taken()
		w.connect(true)
		synctest.Wait()
		w.check("after all is confirmed")
		ids := make(map[string]bool)
		for _, m := range first {
			ids[m.ID] = true
		}
		if len(ids) != 5 || len(first) != 5 {
			t.Errorf("5 messages have %d ids: %q", len(ids), lines(t, first))
		}
		// The products are not published by themselves again, since the last status has them.
		if diff := cmp.Diff([]broker.Message{first[4]}, again); diff != "" {
			t.Errorf("published again (-want +got):\n%s", diff)
		}
	})
}

// slow is an agent without a report for a minute. Then it rejects the task.
func slow(*agent.Turn) []step {
	return []step{{time.Minute, agent.Report{State: task.Rejected, Items: []task.DataItem{task.Text("no")}}}}
}

// TestAcceptedInTime: a start is accepted after its agent's time to answer a start, also by the next process; until
// then the agent may reject it.
func TestAcceptedInTime(t *testing.T) {
	for _, crashes := range []bool{false, true} {
		bubble.Test(t, func(t *testing.T) {
			w := newWorld(t, slow, nil)
			w.connect(true)
			w.send("start", "t", "m1", "")
			time.Sleep(24 * time.Second)
			synctest.Wait()
			w.checkAcked("a start", "m1")
			w.check("a start that is pending")
			if crashes {
				w.crash()
				w.connect(true)
			}
			time.Sleep(2 * time.Second)
			w.check("after 25 s", "t accepted", "t working")
			w.send("start", "u", "m2", "")
			w.send("get", "u", "m3", "")
			synctest.Wait()
			w.check("a get accepts it", "u accepted", "u working", "u working")
			w.send("start", "v", "m4", `,"commandParams":{"responseTimeout":5000}`)
			time.Sleep(4 * time.Second)
			w.check("a start whose Leader waits for 5 s")
			if crashes {
				w.crash()
				w.connect(true)
			}
			time.Sleep(2 * time.Second)
			w.check("after 5 s", "v accepted", "v working")
		})
	}
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*agent.Turn) []step {
			return []step{{time.Second, agent.Report{State: task.Rejected, Items: []task.DataItem{task.Text("no")}}}}
		}, nil)
		w.connect(true)
		w.send("start", "t", "m1", "")
		time.Sleep(time.Minute)
		w.check("a start that is rejected", "t rejected")
		if n := w.group.traffic().Tasks; n != 0 {
			t.Errorf("%d tasks are left", n)
		}
	})
}

// decides is a policy.
type decides func(c *policy.Call) error

func (f decides) Decide(_ context.Context, c *policy.Call, _ *policy.Use) error { return f(c) }

func (decides) Denies(*policy.Call) error { return nil }

// TestPolicy: a start denied by the policy is published as a rejected Task, without a word about the policy, and
// another denied command is dropped.
func TestPolicy(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, func(c *gateway.Config) {
			c.Policy = decides(func(c *policy.Call) error {
				if c.Message.TaskID == "t" && c.Command == "start" {
					return nil
				}
				return policy.Denied(&policy.Refusal{Rule: "secret"})
			})
		})
		link := w.connect(true)
		w.send("start", "t", "m1", "")
		synctest.Wait()
		link.taken()
		w.send("start", "u", "m2", "")
		w.send("cancel", "t", "m3", "")
		w.send("get", "t", "m4", "")
		synctest.Wait()
		sent := link.taken()
		if len(sent) != 1 || decode(t, sent[0]).Status.State != task.Rejected ||
			strings.Contains(string(sent[0].Body), "secret") {
			t.Errorf("published %q", lines(t, sent))
		}
		if got := w.acknowledged(); len(got) != 4 {
			t.Errorf("acknowledged %q", got)
		}
	})
}

// TestMuted: a muted member publishes nothing until it is unmuted, then everything in order. Its commands are executed
// meanwhile, and acknowledged, however many of them get a task.
func TestMuted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, func(c *gateway.Config) { c.Partner.MaxTasks = 1 })
		w.connect(true)
		w.send("start", "t", "m1", "")
		time.Sleep(500 * time.Millisecond)
		w.check("a start", "t accepted", "t working")
		w.group.mute(true)
		w.send("get", "t", "m2", "")
		w.send("get", "t", "m3", "")
		w.send("start", "u", "m4", "") // too many
		for range 2 {                  // they come again
			w.send("get", "t", "m3", "")
			w.send("start", "u", "m4", "")
		}
		time.Sleep(time.Minute)
		w.check("muted")
		if got := w.acknowledged(); len(got) != 8 {
			t.Errorf("acknowledged %q", got)
		}
		w.group.mu.Lock()
		for _, r := range append(w.group.followers["t"].gets, w.group.replies...) {
			if len(r.acks) > 0 {
				t.Errorf("%d commands are still held by %s", len(r.acks), r.id)
			}
		}
		w.group.mu.Unlock()
		if err := w.group.flush(t.Context()); err != nil {
			t.Error(err)
		}
		if c := w.group.traffic(); c.Lag != 1 || c.Tasks != 1 {
			t.Errorf("counted %+v", c)
		}
		w.group.mute(false)
		if err := w.group.flush(t.Context()); err != nil {
			t.Error(err)
		}
		w.check("unmuted", "u rejected", "t awaiting-completion ab", "t awaiting-completion ab")
	})
}

// TestStoreUnavailable: while the store is unavailable nothing is acknowledged, and then everything is executed, in
// order.
func TestStoreUnavailable(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.connect(true)
		w.store.setUnavailable(true)
		w.send("start", "t", "m1", "")
		w.send("cancel", "t", "m2", "")
		time.Sleep(time.Minute)
		w.checkAcked("unavailable")
		w.store.setUnavailable(false)
		time.Sleep(time.Minute)
		w.checkAcked("available", "m1", "m2")
		w.check("available", "t accepted", "t working", "t canceled")
	})
}

// TestLimits: a start refused by a limit is published as a rejected Task, under the same id when it is delivered again;
// every other refused command is acknowledged, and nothing is published.
func TestLimits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		want := []string{"m1 t start", "m2 u start limit-exceeded", "m2 u start limit-exceeded",
			"m3 u continue task-not-found", "m4 u get task-not-found"}
		w := newWorld(t, works, func(c *gateway.Config) { c.Partner.MaxTasks = 1 })
		link := w.connect(true)
		w.send("start", "t", "m1", "")
		synctest.Wait()
		link.taken()
		w.send("start", "u", "m2", "")
		synctest.Wait()
		w.send("start", "u", "m2", "")
		synctest.Wait()
		sent := link.taken()
		if len(sent) != 2 || sent[0].ID != sent[1].ID || decode(t, sent[0]).Status.State != task.Rejected ||
			len(decode(t, sent[0]).Status.DataItems) != 1 {
			t.Errorf("published %q", lines(t, sent))
		}
		w.send("continue", "u", "m3", "")
		w.send("get", "u", "m4", "")
		synctest.Wait()
		w.check("commands for a task that is not there")
		if got := w.acknowledged(); len(got) != 5 {
			t.Errorf("acknowledged %q", got)
		}
		slices.Sort(want)
		got := w.handled()
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the log has (-want +got):\n%s", diff)
		}
	})
}

// TestHybrid: a start by rpc with the group's name makes a task of the group, and commands by rpc are published; a
// direct task never is, and the group has no commands for it.
func TestHybrid(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.connect(true)
		if got := w.rpc("start", "t", `,"groupId":"g"`); got != "awaiting-completion" {
			t.Errorf("a start in the group is answered %q", got)
		}
		w.check("a start by rpc", "t accepted", "t working", "t working a", "t working ab", "t awaiting-completion ab")
		if got := w.rpc("continue", "t", ""); got != "awaiting-completion" {
			t.Errorf("a continue is answered %q", got)
		}
		w.check("a continue by rpc", "t working", "t working a", "t working ab", "t awaiting-completion ab")
		w.rpc("start", "u", "")
		for _, command := range []string{"continue", "complete", "cancel", "get", "start"} {
			w.send(command, "u", command, "")
			synctest.Wait()
			w.checkAcked("a command for a direct task", command)
		}
		if got := w.rpc("get", "u", ""); got != "awaiting-completion" {
			t.Errorf("the direct task is %q", got)
		}
		w.check("a direct task")

		w.send("start", "v", "m1", "")
		time.Sleep(10 * time.Second)
		w.link.taken()
		if got := w.rpc("continue", "v", ""); got != "awaiting-completion" {
			t.Errorf("a continue by rpc of a task that the group has started is answered %q", got)
		}
		w.rpc("complete", "v", "")
		synctest.Wait()
		w.check("by rpc", "v working", "v working a", "v working ab", "v awaiting-completion ab", "v completed ab")
	})
}

// TestNotForThisAgent: messages for others than this agent change nothing, are acknowledged, and are counted.
func TestNotForThisAgent(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.connect(true)
		start := func(sender, group string) string {
			return `{"type":"message","id":"m","senderRole":"leader","senderId":"` + sender + `","command":"start",` +
				`"dataItems":[],"taskId":"t","sessionId":"s","groupId":"` + group + `"}`
		}
		other, err := identity.MakeV1(identity.FieldsV1{})
		if err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			name, body, userID string
			want               Traffic
		}{
			{"another group", start(leaderAIC, "h"), "", Traffic{Ignored: 1}},
			{"another sender", start("OTHER", "g"), "", Traffic{Ignored: 1}},
			{"its own", start(agentAIC, "g"), "", Traffic{Ignored: 1}},
			{"another user of the broker", start(leaderAIC, "g"), string(other), Traffic{Ignored: 1}},
			{"a Task", `{"type":"task","id":"t","senderId":"OTHER"}`, string(other), Traffic{Ignored: 1}},
			{"no JSON", `{`, "", Traffic{Poison: 1}},
			{"too long", strings.Repeat(" ", 100<<10), "", Traffic{Poison: 1}},
			{"no task", strings.Replace(start(leaderAIC, "g"), `"taskId":"t"`, `"taskId":7`, 1), "", Traffic{Poison: 1}},
			{"an unknown type", `{"type":"weather"}`, "", Traffic{Poison: 1}},
			{"a user that is no AIC", start("leader", "g"), "guest", Traffic{Executed: 1, Published: 2, Confirmed: 2, Tasks: 1}},
		} {
			before := w.group.traffic()
			w.deliver(tc.body, tc.name, tc.userID)
			synctest.Wait()
			w.checkAcked(tc.name, tc.name)
			got := w.group.traffic()
			tc.want.Received = 1
			got.Received -= before.Received
			got.Ignored -= before.Ignored
			got.Poison -= before.Poison
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: counted (-want +got):\n%s", tc.name, diff)
			}
		}
		w.deliver(`{"type":"group-mgmt-message","id":"x","senderRole":"leader","senderId":"`+leaderAIC+
			`","groupMgmtCommand":"leave-group","mentions":["all"]}`, "x", "")
		if len(w.managed) != 1 || w.managed[0].Command != task.LeaveGroup {
			t.Errorf("the membership got %+v", w.managed)
		}
	})
}

// TestEnd: a leaving member cancels its tasks, says so, and starts no other one; dropped followers stay dropped.
func TestEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.connect(true)
		w.send("start", "t", "m1", "")
		w.send("start", "u", "m2", "")
		time.Sleep(500 * time.Millisecond)
		w.link.taken()
		if err := w.group.cancel(t.Context()); err != nil {
			t.Error(err)
		}
		w.send("start", "v", "m3", "")
		if err := w.group.flush(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		got := lines(t, w.link.taken())
		slices.Sort(got)
		if diff := cmp.Diff([]string{"t canceled", "u canceled"}, got); diff != "" {
			t.Errorf("published (-want +got):\n%s", diff)
		}
	})
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		w.connect(true)
		w.send("start", "t", "m1", "")
		time.Sleep(500 * time.Millisecond)
		w.link.taken()
		w.store.setUnavailable(true)
		if err := w.group.drop(t.Context()); err == nil {
			t.Error("dropped while the store is unavailable")
		}
		w.store.setUnavailable(false)
		if err := w.group.drop(t.Context()); err != nil {
			t.Error(err)
		}
		w.crash()
		w.connect(true)
		time.Sleep(time.Minute)
		w.check("after all was dropped")
		if c := w.group.traffic(); c.Tasks != 0 {
			t.Errorf("counted %+v", c)
		}
	})
}

// TestTrace: the trace of a command goes on in the publications of its task.
func TestTrace(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, works, nil)
		link := w.connect(true)
		const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		w.headers = map[string]string{"traceparent": parent}
		w.send("start", "t", "m1", "")
		w.send("get", "t", "m2", "")
		time.Sleep(time.Minute)
		for _, m := range link.taken() {
			if m.Headers["traceparent"] != parent {
				t.Errorf("%s has the headers %v", m.Body, m.Headers)
			}
		}
	})
}
