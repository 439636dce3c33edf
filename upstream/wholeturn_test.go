// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// tells lists the reports of a run with their words, and its length. A state is marked if the agent may leave it by
// itself.
func tells(t *testing.T, a *upstream.Agent) (all []string, took time.Duration) {
	begun := time.Now()
	for rep, err := range a.Run(t.Context(), turn("x"), true) {
		if rep.Delivery != agent.DeliveryUnknown {
			continue
		}
		says := string(rep.State) + one(rep, err)
		for _, it := range rep.Items {
			says += ": " + it.Text
		}
		if rep.SelfResuming {
			says += " (open)"
		}
		all = append(all, says)
	}
	return all, time.Since(begun)
}

// TestWholeTurn: the stream of an agent of A2A 0.3 is read until the agent ends it, or for a short time after the last
// word. A question not called final by the agent is a state on the way.
//
// Lenient: an artifact or a Message behind the end of a turn
// Lenient: several Messages, or a Message before a Task
func TestWholeTurn(t *testing.T) {
	const (
		tail   = 250 * time.Millisecond
		grace  = 2 * time.Second
		asking = 10 * time.Second
	)
	event := func(format string, args ...any) string {
		return `data: {"jsonrpc":"2.0","id":"1","result":{` + fmt.Sprintf(format, args...) + `}}`
	}
	status := func(state, words, final string) string {
		return event(`"kind":"status-update","taskId":"t","contextId":"c","status":{"state":%q,"message":{"kind":"message",`+
			`"messageId":"m","role":"agent","parts":[{"kind":"text","text":%q}]}}%s`, state, words, final)
	}
	ends := func(state, words string) string { return status(state, words, `,"final":true`) }
	way := func(state, words string) string { return status(state, words, `,"final":false`) }
	art := func(text string) string {
		return event(`"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[`+
			`{"kind":"text","text":%q}]}`, text)
	}
	message := func(id, text string) string {
		return event(`"kind":"message","messageId":%q,"role":"agent","parts":[{"kind":"text","text":%q}]`, id, text)
	}
	for name, tc := range map[string]struct {
		stays bool
		lines []any
		want  []string
		took  time.Duration
	}{
		"a question on the way": {false, []any{way("working", "hm"), way("input-required", "scheduled"), time.Second,
			way("input-required", "done"), time.Second, way("working", "thinking"), art("a"), ends("completed", "ok")},
			[]string{"workingworking: hm", "workinginput-required: scheduled", "workinginput-required: done",
				"workingworking: thinking", "a+=a", "awaiting-completioncompleted: ok"}, 2 * time.Second},
		"a slow tool": {false, []any{way("input-required", "runs"), asking - time.Second, ends("completed", "ok")},
			[]string{"workinginput-required: runs", "awaiting-completioncompleted: ok"}, asking - time.Second},
		"a very slow tool": {false, []any{way("input-required", "runs"), time.Minute, way("working", "on"), time.Minute,
			ends("completed", "ok")},
			[]string{"workinginput-required: runs", "awaiting-inputinput-required: runs (open)", "workingworking: on",
				"awaiting-completioncompleted: ok"}, 2 * time.Minute},
		"a question at the end": {false, []any{way("input-required", "which?")},
			[]string{"awaiting-inputinput-required: which?"}, 0},
		"a question, and a late end": {false, []any{way("input-required", "which?"), time.Second},
			[]string{"workinginput-required: which?", "awaiting-inputinput-required: which?"}, time.Second},
		"a final question": {true, []any{ends("input-required", "which?")},
			[]string{"awaiting-inputinput-required: which?"}, tail},
		"not called final": {true, []any{way("completed", "ok"), time.Second, art("a")},
			[]string{"a+=a", "awaiting-completioncompleted: ok"}, time.Second + grace},

		"an artifact behind the end": {false, []any{way("working", "hm"), ends("completed", "ok"), tail / 2, art("a")},
			[]string{"workingworking: hm", "a+=a", "awaiting-completioncompleted: ok"}, tail / 2},
		"a late state behind the end": {false, []any{ends("completed", "ok"), way("working", "hm")},
			[]string{"workingworking: hm", "awaiting-completioncompleted: ok"}, 0},
		"a Message behind the end": {false, []any{art("a"), ends("completed", "ok"), message("m", "bye")},
			[]string{"a+=a", "workingmessage: bye", "awaiting-completioncompleted: ok"}, 0},
		"an end, and silence": {true, []any{ends("completed", "ok")},
			[]string{"awaiting-completioncompleted: ok"}, tail},

		"a Message": {false, []any{message("m", "hi")}, []string{"awaiting-completionmessage m=hi"}, 0},
		"several Messages": {false, []any{message("m", ""), time.Second, message("n", "he"), time.Second, message("n", "llo"),
			message("o", "you")},
			[]string{" n=he", " n=hello", "awaiting-completionmessage n=hello o=you"}, 2 * time.Second},
		"an empty Message": {false, []any{message("m", "")}, []string{"awaiting-completionmessage m="}, 0},
		"a Message before a Task": {false, []any{message("m", "hi"), time.Second, way("working", "hm"),
			ends("completed", "ok"), art("a")},
			[]string{"workingmessage: hi", "workingworking: hm", "a+=a", "awaiting-completioncompleted: ok"}, time.Second},
		"a Message, and silence": {true, []any{message("m", "hi")}, []string{"awaiting-completionmessage m=hi"}, grace},
	} {
		s := script{"message/stream": slowly(tc.stays, tc.lines...)}
		speaks := func(s *settings) { s.Codec = a2a.V03() }
		withAgent(t, s.handler(), speaks, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			got, took := tells(t, a)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
			if took < tc.took || took > tc.took+20*time.Millisecond { // for which the end of a stream is awaited
				t.Errorf("%s: it took %v, want %v", name, took, tc.took)
			}
		})
	}
}

