// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// script is an agent that does what a test tells it.
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

// answers is an agent that finishes at once with one product.
func answers(text string) *script {
	return &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		yield(finished(text), nil)
	}}
}

func finished(text string) agent.Report {
	return agent.Report{State: task.AwaitingCompletion, Items: []task.DataItem{task.Text("ok")}, Full: true,
		Products: []task.Product{{ID: "p1", DataItems: []task.DataItem{task.Text(text)}}}, NativeState: "completed"}
}

// hangs is an agent that works until it is stopped.
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
	c := Config{Name: "agent", Agent: fake, Terms: terms, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 100, Log: slog.New(slog.DiscardHandler)}
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
	c := &Request{Call: task.Call{Message: task.Message{ID: "msg-" + string(cmd), SenderRole: task.Leader, SenderID: leader,
		Command: cmd, DataItems: []task.DataItem{task.Text("please " + string(cmd))}, TaskID: id, SessionID: "session-1"}}}
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
	return got
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
		out = append(out, m.Command)
	}
	return out
}

func (b *bench) wantStates(id string, want ...task.State) {
	b.t.Helper()
	if diff := cmp.Diff(want, states(b.do(call(task.Get, id)))); diff != "" {
		b.t.Errorf("statusHistory (-want +got):\n%s", diff)
	}
}

func TestLifeOfATask(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	got := b.do(call(task.Start, "t1"))
	if got.Status.State != task.AwaitingCompletion || len(got.Products) != 1 || got.MessageHistory != nil || got.StatusHistory != nil {
		t.Errorf("start answered %+v", got)
	}
	got = b.do(call(task.Continue, "t1"))
	if got.Status.State != task.AwaitingCompletion {
		t.Errorf("continue answered %s", got.Status.State)
	}
	got = b.do(call(task.Complete, "t1"))
	if got.Status.State != task.Completed {
		t.Errorf("complete answered %s", got.Status.State)
	}
	got = b.do(call(task.Get, "t1"))
	if diff := cmp.Diff([]task.State{task.Accepted, task.Working, task.AwaitingCompletion, task.Working, task.AwaitingCompletion, task.Completed}, states(got)); diff != "" {
		t.Errorf("statusHistory (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]task.Command{task.Start, task.Continue, task.Complete}, commands(got)); diff != "" {
		t.Errorf("messageHistory (-want +got):\n%s", diff)
	}
	for i := 1; i < len(got.StatusHistory); i++ {
		if !got.StatusHistory[i].ChangedAt.After(got.StatusHistory[i-1].ChangedAt) {
			t.Errorf("the times do not rise: %v", got.StatusHistory)
		}
	}

	mid := got.StatusHistory[2].ChangedAt
	part := b.do(call(task.Get, "t1", func(c *Request) { c.StatesAfter = mid }))
	if diff := cmp.Diff([]task.State{task.Working, task.AwaitingCompletion, task.Completed}, states(part)); diff != "" {
		t.Errorf("statusHistory after %v (-want +got):\n%s", mid, diff)
	}
	part = b.do(call(task.Get, "t1", func(c *Request) { c.MessagesAfter = got.MessageHistory[2].SentAt }))
	if len(part.MessageHistory) != 0 {
		t.Errorf("messages after the last one: %v", commands(part))
	}
}

func TestIgnoredCommandsChangeNothing(t *testing.T) {
	for _, state := range task.States() {
		for _, cmd := range []task.Command{task.Start, task.Continue, task.Complete, task.Cancel} {
			if task.Applies(cmd, state) {
				continue
			}
			t.Run(string(state)+"/"+string(cmd), func(t *testing.T) {
				b := setUp(t, memory(t), bringTo(state))
				reach(t, b, state)
				before := b.do(call(task.Get, "t1"))
				if before.Status.State != state {
					t.Fatalf("the task is %s, want %s", before.Status.State, state)
				}
				b.do(call(cmd, "t1"))
				if diff := cmp.Diff(before, b.do(call(task.Get, "t1"))); diff != "" {
					t.Errorf("%s in state %s changed the task (-before +after):\n%s", cmd, state, diff)
				}
			})
		}
	}
}

// bringTo returns an agent that leaves a started task in a state, or on the way to it.
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
		if _, err := b.start(t.Context(), tk, leader, start, false); err != nil {
			t.Fatal(err)
		}
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

func TestHundredStartsRunOnce(t *testing.T) {
	gate := make(chan struct{})
	fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		<-gate
		yield(finished("once"), nil)
	}}
	b := setUp(t, memory(t), fake)
	var group sync.WaitGroup
	answered := make(chan task.State, 100)
	for range 100 {
		group.Go(func() {
			got, err := b.Do(t.Context(), leader, call(task.Start, "t1"))
			if err != nil {
				t.Error(err)
			}
			answered <- got.Status.State
		})
	}
	for range 99 {
		if s := <-answered; s != task.Working {
			t.Errorf("a repeated start answered %s while the first was at work", s)
		}
	}
	close(gate)
	if s := <-answered; s != task.AwaitingCompletion {
		t.Errorf("the first start answered %s", s)
	}
	group.Wait()
	if n := fake.turnCount(); n != 1 {
		t.Errorf("the agent was asked %d times", n)
	}
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
}

