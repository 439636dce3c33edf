// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// wrap puts a result into the envelope of a binding.
func wrap(c translate.Client, result string) []byte {
	if c.Name() == "a2a/1.0" {
		return []byte(`{"jsonrpc":"2.0","id":"1","result":` + result + `}`)
	}
	return []byte(result)
}

// TestStates tests every word for a state. Any other is none.
func TestStates(t *testing.T) {
	const auth = `[{"type":"text","text":"x"},{"type":"data","data":{"a2aState":"auth-required"}}]`
	const says = `[{"type":"text","text":"x"}]`
	for _, tc := range []struct {
		word  string
		state task.State
		open  bool
		items string
	}{
		{`"TASK_STATE_SUBMITTED"`, task.Accepted, false, says},
		{`"TASK_STATE_WORKING"`, task.Working, false, says},
		{`"TASK_STATE_INPUT_REQUIRED"`, task.AwaitingInput, false, says},
		{`"TASK_STATE_AUTH_REQUIRED"`, task.AwaitingInput, true, auth},
		{`"TASK_STATE_COMPLETED"`, task.AwaitingCompletion, false, says},
		{`"TASK_STATE_FAILED"`, task.Failed, false, says},
		{`"TASK_STATE_CANCELED"`, task.Canceled, false, says},
		{`"TASK_STATE_CANCELLED"`, task.Canceled, false, says},
		{`"TASK_STATE_REJECTED"`, task.Rejected, false, says},
		{`"TASK_STATE_UNSPECIFIED"`, task.None, false, says},
		{`""`, task.None, false, says},
		{`null`, task.None, false, says},
	} {
		for _, b := range bindings {
			body := wrap(b.client, `{"task":{"id":"t","contextId":"c","status":{"state":`+tc.word+
				`,"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}}}`)
			rep, err := b.client.Reply(body, nil)
			if err != nil || rep.State != tc.state || rep.SelfResuming != tc.open || readParts(rep.Items) != tc.items ||
				rep.Revision == "" {
				t.Errorf("%s, %s: %+v, %v", b.name, tc.word, rep, err)
			}
		}
	}
	for _, word := range []string{`"done"`, `"TASK_STATE_PAUSED"`, `3`, `{}`, `true`} {
		rep, err := a2a.V1().Reply(wrap(a2a.V1(), `{"id":"t","status":{"state":`+word+`}}`), nil)
		if task.KindOf(err) != task.InvalidAgentResponse || !cmp.Equal(rep, agent.Report{}) {
			t.Errorf("%s: %+v, %v", word, rep, err)
		}
	}
}

