// SPDX-License-Identifier: Apache-2.0

package dialects

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

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// manyFronts is one Partner that callers reach by gRPC, by AUN and by a group.
type manyFronts struct {
	*site.AUNSite
	test   *testing.T
	agent  *site.FakeAgent
	finish chan struct{} // closed by the test: the agent finishes what it was told to take its time for
	rpc    a2apb.A2AServiceClient
	aun    *aunpeer.Conn
	group  *site.GroupLeader
	member *site.Member
}

func newManyFronts(t *testing.T) *manyFronts {
	t.Helper()
	f := &manyFronts{test: t, finish: make(chan struct{})}
	f.agent = site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if h.Method == "tasks/cancel" {
			site.WriteTask(w, h, "canceled", "")
			return
		}
		if strings.Contains(string(h.Body), "take your time") {
			select {
			case <-f.finish:
			case <-r.Context().Done():
			}
		}
		site.WriteTask(w, h, "completed", "done")
	})
	aic, err := identity.MakeV1(identity.FieldsV1{})
	site.NoError(t, err)
	b := site.SharedBroker(t)
	f.AUNSite = site.NewAUN(t)
	c := f.Config("a2a/legacy "+f.agent.URL, "aic "+string(aic),
		fmt.Sprintf("group {\n\t\t\tallow_brokers localhost:%d\n\t\t}", b.Port))
	c.Notify = site.AllowHere
	c.Handle += "\n\tlog"
	c.Handle = strings.Replace(c.Handle, "callers aip aun", "callers aip a2a aun", 1)
	f.Start(c)
	f.Awake()
	f.rpc = site.GRPCCaller(t, f.Site, devpkitest.KeyPair(t, site.Certificates(t).Leader))
	f.aun = f.Online("alice.aid.test")
	f.member = &site.Member{Site: f.Site, AIC: string(aic), Config: c}
	f.group = site.NewGroup(t, b, "fronts", site.Certificates(t).LeaderV1)
	f.group.Join(f.member)
	return f
}

// works waits until the agent works on a number of tasks.
func (f *manyFronts) works(n int) {
	f.T.Helper()
	site.Eventually(f.T, fmt.Sprintf("the agent works on %d tasks", n), func() bool { return f.sent() == n })
}

// sent returns how many messages the agent has got.
func (f *manyFronts) sent() int {
	return len(f.agent.Requests("tasks/send")) + len(f.agent.Requests("tasks/sendSubscribe"))
}