func TestLeadersDoNotMeet(t *testing.T) {
	fake := answers("mine")
	b := setUp(t, memory(t), fake)
	b.do(call(task.Start, "t1"))
	for _, cmd := range []task.Command{task.Get, task.Continue, task.Complete, task.Cancel, task.ReStream} {
		if _, err := b.Do(t.Context(), "other", call(cmd, "t1")); task.KindOf(err) != task.TaskNotFound || err == nil {
			t.Errorf("%s of another's task: %v", cmd, err)
		}
	}
	if _, err := b.Do(t.Context(), "other", call(task.Start, "t1")); err != nil {
		t.Error(err)
	}
	if n := fake.turnCount(); n != 2 || fake.turns[0].Ref == fake.turns[1].Ref {
		t.Errorf("two Leaders with the same taskId met at the agent: %+v", fake.turns)
	}
}

func TestResponseTimeoutAnswersAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			time.Sleep(time.Minute)
			yield(finished("late"), nil)
		}}
		b := setUp(t, memory(t), fake)
		began := time.Now()
		got := b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = 5 * time.Second }))
		if got.Status.State != task.Working || time.Since(began) != 5*time.Second {
			t.Errorf("answered %s after %v", got.Status.State, time.Since(began))
		}
		time.Sleep(time.Minute)
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	})
}

func TestCallerLeavesAndTheRunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			select {
			case <-ctx.Done():
				yield(agent.Report{}, task.Errorf(task.Internal, "the connection was closed"))
			case <-time.After(time.Second):
				yield(finished("done"), nil)
			}
		}}
		b := setUp(t, memory(t), fake)
		ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		if _, err := b.Do(ctx, leader, call(task.Start, "t1")); err != context.DeadlineExceeded {
			t.Errorf("a caller that left got %v", err)
		}
		time.Sleep(2 * time.Second)
		b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
	})
}

func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		waits task.State
		want  task.State
		terms task.Terms
		after time.Duration
	}{
		{task.AwaitingInput, task.Canceled, task.Terms{}, time.Hour},
		{task.AwaitingCompletion, task.Completed, task.Terms{}, 2 * time.Hour},
		{task.AwaitingInput, task.Canceled, task.Terms{AwaitingInput: time.Second}, time.Second},
		{task.AwaitingCompletion, task.Completed, task.Terms{AwaitingCompletion: 30 * time.Hour}, 30 * time.Hour},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v/restart=%v", c.waits, c.after, restart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := memory(t)
					b := setUp(t, store, bringTo(c.waits))
					b.do(call(task.Start, "t1", func(call *Request) { call.Terms = c.terms }))
					if restart {
						b.engine.Close()
						b = setUp(t, store, hangs())
					}
					time.Sleep(c.after - 10*time.Millisecond)
					b.wantStates("t1", task.Accepted, task.Working, c.waits)
					time.Sleep(20 * time.Millisecond)
					synctest.Wait()
					b.wantStates("t1", task.Accepted, task.Working, c.waits, c.want)
				})
			})
		}
	}
}

func TestDeadlineOfALongerWaitIsForgottenWhenTheTaskGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), answers("x"))
		b.do(call(task.Start, "t1"))
		time.Sleep(90 * time.Minute)
		b.do(call(task.Continue, "t1"))
		time.Sleep(90 * time.Minute)
		if got := b.do(call(task.Get, "t1")); got.Status.State != task.AwaitingCompletion {
			t.Errorf("the deadline of the first wait ended the second: %s", got.Status.State)
		}
	})
}

func TestAgentFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    *task.Error
		resume func(ctx context.Context, t *agent.Turn, yield func(agent.Report, error) bool)
		want   task.State
		says   string
	}{
		{"down", task.Errorf(task.AgentUnavailable, "the agent cannot be reached"), nil, task.Failed, "the agent cannot be reached"},
		{"nonsense", task.Errorf(task.InvalidAgentResponse, "the agent answered HTML"), nil, task.Failed, "the agent answered HTML"},
		{"cut, then done", task.Errorf(task.Internal, "cut"), func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			yield(finished("after all"), nil)
		}, task.AwaitingCompletion, "ok"},
		{"cut, then lost", task.Errorf(task.Internal, "cut"), func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			yield(agent.Report{State: task.Working}, nil)
			yield(agent.Report{}, task.Errorf(task.AgentTimeout, "the agent has lost the task"))
		}, task.Failed, "the agent has lost the task"},
		{"cut, then truth", task.Errorf(task.Internal, "cut"), func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			yield(agent.Report{State: task.Failed, Items: []task.DataItem{task.Text("agent broke")}}, nil)
		}, task.Failed, "agent broke"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := &script{resume: c.resume, run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(agent.Report{}, c.err)
			}}
			b := setUp(t, memory(t), fake)
			got := b.do(call(task.Start, "t1"))
			if got.Status.State != c.want || len(got.Status.DataItems) != 1 || got.Status.DataItems[0].Text != c.says {
				t.Errorf("got %+v, want %s saying %q", got.Status, c.want, c.says)
			}
		})
	}
}

func TestRejectedOnlyWhileNobodyWasTold(t *testing.T) {
	rejects := func() *script {
		return &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			time.Sleep(10 * time.Second)
			yield(agent.Report{State: task.Rejected, NativeState: "rejected", Items: []task.DataItem{task.Text("not mine")}}, nil)
		}}
	}
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), rejects())
		b.do(call(task.Start, "t1"))
		b.wantStates("t1", task.Rejected)
	})
	synctest.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), rejects())
		b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Second }))
		time.Sleep(time.Minute)
		b.wantStates("t1", task.Accepted, task.Working, task.Failed)
	})
}

func TestMaxProductsBytes(t *testing.T) {
	for _, c := range []struct {
		max  int64
		want task.State
	}{{5, task.AwaitingCompletion}, {4, task.Failed}, {0, task.AwaitingCompletion}} {
		b := setUp(t, memory(t), answers("12345"))
		got := b.do(call(task.Start, "t1", func(call *Request) { call.Terms.MaxProductsBytes = c.max }))
		if got.Status.State != c.want {
			t.Errorf("with a limit of %d, five bytes gave %s", c.max, got.Status.State)
		}
		if c.want == task.Failed && len(got.Status.DataItems) == 0 {
			t.Error("no reason given")
		}
	}
}

func TestCancel(t *testing.T) {
	refuses := func(context.Context, *agent.Turn) (agent.Report, error) {
		return agent.Report{}, task.Errorf(task.TaskNotCancelable, "not now")
	}
	unreachable := func(context.Context, *agent.Turn) (agent.Report, error) {
		return agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent cannot be reached")
	}
	short := func(c *Request) { c.Terms.Response = time.Millisecond }

	t.Run("while working", func(t *testing.T) {
		b := setUp(t, memory(t), hangs())
		b.do(call(task.Start, "t1", short))
		if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
			t.Errorf("cancel answered %s", got.Status.State)
		}
		b.wantStates("t1", task.Accepted, task.Working, task.Canceled)
		if diff := cmp.Diff([]task.Command{task.Start, task.Cancel}, commands(b.do(call(task.Get, "t1")))); diff != "" {
			t.Errorf("messageHistory (-want +got):\n%s", diff)
		}
	})
	t.Run("refused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fake := hangs()
			fake.cancel = refuses
			b := setUp(t, memory(t), fake)
			b.do(call(task.Start, "t1", short))
			b.want(call(task.Cancel, "t1"), task.TaskNotCancelable)
			b.wantStates("t1", task.Accepted, task.Working)
		})
	})
	t.Run("refused because it just ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fake := &script{cancel: refuses, run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				time.Sleep(time.Second)
				yield(finished("x"), nil)
			}}
			b := setUp(t, memory(t), fake)
			b.do(call(task.Start, "t1", short))
			time.Sleep(900 * time.Millisecond)
			if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
				t.Errorf("cancel answered %s", got.Status.State)
			}
			b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion, task.Canceled)
		})
	})
	t.Run("agent unreachable", func(t *testing.T) {
		fake := hangs()
		fake.cancel = unreachable
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1", short))
		got := b.do(call(task.Cancel, "t1"))
		if got.Status.State != task.Canceled || len(got.Status.DataItems) != 1 {
			t.Errorf("cancel answered %+v", got.Status)
		}
	})
	t.Run("while awaiting input, refused", func(t *testing.T) {
		fake := bringTo(task.AwaitingInput)
		fake.cancel = refuses
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1"))
		if got := b.do(call(task.Cancel, "t1")); got.Status.State != task.Canceled {
			t.Errorf("cancel answered %s", got.Status.State)
		}
	})
	t.Run("the agent reports it too", func(t *testing.T) {
		told := make(chan struct{})
		fake := &script{
			run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				<-told
				yield(agent.Report{State: task.Canceled, NativeState: "canceled"}, nil)
				told <- struct{}{}
			},
			cancel: func(context.Context, *agent.Turn) (agent.Report, error) {
				told <- struct{}{}
				<-told
				return agent.Report{State: task.Canceled}, nil
			},
		}
		b := setUp(t, memory(t), fake)
		b.do(call(task.Start, "t1", short))
		b.do(call(task.Cancel, "t1"))
		if diff := cmp.Diff([]task.Command{task.Start, task.Cancel}, commands(b.do(call(task.Get, "t1")))); diff != "" {
			t.Errorf("messageHistory (-want +got):\n%s", diff)
		}
	})
}

