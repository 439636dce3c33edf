// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// manyFronts is one Partner that callers reach by gRPC, by AUN and by a group.
type manyFronts struct {
	*aunSite
	test   *testing.T
	agent  *fakeAgent
	finish chan struct{} // closed by the test: the agent finishes what it was told to take its time for
	rpc    a2apb.A2AServiceClient
	aun    *aunpeer.Conn
	group  *groupLeader
	member *member
}

func newManyFronts(t *testing.T) *manyFronts {
	t.Helper()
	f := &manyFronts{test: t, finish: make(chan struct{})}
	f.agent = newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
		if h.Method == "tasks/cancel" {
			writeTask(w, h, "canceled", "")
			return
		}
		if strings.Contains(string(h.body), "take your time") {
			select {
			case <-f.finish:
			case <-r.Context().Done():
			}
		}
		writeTask(w, h, "completed", "done")
	})
	aic, err := identity.MakeV1(identity.FieldsV1{})
	noError(t, err)
	b := sharedBroker(t)
	f.aunSite = newAUN(t)
	c := f.config("a2a/legacy "+f.agent.url, "aic "+string(aic),
		fmt.Sprintf("group {\n\t\t\tallow_brokers localhost:%d\n\t\t}", b.Port))
	c.notify = here
	c.handle += "\n\tlog"
	c.handle = strings.Replace(c.handle, "callers aip aun", "callers aip a2a aun", 1)
	f.start(c)
	f.awake()
	f.rpc = grpcCaller(t, f.site, keyPair(t, certificates(t).Leader))
	f.aun = f.online("alice.aid.test")
	f.member = &member{site: f.site, aic: string(aic), config: c}
	f.group = newGroup(t, b, "fronts", certificates(t).LeaderV1)
	f.group.join(f.member)
	return f
}

// works waits until the agent works on a number of tasks.
func (f *manyFronts) works(n int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("the agent works on %d tasks", n), func() bool { return f.sent() == n })
}

// sent returns how many messages the agent has got.
func (f *manyFronts) sent() int {
	return len(f.agent.requests("tasks/send")) + len(f.agent.requests("tasks/sendSubscribe"))
}

// logsCommand expects a line for the start of a task of the group in the access log, and its object aip.
func (f *manyFronts) logsCommand(id string, want map[string]any) {
	f.t.Helper()
	want["task"] = id
	eventually(f.t, "the access log has the start of "+id, func() bool {
		for _, line := range f.logged(f.test, "a command of a group was handled") {
			call, _ := line["aip"].(map[string]any)
			if call["task"] != id {
				continue
			}
			delete(call, "state") // which it is depends on when the agent answers
			diff := cmp.Diff(want, call)
			logger, _ := line["logger"].(string)
			if diff != "" || line["user_id"] != f.group.aic() || line["group"] != f.group.id || line["duration"] == nil ||
				line["message"] == nil || line["level"] != "info" || !strings.HasPrefix(logger, "http.log.access") {
				f.t.Errorf("the line is %v, aip (-want +got):\n%s", line, diff)
			}
			return true
		}
		return false
	})
}