// logsCommand expects a line for the start of a task of the group in the access log, and its object aip.
func (f *manyFronts) logsCommand(id string, want map[string]any) {
	f.T.Helper()
	want["task"] = id
	site.Eventually(f.T, "the access log has the start of "+id, func() bool {
		for _, line := range f.Logged(f.test, "a command of a group was handled") {
			call, _ := line["aip"].(map[string]any)
			if call["task"] != id {
				continue
			}
			delete(call, "state") // which it is depends on when the agent answers
			diff := cmp.Diff(want, call)
			logger, _ := line["logger"].(string)
			if diff != "" || line["user_id"] != f.group.AIC() || line["group"] != f.group.ID || line["duration"] == nil ||
				line["message"] == nil || line["level"] != "info" || !strings.HasPrefix(logger, "http.log.access") {
				f.T.Errorf("the line is %v, aip (-want +got):\n%s", line, diff)
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
	ctx := site.Within(t, 5*site.Patience)
	var sent atomic.Pointer[a2apb.SendMessageResponse]
	answered := make(chan error, 1)
	go func() {
		got, err := f.rpc.SendMessage(ctx, site.GRPCMessage("take your time"))
		sent.Store(got)
		answered <- err
	}()
	byAUN := site.Must(f.aun.Create(f.Soon(), site.AUNAgent, "take your time"))(t)
	site.Must(f.aun.Subscribe(f.Soon(), byAUN.TaskID))(t)
	f.group.Say("start", "runs", "take your time")
	f.works(3)
	if status, body := f.Asked("POST", "/aip/drain", ""); status != http.StatusOK {
		t.Fatalf("the drain is answered with %d %s", status, body)
	}

	_, err := f.rpc.SendMessage(ctx, site.GRPCMessage("hello"))
	refused := status.Convert(err)
	var info *errdetails.ErrorInfo
	if details := refused.Details(); len(details) > 0 {
		info, _ = details[0].(*errdetails.ErrorInfo)
	}
	if refused.Code() != codes.ResourceExhausted || info.GetReason() != "LIMIT_EXCEEDED" ||
		info.GetMetadata()["limit"] != "drain" {
		t.Errorf("gRPC: a start is answered with %v %v", err, refused.Details())
	}
	_, err = f.aun.Create(f.Soon(), site.AUNAgent, "hello")
	if f.Fails("AUN: a start", err, -32050); err != nil && !strings.Contains(err.Error(), "maintenance") {
		t.Errorf("AUN: a start is answered with %v", err)
	}
	_, err = f.aun.Call(f.Soon(), "message.send", map[string]any{"to": site.AUNAgent, "message_id": "m1",
		"payload": aunpeer.Payload{Type: "text", Text: "hello"}})
	f.Fails("AUN: a message that starts a task", err, -32050)
	f.group.Say("start", "refused", "hello")
	if got := f.group.WaitForState(f.member.AIC, "refused", "rejected"); len(got.Status.DataItems) == 0 ||
		!strings.Contains(got.Raw, "about to be stopped for maintenance") {
		t.Errorf("group: a start is answered with %s", got.Raw)
	}
	f.logsCommand("runs", map[string]any{"command": "start", "leader": f.group.AIC(), "dialect": "aip"})
	f.logsCommand("refused", map[string]any{"command": "start", "leader": f.group.AIC(), "dialect": "aip",
		"error": "limit-exceeded"})
	if n := f.sent(); n != 3 {
		t.Errorf("the agent has got %d messages", n)
	}

	close(f.finish)
	const completed = a2apb.TaskState_TASK_STATE_COMPLETED
	if err := <-answered; err != nil || sent.Load().GetTask().GetStatus().GetState() != completed {
		t.Errorf("gRPC: the task that ran is answered with %v, %v", sent.Load(), err)
	}
	site.Must(f.aun.TaskEvent(f.Soon(), "event/task.completed", byAUN.TaskID, "completed"))(t)
	f.group.WaitForState(f.member.AIC, "runs", "awaiting-completion")
	f.group.Say("complete", "runs", "")
	f.group.WaitForState(f.member.AIC, "runs", "completed")
}

// TestOperatorEndsTasksOfEveryFront has an operator fail and cancel tasks that were begun by gRPC, AUN and a group:
// each caller sees the end, and why, in its own protocol.
func TestOperatorEndsTasksOfEveryFront(t *testing.T) {
	t.Parallel()
	f := newManyFronts(t)
	ctx := site.Within(t, 5*site.Patience)
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
		stream, err := f.rpc.SendStreamingMessage(ctx, site.GRPCMessage("take your time"))
		site.NoError(t, err)
		var seen site.Shown
		first, err := stream.Recv()
		site.NoError(t, err)
		seen.Add(first)
		byAUN := site.Must(f.aun.Create(f.Soon(), site.AUNAgent, "take your time"))(t)
		site.Must(f.aun.Subscribe(f.Soon(), byAUN.TaskID))(t)
		f.group.Say("start", "to "+command, "take your time")
		tasks += 3
		f.works(tasks)
		for _, id := range []string{seen.ID, byAUN.TaskID, "to " + command} {
			if got := f.TasksCommand(0, command, id, "--reason", "it hangs"); got != id+" is "+tt.state+"\n" {
				t.Errorf("%s prints %q", command, got)
			}
		}

		var last *a2apb.StreamResponse
		for event, err := stream.Recv(); err == nil; event, err = stream.Recv() {
			seen.Add(event)
			last = event
		}
		if parts := last.GetStatusUpdate().GetStatus().GetMessage().GetParts(); seen.State != tt.grpc || len(parts) == 0 ||
			parts[0].GetText() != why[command] {
			t.Errorf("gRPC: after %s the stream ends with %v", command, last)
		}
		ev := site.Must(f.aun.TaskEvent(f.Soon(), tt.event, byAUN.TaskID, tt.state))(t)
		if got := ev.Message.String(); got != why[command] {
			t.Errorf("AUN: after %s the event says %q: %+v", command, got, ev)
		}
		if got := site.Must(f.aun.Do(f.Soon(), "task.get", site.AUNTask(byAUN.TaskID)))(t); got.Status != tt.state {
			t.Errorf("AUN: after %s the task is %+v", command, got)
		}
		heard := f.group.WaitForState(f.member.AIC, "to "+command, tt.state)
		if items := heard.Status.DataItems; len(items) == 0 || items[0].Text != why[command] {
			t.Errorf("group: after %s it is published %s", command, heard.Raw)
		}
		f.group.Check(f.member, "to "+command)
	}
}
