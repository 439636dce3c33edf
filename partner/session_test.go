// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/task/dialect"
)

// message is the next message of a session.
func message(id, session string, change ...func(*Request)) *Request {
	return call(task.Start, "", append([]func(*Request){func(c *Request) {
		c.BySession, c.Message.ID, c.Message.SessionID = true, id, session
	}}, change...)...)
}

// TestSession: a message of a session continues the session's task. Once the task has ended, it starts another one.
func TestSession(t *testing.T) {
	store := memory(t)
	fake := answers("hello")
	b := setUp(t, store, fake)
	first := b.do(message("m1", "s"))
	second := b.do(message("m2", "s"))
	other := b.do(message("m3", "s2"))
	if first.ID == "" || second.ID != first.ID || other.ID == first.ID || second.SessionID != "s" {
		t.Fatalf("the tasks are %q, %q and, of another session, %q", first.ID, second.ID, other.ID)
	}
	if got := commands(b.do(call(task.Get, first.ID))); len(got) != 2 || got[1] != task.Continue {
		t.Errorf("the messages of the task are %v", got)
	}
	if of, err := ReadHead(t.Context(), store, b.LogOf(leader, first.ID)); err != nil || of.Session != "s" {
		t.Errorf("the session of the task is %q, %v", of.Session, err)
	}
	if _, err := ReadHead(t.Context(), store, b.LogOf("another-leader", first.ID)); task.KindOf(err) != task.TaskNotFound {
		t.Errorf("another Leader learns of the task: %v", err)
	}
	b.do(call(task.Complete, first.ID))
	third := b.do(message("m4", "s"))
	if third.ID == first.ID {
		t.Error("a task that has ended was continued")
	}
	// Another engine has nothing in memory.
	again := setUp(t, store, fake)
	if fourth := again.do(message("m5", "s")); fourth.ID != third.ID {
		t.Errorf("after a restart, the task is %q, want %q", fourth.ID, third.ID)
	}
	refs := make(map[string]bool)
	for _, turn := range fake.turns {
		refs[turn.Ref.Session] = true
	}
	if len(refs) != 2 {
		t.Errorf("the agent has %d sessions, want 2", len(refs))
	}
}

// TestBusySession: while the agent works on a message of a session, others are refused, however many come at once.
func TestBusySession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		fake := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			select {
			case <-release:
				yield(finished("hello"), nil)
			case <-ctx.Done():
				yield(agent.Report{}, task.Errorf(task.Internal, "stopped").WithCause(ctx.Err()))
			}
		}}
		b := setUp(t, memory(t), fake)
		const callers = 10
		answered := make(chan error, callers)
		for i := range callers {
			go func() {
				_, err := b.Do(t.Context(), leader, message(fmt.Sprint(i), "s"))
				answered <- err
			}()
		}
		for range callers - 1 {
			err := <-answered
			e, ok := err.(*task.Error)
			if !ok || e.Kind != task.UnsupportedOperation || e.Data["reason"] != dialect.SessionBusy ||
				e.Data["sessionId"] != "s" {
				t.Errorf("a busy session answers %v", err)
			}
		}
		close(release)
		if err := <-answered; err != nil {
			t.Errorf("the first message was answered with %v", err)
		}
		if n := fake.turnCount(); n != 1 {
			t.Errorf("the agent got %d messages, want 1", n)
		}
	})
}

// TestSessionAtOnce: messages just after the end of the last task start one task.
func TestSessionAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		fake := hangs()
		b := setUp(t, memory(t), answers("hello"))
		ended := b.do(message("m1", "s"))
		b.do(call(task.Complete, ended.ID))
		synctest.Wait() // the agent has been informed
		b.Agent = inlined{fake}
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		answered := make(chan error)
		for i := range 5 {
			go func() {
				_, err := b.Do(ctx, leader, message(fmt.Sprint(i), "s"))
				answered <- err
			}()
		}
		started := 0
		for range 5 {
			if err := <-answered; err == nil {
				started++ // answered as it is, when the response time was over
			}
		}
		if started != 1 || fake.turnCount() != 1 {
			t.Errorf("%d messages were accepted and %d sent, want 1", started, fake.turnCount())
		}
	})
}

// TestSessionOfDroppedTasks: when the store has dropped all tasks of a session, the next one has the id of the first
// again, but not for the agent.
func TestSessionOfDroppedTasks(t *testing.T) {
	fake := answers("hello")
	first := setUp(t, memory(t), fake)
	first.do(message("m1", "s"))
	second := setUp(t, memory(t), fake) // as after all was dropped
	second.do(message("m2", "s"))
	if a, b := fake.turns[0].Ref, fake.turns[1].Ref; a.Task == b.Task || a.Session != b.Session {
		t.Errorf("the agent's names are %v and %v", a, b)
	}
}

// TestSessionTaskTooLarge: a task grown too large is followed by another one.
func TestSessionTaskTooLarge(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"), func(c *Config) { c.MaxBytes = 4000 })
	ids := make(map[string]bool)
	for i := range 40 {
		ids[b.do(message(fmt.Sprint(i), "s")).ID] = true
	}
	if len(ids) < 2 {
		t.Error("one task has taken all messages")
	}
}