// TestReplies tests the forms of answers, in both bindings.
//
// Lenient: an answer in the history alone
func TestReplies(t *testing.T) {
	const status = `"status":{"state":"TASK_STATE_WORKING"}`
	for _, tc := range []struct{ name, result, want string }{
		{"a bare task", `{"id":"t","contextId":"c",` + status + `}`,
			"report whole working (TASK_STATE_WORKING) task=\"t\" session=\"c\"\n"},
		{"what is unset is written out",
			`{"task":{"tenant":"","id":"t","contextId":"","artifacts":[],"history":[],"metadata":null,` +
				`"status":{"state":"TASK_STATE_WORKING","message":null,"timestamp":""}},"message":null}`,
			"report whole working (TASK_STATE_WORKING) task=\"t\" session=\"\"\n"},
		{"an answer in the history alone", `{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"history":[` +
			`{"role":"ROLE_USER","parts":[{"text":"q"}]},{"role":"ROLE_AGENT","parts":[{"text":"4"}]},` +
			`{"role":"ROLE_AGENT","parts":[{"text":"2"}]}]}}`,
			"report whole awaiting-completion (TASK_STATE_COMPLETED) task=\"t\" session=\"\"\n" +
				"  says [{\"type\":\"text\",\"text\":\"42\"}]\n"},
		{"a message", `{"message":{"messageId":"m","contextId":"c","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}`,
			"report whole awaiting-completion (message) task=\"\" session=\"c\"\n  product {\"id\":\"m\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"hi\"}]}\n"},
		{"a bare message without an id", `{"messageId":"","role":"ROLE_AGENT","parts":[]}`,
			"report whole awaiting-completion (message) task=\"\" session=\"\"\n  product {\"id\":\"message\"," +
				"\"dataItems\":[]}\n"},
		{"an event", `{"statusUpdate":{"taskId":"t","contextId":"c",` + status + `}}`,
			"report working (TASK_STATE_WORKING) task=\"t\" session=\"c\"\n"},
		{"artifacts", `{"task":{"id":"t",` + status +
			`,"artifacts":[{"artifactId":"a","name":"n","description":"d","parts":[{"text":"x"},{"text":"y"}]},{"name":"n"},` +
			`{"parts":[{"text":"z"}]}]}}`,
			"report whole working (TASK_STATE_WORKING) task=\"t\" session=\"\"\n" +
				"  product {\"id\":\"a\",\"name\":\"n\",\"description\":\"d\",\"dataItems\":[{\"type\":\"text\",\"text\":\"x\"}," +
				"{\"type\":\"text\",\"text\":\"y\"}]}\n" +
				"  product {\"id\":\"artifact-n\",\"name\":\"n\",\"dataItems\":[]}\n  product {\"id\":\"artifact\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"z\"}]}\n"},
		{"neither task nor message", `{}`,
			"error invalid-agent-response: the agent's answer is neither a Task nor a Message\n"},
		{"no object", `[]`, "error invalid-agent-response: the agent's answer is neither a Task nor a Message\n"},
		{"no status", `{"task":{"id":"t"}}`,
			"error invalid-agent-response: the agent's answer is a Task that has no status\n"},
		{"a status that is none", `{"task":{"id":"t","status":"working"}}`,
			"error invalid-agent-response: the agent's answer has a status that is no object\n"},
		{"artifacts that are none", `{"task":{"id":"t",` + status + `,"artifacts":{}}}`,
			"error invalid-agent-response: the agent's answer has artifacts that are no array\n"},
		{"an artifact that is none", `{"task":{"id":"t",` + status + `,"artifacts":[1]}}`,
			"error invalid-agent-response: the agent's answer has an artifact that is no object\n"},
		{"parts that are none", `{"message":{"messageId":"m","parts":{}}}`,
			"error invalid-agent-response: the agent's answer has parts that are no array\n"},
		{"too many artifacts", `{"task":{"id":"t",` + status + `,"artifacts":[` + many(1001) + `]}}`,
			"error invalid-agent-response: the agent's answer has more than 1000 artifacts\n"},
	} {
		for _, b := range bindings {
			if diff := cmp.Diff(tc.want, showReport(b.client.Reply(wrap(b.client, tc.result), nil))); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", b.name, tc.name, diff)
			}
		}
	}
	for _, body := range []string{``, ` `, `x`, `{`, `{}}`, `{},"id":1`, `{"id":"t","id":"t"}`, `{},"error":{"code":1}`,
		`null`, `"x"`} {
		if rep, err := a2a.V1REST().Reply([]byte(body), nil); task.KindOf(err) != task.InvalidAgentResponse {
			t.Errorf("%q is read as %+v, %v", body, rep, err)
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"artifactId":"%d","name":"n"},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// TestParts tests the items of agents' parts, and the parts written of these again.
func TestParts(t *testing.T) {
	for _, tc := range []struct{ part, item, again string }{
		{`{"text":"a"}`, `{"type":"text","text":"a"}`, `{"text":"a"}`},
		{`{"text":""}`, `{"type":"text","text":""}`, `{"text":""}`},
		{`{"text":"","url":"u","metadata":{"k":1}}`, `{"type":"file","uri":"u","metadata":{"k":1}}`,
			`{"url":"u","metadata":{"k":1}}`},
		{`{"text":"a","mediaType":"text/plain"}`, `{"type":"text","text":"a"}`, `{"text":"a"}`},
		{`{"text":"a","mediaType":"text/markdown","filename":"f","metadata":{}}`,
			`{"type":"text","text":"a","metadata":{"mediaType":"text/markdown","filename":"f"}}`,
			`{"text":"a","metadata":{"mediaType":"text/markdown","filename":"f"}}`},
		{`{"raw":"QUI=","filename":"f","mediaType":"m"}`, `{"type":"file","name":"f","mimeType":"m","bytes":"QUI="}`,
			`{"raw":"QUI=","filename":"f","mediaType":"m"}`},
		{`{"raw":"-_A"}`, `{"type":"file","bytes":"+/A="}`, `{"raw":"+/A="}`},
		{`{"raw":"not base64!"}`, `{"type":"file","bytes":"not base64!"}`, `{"raw":"not base64!"}`},
		{`{"url":"u","filename":"f","mediaType":"m"}`, `{"type":"file","name":"f","mimeType":"m","uri":"u"}`,
			`{"url":"u","filename":"f","mediaType":"m"}`},
		{`{"data":{"a":[1.0]}}`, `{"type":"data","data":{"a":[1.0]}}`, `{"data":{"a":[1.0]}}`},
		{`{"data":[1,2]}`, `{"type":"data","data":{"value":[1,2]},"metadata":{"data_part_compat":true}}`,
			`{"data":[1,2]}`},
		{`{"data":null}`, `{"type":"data","data":{"value":null},"metadata":{"data_part_compat":true}}`,
			`{"data":null}`},
		{`{"data":"s"}`, `{"type":"data","data":{"value":"s"},"metadata":{"data_part_compat":true}}`, `{"data":"s"}`},
		{`{"data":{"value":{"a":1}}}`, `{"type":"data","data":{"value":{"a":1}}}`, `{"data":{"value":{"a":1}}}`},
		{`{"data":{"value":1,"b":2}}`, `{"type":"data","data":{"value":1,"b":2}}`, `{"data":{"value":1,"b":2}}`},
		{`{"data":{},"mediaType":"application/x","metadata":{"a":1}}`,
			`{"type":"data","data":{},"metadata":{"a":1,"mediaType":"application/x"}}`,
			`{"data":{},"metadata":{"a":1,"mediaType":"application/x"}}`},
		{`{"data":{},"mediaType":"application/x","metadata":{"mediaType":"y"}}`,
			`{"type":"data","data":{},"metadata":{"mediaType":"y"}}`, `{"data":{},"metadata":{"mediaType":"y"}}`},
		{`{"kind":"text","text":"a"}`, `{"type":"text","text":"a"}`, `{"text":"a"}`},
		{`{"kind":"file","file":{"uri":"u"}}`, `{"type":"data","data":{"kind":"file","file":{"uri":"u"}}}`,
			`{"data":{"kind":"file","file":{"uri":"u"}}}`},
		{`7`, `{"type":"data","data":{"value":7},"metadata":{"data_part_compat":true}}`, `{"data":7}`},
	} {
		rep, err := a2a.V1REST().Reply([]byte(`{"message":{"messageId":"m","parts":[`+tc.part+`]}}`), nil)
		if err != nil {
			t.Errorf("%s: %v", tc.part, err)
			continue
		}
		items := rep.Products[0].DataItems
		again := string(a2a.V1REST().AppendTurn(nil, &agent.Turn{Message: task.Message{ID: "m", DataItems: items}},
			false))
		want := `{"message":{"messageId":"m","role":"ROLE_USER","parts":[` + tc.again +
			`]},"configuration":{"historyLength":0}}`
		if diff := cmp.Diff("["+tc.item+"]", readParts(items)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.part, diff)
		}
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("%s, written again (-want +got):\n%s", tc.part, diff)
		}
	}
}

