// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// driven is a gateway with several Partners, which Leaders call without a pause until the test ends. All of them are
// well until the test does harm to one.
type driven struct {
	*site
	fails     switchedAgent // of the Partner "fails"
	busy      switchedAgent // of the Partner "busy"
	down      *process      // the agent of the Partner "down"
	downAt    string        // its address
	receivers *sink         // of the webhooks of the Partner "good"
	limited   *caller       // of the Partner "limited", which takes few tasks
}

// switchedAgent is an agent to which the test may do harm.
type switchedAgent struct {
	*fakeAgent
	broken atomic.Bool   // it answers with errors
	holds  atomic.Bool   // it answers when free is closed
	free   chan struct{} // closed by the test
}

func (a *switchedAgent) run(t testing.TB) {
	a.free = make(chan struct{})
	a.fakeAgent = newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
		if a.holds.Load() {
			select {
			case <-a.free:
			case <-r.Context().Done():
			}
		}
		switch {
		case !a.broken.Load():
			writeTask(w, h, "completed", "done")
		case h.Method == "tasks/send":
			writeError(w, h, -32603, "the model is out")
		default:
			writeError(w, h, -32001, "Task not found")
		}
	})
}

const (
	smallLimit = 4 // tasks of a Leader at the Partner "limited"
	smallRuns  = 2 // turns at the agent "busy"
)

func newDriven(t testing.TB) *driven {
	t.Helper()
	d := &driven{receivers: newSink(t)}
	d.fails.run(t)
	d.busy.run(t)
	d.down, d.downAt = sampleAgent(t)
	_, good := sampleAgent(t)
	_, limited := sampleAgent(t)
	d.site = serve(t, config{notify: here + "attempts 1\n", handle: fmt.Sprintf(`
	handle_path /good* {
		aip_gateway a2a/legacy http://%s
	}
	handle_path /down* {
		aip_gateway {
			agent a2a/legacy http://%s {
				retry_for 1s
			}
		}
	}
	handle_path /fails* {
		aip_gateway a2a/legacy %s
	}
	handle_path /busy* {
		aip_gateway {
			agent a2a/legacy %s {
				max_runs %d
			}
		}
	}
	handle_path /limited* {
		aip_gateway a2a/legacy http://%s {
			limits {
				tasks_per_leader %d
			}
		}
	}`, good, d.downAt, d.fails.url, d.busy.url, smallRuns, limited, smallLimit)})
	d.limited = leaderOf(t, d.url()+"/limited")
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for _, mount := range []string{"/good", "/down", "/fails", "/limited"} {
		leader := leaderOf(t, d.url()+mount)
		all.Go(func() { d.drive(ctx, leader, strings.Trim(mount, "/")) })
	}
	return d
}

// drive leads one task after the other through its life. What a call is answered does not matter.
func (d *driven) drive(ctx context.Context, leader *caller, name string) {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprint(name, "-", n)
		if name == "good" {
			d.driveMore(ctx, leader, id, n)
		}
		leader.Do(ctx, startCall(id, "hello"))
		leader.Do(ctx, commandCall(task.Complete, id))
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// driveMore sets a webhook for the next task, follows a stream, and gets a task that does not exist.
func (d *driven) driveMore(ctx context.Context, leader *caller, id string, n int) {
	if n%10 > 0 {
		return
	}
	leader.Request(ctx, "notification/set", hook{URL: d.receivers.origin() + "/hook", Token: "t", TaskID: id})
	f := &follower{caller: leader, id: "streamed-" + id}
	f.once(ctx, streamBody(leader.Sender, "start", f.id, "stream 3", ""), "awaiting-completion")
	leader.Do(ctx, commandCall(task.Complete, f.id))
	leader.Do(ctx, commandCall(task.Get, "none"))
}

// connectedMember starts a member that has joined a group, and returns what cuts its network to the broker off, and
// what connects it again. prepare is called before the start.
func connectedMember(t testing.TB, prepare func(*site)) (m *member, cut, connect func()) {
	t.Helper()
	b := sharedBroker(t)
	var down atomic.Bool
	between := newWire(t, b.Address(), func() damage {
		if down.Load() {
			return damage{after: 0}
		}
		return damage{after: -1}
	})
	_, agent := sampleAgent(t)
	m = makeMember(t)
	prepare(m.site)
	own := m.identify()
	m.config = m.fronting("a2a/legacy http://"+agent, between.address(),
		fmt.Sprintf("tls {\n\t\t\t\tclient_cert %s %s\n\t\t\t}", own.Cert, own.Key))
	m.start(m.config)
	g := newGroup(t, b, "observed", certificates(t).LeaderV1)
	joinThrough(g, m, between.address())
	g.say("start", "of the group", "hello")
	g.waitForState(m.aic, "of the group", "awaiting-completion")
	return m, func() { down.Store(true); between.cut() }, func() { down.Store(false) }
}