// TestSessionStream: the stream of a message has the events of its turn only.
func TestSessionStream(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(message("m1", "s"))
	s, err := b.Stream(t.Context(), leader, message("m2", "s"))
	if err != nil {
		t.Fatal(err)
	}
	if s.After == 0 || s.Task.ID == "" || s.Task.SessionID != "s" {
		t.Errorf("the stream is %+v", s)
	}
	ctx, done := context.WithCancel(t.Context())
	defer done()
	for rec, err := range b.follow(ctx, &s) {
		if err != nil {
			t.Fatal(err)
		}
		ev, err := task.DecodeEvent(rec.Data)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Seq == s.After+1 && (ev.Cause == nil || ev.Cause.ID != "m2") {
			t.Errorf("the first event is %+v", ev)
		}
		if ev.Status != nil && ev.Status.State == task.AwaitingCompletion {
			return
		}
	}
}

// TestNumbers: the ids of a session's tasks sort by falling numbers, and no session's begin like another's.
func TestNumbers(t *testing.T) {
	prefix := sessionTask("s")
	for _, n := range []uint32{0, 1, 255, 1 << 20, 1<<32 - 1} {
		id := numbered(prefix, n)
		if got, ok := numberOf(prefix, id); !ok || got != n {
			t.Errorf("%q has the number %d, %v; want %d", id, got, ok, n)
		}
		if n > 0 && id >= numbered(prefix, n-1) {
			t.Errorf("%q does not come before the task before it", id)
		}
	}
	for _, id := range []string{
		"", "x", prefix, prefix + "zzzzzzzz", prefix + "00000000-", sessionTask("s2") + "ffffffff",
	} {
		if _, ok := numberOf(prefix, id); ok {
			t.Errorf("%q is the id of a task of the session", id)
		}
	}
}

// TestManySessions: the numbers of sessions not remembered are read from the store.
func TestManySessions(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"), func(c *Config) { c.MaxTasks = 1000 })
	first := b.do(message("m1", "s"))
	b.do(call(task.Complete, first.ID))
	second := b.do(message("m2", "s"))
	b.engine.sessions = newSessions()
	if third := b.do(message("m3", "s")); third.ID != second.ID {
		t.Errorf("the task is %q, want %q", third.ID, second.ID)
	}
}

// TestSessionOfCompletedTasks: if tasks are completed by themselves, each message starts one, in the same session.
func TestSessionOfCompletedTasks(t *testing.T) {
	fake := answers("hello")
	b := setUp(t, memory(t), fake)
	auto := func(c *Request) { c.AutoComplete = true }
	ids := make(map[string]bool)
	for i := range 5 {
		ids[b.do(message(fmt.Sprint(i), "s", auto)).ID] = true
		b.engine.sessions = newSessions() // the number is read from the store
	}
	if len(ids) != 5 {
		t.Errorf("5 messages have %d tasks", len(ids))
	}
	for _, turn := range fake.turns[1:] {
		if first := fake.turns[0].Ref; turn.Ref.Session != first.Session || turn.Ref.Task == first.Task {
			t.Errorf("the agent's names are %v, and %v before", turn.Ref, first)
		}
	}
}

// stop is a cancel of the turn of a session.
func stop(session string) *Request {
	return call(task.Cancel, "", func(c *Request) { c.BySession, c.Message.SessionID = true, session })
}

// TestStopSession: a cancel of a session ends the turn under way. Without one, it changes nothing.
func TestStopSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), answers("hello"))
		if got := b.do(stop("s")); got.ID != "" {
			t.Errorf("a session without a task is stopped: %+v", got)
		}
		if got := b.do(stop("s")); got.ID != "" {
			t.Errorf("it has a task now: %+v", got)
		}
		answered := b.do(message("m1", "s"))
		if got := b.do(stop("s")); got.ID != answered.ID || got.Status.State != task.AwaitingCompletion {
			t.Errorf("a task that was answered is %s", got.Status.State)
		}
		b.do(call(task.Complete, answered.ID))
		if got := b.do(stop("s")); got.Status.State != task.Completed {
			t.Errorf("a task that has ended is %s", got.Status.State)
		}
		synctest.Wait() // the agent has been informed
		b.Agent = inlined{hangs()}
		done := make(chan task.Task)
		go func() { done <- b.do(message("m2", "s")) }()
		synctest.Wait()
		if got := b.do(stop("s2")); got.ID != "" {
			t.Errorf("another session has the task %q", got.ID)
		}
		stopped := b.do(stop("s"))
		if stopped.Status.State != task.Canceled || stopped.ID == answered.ID {
			t.Errorf("the turn under way is %s", stopped.Status.State)
		}
		if got := <-done; got.ID != stopped.ID || got.Status.State != task.Canceled {
			t.Errorf("the message is answered with %s", got.Status.State)
		}
		b.Agent = inlined{answers("again")}
		if next := b.do(message("m3", "s")); next.ID == stopped.ID {
			t.Error("a task that was canceled was continued")
		}
	})
}