func TestTasksPerLeader(t *testing.T) {
	store := memory(t)
	two := func(c *Config) { c.MaxTasks = 2 }
	b := setUp(t, store, answers("x"), two)
	b.do(call(task.Start, "t1"))
	b.do(call(task.Start, "t2"))
	b.want(call(task.Start, "t3"), task.LimitExceeded)
	b.want(call(task.Get, "t3"), task.TaskNotFound)
	b.do(call(task.Start, "t1")) // repeated, not new
	b.do(call(task.Complete, "t1"))
	b.do(call(task.Start, "t3"))

	b.engine.Close()
	b = setUp(t, store, answers("x"), two)
	b.want(call(task.Start, "t4"), task.LimitExceeded)
	b.do(call(task.Cancel, "t2"))
	b.do(call(task.Start, "t4"))
}

// TestTasksOfUnverified proves that Leaders without a certificate have the limit of one together, and still tasks of
// their own.
func TestTasksOfUnverified(t *testing.T) {
	store := memory(t)
	two := func(c *Config) { c.MaxTasks = 2 }
	b := setUp(t, store, answers("x"), two)
	do := func(leader string, cmd task.Command) task.Kind {
		t.Helper()
		got, err := b.Do(t.Context(), leader, call(cmd, "t1"))
		if err == nil {
			if got.ID != "t1" {
				t.Errorf("%s: got task %q", leader, got.ID)
			}
			return none
		}
		return task.KindOf(err)
	}
	want := func(leader string, cmd task.Command, kind task.Kind) {
		t.Helper()
		if got := do(leader, cmd); got != kind {
			t.Errorf("%s of %s: got %v, want %v", cmd, leader, got, kind)
		}
	}
	want("unverified:a", task.Start, none)
	want("unverified:b", task.Start, none)
	want("unverified:c", task.Start, task.LimitExceeded)
	want("unverified:c", task.Get, task.TaskNotFound)
	want("verified", task.Start, none)

	b.engine.Close()
	b = setUp(t, store, answers("x"), two)
	want("unverified:c", task.Start, task.LimitExceeded)
	want("unverified:b", task.Complete, none)
	want("unverified:c", task.Start, none)
}

// none is no kind of error.
const none = task.Kind(255)

