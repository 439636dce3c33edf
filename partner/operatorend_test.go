// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestOperatorCancels: the status of a task canceled by the operator says so, and the Leader's messages do not.
func TestOperatorCancels(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		report agent.Report
		answer error
		want   []string // the texts of the status; nil if the task is not canceled
	}{
		"the agent says nothing": {"", agent.Report{}, nil, []string{"canceled by the operator of the gateway"}},
		"the agent says something": {
			"a reason", agent.Report{State: task.Canceled, Items: []task.DataItem{task.Text("ok")}}, nil,
			[]string{"canceled by the operator of the gateway: a reason", "ok"},
		},
		"the agent is away": {"", agent.Report{}, task.Errorf(task.AgentUnavailable, "it is away"), []string{
			"canceled by the operator of the gateway", "canceled here, but the agent could not be informed: it is away"}},
		"the agent refuses": {"", agent.Report{}, task.Errorf(task.TaskNotCancelable, "it refuses"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				hanging := hangs()
				var asked string
				hanging.cancel = func(_ context.Context, turn *agent.Turn) (agent.Report, error) {
					asked = turn.Message.DataItems[0].Text
					return tt.report, tt.answer
				}
				b := setUp(t, memory(t), hanging)
				waiting := b.starts("t1")
				synctest.Wait()
				got, err := b.engine.Cancel(t.Context(), b.Name, leader, "t1", tt.reason)
				if !strings.HasPrefix(asked, "canceled by the operator of the gateway") {
					t.Errorf("the agent was asked %q", asked)
				}
				answer := <-waiting
				if tt.want == nil {
					if task.KindOf(err) != task.TaskNotCancelable || answer.Status.State != task.Working {
						t.Errorf("%v, and the start is answered with %q", err, answer.Status.State)
					}
					return
				}
				if err != nil || got.State != task.Canceled || answer.Status.State != task.Canceled {
					t.Errorf("%q, %v, and the start is answered with %q", got.State, err, answer.Status.State)
				}
				b.wantEndedByOperator(&answer, task.Canceled, tt.want)
			})
		})
	}
}

// starts starts a task in the background, and passes on the answer to the waiting Leader.
func (b *bench) starts(id string) <-chan task.Task {
	waiting := make(chan task.Task, 1)
	go func() {
		start := call(task.Start, id, func(c *Request) { c.Terms.Response = time.Minute })
		answer, err := b.Do(b.t.Context(), leader, start)
		if err != nil {
			b.t.Errorf("the start is answered with %v", err)
		}
		waiting <- answer.Task
	}()
	return waiting
}

// wantEndedByOperator checks a Leader's view of the task t1, ended by an operator: the texts of its status, its states,
// and that no command of the Leader has ended it.
func (b *bench) wantEndedByOperator(answer *task.Task, ended task.State, want []string) {
	b.t.Helper()
	var texts []string
	for _, item := range answer.Status.DataItems {
		texts = append(texts, item.Text)
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		b.t.Errorf("the status (-want +got):\n%s", diff)
	}
	b.wantStates("t1", task.Accepted, task.Working, ended)
	if diff := cmp.Diff([]task.Command{task.Start}, commands(b.do(call(task.Get, "t1")))); diff != "" {
		b.t.Errorf("messageHistory (-want +got):\n%s", diff)
	}
}

// TestOperatorCannotCancel: ended or missing tasks, and tasks of unregistered Partners, cannot be canceled.
func TestOperatorCannotCancel(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "done"))
	b.do(call(task.Complete, "done"))
	b.do(call(task.Start, "waits"))
	storeTask(t, b.store, logname.New("other", leader, "done"), metadata{State: task.Working}, "event")
	for name, tt := range map[string]struct {
		partner, id, reason string
		want                task.Kind
	}{
		"it has ended":                     {b.Name, "done", "", task.TaskNotCancelable},
		"there is none":                    {b.Name, "none", "", task.TaskNotFound},
		"its Partner is not registered":    {"other", "done", "", task.UnsupportedOperation},
		"the reason is longer than it may": {b.Name, "waits", strings.Repeat("x", maxReason+1), task.InvalidParams},
	} {
		if _, err := b.engine.Cancel(t.Context(), tt.partner, leader, tt.id, tt.reason); task.KindOf(err) != tt.want {
			t.Errorf("%s: %v, want the kind %v", name, err, tt.want)
		}
	}
	b.wantStates("done", task.Accepted, task.Working, task.AwaitingCompletion, task.Completed)
	if o, err := b.engine.Cancel(t.Context(), b.Name, leader, "waits", ""); err != nil || o.State != task.Canceled {
		t.Errorf("a task that awaits completion is %q, %v", o.State, err)
	}
}

