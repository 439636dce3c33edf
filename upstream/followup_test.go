// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// anotherTask is an agent of A2A 0.3 or 1.0. Its task t1 of the context c has asked something. It answers the next
// message to t1 by a task t2 of a context.
type anotherTask struct {
	newest  bool   // it speaks 1.0
	context string // of t2
	polled  bool   // t2 works until it is asked for
	asks    bool   // t2 ends as t1 does
	asked   []string
}

func (a *anotherTask) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	req := gjson.ParseBytes(body)
	method, id := req.Get("method").Str, req.Get("params.id").Str
	a.asked = append(a.asked, strings.TrimSpace(method+" "+id))
	context, state := a.context, "completed"
	if a.asks {
		state = "input-required"
	}
	gets := method == "tasks/get" || method == "GetTask"
	switch {
	case gets && id == "t1":
		context, state = "c", "input-required"
	case !gets:
		if id = "t2"; a.polled {
			state = "working"
		}
	}
	result := a.show(id, context, state)
	if a.newest && !gets {
		result = `{"task":` + result + `}`
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, req.Get("id").Raw, result)
	if strings.Contains(strings.ToLower(method), "stream") {
		w.Header().Set("Content-Type", "text/event-stream")
		answer = "data: " + answer + "\n\n"
	}
	io.WriteString(w, answer)
}

func (a *anotherTask) show(id, context, state string) string {
	if a.newest {
		state = "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(state, "-", "_"))
	}
	return fmt.Sprintf(`{"id":%q,"contextId":%q,"status":{"state":%q}}`, id, context, state)
}

// TestFollowUpByAnotherTask: an agent may answer the next message to a task by another task of the same context. The
// turn goes on with the other one. By a task of another context it does not, and the message is not sent again.
func TestFollowUpByAnotherTask(t *testing.T) {
	for name, codec := range map[string]translate.Client{"0.3": a2a.V03(), "1.0": a2a.V1()} {
		newest := name == "1.0"
		send, stream, get := "message/send", "message/stream", "tasks/get"
		if newest {
			send, stream, get = "SendMessage", "SendStreamingMessage", "GetTask"
		}
		for _, tc := range []struct {
			at     *anotherTask
			stream bool
			task   string
			asked  []string
		}{
			{&anotherTask{context: "c"}, false, "t2", []string{send}},
			{&anotherTask{context: "c", polled: true}, false, "t2", []string{send, get + " t2"}},
			{&anotherTask{context: "c"}, true, "t2", []string{stream}},
			{&anotherTask{context: "c", polled: true}, true, "t2", []string{stream, get + " t2"}},
			{&anotherTask{context: "c", polled: true, asks: true}, false, "t2", []string{send, get + " t2"}},
			{&anotherTask{context: "d"}, false, "", []string{send, get + " t1"}},
			{&anotherTask{context: "d"}, true, "", []string{stream, get + " t1"}},
		} {
			tc.at.newest = newest
			change := func(s *settings) {
				s.Codec = codec
				s.RetryFor = 10 * time.Second
			}
			withAgent(t, tc.at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				before := `{"jsonrpc":"2.0","id":"1","result":` + tc.at.show("t1", "c", "input-required") + `}`
				asks, err := codec.Reply([]byte(before), nil)
				if err != nil {
					t.Fatal(err)
				}
				x := then(asks, "t1", "x")
				x.Ref = *asks.Ref
				var last agent.Report
				var ref agent.Ref
				for rep, err := range carryOut(t.Context(), a, x, tc.stream) {
					if rep.Ref != nil {
						ref = *rep.Ref
					}
					if last = rep; (err != nil) != (tc.task == "") {
						t.Errorf("%s, %+v: %v", name, tc.at, err)
					}
				}
				want := task.AwaitingCompletion
				if tc.at.asks {
					want = task.AwaitingInput
				}
				if ref.Task != tc.task || tc.task != "" && last.State != want {
					t.Errorf("%s, %+v: the task is %+v, and ends as %s", name, tc.at, ref, last.State)
				}
				if diff := cmp.Diff(tc.asked, tc.at.asked); diff != "" {
					t.Errorf("%s, %+v: what was asked (-want +got):\n%s", name, tc.at, diff)
				}
			})
		}
	}
}
