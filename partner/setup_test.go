// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

func init() { lockorder.Checked = true }

// script is an agent by a test's script.
type script struct {
	run    func(ctx context.Context, t *agent.Turn, yield func(agent.Report, error) bool)
	resume func(ctx context.Context, t *agent.Turn, yield func(agent.Report, error) bool)
	cancel func(ctx context.Context, t *agent.Turn) (agent.Report, error)

	mu    sync.Mutex
	turns []agent.Turn
}

func (s *script) Run(ctx context.Context, t *agent.Turn, stream bool) iter.Seq2[agent.Report, error] {
	s.mu.Lock()
	s.turns = append(s.turns, *t)
	s.mu.Unlock()
	return func(yield func(agent.Report, error) bool) { s.run(ctx, t, yield) }
}

func (s *script) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if s.resume == nil {
			yield(agent.Report{}, task.Errorf(task.TaskNotFound, "the agent does not know the task"))
			return
		}
		s.resume(ctx, t, yield)
	}
}

func (s *script) Complete(context.Context, *agent.Turn) error { return nil }

func (s *script) Cancel(ctx context.Context, t *agent.Turn) (agent.Report, error) {
	if s.cancel == nil {
		return agent.Report{State: task.Canceled}, nil
	}
	return s.cancel(ctx, t)
}

func (s *script) turnCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns)
}

// answers is an agent finishing at once with one product.
func answers(text string) *script {
	return &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		yield(finished(text), nil)
	}}
}

func finished(text string) agent.Report {
	return agent.Report{State: task.AwaitingCompletion, Items: []task.DataItem{task.Text("ok")}, Full: true,
		Products: []task.Product{{ID: "p1", DataItems: []task.DataItem{task.Text(text)}}}, NativeState: "completed"}
}

// hangs is an agent working until it is stopped.
func hangs() *script {
	s := &script{}
	s.run = func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		<-ctx.Done()
		yield(agent.Report{}, task.Errorf(task.Internal, "stopped").WithCause(ctx.Err()))
	}
	s.resume = s.run
	return s
}

var terms = task.Terms{Response: 30 * time.Second, AwaitingInput: time.Hour, AwaitingCompletion: 2 * time.Hour}

const leader = "10001000011K912345E789ABCDEF2353"

type bench struct {
	t      *testing.T
	store  replay.Store
	engine *Engine
	*Partner
}

func setUp(t *testing.T, store replay.Store, fake Agent, change ...func(*Config)) *bench {
	t.Helper()
	return setUpWith(t, store, fake, Options{}, change...)
}

func setUpWith(t *testing.T, store replay.Store, fake Agent, o Options, change ...func(*Config)) *bench {
	t.Helper()
	e, err := Open(t.Context(), store, o)
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := fake.(*script); ok { // as most agents are: see byEngine
		fake = inlined{s}
	}
	c := Config{Name: "agent", Agent: fake, Terms: terms, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 100,
		Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&c)
	}
	b := &bench{t: t, store: store, engine: e, Partner: e.Register(c)}
	t.Cleanup(func() {
		b.Unregister()
		e.Close()
	})
	return b
}

func memory(t *testing.T) replay.Store {
	t.Helper()
	s := replay.NewMemory(replay.Settings{})
	t.Cleanup(func() { s.Close() })
	return s
}

func call(cmd task.Command, id string, change ...func(*Request)) *Request {
	c := &Request{Call: task.Call{Message: task.Message{ID: "msg-" + string(cmd), SenderRole: task.Leader,
		SenderID: leader,
		Command:  cmd, DataItems: []task.DataItem{task.Text("please " + string(cmd))}, TaskID: id, SessionID: "session-1"}}}
	for _, f := range change {
		f(c)
	}
	return c
}

func (b *bench) do(c *Request) task.Task {
	b.t.Helper()
	got, err := b.Do(b.t.Context(), leader, c)
	if err != nil {
		b.t.Fatalf("%s: %v", c.Message.Command, err)
	}
	return got.Task
}

func (b *bench) want(c *Request, kind task.Kind) {
	b.t.Helper()
	_, err := b.Do(b.t.Context(), leader, c)
	if err == nil || task.KindOf(err) != kind {
		b.t.Errorf("%s: got error %v, want one of kind %s", c.Message.Command, err, kind)
	}
}

func states(t task.Task) []task.State {
	var out []task.State
	for _, s := range t.StatusHistory {
		out = append(out, s.State)
	}
	return out
}

func commands(t task.Task) []task.Command {
	var out []task.Command
	for _, m := range t.MessageHistory {
		if m.SenderRole != task.Partner {
			out = append(out, m.Command)
		}
	}
	return out
}

func (b *bench) wantStates(id string, want ...task.State) {
	b.t.Helper()
	if diff := cmp.Diff(want, states(b.do(call(task.Get, id)))); diff != "" {
		b.t.Errorf("statusHistory (-want +got):\n%s", diff)
	}
}

// bringTo returns an agent. It leaves a started task in a state, or on the way to it.
func bringTo(s task.State) *script {
	rep := agent.Report{State: s, NativeState: string(s)}
	if s == task.Completed {
		rep.State = task.AwaitingCompletion
	}
	switch s {
	case task.Working, task.Accepted, task.Canceled:
		return hangs()
	}
	return &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) { yield(rep, nil) }}
}

func reach(t *testing.T, b *bench, s task.State) {
	t.Helper()
	start := call(task.Start, "t1", func(c *Request) {
		if s == task.Working || s == task.Canceled { // the agent hangs
			c.Terms.Response = time.Millisecond
		}
	})
	switch s {
	case task.Accepted:
		// The gateway never stays in this state: it sets the agent to work in the same breath. Write it by hand.
		tk := b.engine.acquire(logname.New("agent", leader, "t1"))
		defer tk.release()
		tk.mu.Lock()
		defer tk.mu.Unlock()
		run, err := b.start(t.Context(), tk, leader, start, false)
		if err != nil {
			t.Fatal(err)
		}
		run.handOver()
		batch := tk.batch()
		batch.beginTask(task.Accepted, nil)
		if err := batch.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	b.do(start)
	switch s {
	case task.Completed:
		b.do(call(task.Complete, "t1"))
	case task.Canceled:
		b.do(call(task.Cancel, "t1"))
	}
}

// follow yields the events of a stream as they come, until the task has ended or ctx is done.
func (b *bench) follow(ctx context.Context, s *Result) iter.Seq2[replay.Record, error] {
	return func(yield func(replay.Record, error) bool) {
		for rec, err := range replay.Follow(ctx, b.store, s.Log, s.After, nil) {
			if err != nil {
				yield(rec, streamError(ctx, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}