// TestOperatorFails: a task failed by the operator says so, whatever its agent answers, and a waiting caller is
// answered with it.
func TestOperatorFails(t *testing.T) {
	const said = "failed by the operator of the gateway: a reason"
	for name, tt := range map[string]struct {
		canceled error // the agent's answer
		reports  *agent.Report
		want     []string // the texts of the status; nil if the task is not failed
	}{
		"the agent stops": {want: []string{said}},
		"the agent stops, and reports that": {
			reports: &agent.Report{State: task.Canceled}, want: []string{said}},
		"the agent refuses": {
			canceled: task.Errorf(task.TaskNotCancelable, "it refuses"),
			want:     []string{said, "the agent may continue: it refuses"}},
		"the agent is away": {
			canceled: task.Errorf(task.AgentUnavailable, "it is away"),
			want:     []string{said, "the agent may continue: it is away"}},
		"the agent has finished": {reports: &agent.Report{State: task.AwaitingCompletion}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				fake := &script{}
				fake.run = func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					select {
					case <-stop:
						yield(*tt.reports, nil)
					case <-ctx.Done():
						yield(agent.Report{}, task.Errorf(task.Internal, "stopped").WithCause(ctx.Err()))
					}
				}
				fake.cancel = func(context.Context, *agent.Turn) (agent.Report, error) {
					if tt.reports != nil {
						close(stop)
						synctest.Wait() // the report arrives before the agent answers
					}
					return agent.Report{State: task.Canceled}, tt.canceled
				}
				b := setUp(t, memory(t), fake)
				waiting := b.starts("t1")
				time.Sleep(time.Second) // the turn is no longer carried out inline
				got, err := b.engine.Fail(t.Context(), b.Name, leader, "t1", "a reason")
				answer := <-waiting
				if tt.want == nil {
					if task.KindOf(err) != task.UnsupportedOperation || answer.Status.State != task.AwaitingCompletion {
						t.Errorf("%v, and the start is answered with %q", err, answer.Status.State)
					}
					return
				}
				if err != nil || got.State != task.Failed || answer.Status.State != task.Failed {
					t.Errorf("%q, %v, and the start is answered with %q", got.State, err, answer.Status.State)
				}
				b.wantEndedByOperator(&answer, task.Failed, tt.want)
			})
		})
	}
}

// TestOperatorCannotFail: only a task in work at its agent can be failed, but its Partner need not be registered.
func TestOperatorCannotFail(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "done"))
	b.do(call(task.Complete, "done"))
	b.do(call(task.Start, "waits"))
	for name, tt := range map[string]struct {
		id, reason string
		want       task.Kind
	}{
		"it has ended":                     {"done", "", task.UnsupportedOperation},
		"it waits for its Leader":          {"waits", "", task.UnsupportedOperation},
		"there is none":                    {"none", "", task.TaskNotFound},
		"the reason is longer than it may": {"waits", strings.Repeat("x", maxReason+1), task.InvalidParams},
	} {
		if _, err := b.engine.Fail(t.Context(), b.Name, leader, tt.id, tt.reason); task.KindOf(err) != tt.want {
			t.Errorf("%s: %v, want the kind %v", name, err, tt.want)
		}
	}
	b.wantStates("waits", task.Accepted, task.Working, task.AwaitingCompletion)

	other := logname.New("other", leader, "left")
	storeTask(t, b.store, other, metadata{State: task.Working, Changed: time.Now()},
		`t{"id":"left","sessionId":"s","status":{"state":"accepted","stateChangedAt":"2026-11-22T10:00:00Z"}}`,
		`s{"state":"working","stateChangedAt":"2026-11-22T10:00:01Z"}`)
	if o, err := b.engine.Fail(t.Context(), "other", leader, "left", ""); err != nil || o.State != task.Failed {
		t.Errorf("a task of a Partner that is not registered is %q, %v", o.State, err)
	}
}