func TestRecovery(t *testing.T) {
	crash := func(t *testing.T, store replay.Store, told bool) {
		b := setUp(t, store, hangs())
		if told {
			b.do(call(task.Start, "t1", func(c *Request) { c.Terms.Response = time.Millisecond }))
		} else {
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			defer leave()
			if _, err := b.Do(ctx, leader, call(task.Start, "t1")); err != context.DeadlineExceeded {
				t.Fatal(err)
			}
		}
		b.engine.Close()
	}
	for _, told := range []bool{false, true} {
		t.Run(fmt.Sprintf("the agent went on/told=%v", told), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory(t)
				crash(t, store, told)
				fake := &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					yield(finished("kept going"), nil)
				}}
				b := setUp(t, store, fake)
				synctest.Wait()
				b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
				if fake.turnCount() != 0 {
					t.Error("the turn was sent again")
				}
			})
		})
	}
	t.Run("the agent forgot, and nobody was told", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memory(t)
			crash(t, store, false)
			fake := answers("again")
			b := setUp(t, store, fake)
			synctest.Wait()
			b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
			if fake.turnCount() != 1 || fake.turns[0].Message.DataItems[0].Text != "please start" {
				t.Errorf("the start was not made up for: %+v", fake.turns)
			}
		})
	})
	t.Run("the agent forgot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memory(t)
			crash(t, store, true)
			b := setUp(t, store, answers("never"))
			synctest.Wait()
			b.wantStates("t1", task.Accepted, task.Working, task.Failed)
		})
	})
	t.Run("the agent never took the continue", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memory(t)
			first := answers("first")
			first.run = func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
				if turn.Message.Command == task.Continue {
					<-ctx.Done()
					yield(agent.Report{}, task.Errorf(task.Internal, "stopped"))
					return
				}
				rep := finished("first")
				rep.Revision = "completed 1"
				yield(rep, nil)
			}
			b := setUp(t, store, first)
			b.do(call(task.Start, "t1"))
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			defer leave()
			if _, err := b.Do(ctx, leader, call(task.Continue, "t1")); err != context.DeadlineExceeded {
				t.Fatal(err)
			}
			b.engine.Close()
			fake := answers("second")
			fake.resume = func(_ context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
				if turn.Revision != "completed 1" {
					t.Errorf("the agent is asked with the stamp %q", turn.Revision)
				}
				yield(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent has not taken the message"))
			}
			b = setUp(t, store, fake)
			synctest.Wait()
			if fake.turnCount() != 1 || fake.turns[0].Message.Command != task.Continue {
				t.Errorf("the continue was not made up for: %+v", fake.turns)
			}
			b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion, task.Working, task.AwaitingCompletion)
		})
	})
	t.Run("nobody answers for the agent yet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := memory(t)
			crash(t, store, true)
			b := setUp(t, store, answers("x"), func(c *Config) { c.Name = "another" })
			synctest.Wait()
			fake := &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				yield(finished("x"), nil)
			}}
			c := b.Config
			c.Name, c.Agent = "agent", fake
			p := b.engine.Register(c)
			defer p.Unregister()
			synctest.Wait()
			got, err := p.Do(t.Context(), leader, call(task.Get, "t1"))
			if err != nil || got.Status.State != task.AwaitingCompletion {
				t.Errorf("got %s, %v", got.Status.State, err)
			}
		})
	})
}

func TestTrim(t *testing.T) {
	const pieces = 250
	fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		for i := range pieces {
			p := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(fmt.Sprintf("%d ", i))}}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{{Product: p, Append: i > 0}}}, nil) {
				return
			}
		}
		yield(agent.Report{State: task.AwaitingCompletion}, nil)
	}}
	store := memory(t)
	b := setUp(t, store, fake, func(c *Config) { c.MaxEvents = 100 })
	got := b.do(call(task.Start, "t1"))
	head, snapshot, records, err := store.Load(t.Context(), logname.New("agent", leader, "t1"))
	if err != nil {
		t.Fatal(err)
	}
	if head.Last != pieces+3 || len(records) > 100 || snapshot == nil || head.First != head.Last-uint64(len(records))+1 {
		t.Errorf("kept %d of %d events from %d on, snapshot %d bytes", len(records), head.Last, head.First, len(snapshot))
	}
	b.engine.Close()
	b = setUp(t, store, hangs())
	again := b.do(call(task.Get, "t1"))
	if diff := cmp.Diff(got.Products, again.Products); diff != "" {
		t.Errorf("products after a restart (-before +after):\n%s", diff)
	}
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
}

