// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// ownerless are Owners without the shard.
type ownerless struct{ asked int }

func (n *ownerless) Execute(
	context.Context, int, string, *gateway.Call, replay.Reserve,
) (r gateway.Result, err error) {
	n.asked++
	return r, partner.Moved()
}

// lapsing are shards with an owner unable to act for some time.
type lapsing struct {
	replay.Shards
	until time.Time
}

func (l *lapsing) Open(ctx context.Context, shard int) (replay.Store, <-chan struct{}, error) {
	store, lost, err := l.Shards.Open(ctx, shard)
	return lapsed{store, l}, lost, err
}

type lapsed struct {
	replay.Store
	of *lapsing
}

// Held is described at replay.HeldBy.
func (l lapsed) Held() error {
	if time.Now().Before(l.of.until) {
		return replay.ErrUnavailable
	}
	return nil
}

// turns is an agent obeying at once, and counting.
type turns struct {
	partner.Agent
	asked int
}

func (a *turns) Run(context.Context, *agent.Turn, bool) iter.Seq2[agent.Report, error] {
	a.asked++
	return func(yield func(agent.Report, error) bool) { yield(agent.Report{State: task.AwaitingCompletion}, nil) }
}

func (a *turns) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	a.asked++
	return agent.Report{State: task.Canceled}, nil
}

func (a *turns) Complete(context.Context, *agent.Turn) error { return nil }

// TestLapsed: a call to an owner with an ended lease waits until the owner has one, or for some time, and then the
// caller is asked to try again. Nothing is begun meanwhile. An ended task is shown at once.
func TestLapsed(t *testing.T) {
	const limit = 10 * time.Second
	for name, c := range map[string]struct {
		command task.Command
		of      string // the task
		lapses  time.Duration
		after   time.Duration // when the answer comes, give or take a second
		fails   bool
	}{
		"get of a task that has ended": {task.Get, "ended", time.Hour, 0, false},
		"get":                          {task.Get, "rests", time.Hour, limit, true},
		"get, for a moment":            {task.Get, "rests", 2 * time.Second, 2 * time.Second, false},
		"complete":                     {task.Complete, "rests", time.Hour, limit, true},
		"cancel, for a moment":         {task.Cancel, "rests", 2 * time.Second, 2 * time.Second, false},
		"continue without id":          {task.Continue, "rests", 2 * time.Second, 2 * time.Second, false},
		"start":                        {task.Start, "new", time.Hour, limit, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				shards := replaytest.NewShards(1)
				node := shards.Node()
				l := &lapsing{Shards: node}
				var turns turns
				g := newGatewayAt(t, shard.Join(l, quiet), func(c *gateway.Config) { c.Partner.Agent = &turns },
					func(tasks *gateway.Tasks) { tasks.HandOver(new(ownerless)) })
				shards.Assign(0, node, false)
				do := func(command task.Command, id string) error {
					m := task.Message{Command: command, TaskID: id, SenderID: "leader",
						DataItems: []task.DataItem{task.Text("hello")}}
					_, err := g.Execute(t.Context(), &gateway.Call{Leader: "leader",
						Call: translate.Call{Call: task.Call{Message: m}}}, nil)
					return err
				}
				for _, err := range []error{do(task.Start, "ended"), do(task.Start, "rests"), do(task.Complete, "ended")} {
					if err != nil {
						t.Fatal(err)
					}
				}
				began, before := time.Now(), turns.asked
				l.until = began.Add(c.lapses)
				err := do(c.command, c.of)
				if took := time.Since(began); took < c.after || took > c.after+time.Second {
					t.Errorf("the answer came after %v", took)
				}
				if fails := err != nil; fails != c.fails || fails && task.KindOf(err) != task.StoreUnavailable {
					t.Errorf("the answer is %v", err)
				}
				if c.fails && turns.asked != before {
					t.Error("the agent was asked")
				}
				synctest.Wait()
			})
		})
	}
}

