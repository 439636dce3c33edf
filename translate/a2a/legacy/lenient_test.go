// SPDX-License-Identifier: Apache-2.0

package legacy_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

// TestLenientContent: an agent's words are read in any form.
//
// Lenient: a string for a message, or `content` for its `parts`
// Lenient: an object or a string for parts, a string for a part
// Lenient: another word for the type of a text or of data
// Lenient: an object for artifacts, a string for an artifact
// Lenient: a string for an index
func TestLenientContent(t *testing.T) {
	status := func(message string) string { return whole(`"status":{"state":"working","message":` + message + `}`) }
	artifacts := func(list string) string { return whole(`"status":{"state":"working"},"artifacts":` + list) }
	const a = "report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	const product = "report whole working (working)\n  product {\"id\":\"artifact-0\"," +
		"\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	for _, tc := range []struct{ name, in, want string }{
		{"a string", status(`"a"`), a},
		{"an empty string", status(`""`), "report whole working (working)\n"},
		{"content", status(`{"role":"agent","content":[{"type":"text","text":"a"}]}`), a},
		{"content that is a string", status(`{"content":"a"}`), a},
		{"content that is one part", status(`{"content":{"type":"text","text":"a"}}`), a},
		{"parts that are a string", status(`{"parts":"a"}`), a},
		{"parts that are one object", status(`{"parts":{"type":"text","text":"a"}}`), a},
		{"a part that is a string", status(`{"parts":["a"]}`), a},
		{"capitals", status(`{"parts":[{"type":"TEXT","text":"a"}]}`), a},
		{"a media type", status(`{"parts":[{"type":"text/plain","text":"a"}]}`), a},
		{"markdown", status(`{"parts":[{"kind":"markdown","text":"a"}]}`), a},
		{"JSON", status(`{"parts":[{"type":"json","data":{"b":1}}]}`), "report whole working (working)\n  " +
			"says {\"id\":\"\",\"dataItems\":[{\"type\":\"data\",\"data\":{\"b\":1}}]}\n"},
		{"artifacts that are one object", artifacts(`{"parts":[{"type":"text","text":"a"}]}`), product},
		{"artifacts that are a string", artifacts(`"a"`), product},
		{"an artifact that is a string", artifacts(`["a"]`), product},
		{"an artifact whose parts are a string", artifacts(`[{"parts":"a"}]`), product},
		{"an index that is a string", artifacts(`[{"index":"0","parts":"a"}]`), product},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, a2atest.Show(a2a.Legacy().Reply([]byte(tc.in), nil))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	got := a2atest.Show(a2a.Legacy().NewStream(nil).Event("", []byte(`{"result":{"id":"t","artifact":"a"}}`)))
	want := "report\n  chunk append=false last=false {\"id\":\"artifact-0\"," +
		"\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an event (-want +got):\n%s", diff)
	}
}

