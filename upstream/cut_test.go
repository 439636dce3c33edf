// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestStreamIsCutAnywhere: a stream cut anywhere ends as the whole one does, with nothing twice and nothing missing.
func TestStreamIsCutAnywhere(t *testing.T) {
	const body = "event: task_status_update\r\ndata: " +
		"{\"result\":{\"id\":\"t\",\"status\":{\"state\":\"working\"}}}\r\n\r\n" +
		"data: {\"result\":{\"artifact\":{\"parts\":[{\"text\":\"a\"}]}}}\n\n" +
		"data: {\"result\":{\"artifact\":{\"append\":true,\"parts\":[{\"text\":\"b\"}]}}}\n\n" +
		"data: {\"result\":{\"status\":{\"state\":\"completed\"},\"final\":true}}\n\n"
	for _, head := range []string{
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n",
		fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n",
			len(body)),
	} {
		var answer string
		s := script{"get": says(is("working", has("a")), is("completed", has("a", "b"))),
			"sendSubscribe": func(w http.ResponseWriter, r *http.Request, n int) { raw(answer)(w, r, n) }}
		for cut := range len(body) + 1 {
			answer = head + body[:cut]
			withAgent(t, s.handler(), nil, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				var fold task.Fold
				fold.Apply(task.Event{Seq: 1, Task: &task.Task{}})
				var last task.State
				for rep, err := range h.Run(t.Context(), turn("x"), true) {
					if err != nil {
						t.Fatalf("cut at %d: %v", cut, err)
					}
					if rep.State != task.None {
						last = rep.State
					}
					chunks := chunksOf(&rep)
					if rep.Full {
						chunks = task.Diff(fold.Task().Products, rep.Products)
					}
					for i := range chunks {
						fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &chunks[i]})
					}
				}
				want := []task.Product{{ID: "artifact-0", DataItems: []task.DataItem{task.Text("ab")}}}
				if diff := cmp.Diff(want, fold.Task().Products); diff != "" || last != task.AwaitingCompletion {
					t.Errorf("cut at %d: state %s, products (-want +got):\n%s", cut, last, diff)
				}
			})
		}
	}
}

// TestAnswerIsCutAnywhere: an answer cut anywhere is an error, but not of an unreached agent.
func TestAnswerIsCutAnywhere(t *testing.T) {
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(is("completed")), is("completed"))
	for cut := range len(answer) {
		withAgent(t, script{"send": raw(answer[:cut])}.handler(), nil,
			func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				n := 0
				for _, err := range carryOut(t.Context(), h, turn("x"), false) {
					if n++; err == nil || task.KindOf(err) == task.AgentUnavailable || n > 1 {
						t.Errorf("cut at %d: %v", cut, err)
					}
				}
				if n != 1 {
					t.Errorf("cut at %d: %d reports", cut, n)
				}
			})
	}
}
