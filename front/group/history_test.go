// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// history has the messages at the exchange.
type history []broker.Message

// check compares the messages with the log of a task: each state of it is there once by the id of its message, in
// order, and nothing else but more about an earlier state.
func (h history) check(t *testing.T, w *world, taskID string) {
	t.Helper()
	_, snapshot, records, err := w.store.Load(t.Context(), logname.New("agent", leaderAIC, taskID))
	if err != nil {
		t.Fatal(err)
	}
	var fold task.Fold
	if snapshot != nil {
		ev, _ := task.DecodeEvent(snapshot)
		fold.Apply(ev)
	}
	for _, r := range records {
		ev, _ := task.DecodeEvent(r.Data)
		fold.Apply(ev)
	}
	var want, got []string
	for _, s := range fold.Task().StatusHistory {
		want = append(want, fmt.Sprint(s.State, s.ChangedAt))
	}
	seen := make(map[string]bool)
	for _, m := range h {
		s := decode(t, m)
		if s.ID != taskID || seen[m.ID] {
			continue
		}
		seen[m.ID] = true
		line := fmt.Sprint(s.Status.State, s.Status.StateChangedAt)
		if n := len(got); n == 0 || got[n-1] != line {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the states on the exchange (-log +exchange):\n%s", taskID, diff)
	}
	if last := fold.Task(); !last.Status.State.Terminal() {
		t.Errorf("%s is %s", taskID, last.Status.State)
	}
}

// checkRepetitions: a message repeated under an id is the same as before.
func (h history) checkRepetitions(t *testing.T) {
	t.Helper()
	bodies := make(map[string]string)
	for _, m := range h {
		body, again := bodies[m.ID]
		if s := decode(t, m); again && body != string(m.Body) && s.StatusHistory == nil { // not the answer to a get
			t.Errorf("the message %s was %s, and then %s", m.ID, body, m.Body)
		}
		bodies[m.ID] = string(m.Body)
	}
}

// TestHistory: whatever happens to links, to the process and to the store, and however much of the logs is trimmed,
// each status of each task arrives at the exchange, once by its id, in order.
func TestHistory(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { testHistory(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func testHistory(t *testing.T, random *rand.Rand) {
	// An agent with several questions, and more words while it works.
	agentRandom := rand.New(rand.NewPCG(random.Uint64(), 1))
	var mu sync.Mutex
	script := func(turn *agent.Turn) []step {
		mu.Lock()
		defer mu.Unlock()
		pause := func() time.Duration { return time.Duration(agentRandom.IntN(400)) * time.Millisecond }
		steps := []step{{pause(), working()}}
		for range agentRandom.IntN(4) {
			steps = append(steps, step{pause(), product(fmt.Sprint(agentRandom.IntN(100)))})
		}
		if turn.Message.Command == task.Start && agentRandom.IntN(10) == 0 {
			return []step{{pause(), agent.Report{State: task.Rejected}}}
		}
		if len(turn.History) < 8 {
			return append(steps, step{pause(), asks()})
		}
		return append(steps, step{pause(), finished()})
	}
	trims := random.IntN(2) == 0
	w := newWorld(t, script, func(c *gateway.Config) {
		if trims {
			c.Partner.MaxEvents = 6 + random.IntN(10)
		}
	})
	var all history
	collect := func() {
		if w.link != nil {
			all = append(all, w.link.taken()...)
		}
	}
	// Until the group has the new link, it may still publish on the one before.
	connect := func(confirms bool) {
		before := w.link
		w.connect(confirms)
		if before != nil {
			all = append(all, before.taken()...)
		}
	}
	const tasks = 5
	for i := range 400 {
		id := fmt.Sprint("t", random.IntN(tasks))
		switch n := random.IntN(100); {
		case n < 15:
			w.send("start", id, "start "+id, "")
		case n < 60:
			w.send("continue", id, fmt.Sprint("continue ", i), "")
		case n < 65:
			w.send("get", id, fmt.Sprint("get ", i), "")
		case n < 75:
			if w.link != nil {
				w.link.confirm(random.IntN(5))
			}
		case n < 80: // a link is lost, and messages in flight may have arrived or not
			if w.link != nil {
				w.link.lose(random)
				collect()
				if random.IntN(2) == 0 {
					w.group.connect(nil)
				}
			}
		case n < 85:
			connect(random.IntN(2) == 0)
		case n < 87:
			w.group.mute(random.IntN(2) == 0)
		case n < 89:
			if w.link != nil {
				w.link.lose(random)
			}
			collect()
			w.crash()
			w.link = nil
		case n < 91:
			w.store.setUnavailable(true)
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
			w.store.setUnavailable(false)
		default:
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
	}
	w.group.mute(false)
	connect(true)
	for i := range tasks {
		w.send("start", fmt.Sprint("t", i), "", "")
		synctest.Wait()
		w.send("cancel", fmt.Sprint("t", i), fmt.Sprint("cancel ", i), "")
	}
	time.Sleep(time.Minute)
	collect()
	for i := range tasks {
		all.check(t, w, fmt.Sprint("t", i))
	}
	if !trims { // products of states known by a snapshot only are not
		all.checkRepetitions(t)
	}
	if c := w.group.traffic(); c.Tasks != 0 || c.Unconfirmed != 0 || c.Lag != 0 {
		t.Errorf("at the end: %+v", c)
	}
}

// lose ends the link. Unconfirmed messages may have arrived, up to any one of them.
func (l *wire) lose(random *rand.Rand) {
	l.endAfter(func() {
		if n := len(l.done); n > 0 {
			l.sent = l.sent[:len(l.sent)-min(random.IntN(n+1), len(l.sent))]
		}
	})
}