// TestHandOver: a call is tried again while its shard has no owner, until this process is the owner, or for some time;
// a call not to be repeated is tried once.
func TestHandOver(t *testing.T) {
	const limit = 10 * time.Second
	for name, c := range map[string]struct {
		command task.Command
		id      string
		may     bool          // a start may continue the task
		gained  time.Duration // when this process gains the shard; 0 for never
		after   time.Duration // when the answer comes, give or take a second
		moved   bool
		once    bool
	}{
		"no owner":                           {task.Get, "1", false, 0, limit, true, false},
		"gained":                             {task.Get, "1", false, time.Second, time.Second, false, false},
		"continue":                           {task.Continue, "1", false, 0, limit, true, false},
		"continue without id":                {task.Continue, "", false, 0, 0, true, true},
		"start without id":                   {task.Start, "", false, 0, limit, true, false},
		"start that may continue":            {task.Start, "1", true, 0, limit, true, false},
		"start without id that may continue": {task.Start, "", true, 0, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				shards := replaytest.NewShards(1)
				node := shards.Node()
				var owners ownerless
				g := newGatewayAt(t, shard.Join(node, quiet), nil, func(tasks *gateway.Tasks) { tasks.HandOver(&owners) })
				if c.gained > 0 {
					time.AfterFunc(c.gained, func() { shards.Assign(0, node, false) })
				}
				began := time.Now()
				m := task.Message{ID: c.id, Command: c.command, TaskID: "t", SenderID: "leader"}
				call := &gateway.Call{Leader: "leader", Call: translate.Call{Call: task.Call{Message: m}}}
				call.StartOrContinue = c.may
				_, err := g.Execute(t.Context(), call, nil)
				if took := time.Since(began); took < c.after || took > c.after+time.Second {
					t.Errorf("the answer came after %v", took)
				}
				if errors.Is(err, replay.ErrFenced) != c.moved || !c.moved && task.KindOf(err) != task.TaskNotFound {
					t.Errorf("the answer is %v", err)
				}
				if (owners.asked == 1) != c.once {
					t.Errorf("the owner was asked %d times", owners.asked)
				}
				synctest.Wait()
			})
		})
	}
}

// worker is an agent at work on a turn until a time, for any caller.
type worker struct {
	partner.Agent
	until time.Time
	begun func() // is called when it is sent a message
	sent  int
}

func (a *worker) Run(ctx context.Context, t *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	a.sent++
	a.begun()
	return a.Resume(ctx, t)
}

func (a *worker) Resume(ctx context.Context, _ *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		select {
		case <-time.After(time.Until(a.until)):
			yield(agent.Report{State: task.AwaitingCompletion}, nil)
		case <-ctx.Done():
		}
	}
}

// TestMovedWhileItWaits: a call waiting for the agent waits on at the next owner of its shard, or until the owner knows
// again of its ownership. The agent is sent the message once. A message without an id that continues a task is not sent
// again.
func TestMovedWhileItWaits(t *testing.T) {
	const moves, work = 20 * time.Second, 30 * time.Second // longer than it waits for an owner
	for name, c := range map[string]struct {
		command task.Command
		id      string
		lapses  time.Duration // until when the owner may not act; 0: the shard moves
		after   time.Duration // when the answer comes, give or take a second
		fails   bool
	}{
		"a start moves":                {task.Start, "m", 0, work, false},
		"a start without id moves":     {task.Start, "", 0, work, false},
		"a continue moves":             {task.Continue, "m", 0, work, false},
		"a continue without id moves":  {task.Continue, "", 0, moves, true},
		"a start lapses":               {task.Start, "m", work + time.Second, work + time.Second, false},
		"a continue lapses":            {task.Continue, "m", work + time.Second, work + time.Second, false},
		"a continue without id lapses": {task.Continue, "", work + time.Second, work, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				shards := replaytest.NewShards(1)
				node := shards.Node()
				l := &lapsing{Shards: node}
				a := &worker{begun: func() {}}
				g := newGatewayAt(t, shard.Join(l, quiet), func(c *gateway.Config) { c.Partner.Agent = a },
					func(tasks *gateway.Tasks) { tasks.HandOver(new(ownerless)) })
				shards.Assign(0, node, false)
				do := func(command task.Command, id string) (gateway.Result, error) {
					m := task.Message{ID: id, Command: command, TaskID: "t", SenderID: "leader",
						DataItems: []task.DataItem{task.Text("hello")}}
					return g.Execute(t.Context(), &gateway.Call{Leader: "leader",
						Call: translate.Call{Call: task.Call{Message: m}}}, nil)
				}
				if c.command == task.Continue {
					if _, err := do(task.Start, "first"); err != nil {
						t.Fatal(err)
					}
				}
				began, before := time.Now(), a.sent
				a.until = began.Add(work)
				a.begun = func() {
					if c.lapses > 0 {
						l.until = began.Add(c.lapses)
						return
					}
					time.AfterFunc(moves, func() { shards.Assign(0, nil, false) })
					time.AfterFunc(moves+2*time.Second, func() { shards.Assign(0, node, false) })
				}
				r, err := do(c.command, c.id)
				if took := time.Since(began); took < c.after || took > c.after+time.Second {
					t.Errorf("the answer came after %v", took)
				}
				if c.fails && task.KindOf(err) != task.StoreUnavailable ||
					!c.fails && (err != nil || r.Task.Status.State != task.AwaitingCompletion) {
					t.Errorf("the answer is %s, %v", r.Task.Status.State, err)
				}
				if starts := c.command == task.Start; r.New != starts {
					t.Errorf("the answer says %t of whether it has started the task", r.New)
				}
				if sent := a.sent - before; sent != 1 {
					t.Errorf("the agent was sent %d messages", sent)
				}
				bubble.Pass(2 * work)
			})
		})
	}
}