// TestLenientStates: states are read in any spelling, and by other words. The task's metadata has such a word.
//
// Lenient: a state in another case or spelling, or in the form of 1.0
// Lenient: another word for a state
// Lenient: in a stream, a state without a meaning
func TestLenientStates(t *testing.T) {
	reply := func(in string) (agent.Report, error) { return a2a.Legacy().Reply([]byte(in), nil) }
	event := func(in string) (agent.Report, error) { return a2a.Legacy().NewStream(nil).Event("", []byte(in)) }
	for _, tc := range []struct {
		word string
		want task.State
		auth bool
	}{
		{"COMPLETED", task.AwaitingCompletion, false}, {"TASK_STATE_COMPLETED", task.AwaitingCompletion, false},
		{"input_required", task.AwaitingInput, false}, {"InputRequired", task.AwaitingInput, false},
		{"input required", task.AwaitingInput, false}, {"Cancelled", task.Canceled, false},
		{"auth_required", task.AwaitingInput, true}, {"AUTH_REQUIRED", task.AwaitingInput, true},
		{"AuthRequired", task.AwaitingInput, true}, {"authRequired", task.AwaitingInput, true},
		{"TASK_STATE_AUTH_REQUIRED", task.AwaitingInput, true},
	} {
		for name, read := range map[string]func(string) (agent.Report, error){"an answer": reply, "an event": event} {
			rep, err := read(whole(`"status":{"state":"` + tc.word + `"}`))
			if err != nil || rep.State != tc.want || rep.SelfResuming != tc.auth || rep.TaskExtensions != nil {
				t.Errorf("%s in %s: %+v, %v", tc.word, name, rep, err)
			}
		}
	}
	const own = `{"a2a":{"metadata":{"agentState":`
	for _, tc := range []struct{ status, want string }{
		{`{"state":"requires_auth"}`, own + `{"awaiting-input":"requires_auth"}}}}`},
		{`{"state":"needs input"},"metadata":{"k":1}`, own + `{"awaiting-input":"needs input"},"k":1}}}`},
		{`"queued"`, own + `{"accepted":"queued"}}}}`},
		{`{"state":"in_progress"},"metadata":null`, own + `{"working":"in_progress"}}}}`},
		{`{"state":"Done"},"metadata":{}`, own + `{"awaiting-completion":"Done"}}}}`},
		{`{"state":"error"},"metadata":{"agentState":"x"}`, own + `"x"}}}`},
		{`{"state":"done"},"metadata":[1]`, `{"a2a":{"metadata":[1]}}`},
		{`{"state":"working"},"metadata":{"k":1}`, `{"a2a":{"metadata":{"k":1}}}`},
	} {
		for name, read := range map[string]func(string) (agent.Report, error){"an answer": reply, "an event": event} {
			rep, err := read(whole(`"status":` + tc.status))
			if err != nil || string(rep.TaskExtensions) != tc.want {
				t.Errorf("%s in %s: %s, %v; want %s", tc.status, name, rep.TaskExtensions, err, tc.want)
			}
		}
	}
	rep, err := event(whole(`"status":{"state":"dancing\n"},"final":false`))
	if want := own + `{"working":"dancing\n"}}}}`; err != nil || rep.State != task.Working ||
		string(rep.TaskExtensions) != want {
		t.Errorf("a state that means nothing: %+v, %v", rep, err)
	}
}

