// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// twoWorlds returns two processes over the same shards, before the same agents. The shard of an AID is owned by the
// second one.
func twoWorlds(t *testing.T, aid string) (all [2]*world) {
	t.Helper()
	shards := replaytest.NewShards(8)
	first := &world{t: t, pki: auntest.NewPKI(t), net: auntest.NewNetwork(t),
		agent: &scripted{turns: make(map[string]chan agent.Report)}}
	first.own = first.pki.Identity(host)
	for i := range all {
		w := *first
		w.process, w.open, w.node, w.works = new(gateway.Process), new(Connections), shards.Node(), new(worker)
		w.host = []string{host, "second." + host}[i]
		all[i] = &w
	}
	for i, w := range all {
		w.other = all[1-i]
	}
	for _, w := range all {
		w.start()
		t.Cleanup(w.stop)
	}
	at := logname.ShardOfAID(8, aid)
	for i := range 8 {
		owner := all[i%2]
		if i == at {
			owner = all[1]
		}
		shards.Assign(i, owner.node, false)
	}
	synctest.Wait()
	return all
}

// seen returns the events of a client so far.
func (c *client) seen() (list []string) {
	synctest.Wait()
	bubble.Pass(time.Second) // for events through another process
	synctest.Wait()
	for {
		select {
		case e := <-c.events:
			list = append(list, e.String())
		default:
			return list
		}
	}
}

// TestNodes: clients of one task are connected to different processes, one of them the owner of its shard, and each
// gets its events once, also when it goes to the other process.
func TestNodes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const alice, bob = "alice.aid.test", "bob.aid.test"
		all := twoWorlds(t, alice)
		a, b := all[0].connect(alice, "d1"), all[1].connect(bob, "d1")
		id := a.create(reviewer, `,"participants":["`+bob+`"]`)
		for _, c := range []*client{a, b} {
			c.must("task.subscribe", `{"task_ids":["`+id+`"]}`)
		}
		all[0].say(id, working, piece("0", false))
		first := a.seen()
		if diff := cmp.Diff(first, b.seen()); len(first) < 2 || diff != "" {
			t.Errorf("alice has seen %q; bob else (-alice +bob):\n%s", first, diff)
		}
		if !all[0].open.Online(bob) || !all[1].open.Online(alice) || all[0].open.Online("nobody.aid.test") {
			t.Error("who is connected to another process is not known")
		}
		if got := b.must("task.get", params(id)).Get("status").String(); got != "working" {
			t.Errorf("bob gets a task that is %s", got)
		}

		// The device goes to the other process, and the connection at the first one is closed.
		again := all[1].connect(alice, "d1")
		<-a.served
		if got := a.next().params.Get("detail.evicted_by").Raw; got != `{"aid":"`+alice+`","device_id":"d1","slot_id":""}` {
			t.Errorf("the connection has given way to %s", got)
		}
		again.must("task.subscribe", `{"task_ids":["`+id+`"]}`)
		if got := again.seen(); len(got) > 0 {
			t.Errorf("alice is sent again %q", got)
		}
		all[0].say(id, asks)
		if got, want := again.seen(), b.seen(); len(got) == 0 || cmp.Diff(want, got) != "" {
			t.Errorf("alice has seen %q, and bob %q", got, want)
		}
		back := all[0].connect(alice, "d1")
		<-again.served
		back.must("task.send_input", `{"task_id":"`+id+`","input":{"type":"text","content":"this"}}`)
		back.must("task.subscribe", `{"task_ids":["`+id+`"]}`)
		all[0].say(id, working, finished)
		if got, want := back.seen(), b.seen(); len(got) == 0 || cmp.Diff(want, got) != "" {
			t.Errorf("alice has seen %q, and bob %q", got, want)
		}
		if list := back.must("task.list", `{}`).Get("tasks").Array(); len(list) != 1 {
			t.Errorf("alice has the tasks %s", list)
		}
	})
}

// TestWorkAtNodes: an agent connected to another process than the one running its turn is sent its tasks, and its calls
// arrive.
func TestWorkAtNodes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		all := twoWorlds(t, "alice.aid.test")
		runs := all[0].works.(*worker)
		runs.has = []string{"task-1"}
		c := all[1].connect("worker.aid.test", "d1")
		c.must("task.accept", `{"task_id":"task-1"}`)
		c.must("task.complete", `{"task_id":"task-1"}`)
		if err := c.conn.Notify(t.Context(), "event/task.artifact", []byte(`{"task_id":"task-1"}`)); err != nil {
			t.Error(err)
		}
		c.seen()
		if diff := cmp.Diff([]string{"task.accept", "task.complete", "event/task.artifact"}, runs.said); diff != "" {
			t.Errorf("the agent has said (-want +got):\n%s", diff)
		}
		all[0].open.Send("worker.aid.test", []byte(`{"jsonrpc":"2.0","method":"event/task.updated","params":{"status":"x"}}`))
		if got := c.seen(); len(got) != 1 || got[0] != "updated x" {
			t.Errorf("the agent is sent %q", got)
		}
		_, err := c.conn.Call(t.Context(), "task.complete", []byte(`{"task_id":"other"}`))
		if e, ok := err.(*aun.Error); !ok || e.Code == 0 {
			t.Errorf("a task that it does not have: %v", err)
		}
	})
}

// TestShareBy: connections are those of the processes of the newest store. When it closes, as after a reload that has
// failed, they are those of the store before.
func TestShareBy(t *testing.T) {
	c, one, two := new(Connections), new(nodes), new(nodes)
	for i, step := range []struct {
		of    *nodes
		begin bool
		want  *nodes
	}{{one, true, one}, {two, true, two}, {two, false, one}, {two, true, two}, {one, false, two}, {two, false, nil}} {
		if c.shareBy(step.of, step.begin); c.nodes.Load() != step.want {
			t.Errorf("step %d: they are not those of the right store", i)
		}
	}
}