// lossy are Owners that execute calls, but give a first answer as after closing the shard.
type lossy struct{ hooks []task.Webhook }

func (l *lossy) Execute(
	_ context.Context, _ int, _ string, c *gateway.Call, _ replay.Reserve,
) (r gateway.Result, err error) {
	l.hooks = append(l.hooks, *c.Webhook)
	if len(l.hooks) == 1 {
		return r, partner.StoreError(replay.ErrClosed, "")
	}
	return r, nil
}

// TestHandOverOfWebhook: a webhook set again, because its owner was lost meanwhile, is the same one.
func TestHandOverOfWebhook(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		owners := new(lossy)
		node := replaytest.NewShards(1).Node()
		g := newGatewayAt(t, shard.Join(node, quiet), nil, func(tasks *gateway.Tasks) { tasks.HandOver(owners) })
		given := task.Webhook{TaskID: "t", URL: "https://example.com"}
		call := &gateway.Call{Leader: "leader", Call: translate.Call{Op: translate.SetWebhook, Webhook: &given}}
		call.Strict = true
		if _, err := g.Execute(t.Context(), call, nil); err != nil {
			t.Error(err)
		}
		if h := owners.hooks; len(h) != 2 || h[0].ID == "" || h[0].ID != h[1].ID || given.ID != "" {
			t.Errorf("the owners were given %+v", h)
		}
	})
}

// silent are Owners in silence: a call is lost after a time, and then there is no owner. Calls take work before the
// silence.
type silent struct{ work, after time.Duration }

func (s *silent) Execute(
	context.Context, int, string, *gateway.Call, replay.Reserve,
) (r gateway.Result, err error) {
	if s.after == 0 {
		return r, gateway.NotBegun(partner.Moved())
	}
	time.Sleep(s.work + s.after)
	err = partner.Moved().WithCause(errors.Join(replay.ErrFenced, &gateway.SilentError{For: s.after}))
	s.after = 0
	return r, err
}

// TestHandOverToASilentOwner: a call at a gateway cut off from the others fails after ask.Patience, in which the
// silence of its owner counts, and the work of the owner does not. A lost call waits for the next owner all the same.
func TestHandOverToASilentOwner(t *testing.T) {
	for name, tc := range map[string]struct{ work, silence, want time.Duration }{
		"at once":           {0, 0, 10 * time.Second},
		"silence":           {0, 6 * time.Second, 10 * time.Second},
		"work, and silence": {time.Minute, 6 * time.Second, 70 * time.Second},
		"a long lease":      {0, 2 * time.Minute, 122 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				node := replaytest.NewShards(1).Node()
				g := newGatewayAt(t, shard.Join(node, quiet), nil, func(tasks *gateway.Tasks) {
					tasks.HandOver(&silent{tc.work, tc.silence})
				})
				m := task.Message{ID: "1", Command: task.Get, TaskID: "t", SenderID: "leader"}
				call := &gateway.Call{Leader: "leader", Call: translate.Call{Call: task.Call{Message: m}}}
				began := time.Now()
				_, err := g.Execute(t.Context(), call, nil)
				if took := time.Since(began); task.KindOf(err) != task.StoreUnavailable || took < tc.want-time.Second ||
					took > tc.want {
					t.Errorf("after %v: %v, want %v", took, err, tc.want)
				}
			})
		})
	}
}

// closed are unreachable Owners, because the shards are being closed.
type closed struct{}

func (closed) Execute(
	context.Context, int, string, *gateway.Call, replay.Reserve,
) (r gateway.Result, err error) {
	return r, gateway.NotBegun(partner.StoreError(replay.ErrClosed, ""))
}

// TestHandOverOfClosed: after its longest wait for an owner, a call's answer is to come again, also if the owner was
// about to close the shard.
func TestHandOverOfClosed(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		node := replaytest.NewShards(1).Node()
		g := newGatewayAt(t, shard.Join(node, quiet), nil, func(tasks *gateway.Tasks) { tasks.HandOver(closed{}) })
		m := task.Message{ID: "1", Command: task.Get, TaskID: "t", SenderID: "leader"}
		call := &gateway.Call{Leader: "leader", Call: translate.Call{Call: task.Call{Message: m}}}
		_, err := g.Execute(t.Context(), call, nil)
		if task.KindOf(err) != task.StoreUnavailable || !errors.Is(err, replay.ErrClosed) ||
			!errors.Is(err, gateway.ErrNotBegun) {
			t.Errorf("the answer is %v", err)
		}
	})
}
