// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// told is a Trial in a line.
func told(seen *upstream.Trial) string {
	var said []string
	for _, s := range seen.States {
		word := s.Name
		if len(s.Items) > 0 {
			word += "=" + s.Items[0].Text
		}
		said = append(said, word)
	}
	var sent []string
	for _, op := range seen.Sent {
		sent = append(sent, map[translate.Operation]string{translate.Send: "Send", translate.SendStream: "SendStream"}[op])
	}
	line := fmt.Sprintf("sent %v (%s) streamed %t cut %t events %d after %v: %s; %s", sent, seen.Why, seen.Streamed,
		seen.Cut, seen.Events, seen.First, strings.Join(said, " "), seen.State)
	for _, p := range seen.Products {
		line += " " + p.DataItems[0].Text
	}
	if seen.Asked {
		line += "; get " + seen.Known + why(seen.GetErr)
	}
	if seen.Canceled {
		line += "; canceled" + why(seen.CancelErr)
	}
	if seen.TimedOut {
		line += "; timed out"
	}
	return line + why(seen.Err)
}

func why(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// TestTry: an agent is tried as its card and its answers say, its acts are noted, and no task is left open.
func TestTry(t *testing.T) {
	later := func(then step) step {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			pass(r, time.Second)
			then(w, r, n)
		}
	}
	canceled := says(is("canceled"))
	sse := func(w http.ResponseWriter, r *http.Request, n int) {
		streams(false, said("working", false, "a moment"), chunk("a", false), chunk("b", true), news("completed"))(w, r, n)
	}
	const card = "its card has capabilities.streaming"
	for _, tc := range []struct {
		name  string
		none  bool
		agent script
		want  string
	}{
		{"a stream", false, script{"sendSubscribe": later(sse), "get": says(is("completed"))},
			"sent [SendStream] (" + card + ") streamed true cut false events 4 after 1s: working=a moment completed; " +
				"awaiting-completion ab; get completed"},
		{"no stream, as its card says", true,
			script{"send": says(is("completed", has("a"))), "get": says(fails(-32001, "x"))},
			"sent [Send] (its card has no capabilities.streaming; if it has streams all the same, set streams on) " +
				"streamed false cut false events 1 after 0s: completed; awaiting-completion a; " +
				"get : task-not-found: the agent does not know this task: x"},
		{"a stream that is refused", false,
			script{"sendSubscribe": says(fails(-32004, "no")), "send": says(is("completed"))},
			"sent [SendStream Send] (" + card + ") streamed false cut false events 1 after 0s: completed; " +
				"awaiting-completion; get : method-not-found: the agent does not have this method: no get"},
		{"a stream that ends early", false, script{"sendSubscribe": streams(false, news("working")),
			"get": says(is("completed"))}, "sent [SendStream] (" + card + ") streamed true cut true events 1 after 0s: " +
			"working completed; awaiting-completion; get completed"},
		{"a question", false, script{"sendSubscribe": streams(false, said("input-required", true, "which?")),
			"get": says(is("input-required")), "cancel": canceled}, "sent [SendStream] (" + card + ") streamed true cut " +
			"false events 1 after 0s: input-required=which?; awaiting-input; get input-required; canceled"},
		{"no end", false, script{"sendSubscribe": streams(true, news("working")), "get": says(is("working")),
			"cancel": canceled}, "sent [SendStream] (" + card + ") streamed true cut false events 1 after 0s: working; " +
			"working; get working; canceled; timed out"},
		{"no answer", false, script{"sendSubscribe": hangs, "cancel": says(fails(-32001, "x"))},
			"sent [SendStream] (" + card + ") streamed false cut false events 0 after 0s: ; ; canceled: task-not-found: " +
				"the agent does not know this task: x; timed out"},
		{"a failure", false, script{"sendSubscribe": streams(false, said("failed", true, "no model")),
			"get": says(is("failed"))}, "sent [SendStream] (" + card + ") streamed true cut false events 1 after 0s: " +
			"failed=no model; failed; get failed"},
		{"a refusal", false, script{"sendSubscribe": says(fails(-32602, "no")), "send": says(fails(-32602, "no"))},
			"sent [SendStream Send] (" + card + ") streamed false cut false events 1 after 0s: ; : " +
				"invalid-params: the agent does not accept the parameters: no: refused"},
		{"no cancel", false, script{"sendSubscribe": streams(true, news("working")), "get": says(is("working")),
			"cancel": says(fails(-32002, "no"))}, "sent [SendStream] (" + card + ") streamed true cut false events 1 " +
			"after 0s: working; working; get working; canceled: task-not-cancelable: " +
			"the agent refuses to cancel this task: no; timed out"},
		{"too much", false, script{"sendSubscribe": func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				if _, err := io.WriteString(w, "data: "+chunk(strings.Repeat("x", 3000), true)+"\n\n"); err != nil {
					return
				}
			}
		}, "cancel": canceled}, "too much"},
	} {
		at := &listing{Handler: tc.agent.handler()}
		change := func(s *settings) {
			s.MaxReply = 4096
			s.Streams = func(context.Context) (bool, time.Time) { return tc.none, time.Unix(1, 0) }
		}
		withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			ctx, end := context.WithTimeout(t.Context(), time.Minute)
			defer end()
			got := told(a.Try(ctx, "x"))
			if tc.want == "too much" {
				if !strings.HasSuffix(got, "; canceled: limit-exceeded: the try was ended, because its products are larger "+
					"than 16777216 bytes") {
					t.Errorf("%s: … %s", tc.name, got[max(0, len(got)-200):])
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.name, diff)
			}
		})
	}
}

// TestTryReadsOn: behind a state on the way, the stream is read on, as in a turn of a caller.
func TestTryReadsOn(t *testing.T) {
	status := func(state, words string, final bool) string {
		return fmt.Sprintf(`data: {"jsonrpc":"2.0","id":"1","result":{"kind":"status-update","taskId":"t","contextId":"c",`+
			`"final":%t,"status":{"state":%q,"message":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":`+
			`"text","text":%q}]}}}}`, final, state, words)
	}
	s := script{"message/stream": slowly(false, status("input-required", "runs", false), time.Second,
		status("completed", "ok", true)), "get": says(fails(-32603, "no"))}
	speaks := func(s *settings) { s.Codec = a2a.V03() }
	withAgent(t, s.handler(), speaks, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		const want = "sent [SendStream] () streamed true cut false events 2 after 0s: input-required=runs completed=ok; " +
			"awaiting-completion; get : internal: the agent failed: no"
		if diff := cmp.Diff(want, told(a.Try(t.Context(), "x"))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