// TestDrainOfEveryFront drains a gateway: starts by gRPC, AUN and a group are refused, each as its protocol has it, and
// the tasks that run finish.
func TestDrainOfEveryFront(t *testing.T) {
	t.Parallel()
	f := newManyFronts(t)
	ctx := within(t, 5*patience)
	var sent atomic.Pointer[a2apb.SendMessageResponse]
	answered := make(chan error, 1)
	go func() {
		got, err := f.rpc.SendMessage(ctx, grpcMessage("take your time"))
		sent.Store(got)
		answered <- err
	}()
	byAUN := must(f.aun.Create(f.soon(), aunAgent, "take your time"))(t)
	must(f.aun.Subscribe(f.soon(), byAUN.TaskID))(t)
	f.group.say("start", "runs", "take your time")
	f.works(3)
	if status, body := f.asked("POST", "/aip/drain", ""); status != http.StatusOK {
		t.Fatalf("the drain is answered with %d %s", status, body)
	}

	_, err := f.rpc.SendMessage(ctx, grpcMessage("hello"))
	refused := status.Convert(err)
	var info *errdetails.ErrorInfo
	if details := refused.Details(); len(details) > 0 {
		info, _ = details[0].(*errdetails.ErrorInfo)
	}
	if refused.Code() != codes.ResourceExhausted || info.GetReason() != "LIMIT_EXCEEDED" ||
		info.GetMetadata()["limit"] != "drain" {
		t.Errorf("gRPC: a start is answered with %v %v", err, refused.Details())
	}
	_, err = f.aun.Create(f.soon(), aunAgent, "hello")
	if f.fails("AUN: a start", err, -32050); err != nil && !strings.Contains(err.Error(), "maintenance") {
		t.Errorf("AUN: a start is answered with %v", err)
	}
	_, err = f.aun.Call(f.soon(), "message.send", map[string]any{"to": aunAgent, "message_id": "m1",
		"payload": aunpeer.Payload{Type: "text", Text: "hello"}})
	f.fails("AUN: a message that starts a task", err, -32050)
	f.group.say("start", "refused", "hello")
	if got := f.group.waitForState(f.member.aic, "refused", "rejected"); len(got.Status.DataItems) == 0 ||
		!strings.Contains(got.raw, "about to be stopped for maintenance") {
		t.Errorf("group: a start is answered with %s", got.raw)
	}
	f.logsCommand("runs", map[string]any{"command": "start", "leader": f.group.aic(), "dialect": "aip"})
	f.logsCommand("refused", map[string]any{"command": "start", "leader": f.group.aic(), "dialect": "aip",
		"error": "limit-exceeded"})
	if n := f.sent(); n != 3 {
		t.Errorf("the agent has got %d messages", n)
	}

	close(f.finish)
	const completed = a2apb.TaskState_TASK_STATE_COMPLETED
	if err := <-answered; err != nil || sent.Load().GetTask().GetStatus().GetState() != completed {
		t.Errorf("gRPC: the task that ran is answered with %v, %v", sent.Load(), err)
	}
	must(f.aun.TaskEvent(f.soon(), "event/task.completed", byAUN.TaskID, "completed"))(t)
	f.group.waitForState(f.member.aic, "runs", "awaiting-completion")
	f.group.say("complete", "runs", "")
	f.group.waitForState(f.member.aic, "runs", "completed")
}

// TestOperatorEndsTasksOfEveryFront has an operator fail and cancel tasks that were begun by gRPC, AUN and a group:
// each caller sees the end, and why, in its own protocol.
func TestOperatorEndsTasksOfEveryFront(t *testing.T) {
	t.Parallel()
	f := newManyFronts(t)
	ctx := within(t, 5*patience)
	why := map[string]string{"fail": "failed by the operator of the gateway: it hangs",
		"cancel": "canceled by the operator of the gateway: it hangs"}
	tasks := 0
	for command, tt := range map[string]struct {
		state, event string
		grpc         a2apb.TaskState
	}{
		"fail":   {"failed", "event/task.failed", a2apb.TaskState_TASK_STATE_FAILED},
		"cancel": {"canceled", "event/task.updated", a2apb.TaskState_TASK_STATE_CANCELED},
	} {
		stream, err := f.rpc.SendStreamingMessage(ctx, grpcMessage("take your time"))
		noError(t, err)
		var seen shown
		first, err := stream.Recv()
		noError(t, err)
		seen.add(first)
		byAUN := must(f.aun.Create(f.soon(), aunAgent, "take your time"))(t)
		must(f.aun.Subscribe(f.soon(), byAUN.TaskID))(t)
		f.group.say("start", "to "+command, "take your time")
		tasks += 3
		f.works(tasks)
		for _, id := range []string{seen.id, byAUN.TaskID, "to " + command} {
			if got := f.tasksCommand(0, command, id, "--reason", "it hangs"); got != id+" is "+tt.state+"\n" {
				t.Errorf("%s prints %q", command, got)
			}
		}

		var last *a2apb.StreamResponse
		for event, err := stream.Recv(); err == nil; event, err = stream.Recv() {
			seen.add(event)
			last = event
		}
		if parts := last.GetStatusUpdate().GetStatus().GetMessage().GetParts(); seen.state != tt.grpc || len(parts) == 0 ||
			parts[0].GetText() != why[command] {
			t.Errorf("gRPC: after %s the stream ends with %v", command, last)
		}
		ev := must(f.aun.TaskEvent(f.soon(), tt.event, byAUN.TaskID, tt.state))(t)
		if got := ev.Message.String(); got != why[command] {
			t.Errorf("AUN: after %s the event says %q: %+v", command, got, ev)
		}
		if got := must(f.aun.Do(f.soon(), "task.get", aunTask(byAUN.TaskID)))(t); got.Status != tt.state {
			t.Errorf("AUN: after %s the task is %+v", command, got)
		}
		heard := f.group.waitForState(f.member.aic, "to "+command, tt.state)
		if items := heard.Status.DataItems; len(items) == 0 || items[0].Text != why[command] {
			t.Errorf("group: after %s it is published %s", command, heard.raw)
		}
		f.group.check(f.member, "to "+command)
	}
}
