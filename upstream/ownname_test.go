// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// ownNames is an agent of A2A v0.1. It ignores the names of tasks in turns, and makes its own.
type ownNames struct {
	name  func(text string) string
	slow  bool // a task works until it is asked for
	cut   bool // a stream ends before its task does
	mu    sync.Mutex
	asked []string          // methods, with the names of tasks
	texts map[string]string // of the tasks, by name
}

func (a *ownNames) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req := gjson.ParseBytes(body)
	method, id := strings.TrimPrefix(req.Get("method").Str, "tasks/"), req.Get("params.id").Str
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, method+" "+id)
	show := func(id, state string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":{"state":%q},"artifacts":[{"parts":[`+
			`{"type":"text","text":%q}]}]}}`, req.Get("id").Raw, id, state, a.texts[id])
	}
	event := func(more string) {
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{%s}}\n\n", req.Get("id").Raw, more)
	}
	switch text := req.Get("params.message.parts.0.text").Str; {
	case method == "send" || method == "sendSubscribe":
		own := a.name(text)
		if a.texts == nil {
			a.texts = make(map[string]string)
		}
		a.texts[own] = text
		switch {
		case method == "sendSubscribe":
			w.Header().Set("Content-Type", "text/event-stream")
			event(fmt.Sprintf(`"id":%q,"status":{"state":"working"},"final":false`, own))
			event(`"id":"job-of-another","status":{"state":"failed"},"final":true`)
			if !a.cut {
				event(fmt.Sprintf(`"id":%q,"artifact":{"parts":[{"type":"text","text":%q}]}`, own, text))
				event(fmt.Sprintf(`"id":%q,"status":{"state":"completed"},"final":true`, own))
			}
		case a.slow:
			io.WriteString(w, show(own, "working"))
		default:
			io.WriteString(w, show(own, "completed"))
		}
	case a.texts[id] == "":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"no such task"}}`, req.Get("id").Raw)
	case method == "cancel":
		io.WriteString(w, show(id, "canceled"))
	default:
		io.WriteString(w, show(id, "completed"))
	}
}

// TestOwnNames: the answer to a turn is the answer, whatever name its agent gives the task. The message is sent once,
// and the task is asked for by the agent's name.
func TestOwnNames(t *testing.T) {
	job := func(text string) string { return "job-of-" + text }
	for name, tc := range map[string]struct {
		at     *ownNames
		stream bool
		asked  []string
		want   []string
	}{
		"an answer": {&ownNames{}, false, []string{"send t"}, []string{"completed artifact-0=x"}},
		"an answer before the work is done": {&ownNames{slow: true}, false, []string{"send t", "get job-of-x"},
			[]string{"working artifact-0=x", "completed artifact-0=x"}},
		"a stream": {&ownNames{}, true, []string{"sendSubscribe t"},
			[]string{"working", "completedartifact-0+=x"}},
		"a stream that is cut": {&ownNames{cut: true}, true, []string{"sendSubscribe t", "get job-of-x"},
			[]string{"working", "completed artifact-0=x"}},
	} {
		for _, way := range ways(tc.stream) {
			at := &ownNames{name: job, slow: tc.at.slow, cut: tc.at.cut}
			withAgent(t, at, nil, func(t *testing.T, a *upstream.Agent, m *agentUnderTest) {
				var ref *agent.Ref
				var got []string
				for rep, err := range way.run(t.Context(), a, turn("x")) {
					if rep.Ref != nil {
						ref = rep.Ref
					}
					if rep.Delivery == agent.DeliveryUnknown {
						got = append(got, one(rep, err))
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s, %s: (-want +got):\n%s", name, way.name, diff)
				}
				if diff := cmp.Diff(tc.asked, at.asked); diff != "" {
					t.Errorf("%s, %s: what was asked (-want +got):\n%s", name, way.name, diff)
				}
				if diff := cmp.Diff(&agent.Ref{Task: "job-of-x", Session: "s"}, ref); diff != "" {
					t.Errorf("%s, %s: the name (-want +got):\n%s", name, way.name, diff)
					return
				}
				known := turn("x")
				known.Ref = *ref
				rep, err := a.Cancel(t.Context(), known)
				if err != nil || rep.State != task.Canceled {
					t.Errorf("%s, %s: a cancel by that name is answered with %+v, %v", name, way.name, rep, err)
				}
			})
		}
	}
}

// TestNameOfAnotherLeadersTask: an agent giving the tasks of two Leaders the same name is asked by it about the first
// alone. Its answer to the second is the answer all the same.
//
// Promise: an agent, or a proxy before it, mixes up its answers, so that a Leader is given the result of another one
func TestNameOfAnotherLeadersTask(t *testing.T) {
	for _, stream := range []bool{false, true} {
		at := &ownNames{name: func(string) string { return "the-task" }}
		withAgent(t, at, nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			for _, tc := range []struct {
				leader string
				named  bool
			}{{"ann", true}, {"bob", false}, {"ann", true}} {
				of := turn("of " + tc.leader)
				of.Leader = tc.leader
				named, last := false, agent.Report{}
				for rep, err := range carryOut(t.Context(), a, of, stream) {
					if err != nil {
						t.Error(err)
					}
					named, last = named || rep.Ref != nil, rep
				}
				if named != tc.named || last.State != task.AwaitingCompletion {
					t.Errorf("stream %v: %s: named %v, %+v", stream, tc.leader, named, last)
				}
			}
		})
	}
}

// TestNameOfAnotherLeadersEarlierTask: the same holds if an earlier process has begun the first task, and this one goes
// on with it.
//
// Promise: an agent, or a proxy before it, mixes up its answers, so that a Leader is given the result of another one
func TestNameOfAnotherLeadersEarlierTask(t *testing.T) {
	for name, goOn := range map[string]func(*testing.T, *upstream.Agent, *agent.Turn){
		"resumed": func(t *testing.T, a *upstream.Agent, of *agent.Turn) {
			of.Named = true
			for range a.Resume(t.Context(), of) {
			}
		},
		"continued": func(t *testing.T, a *upstream.Agent, of *agent.Turn) {
			of.From, of.Message.Command = task.AwaitingInput, task.Continue
			for range carryOut(t.Context(), a, of, false) {
			}
		},
	} {
		at := &ownNames{name: func(string) string { return "the-task" }, texts: map[string]string{"the-task": "of ann"}}
		withAgent(t, at, nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			anns, bobs := turn("of ann"), turn("of bob")
			anns.Leader, anns.Ref.Task, bobs.Leader = "ann", "the-task", "bob"
			goOn(t, a, anns)
			for rep, err := range carryOut(t.Context(), a, bobs, false) {
				if err != nil || rep.Ref != nil {
					t.Errorf("%s: bob has the name %v, %v", name, rep.Ref, err)
				}
			}
		})
	}
}

// TestNameOfAnotherTask: an agent cannot answer for a task by the gateway's name for another one.
//
// Promise: an agent, or a proxy before it, mixes up its answers, so that a Leader is given the result of another one
func TestNameOfAnotherTask(t *testing.T) {
	for _, stream := range []bool{false, true} {
		at := &ownNames{name: func(string) string { return "of-ann" }}
		withAgent(t, at, nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			for _, leader := range []string{"ann", "bob"} {
				of := turn("x")
				of.Leader, of.Ref.Task = leader, "of-"+leader
				last := task.None
				for rep, err := range carryOut(t.Context(), a, of, stream) {
					if last = rep.State; rep.Ref != nil {
						t.Errorf("stream %v: %s has the name %v", stream, leader, rep.Ref)
					}
					if refused := errors.Is(err, translate.ErrOtherAnswer); err != nil && !refused {
						t.Error(err)
					}
				}
				if want := map[string]task.State{"ann": task.AwaitingCompletion}[leader]; last != want {
					t.Errorf("stream %v: the task of %s ends with %q", stream, leader, last)
				}
			}
		})
	}
}

// TestNamedTasksAreNotStartedAgain: a task named by its agent was received. If the agent does not know it after a
// crash, it is not asked for long, and the turn fails.
func TestNamedTasksAreNotStartedAgain(t *testing.T) {
	at := &ownNames{name: func(string) string { return "new" }}
	withAgent(t, at, func(s *settings) { s.ResendAfter = 5e9 }, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		of := turn("x")
		of.Ref.Task, of.Named = "job-of-before", true
		var got []string
		for rep, err := range a.Resume(t.Context(), of) {
			got = append(got, one(rep, err))
		}
		want := []string{"task-not-found: the agent does not know this task: no such task"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"get job-of-before"}, at.asked); diff != "" {
			t.Errorf("what was asked (-want +got):\n%s", diff)
		}
	})
}