// TestLenientAnswers: an agent's answer to a turn is read in any envelope.
//
// Lenient: a Task or an event without JSON-RPC's envelope, as params of a notification, or in `task` or `event`
// Lenient: a Task or an event without JSON-RPC's envelope, as params of a notification, or in `task` or `event`
// Lenient: a Message for a Task, in `message`, or a text
// Lenient: a Task's id alone
// Lenient: an answer in the history alone
// Lenient: an answer or a reason beside the status, as `result` or `error`
// Lenient: an `error` `{}`, `""` or false beside a result
// Lenient: an answer with the id null, 0 or another
func TestLenientAnswers(t *testing.T) {
	const message = "report whole awaiting-completion (message)\n  product {\"id\":\"message\"," +
		"\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	const working = "report whole working (working)\n"
	const parts = `"role":"agent","parts":[{"type":"text","text":"a"}]`
	recalled := func(state, native string) string {
		return "report whole " + state + " (" + native + ")\n  says {\"id\":\"\"," +
			"\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"
	}
	history := func(state, more string) string {
		return whole(`"status":{"state":"` + state + `"},"history":[{"role":"user","parts":[{"text":"q"}]}` + more + `]`)
	}
	const none = "error invalid-agent-response: the agent's answer has no status, so it is no Task\n"
	for _, tc := range []struct{ name, in, want string }{
		{"no envelope", `{"id":"t","status":{"state":"working"}}`, working},
		{"no envelope, and a word for the status", `{"id":"t","status":"running"}`, "report whole working (running)\n"},
		{"a notification", `{"jsonrpc":"2.0","method":"tasks/status","params":{"id":"t","status":{"state":"working"}}}`,
			working},
		{"another version", `{"jsonrpc":"1.0","id":"r-1","result":{"id":"t","status":{"state":"working"}}}`, working},
		{"a task", `{"id":"r-1","result":{"task":{"id":"t","status":{"state":"working"}}}}`, working},
		{"a task without an envelope", `{"task":{"id":"t","status":{"state":"working"}}}`, working},
		{"a message", `{"id":"r-1","result":{` + parts + `}}`, message},
		{"a message in a member", `{"id":"r-1","result":{"id":"t","message":{` + parts + `}}}`, message},
		{"a message with content", `{"id":"r-1","result":{"message":{"role":"agent","content":"a"}}}`, message},
		{"a message without an envelope", `{"message":{` + parts + `}}`, message},
		{"a text", `{"id":"r-1","result":"a"}`, message},
		{"a text as the message", `{"id":"r-1","result":{"message":"a"}}`, message},
		{"an id", `{"id":"r-1","result":{"id":"t"}}`, "report accepted (submitted)\n"},
		{"an id without an envelope", `{"id":"t"}`, "report accepted (submitted)\n"},
		{"an id and words", `{"id":"r-1","result":{"id":"t","message":"taken"}}`, "report accepted (submitted)\n"},
		{"the id of the request alone", `{"id":"r-1"}`, "error invalid-agent-response: the agent's answer is no JSON-RPC " +
			"response: a response needs a result or an error\n"},
		{"nothing", `{"id":"r-1","result":null}`, none},
		{"a number", `{"id":"r-1","result":7}`, none},
		{"a history", history("completed", `,{`+parts+`}`), recalled("awaiting-completion", "completed")},
		{"a history that ends with a question", history("input-required", `,{"role":"assistant","content":"a"}`),
			recalled("awaiting-input", "input-required")},
		{"a history of the caller's words", history("completed", ``), "report whole awaiting-completion (completed)\n"},
		{"a history while it works", history("working", `,{`+parts+`}`), working},
		{"a history beside an artifact", whole(`"status":{"state":"completed"},"artifacts":["b"],"history":[{` + parts +
			`}]`), "report whole awaiting-completion (completed)\n" + texts("artifact-0", "", "b")},
		{"a history beside an empty artifact", whole(`"status":{"state":"completed"},"artifacts":[{}],"history":[{` +
			parts + `}]`), recalled("awaiting-completion", "completed")},
		{"a result beside the status", whole(`"status":{"state":"completed"},"result":"a"`),
			recalled("awaiting-completion", "completed")},
		{"an error beside the status", whole(`"status":{"state":"failed"},"error":{"message":"a"}`),
			recalled("failed", "failed")},
		{"no error beside the status", whole(`"status":{"state":"completed"},"error":""`),
			"report whole awaiting-completion (completed)\n"},
		{"an empty error", `{"id":"r-1","error":{},"result":{"id":"t","status":{"state":"working"}}}`, working},
		{"an error that is an empty text", `{"id":"r-1","error":"","result":{"id":"t","status":{"state":"working"}}}`,
			working},
		{"an error that is false", `{"id":"r-1","error":false,"result":{"id":"t","status":{"state":"working"}}}`, working},
		{"the id null", `{"id":null,"result":{"id":"t","status":{"state":"working"}}}`, working},
		{"the id 0", `{"id":0,"result":{"id":"t","status":{"state":"working"}}}`, working},
		{"no id", `{"result":{"id":"t","status":{"state":"working"}}}`, working},
		{"another id", `{"id":"mine","result":{"id":"t","status":{"state":"working"}}}`, working},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := a2a.Legacy().For(translate.Query{ID: "r-1", Task: "t", Turn: true})
			if diff := cmp.Diff(tc.want, a2atest.Show(c.Reply([]byte(tc.in), nil))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	// The members for finding the task are read by the letter.
	for _, in := range []string{
		`{"id":"r-2","result":{"id":"t","status":{"state":"working"}}}`,
		`{"id":"r-2","error":"","result":{"id":"t","status":{"state":"working"}}}`,
		`{"id":null,"result":{"id":"u","status":{"state":"working"}}}`,
		`{"id":"r-1","result":{"task":{"id":"u","status":{"state":"working"}}}}`,
		`{"id":"u","status":{"state":"working"}}`,
	} {
		c := a2a.Legacy().For(translate.Query{ID: "r-1", Task: "t"})
		if _, err := c.Reply([]byte(in), nil); !errors.Is(err, translate.ErrOtherAnswer) {
			t.Errorf("%s answers a question about another task: %v", in, err)
		}
	}
	// Words are no answer to a question about a task.
	for _, in := range []string{`{"id":"r-1","result":"a"}`, `{"id":"r-1","result":{"id":"t"}}`, `{"id":"t"}`} {
		c := a2a.Legacy().For(translate.Query{ID: "r-1", Task: "t"})
		if rep, err := c.Reply([]byte(in), nil); err == nil {
			t.Errorf("%s is read as %+v", in, rep)
		}
	}
}

// TestLenientEvents: an agent's events are read in any envelope.
//
// Lenient: a Task or an event without JSON-RPC's envelope, as params of a notification, or in `task` or `event`
// Lenient: signs of life as events, such as `ping`
func TestLenientEvents(t *testing.T) {
	var got string
	s := a2a.Legacy().For(translate.Query{ID: "r-1", Task: "t", Turn: true}).NewStream(nil)
	for _, in := range []string{
		`ping`, `"heartbeat"`, `{"type":"ping"}`, `{}`, `null`,
		`{"id":"t","status":{"state":"working"}}`,
		`{"jsonrpc":"2.0","method":"x","params":{"id":"t","artifact":{"parts":[{"text":"1"}]}}}`,
		`{"artifact":{"name":"n","parts":[{"text":"2"}]}}`,
		`{"result":{"event":{"id":"t","status":{"state":"working"},"final":false}}}`,
		`{"message":{"role":"agent","parts":[{"text":"3"}]}}`,
		`{"message":{"role":"user","parts":[{"text":"q"}]},"role":"user"}`,
		`{"id":null,"result":{"id":"t","status":{"state":"completed"},"final":true}}`,
	} {
		got += a2atest.Show(s.Event("message", []byte(in)))
	}
	const want = "report\nreport\nreport\nreport\nreport\n" +
		"report whole working (working)\n" +
		"report\n  chunk append=false last=false {\"id\":\"artifact-0\",\"dataItems\":[{\"type\":\"text\"," +
		"\"text\":\"1\"}]}\n" +
		"report\n  chunk append=false last=false {\"id\":\"artifact-0-n\",\"name\":\"n\"," +
		"\"dataItems\":[{\"type\":\"text\",\"text\":\"2\"}]}\n" +
		"report working (working)\n" +
		"report working (message)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"3\"}]}\n" +
		"report\nreport awaiting-completion (completed)\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLenientErrors: an agent's reason is read in any form. Without a code it has no kind.
//
// Lenient: a string for an error, `{"detail"}` for a response, an error without a code or with a word for one
// Lenient: a string for an error, `{"detail"}` for a response, an error without a code or with a word for one
func TestLenientErrors(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"error":"no model"}`, "error internal: the agent reports an error: no model\n"},
		{`{"error":{"message":"no\n model"}}`, "error internal: the agent reports an error: no model\n"},
		{`{"error":{"code":"BUSY","message":"no model"}}`, "error internal: the agent reports an error: BUSY: no model\n"},
		{`{"error":{"code":"-32001"}}`, "error task-not-found: the agent does not know this task\n"},
		{`{"error":{"x":1}}`, "error internal: the agent reports an error\n"},
		{`{"error":"<html>"}`, "error internal: the agent reports an error\n"},
		{`{"timestamp":1,"status":500,"error":"no model"}`, "error internal: the agent reports an error: no model\n"},
		{`{"result":null,"error":"no model"}`, "error internal: the agent reports an error: no model\n"},
		{`{"result":{"error":{"code":-32603,"message":"no model"}}}`,
			"error internal: the agent failed: no model\n"},
		{`{"detail":"no model"}`, "error internal: the agent reports an error: no model\n"},
		{`{"detail":[{"loc":["body"],"msg":"no model"}]}`, "error internal: the agent reports an error: no model\n"},
	} {
		c := a2a.Legacy().For(translate.Query{ID: "r-1", Task: "t", Turn: true})
		rep, err := c.Reply([]byte(tc.in), nil)
		if diff := cmp.Diff(tc.want, a2atest.Show(rep, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.in, diff)
		}
		ev, err := c.NewStream(nil).Event("", []byte(tc.in))
		if diff := cmp.Diff(tc.want, a2atest.Show(ev, err)); diff != "" {
			t.Errorf("%s as an event (-want +got):\n%s", tc.in, diff)
		}
	}
}

// TestLenientCancel: a cancel may be answered by less than a Task.
//
// Lenient: null, `{"success"}` or a word to a cancel
func TestLenientCancel(t *testing.T) {
	c := a2a.Legacy().For(translate.Query{ID: "r-1", Task: "t", Cancel: true})
	for _, tc := range []struct{ in, want string }{
		{`null`, "report\n"}, {`true`, "report\n"}, {`"ok"`, "report\n"}, {`{}`, "report\n"}, {`{"id":"t"}`, "report\n"},
		{`{"success":true,"message":"canceled"}`, "report\n"},
		{`{"success":false,"message":"too late"}`,
			"error task-not-cancelable: the agent refuses to cancel this task: too late\n"},
		{`false`, "error task-not-cancelable: the agent refuses to cancel this task\n"},
		{`{"id":"t","status":{"state":"canceled"}}`, "report whole canceled (canceled)\n"},
	} {
		got := a2atest.Show(c.Reply([]byte(`{"jsonrpc":"2.0","id":"r-1","result":`+tc.in+`}`), nil))
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.in, diff)
		}
	}
}

// TestLenientErrorTexts: an error in a stream in no form at all is reported in the agent's words.
func TestLenientErrorTexts(t *testing.T) { a2atest.InformalErrors(t, a2a.Legacy()) }