// TestAnyOrderOfCommandsIsLegal throws commands and agent moods at tasks and checks, after every step, that the
// history is a legal path through the table, that times rise, and that what is stored is what is told.
func TestAnyOrderOfCommandsIsLegal(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
		everything := []task.State{task.None, task.Accepted, task.Working, task.AwaitingInput, task.AwaitingCompletion, task.Canceled, task.Failed, task.Rejected}
		moody := func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			for range 1 + pick(4) {
				select {
				case <-ctx.Done():
					yield(agent.Report{}, task.Errorf(task.Internal, "stopped"))
					return
				case <-time.After(time.Duration(pick(3000)) * time.Millisecond):
				}
				rep := agent.Report{State: everything[pick(len(everything))], NativeState: "said"}
				switch pick(4) {
				case 0:
					rep.Items = []task.DataItem{task.Text(fmt.Sprint("news ", pick(100)))}
				case 1:
					rep.Chunks = []task.Chunk{{Product: task.Product{ID: fmt.Sprint("p", pick(3)), DataItems: []task.DataItem{task.Text("x")}}, Append: pick(2) == 0}}
				case 2:
					rep.Full, rep.Products = true, []task.Product{{ID: "p0", DataItems: []task.DataItem{task.Text(fmt.Sprint(pick(9)))}}}
				}
				if !yield(rep, nil) {
					return
				}
			}
			if pick(2) == 0 {
				yield(agent.Report{}, task.Errorf(task.Kind(pick(18)), "broke"))
			}
		}
		fake := &script{run: moody, resume: moody, cancel: func(context.Context, *agent.Turn) (agent.Report, error) {
			if pick(3) == 0 {
				return agent.Report{}, task.Errorf(task.Kind(pick(18)), "no")
			}
			return agent.Report{State: everything[pick(len(everything))]}, nil
		}}
		store := memory(t)
		b := setUp(t, store, fake, func(c *Config) { c.MaxEvents = 40; c.MaxTasks = 0 })
		var group sync.WaitGroup
		for worker := range 4 {
			group.Go(func() {
				for i := range 200 {
					id := fmt.Sprint("t", pick(1+i/10))
					cmd := []task.Command{task.Start, task.Start, task.Get, task.Continue, task.Complete, task.Cancel}[pick(6)]
					_, err := b.Do(t.Context(), leader, call(cmd, id, func(c *Request) {
						c.Message.ID = fmt.Sprint("m", pick(1000))
						c.Terms.Response = time.Duration(1+pick(2000)) * time.Millisecond
					}))
					if kind := task.KindOf(err); err != nil && kind != task.TaskNotFound && kind != task.TaskNotCancelable {
						t.Errorf("worker %d: %s: %v", worker, cmd, err)
					}
					if got, err := b.Do(t.Context(), leader, call(task.Get, id)); err == nil {
						legal(t, got)
					}
				}
			})
		}
		group.Wait()
		time.Sleep(time.Minute)
		for i := range 20 {
			id := fmt.Sprint("t", i)
			told, err := b.Do(t.Context(), leader, call(task.Get, id))
			if task.KindOf(err) == task.TaskNotFound && err != nil {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			head, snapshot, records, err := store.Load(t.Context(), logname.New("agent", leader, id))
			if err != nil {
				t.Fatal(err)
			}
			fold, err := foldAll(head, snapshot, records)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(told, fold.Task); diff != "" {
				t.Errorf("what is told and what is stored of %s differ (-told +stored):\n%s", id, diff)
			}
		}
	})
}

// legal checks that a task's history is a path through the table, with rising times, that ends in its state.
func legal(t *testing.T, got task.Task) {
	t.Helper()
	from := task.None
	var last time.Time
	for _, s := range got.StatusHistory {
		if !task.CanMove(from, s.State) {
			t.Fatalf("the history goes from %q to %q: %v", from, s.State, states(got))
		}
		if !s.ChangedAt.After(last) {
			t.Fatalf("the times do not rise: %v", got.StatusHistory)
		}
		from, last = s.State, s.ChangedAt
	}
	if from != got.Status.State {
		t.Fatalf("the history ends in %q, the task is %q", from, got.Status.State)
	}
}

func TestNoteSurvives(t *testing.T) {
	for _, n := range []metadata{
		{Terms: agreedTerms{Terms: terms}, Ref: agent.Ref{Task: "t\"1", Session: "s"}, Revision: "completed 1a"},
		{Terms: agreedTerms{Terms: task.Terms{MaxProductsBytes: 7}}, Stream: true, PendingAt: time.Unix(1, 5e6).UTC(), Pending: &task.Message{ID: "m", SentAt: time.Unix(9, 0).UTC(),
			SenderRole: task.Leader, SenderID: "l", Command: task.Start, Params: []byte(`{"a":1}`), DataItems: []task.DataItem{task.Text("x")}, TaskID: "t"}},
		{Terms: agreedTerms{AutoComplete: true}, State: task.AwaitingInput, Changed: time.Unix(2, 7e6).UTC(), Session: "s\n", Watched: true, SelfResuming: true},
	} {
		var got metadata
		if err := json.Unmarshal(n.encode(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, got); diff != "" {
			t.Errorf("note (-written +read):\n%s", diff)
		}
	}
}