// TestWholeTurnOfA2A10: the same for A2A 1.0: it has no "final".
func TestWholeTurnOfA2A10(t *testing.T) {
	const (
		tail  = 250 * time.Millisecond
		grace = 2 * time.Second
	)
	event := func(format string, args ...any) string {
		return `data: {"jsonrpc":"2.0","id":"1","result":{` + fmt.Sprintf(format, args...) + `}}`
	}
	status := func(state, words string) string {
		return event(`"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_%s","message":{`+
			`"messageId":"m","role":"ROLE_AGENT","parts":[{"text":%q}]}}}`, state, words)
	}
	art := event(`"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"a"}]}}`)
	message := func(id, text string) string {
		return event(`"message":{"messageId":%q,"role":"ROLE_AGENT","parts":[{"text":%q}]}`, id, text)
	}
	for name, tc := range map[string]struct {
		stays bool
		lines []any
		want  []string
		took  time.Duration
	}{
		"a question on the way": {false, []any{status("INPUT_REQUIRED", "scheduled"), time.Second,
			status("WORKING", "hm"), art, status("COMPLETED", "ok")},
			[]string{"workingTASK_STATE_INPUT_REQUIRED: scheduled", "workingTASK_STATE_WORKING: hm", "a+=a",
				"awaiting-completionTASK_STATE_COMPLETED: ok"}, time.Second},
		"a question": {true, []any{status("INPUT_REQUIRED", "which?")},
			[]string{"awaiting-inputTASK_STATE_INPUT_REQUIRED: which?"}, grace},
		"an artifact behind the end": {false, []any{status("COMPLETED", "ok"), tail / 2, art},
			[]string{"a+=a", "awaiting-completionTASK_STATE_COMPLETED: ok"}, tail / 2},
		"an end, and silence": {true, []any{status("COMPLETED", "ok")},
			[]string{"awaiting-completionTASK_STATE_COMPLETED: ok"}, tail},
		"a Message behind the end": {false, []any{art, status("COMPLETED", "ok"), message("m", "bye")},
			[]string{"a+=a", "workingmessage: bye", "awaiting-completionTASK_STATE_COMPLETED: ok"}, 0},
		"a Message on the way": {false, []any{art, message("m", "hm"), status("COMPLETED", "ok")},
			[]string{"a+=a", "workingmessage: hm", "awaiting-completionTASK_STATE_COMPLETED: ok"}, 0},
		"a Message at the end": {false, []any{art, message("m", "ok")},
			[]string{"a+=a", "awaiting-completionmessage: ok"}, 0},
		"several Messages": {false, []any{message("m", ""), time.Second, message("n", "hello"), message("o", "you")},
			[]string{" n=hello", "awaiting-completionmessage n=hello o=you"}, time.Second},
		"a Message before a Task": {false, []any{message("m", "hi"), status("WORKING", "hm"), art,
			status("COMPLETED", "ok")},
			[]string{"workingmessage: hi", "workingTASK_STATE_WORKING: hm", "a+=a",
				"awaiting-completionTASK_STATE_COMPLETED: ok"}, 0},
	} {
		s := script{"SendStreamingMessage": slowly(tc.stays, tc.lines...)}
		speaks := func(s *settings) { s.Codec = a2a.V1() }
		withAgent(t, s.handler(), speaks, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			got, took := tells(t, a)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got):\n%s", name, diff)
			}
			if took < tc.took || took > tc.took+20*time.Millisecond { // for which the end of a stream is awaited
				t.Errorf("%s: it took %v, want %v", name, took, tc.took)
			}
		})
	}
}
