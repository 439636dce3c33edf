// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

func TestFlow(t *testing.T) {
	t.Parallel()
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + site.TRPCAgent(t)})
	p := site.Certificates(t)
	for _, profile := range []struct {
		name   string
		leader *site.Caller
	}{
		{"v02.00", site.CallerWith(t, s.URL(), string(p.Leader.AIC), devpkitest.KeyPair(t, p.Leader))},
		{"v01.00", site.CallerWith(t, s.URL(), string(p.LeaderV1.AIC), devpkitest.KeyPair(t, p.LeaderV1))},
	} {
		t.Run(profile.name, func(t *testing.T) {
			t.Parallel()
			leader := profile.leader
			check := func(what string, got *task.Task, want site.Answered) {
				t.Helper()
				if diff := cmp.Diff(want, site.AnswerOf(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}

			check("start", leader.Start("echo", "hello"), site.Answered{State: task.AwaitingCompletion, Says: "ok",
				Products: []string{"echo: hello"}})
			check(
				"a repeated start",
				leader.Start("echo", "once more"),
				site.Answered{State: task.AwaitingCompletion, Says: "ok", Products: []string{"echo: hello"}},
			)
			check("continue", leader.GoOn("echo", "again"), site.Answered{State: task.AwaitingCompletion, Says: "ok",
				Products: []string{"echo: again"}})
			check("complete", leader.Complete("echo"), site.Answered{State: task.Completed, Products: []string{"echo: again"}})
			check("cancel after the end", leader.Cancel("echo"),
				site.Answered{State: task.Completed, Products: []string{"echo: again"}})
			all := leader.Get("echo")
			site.CheckHistory(t, all)
			if diff := cmp.Diff([]task.State{task.Accepted, task.Working, task.AwaitingCompletion, task.Working,
				task.AwaitingCompletion, task.Completed},
				site.States(all.StatusHistory)); diff != "" {
				t.Errorf("statusHistory (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]task.Command{task.Start, task.Continue, task.Complete},
				site.Commands(all.MessageHistory)); diff != "" {
				t.Errorf("messageHistory (-want +got):\n%s", diff)
			}
			since := site.CommandCall(task.Get, "echo")
			since.StatesAfter, since.MessagesAfter = all.StatusHistory[3].ChangedAt, all.MessageHistory[2].SentAt
			some := leader.Send(since)
			if diff := cmp.Diff(all.StatusHistory[4:], some.StatusHistory); diff != "" {
				t.Errorf("statusHistory after lastStateChangedAt (-want +got):\n%s", diff)
			}
			later := slices.DeleteFunc(slices.Clone(all.MessageHistory), func(m task.Message) bool {
				said := m.SenderRole == task.Partner && m.SentAt.Equal(since.MessagesAfter) // within the millisecond
				return !said && !m.SentAt.After(since.MessagesAfter)
			})
			if diff := cmp.Diff(later, some.MessageHistory); diff != "" {
				t.Errorf("messageHistory after lastMessageSentAt (-want +got):\n%s", diff)
			}

			check("ask", leader.Start("ask", "ask"), site.Answered{State: task.AwaitingInput, Says: "which colour?"})
			check(
				"complete in awaiting-input",
				leader.Complete("ask"),
				site.Answered{State: task.AwaitingInput, Says: "which colour?"},
			)
			check(
				"the answer",
				leader.GoOn("ask", "blue"),
				site.Answered{State: task.AwaitingCompletion, Says: "done", Products: []string{"you said: blue"}},
			)
			check(
				"another word",
				leader.GoOn("ask", "green"),
				site.Answered{State: task.AwaitingCompletion, Says: "ok", Products: []string{"you said: blue", "echo: green"}},
			)
			check("complete", leader.Complete("ask"),
				site.Answered{State: task.Completed, Products: []string{"you said: blue", "echo: green"}})

			failed := leader.Start("fail", "fail")
			if failed.Status.State != task.Failed || !strings.Contains(site.Says(failed.Status.DataItems), "agent broke") {
				t.Errorf("fail: %+v, want failed with the agent's reason", site.AnswerOf(failed))
			}
			site.CheckHistory(t, leader.Get("fail"))

			slow := site.StartCall("slow", "slow 60")
			slow.Terms.Response = time.Millisecond
			check("slow", leader.Send(slow), site.Answered{State: task.Working})
			if got := leader.Cancel("slow"); got.Status.State != task.Canceled {
				t.Errorf("cancel: %+v", site.AnswerOf(got))
			}
			canceled := leader.Get("slow")
			site.CheckHistory(t, canceled)
			if diff := cmp.Diff([]task.Command{task.Start, task.Cancel}, site.Commands(canceled.MessageHistory)); diff != "" {
				t.Errorf("messageHistory of what was canceled (-want +got):\n%s", diff)
			}

			background := site.StartCall("background", "slow 3")
			background.Terms.Response = 500 * time.Millisecond
			if got := leader.Send(background); got.Status.State != task.Working {
				t.Errorf("a response timeout of 500 ms: %+v, want working", site.AnswerOf(got))
			}
			got := leader.Rests("background")
			check("the work in the background", got,
				site.Answered{State: task.AwaitingCompletion, Products: []string{"slow done"}})
			site.CheckHistory(t, got)
			check(
				"continue",
				leader.GoOn("background", "and now"),
				site.Answered{State: task.AwaitingCompletion, Says: "ok", Products: []string{"echo: and now"}},
			)
		})
	}
}

// TestData sends and gets what is no text.
//
// Promise: an agent's text is harmful for its reader
func TestData(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy http://" + agent})
	leader := site.LeaderOf(t, s.URL())
	for _, tc := range []struct {
		say  string
		want task.DataItem
	}{
		{"file", task.DataItem{Kind: task.FileItem, Name: "hello.txt", MIMEType: "text/plain", Bytes: "aGVsbG8K"}},
		{"data", task.DataItem{Kind: task.DataKind, Data: []byte(`{"colour":"blue","parts":[1,2,3]}`)}},
		{"héllo \u2028 \"😀\"", task.Text("echo: héllo \u2028 \"😀\"")},
	} {
		got := leader.Start("data-"+tc.say, tc.say)
		if diff := cmp.Diff([]task.DataItem{tc.want}, got.Products[0].DataItems, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.say, diff)
		}
	}
}

// TestStartOnce proves that a start that is sent many times is carried out once.
func TestStartOnce(t *testing.T) {
	t.Parallel()
	const callers = 100
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		site.WriteTask(w, h, "completed", "only one")
	})
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	answers := make([]*task.Task, callers)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range callers {
		all.Go(func() {
			<-begin
			got, err := leader.Try(site.StartCall("once", "hello"))
			if err != nil {
				t.Errorf("start %d: %v", i, site.Explain(err))
				return
			}
			answers[i] = got
		})
	}
	close(begin)
	all.Wait()
	for i, got := range answers {
		if got != nil && (got.ID != "once" || got.SessionID != "session-of-once" || !got.Status.State.Valid()) {
			t.Errorf("start %d was answered %+v", i, got)
		}
	}
	got := leader.Rests("once")
	site.CheckHistory(t, got)
	if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"only one"}},
		site.AnswerOf(got)); diff != "" {
		t.Errorf("the task (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]task.Command{task.Start}, site.Commands(got.MessageHistory)); diff != "" {
		t.Errorf("messageHistory (-want +got):\n%s", diff)
	}
	if n := len(agent.Requests("")); n != 1 {
		t.Errorf("the agent was asked %d times, want once", n)
	}
}