// TestStreams tests the known habits of agents in streams.
func TestStreams(t *testing.T) {
	known := []task.Product{{ID: "old", DataItems: []task.DataItem{task.Text("x")}}}
	const first = `{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_SUBMITTED"}}}`
	for _, tc := range []struct {
		name   string
		events []string // a name of an event may stand before an |
		want   string
	}{
		{"other ids than the task's",
			[]string{first,
				`{"statusUpdate":{"taskId":"wrong","contextId":"c","status":{"state":"TASK_STATE_FAILED"}}}`},
			"report whole accepted (TASK_STATE_SUBMITTED) task=\"t\" session=\"c\"\nreport failed (TASK_STATE_FAILED)\n"},
		{"no task first",
			[]string{`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`},
			"report working (TASK_STATE_WORKING) task=\"t\" session=\"c\"\n"},
		{"chunks", []string{first,
			`{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"1","mediaType":"text/markdown"}]},` +
				`"append":true}}`,
			`{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"2","mediaType":"text/markdown"}]},` +
				`"append":true,"lastChunk":true}}`,
			`{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"old","parts":[{"text":"3"}]},"append":true,` +
				`"lastChunk":false}}`},
			"report whole accepted (TASK_STATE_SUBMITTED) task=\"t\" session=\"c\"\n" +
				"report\n  chunk {\"product\":{\"id\":\"a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"1\"}]},\"append\":false," +
				"\"lastChunk\":false}\n" +
				"report\n  chunk {\"product\":{\"id\":\"a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"2\"}]},\"append\":true," +
				"\"lastChunk\":true}\n" +
				"report\n  chunk {\"product\":{\"id\":\"old\",\"dataItems\":[{\"type\":\"text\",\"text\":\"3\"}]}," +
				"\"append\":true,\"lastChunk\":false}\n"},
		{"the whole after its chunks", []string{
			`{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"1"}]}}}`,
			`{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"2"}]},"append":true}}`,
			`{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[{"artifactId":"a","parts":[{"text":"1"},` +
				`{"text":"2"},{"url":"u"}]}]}}`},
			"report\n  chunk {\"product\":{\"id\":\"a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"1\"}]},\"append\":false," +
				"\"lastChunk\":false}\n" +
				"report\n  chunk {\"product\":{\"id\":\"a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"2\"}]},\"append\":true," +
				"\"lastChunk\":false}\n" +
				"report whole awaiting-completion (TASK_STATE_COMPLETED) task=\"t\" session=\"\"\n" +
				"  product {\"id\":\"a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"12\"},{\"type\":\"file\",\"uri\":\"u\"}]}\n"},
		{"what is not ours", []string{"ping|x", "ping|", "", "{}", `{"other":{"a":1}}`},
			"report\nreport\nreport\nreport\nreport\n"},
		{"what should be", []string{"x"}, "error invalid-agent-response"},
		{"a status that is none", []string{`{"statusUpdate":{"status":1}}`},
			"error invalid-agent-response: the agent's answer has a status that is no object\n"},
	} {
		for _, b := range bindings {
			s := b.client.NewStream(known)
			got := ""
			for _, ev := range tc.events {
				name, data, named := strings.Cut(ev, "|")
				if !named {
					name, data = "", ev
				}
				body := []byte(data)
				if strings.HasPrefix(data, "{") {
					body = wrap(b.client, data)
				}
				got += showReport(s.Event(name, body))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && !(strings.HasPrefix(got, tc.want) && len(tc.events) == 1) {
				t.Errorf("%s, %s (-want +got):\n%s", b.name, tc.name, diff)
			}
		}
	}
}

// TestSettles: the answer to a get changes nothing of the reports of its stream, with any pieces.
func TestSettles(t *testing.T) {
	text := func(all ...string) (items []task.DataItem) {
		for _, s := range all {
			items = append(items, task.Text(s))
		}
		return items
	}
	file := task.DataItem{Kind: task.FileItem, URI: "u"}
	for _, tc := range []struct {
		name  string
		known []task.DataItem
		parts string
		want  string // the reported chunks
	}{
		{"pieces of one text", text("abc"), `{"text":"a"},{"text":"b"},{"text":"c"}`, ""},
		{"two texts", text("a", "b"), `{"text":"a"},{"text":"b"}`, ""},
		{"two texts, the second in pieces", text("a", "bc"), `{"text":"a"},{"text":"b"},{"text":"c"}`, ""},
		{"grown", text("ab"), `{"text":"a"},{"text":"b"},{"text":"c"}`, `+[{"type":"text","text":"c"}]`},
		{"a file between", append(text("ab"), file), `{"text":"a"},{"text":"b"},{"url":"u"}`, ""},
		{"a file behind", text("ab"), `{"text":"a"},{"text":"b"},{"url":"u"}`, `+[{"type":"file","uri":"u"}]`},
		{"another text", text("xy"), `{"text":"a"},{"text":"b"}`,
			`=[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
		{"another kind", []task.DataItem{file}, `{"text":"a"},{"text":"b"}`,
			`=[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
		{"less", text("abc"), `{"text":"a"},{"text":"b"}`, `=[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
		{"nothing was known", nil, `{"text":"a"},{"text":"b"}`,
			`=[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
	} {
		known := []task.Product{{ID: "a", DataItems: tc.known}}
		rep, err := a2a.V1REST().Reply([]byte(`{"id":"t","status":{},"artifacts":[{"artifactId":"a","parts":[`+tc.parts+
			`]}]}`), known)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, c := range task.Diff(known, rep.Products) {
			got += map[bool]string{true: "+", false: "="}[c.Append] + readParts(c.Product.DataItems)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestRevisions: a settled task has the same revision in a stream and in an answer, and a change alters it.
func TestRevisions(t *testing.T) {
	const rests = `{"state":"TASK_STATE_INPUT_REQUIRED","timestamp":"2026-11-20T19:44:40.1Z",` +
		`"message":{"messageId":"m1","parts":[{"text":"which?"}]}}`
	revision := func(result string) string {
		rep, err := a2a.V1REST().Push([]byte(result), nil)
		if err != nil || rep.Revision == "" {
			t.Fatalf("%s: %+v, %v", result, rep, err)
		}
		return rep.Revision
	}
	asked := revision(`{"id":"t","status":` + rests + `,"artifacts":[{"artifactId":"a"}]}`)
	if streamed := revision(`{"statusUpdate":{"status":` + rests + `}}`); streamed != asked {
		t.Errorf("the revision is %q in a stream and %q in an answer", streamed, asked)
	}
	if later := revision(`{"statusUpdate":{"status":` + strings.Replace(rests, "m1", "m2", 1) + `}}`); later == asked {
		t.Error("another question has the same revision")
	}
	const works = `{"id":"t","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"%s"}]}`
	if revision(fmt.Sprintf(works, "a")) == revision(fmt.Sprintf(works, "b")) {
		t.Error("another artifact has the same revision")
	}
}

// TestPush tests the envelopes of notifications; their content is the same as in streams.
func TestPush(t *testing.T) {
	const event = `{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`
	const want = "report working (TASK_STATE_WORKING) task=\"t\" session=\"c\"\n"
	for _, body := range []string{
		event, " " + event + "\n", `{"jsonrpc":"2.0","id":1,"result":` + event + `}`,
		`{"jsonrpc":"2.0","method":"x","params":` + event + `}`,
	} {
		for _, b := range bindings {
			if diff := cmp.Diff(want, showReport(b.client.Push([]byte(body), nil))); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", b.name, body, diff)
			}
		}
	}
	for _, body := range []string{`{}`, `{"hello":{}}`, `{"error":{"code":1,"message":"x"}}`} {
		if rep, err := a2a.V1().Push([]byte(body), nil); err != nil || !cmp.Equal(rep, agent.Report{}) {
			t.Errorf("%s: %+v, %v", body, rep, err)
		}
	}
	for _, body := range []string{``, `x`, `[]`, `{} {}`} {
		if rep, err := a2a.V1().Push([]byte(body), nil); task.KindOf(err) != task.InvalidAgentResponse {
			t.Errorf("%s: %+v, %v", body, rep, err)
		}
	}
}

// TestRefusals tests the kinds of an agent's errors: by their reason, otherwise by their code.
func TestRefusals(t *testing.T) {
	const info = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","reason":"%s"}`
	for _, tc := range []struct {
		reason     string
		code, http int
		kind       task.Kind
	}{
		{"TASK_NOT_FOUND", -32001, 404, task.TaskNotFound},
		{"TASK_NOT_CANCELABLE", -32002, 400, task.TaskNotCancelable},
		{"PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400, task.NotificationNotSupported},
		{"UNSUPPORTED_OPERATION", -32004, 400, task.UnsupportedOperation},
		{"CONTENT_TYPE_NOT_SUPPORTED", -32005, 415, task.ContentTypeNotSupported},
		{"INVALID_AGENT_RESPONSE", -32006, 502, task.InvalidAgentResponse},
		{"EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, 400, task.UnsupportedOperation}, // no GroupNotSupported
		{"EXTENSION_SUPPORT_REQUIRED", -32008, 400, task.UnsupportedOperation},         // no AuthenticationRequired
		{"VERSION_NOT_SUPPORTED", -32009, 400, task.MethodNotFound},                    // no AuthorizationFailed
		{"PARSE_ERROR", -32700, 400, task.Internal},
		{"INVALID_REQUEST", -32600, 400, task.Internal},
		{"METHOD_NOT_FOUND", -32601, 501, task.MethodNotFound},
		{"INVALID_PARAMS", -32602, 400, task.InvalidParams},
		{"INTERNAL_ERROR", -32603, 500, task.Internal},
		{"UNAUTHENTICATED", -31401, 401, task.InvalidAgentResponse},
		{"PERMISSION_DENIED", -32052, 403, task.InvalidAgentResponse},
		{"ACCESS_TOKEN_INVALID", -32051, 401, task.InvalidAgentResponse},
		{"LIMIT_EXCEEDED", -32050, 429, task.LimitExceeded},
		{"AGENT_UNAVAILABLE", -32603, 502, task.AgentUnavailable},
		{"AGENT_TIMEOUT", -32603, 504, task.AgentTimeout},
		{"STORE_UNAVAILABLE", -32603, 503, task.Internal}, // the turn may have begun
		{"", -32001, 404, task.TaskNotFound},
		{"", -32007, 405, task.UnsupportedOperation},
		{"", -32009, 501, task.MethodNotFound},
		{"", -32602, 400, task.InvalidParams},
		{"", -32010, 500, task.Internal},
		{"", 1, 418, task.Internal},
		{"MADE_UP", -32002, 409, task.TaskNotCancelable},
	} {
		details := `[]`
		if tc.reason != "" {
			details = `[{"@type":"type.googleapis.com/google.rpc.BadRequest","reason":"X"},` +
				fmt.Sprintf(info, tc.reason) + `]`
		}
		rpc := fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":"own  words","data":%s}}`, tc.code,
			details)
		_, err := a2a.V1().Reply([]byte(rpc), nil)
		if task.KindOf(err) != tc.kind || !strings.HasSuffix(err.Error(), ": own words") {
			t.Errorf("%s: %v", rpc, err)
		}
		if _, other := a2a.V1().NewStream(nil).Event("error", []byte(rpc)); other == nil ||
			other.Error() != err.Error() {
			t.Errorf("in a stream, %s: %v", rpc, other)
		}
		if tc.reason == "" {
			continue
		}
		for _, body := range []string{
			fmt.Sprintf(`{"error":{"code":%d,"status":"X","message":"own words","details":%s}}`, tc.http, details),
			fmt.Sprintf(`{"code":%d,"message":"own words","details":%s}`, tc.http, details),
		} {
			_, err := a2a.V1REST().Reply([]byte(body), nil)
			if tc.reason != "MADE_UP" && task.KindOf(err) != tc.kind || err == nil {
				t.Errorf("%s: %v", body, err)
			}
		}
	}
	for code, want := range map[int]task.Kind{
		400: task.InvalidParams, 401: task.InvalidAgentResponse, 403: task.InvalidAgentResponse, 404: task.TaskNotFound,
		405: task.MethodNotFound,
		409: task.UnsupportedOperation, 413: task.LimitExceeded, 415: task.ContentTypeNotSupported,
		429: task.AgentUnavailable, 500: task.Internal,
		501: task.MethodNotFound, 502: task.AgentUnavailable, 503: task.AgentUnavailable, 504: task.AgentTimeout,
	} {
		_, err := a2a.V1REST().Reply(fmt.Appendf(nil, `{"error":{"code":%d,"message":"x"}}`, code), nil)
		if task.KindOf(err) != want {
			t.Errorf("HTTP %d is %v, want %v", code, err, want)
		}
	}
	if _, err := a2a.V1REST().Reply([]byte(`{"error":"broken"}`), nil); task.KindOf(err) != task.Internal {
		t.Errorf("an error that is no object: %v", err)
	}
}

// TestOwnership: reports do not change when their bytes do.
func TestOwnership(t *testing.T) {
	const result = `{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING",` +
		`"message":{"parts":[{"text":"x"},{"data":{"a":1}}]}},"artifacts":[{"artifactId":"a","parts":[{"raw":"QUJD",` +
		`"metadata":{"b":2}}]}]}}`
	for _, b := range bindings {
		for name, read := range map[string]func([]byte) (agent.Report, error){
			"Reply": func(body []byte) (agent.Report, error) { return b.client.Reply(body, nil) },
			"Event": func(body []byte) (agent.Report, error) { return b.client.NewStream(nil).Event("", body) },
			"Push":  func(body []byte) (agent.Report, error) { return b.client.Push(body, nil) },
		} {
			body := wrap(b.client, result)
			rep, err := read(body)
			want := showReport(rep, err)
			for i := range body {
				body[i] = 'x'
			}
			if diff := cmp.Diff(want, showReport(rep, err)); diff != "" || err != nil {
				t.Errorf("%s, %s: the report is a view of its body:\n%s", b.name, name, diff)
			}
		}
	}
}
