// SPDX-License-Identifier: Apache-2.0

package guides

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
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// driven is a gateway with several Partners, which Leaders call without a pause until the test ends. All of them are
// well until the test does harm to one.
type driven struct {
	*site.Site
	fails     switchedAgent // of the Partner "fails"
	busy      switchedAgent // of the Partner "busy"
	down      *site.Process // the agent of the Partner "down"
	downAt    string        // its address
	receivers *site.Sink    // of the webhooks of the Partner "good"
	limited   *site.Caller  // of the Partner "limited", which takes few tasks
}

// switchedAgent is an agent to which the test may do harm.
type switchedAgent struct {
	*site.FakeAgent
	broken atomic.Bool   // it answers with errors
	holds  atomic.Bool   // it answers when free is closed
	free   chan struct{} // closed by the test
}

func (a *switchedAgent) run(t testing.TB) {
	a.free = make(chan struct{})
	a.FakeAgent = site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if a.holds.Load() {
			select {
			case <-a.free:
			case <-r.Context().Done():
			}
		}
		switch {
		case !a.broken.Load():
			site.WriteTask(w, h, "completed", "done")
		case h.Method == "tasks/send":
			site.WriteError(w, h, -32603, "the model is out")
		default:
			site.WriteError(w, h, -32001, "Task not found")
		}
	})
}

const (
	smallLimit = 4 // tasks of a Leader at the Partner "limited"
	smallRuns  = 2 // turns at the agent "busy"
)

func newDriven(t testing.TB) *driven {
	t.Helper()
	d := &driven{receivers: site.NewSink(t)}
	d.fails.run(t)
	d.busy.run(t)
	d.down, d.downAt = site.SampleAgent(t)
	_, good := site.SampleAgent(t)
	_, limited := site.SampleAgent(t)
	d.Site = site.Serve(t, site.Config{Notify: site.AllowHere + "attempts 1\n", Handle: fmt.Sprintf(`
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
	}`, good, d.downAt, d.fails.URL, d.busy.URL, smallRuns, limited, smallLimit)})
	d.limited = site.LeaderOf(t, d.URL()+"/limited")
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { stop(); all.Wait() })
	for _, mount := range []string{"/good", "/down", "/fails", "/limited"} {
		leader := site.LeaderOf(t, d.URL()+mount)
		all.Go(func() { d.drive(ctx, leader, strings.Trim(mount, "/")) })
	}
	return d
}

// drive leads one task after the other through its life. What a call is answered does not matter.
func (d *driven) drive(ctx context.Context, leader *site.Caller, name string) {
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprint(name, "-", n)
		if name == "good" {
			d.driveMore(ctx, leader, id, n)
		}
		leader.Do(ctx, site.StartCall(id, "hello"))
		leader.Do(ctx, site.CommandCall(task.Complete, id))
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// driveMore sets a webhook for the next task, follows a stream, and gets a task that does not exist.
func (d *driven) driveMore(ctx context.Context, leader *site.Caller, id string, n int) {
	if n%10 > 0 {
		return
	}
	leader.Request(ctx, "notification/set", site.Hook{URL: d.receivers.Origin() + "/hook", Token: "t", TaskID: id})
	f := &site.Follower{Caller: leader, ID: "streamed-" + id}
	f.Once(ctx, site.StreamBody(leader.Sender, "start", f.ID, "stream 3", ""), "awaiting-completion")
	leader.Do(ctx, site.CommandCall(task.Complete, f.ID))
	leader.Do(ctx, site.CommandCall(task.Get, "none"))
}

// connectedMember starts a member that has joined a group, and returns what cuts its network to the broker off, and
// what connects it again. prepare is called before the start.
func connectedMember(t testing.TB, prepare func(*site.Site)) (m *site.Member, cut, connect func()) {
	t.Helper()
	b := site.SharedBroker(t)
	var down atomic.Bool
	between := site.NewWire(t, b.Address(), func() site.Damage {
		if down.Load() {
			return site.Damage{After: 0}
		}
		return site.Damage{After: -1}
	})
	_, agent := site.SampleAgent(t)
	m = site.MakeMember(t)
	prepare(m.Site)
	own := m.Identify()
	m.Config = m.Fronting("a2a/legacy http://"+agent, between.Address(),
		fmt.Sprintf("tls {\n\t\t\t\tclient_cert %s %s\n\t\t\t}", own.Cert, own.Key))
	m.Start(m.Config)
	g := site.NewGroup(t, b, "observed", site.Certificates(t).LeaderV1)
	site.JoinThrough(g, m, between.Address())
	g.Say("start", "of the group", "hello")
	g.WaitForState(m.AIC, "of the group", "awaiting-completion")
	return m, func() { down.Store(true); between.Cut() }, func() { down.Store(false) }
}
