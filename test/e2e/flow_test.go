// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/task"
)

// answered is what most tests ask of an answer.
type answered struct {
	State    task.State
	Says     string
	Products []string
}

func of(t *task.Task) answered { return answered{t.Status.State, says(t.Status.DataItems), product(t)} }

func TestFlow(t *testing.T) {
	t.Parallel()
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + trpcAgent(t)})
	p := certificates(t)
	for _, profile := range []struct {
		name   string
		leader *caller
	}{
		{"v02.00", callerWith(t, s.url(), string(p.Leader.AIC), keyPair(t, p.Leader))},
		{"v01.00", callerWith(t, s.url(), string(p.LeaderV1.AIC), keyPair(t, p.LeaderV1))},
	} {
		t.Run(profile.name, func(t *testing.T) {
			t.Parallel()
			leader := profile.leader
			check := func(what string, got *task.Task, want answered) {
				t.Helper()
				if diff := cmp.Diff(want, of(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}

			check("start", leader.start("echo", "hello"), answered{task.AwaitingCompletion, "ok", []string{"echo: hello"}})
			check(
				"a repeated start",
				leader.start("echo", "once more"),
				answered{task.AwaitingCompletion, "ok", []string{"echo: hello"}},
			)
			check("continue", leader.goOn("echo", "again"), answered{task.AwaitingCompletion, "ok", []string{"echo: again"}})
			check("complete", leader.complete("echo"), answered{task.Completed, "", []string{"echo: again"}})
			check("cancel after the end", leader.cancel("echo"), answered{task.Completed, "", []string{"echo: again"}})
			all := leader.get("echo")
			checkHistory(t, all)
			if diff := cmp.Diff([]task.State{task.Accepted, task.Working, task.AwaitingCompletion, task.Working,
				task.AwaitingCompletion, task.Completed},
				states(all.StatusHistory)); diff != "" {
				t.Errorf("statusHistory (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]task.Command{task.Start, task.Continue, task.Complete},
				commands(all.MessageHistory)); diff != "" {
				t.Errorf("messageHistory (-want +got):\n%s", diff)
			}
			since := commandCall(task.Get, "echo")
			since.StatesAfter, since.MessagesAfter = all.StatusHistory[3].ChangedAt, all.MessageHistory[2].SentAt
			some := leader.do(since)
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

			check("ask", leader.start("ask", "ask"), answered{State: task.AwaitingInput, Says: "which colour?"})
			check(
				"complete in awaiting-input",
				leader.complete("ask"),
				answered{State: task.AwaitingInput, Says: "which colour?"},
			)
			check(
				"the answer",
				leader.goOn("ask", "blue"),
				answered{task.AwaitingCompletion, "done", []string{"you said: blue"}},
			)
			check(
				"another word",
				leader.goOn("ask", "green"),
				answered{task.AwaitingCompletion, "ok", []string{"you said: blue", "echo: green"}},
			)
			check("complete", leader.complete("ask"), answered{task.Completed, "", []string{"you said: blue", "echo: green"}})

			failed := leader.start("fail", "fail")
			if failed.Status.State != task.Failed || !strings.Contains(says(failed.Status.DataItems), "agent broke") {
				t.Errorf("fail: %+v, want failed with the agent's reason", of(failed))
			}
			checkHistory(t, leader.get("fail"))

			slow := startCall("slow", "slow 60")
			slow.Terms.Response = time.Millisecond
			check("slow", leader.do(slow), answered{State: task.Working})
			if got := leader.cancel("slow"); got.Status.State != task.Canceled {
				t.Errorf("cancel: %+v", of(got))
			}
			canceled := leader.get("slow")
			checkHistory(t, canceled)
			if diff := cmp.Diff([]task.Command{task.Start, task.Cancel}, commands(canceled.MessageHistory)); diff != "" {
				t.Errorf("messageHistory of what was canceled (-want +got):\n%s", diff)
			}

			background := startCall("background", "slow 3")
			background.Terms.Response = 500 * time.Millisecond
			if got := leader.do(background); got.Status.State != task.Working {
				t.Errorf("a response timeout of 500 ms: %+v, want working", of(got))
			}
			got := leader.rests("background")
			check("the work in the background", got, answered{task.AwaitingCompletion, "", []string{"slow done"}})
			checkHistory(t, got)
			check(
				"continue",
				leader.goOn("background", "and now"),
				answered{task.AwaitingCompletion, "ok", []string{"echo: and now"}},
			)
		})
	}
}

// TestData sends and gets what is no text.
//
// Promise: an agent's text is harmful for its reader
func TestData(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := serve(t, config{handle: "aip_gateway a2a/legacy http://" + agent})
	leader := leaderOf(t, s.url())
	for _, tc := range []struct {
		say  string
		want task.DataItem
	}{
		{"file", task.DataItem{Kind: task.FileItem, Name: "hello.txt", MIMEType: "text/plain", Bytes: "aGVsbG8K"}},
		{"data", task.DataItem{Kind: task.DataKind, Data: []byte(`{"colour":"blue","parts":[1,2,3]}`)}},
		{"héllo \u2028 \"😀\"", task.Text("echo: héllo \u2028 \"😀\"")},
	} {
		got := leader.start("data-"+tc.say, tc.say)
		if diff := cmp.Diff([]task.DataItem{tc.want}, got.Products[0].DataItems, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.say, diff)
		}
	}
}

// TestStartOnce proves that a start that is sent many times is carried out once.
func TestStartOnce(t *testing.T) {
	t.Parallel()
	const callers = 100
	agent := newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		writeTask(w, h, "completed", "only one")
	})
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	leader := leaderOf(t, s.url())
	answers := make([]*task.Task, callers)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range callers {
		all.Go(func() {
			<-begin
			got, err := leader.try(startCall("once", "hello"))
			if err != nil {
				t.Errorf("start %d: %v", i, explain(err))
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
	got := leader.rests("once")
	checkHistory(t, got)
	if diff := cmp.Diff(answered{task.AwaitingCompletion, "", []string{"only one"}}, of(got)); diff != "" {
		t.Errorf("the task (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]task.Command{task.Start}, commands(got.MessageHistory)); diff != "" {
		t.Errorf("messageHistory (-want +got):\n%s", diff)
	}
	if n := len(agent.requests("")); n != 1 {
		t.Errorf("the agent was asked %d times, want once", n)
	}
}
