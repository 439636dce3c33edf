// SPDX-License-Identifier: Apache-2.0

package v03_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

const captures = "testdata/go.txtar"

// TestCaptures reads the answers of a real agent, and its requests to webhooks.
func TestCaptures(t *testing.T) { a2atest.Captures(t, captures, a2a.V03()) }

func TestRequests(t *testing.T) {
	c := a2a.V03()
	turn := func(change func(*agent.Turn)) *agent.Turn {
		t := &agent.Turn{Ref: agent.Ref{Task: "t1", Session: "s1"},
			Message: task.Message{ID: "m\"1", DataItems: []task.DataItem{task.Text("hi")}}}
		change(t)
		return t
	}
	const message = `{"message":{"kind":"message","messageId":"m\"1","role":"user","parts":[{"kind":"text","text":"hi"}]`
	const send, stream = `{"jsonrpc":"2.0","id":"m\"1","method":"message/send","params":` + message,
		`{"jsonrpc":"2.0","id":"m\"1","method":"message/stream","params":` + message
	const inContext = `,"contextId":"s1"`
	const blocking = `},"configuration":{"acceptedOutputModes":[],"blocking":true}}}`
	none := func(*agent.Turn) {}
	for _, tc := range []struct{ name, got, want string }{
		{"start", string(c.AppendTurn([]byte("x"), turn(none), false)), "x" + send + inContext + blocking},
		{"start by a stream", string(c.AppendTurn(nil, turn(none), true)), stream + inContext + `}}}`},
		{"start with references",
			string(c.AppendTurn(nil, turn(func(t *agent.Turn) { t.References = []string{"t2", "t3"} }), true)),
			stream + inContext + `,"referenceTaskIds":["t2","t3"]}}}`},
		{"answer", string(c.AppendTurn(nil, turn(func(t *agent.Turn) { t.From = task.AwaitingInput }), true)),
			stream + `,"taskId":"t1","contextId":"s1"}}}`},
		{"go on after the end",
			string(c.AppendTurn(nil,
				turn(func(t *agent.Turn) { t.From, t.Revision = task.AwaitingCompletion, "completed 1" }), false)),
			send + `,"contextId":"s1","referenceTaskIds":["t1"]` + blocking},
		{"go on after a message",
			string(c.AppendTurn(nil,
				turn(func(t *agent.Turn) { t.From, t.Revision = task.AwaitingCompletion, "message 1" }), true)),
			stream + `,"contextId":"s1"}}}`},
		{"go on after a message in no context",
			string(c.AppendTurn(nil, turn(func(t *agent.Turn) { t.From, t.Ref = task.AwaitingCompletion, agent.Ref{} }),
				true)),
			stream + `}}}`},
		{"webhook, by a stream",
			string(c.AppendTurn(nil,
				turn(func(t *agent.Turn) { t.Webhook = &task.Webhook{URL: "https://x/", Token: "k"} }), true)),
			stream + inContext +
				`},"configuration":{"acceptedOutputModes":[],"pushNotificationConfig":{"url":"https://x/","token":"k"}}}}`},
		{"webhook", string(c.AppendTurn(nil, turn(func(t *agent.Turn) {
			t.Webhook = &task.Webhook{ID: "w", URL: "https://x/", Scheme: "Bearer", Credentials: "c"}
		}), false)),
			send + inContext +
				`},"configuration":{"acceptedOutputModes":[],"blocking":true,"pushNotificationConfig":{"url":"https://x/",` +
				`"id":"w","authentication":{"schemes":["Bearer"],"credentials":"c"}}}}}`},
		{"start without an id", string(c.AppendTurn(nil, &agent.Turn{Ref: agent.Ref{Task: "t1"}}, true)),
			`{"jsonrpc":"2.0","id":"t1","method":"message/stream","params":{"message":{"kind":"message","messageId":"t1",` +
				`"role":"user","parts":[]}}}`},
		{"answer without an id",
			string(c.AppendTurn(nil, &agent.Turn{Ref: agent.Ref{Task: "t1"}, From: task.AwaitingInput, Revision: "a"},
				true)),
			`{"jsonrpc":"2.0","id":"t1-e8b7be43","method":"message/stream","params":{"message":{"kind":"message",` +
				`"messageId":"t1-e8b7be43","role":"user","parts":[],"taskId":"t1"}}}`},
		{"every kind of item", string(c.AppendTurn(nil,
			&agent.Turn{Message: task.Message{ID: "m", DataItems: []task.DataItem{
				{Kind: task.TextItem, Text: "x", Metadata: []byte(`{"m":1}`)},
				{Kind: task.FileItem, Name: "n", MIMEType: "text/plain", URI: "http://x/"},
				{Kind: task.FileItem, Bytes: "eA=="},
				{Kind: task.DataKind, Data: []byte(`{"d":[1]}`)},
			}}}, true)),
			`{"jsonrpc":"2.0","id":"m","method":"message/stream","params":{"message":{"kind":"message","messageId":"m",` +
				`"role":"user","parts":[` +
				`{"kind":"text","text":"x","metadata":{"m":1}},{"kind":"file","file":{"name":"n","mimeType":"text/plain",` +
				`"uri":"http://x/"}},` +
				`{"kind":"file","file":{"bytes":"eA=="}},{"kind":"data","data":{"d":[1]}}]}}}`},
		{"get", string(c.(translate.Getter).AppendGet(nil, agent.Ref{Task: "t1"})),
			`{"jsonrpc":"2.0","id":"t1","method":"tasks/get","params":{"id":"t1","historyLength":0}}`},
		{"cancel", string(c.(translate.Canceler).AppendCancel(nil, agent.Ref{Task: "t1"})),
			`{"jsonrpc":"2.0","id":"t1","method":"tasks/cancel","params":{"id":"t1"}}`},
		{"resubscribe", string(c.(translate.Resubscriber).AppendResubscribe(nil, agent.Ref{Task: "t1"})),
			`{"jsonrpc":"2.0","id":"t1","method":"tasks/resubscribe","params":{"id":"t1"}}`},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if diff := cmp.Diff([]translate.Field{{Name: "A2A-Version", Value: "0.3"}}, c.Header()); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
}

// whole wraps the members of a Task.
func whole(members string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","contextId":"c",` + members + `}}`
}

// TestReply tests the forms of answers.
//
// Lenient: an answer in the history alone
func TestReply(t *testing.T) {
	const working, report = `"status":{"state":"working"}`, "report whole working (working) task=t session=c\n"
	text := func(id, text string) string {
		return fmt.Sprintf("  product {\"id\":%q,\"dataItems\":[{\"type\":\"text\",\"text\":%q}]}\n", id, text)
	}
	for _, tc := range []struct{ name, in, want string }{
		{"a task", whole(working), report},
		{"a task without kind and context", `{"result":{"id":"t","status":{"state":"submitted"}}}`,
			"report whole accepted (submitted) task=t session=\n"},
		{"a task without names", `{"result":{"status":{"state":"submitted"}}}`, "report whole accepted (submitted)\n"},
		{"nulls", whole(working + `,"artifacts":null,"history":null,"metadata":null,"taskId":null,"messageId":null`),
			report},
		{"an answer in the history alone", whole(`"status":{"state":"completed"},"artifacts":[],"history":[` +
			`{"role":"agent","parts":[{"kind":"text","text":"before"}]},{"role":"user","parts":[{"kind":"text",` +
			`"text":"q"}]},{"role":"agent","parts":[{"kind":"text","text":"4"}]},{"role":"agent","parts":7},` +
			`{"role":"agent","parts":[{"kind":"text","text":"2"}]}]`),
			"report whole awaiting-completion (completed) task=t session=c\n  says {\"id\":\"\",\"dataItems\":" +
				"[{\"type\":\"text\",\"text\":\"42\"}]}\n"},
		{"a history that ends with the caller's words", whole(`"status":{"state":"completed"},"history":[` +
			`{"role":"agent","parts":[{"kind":"text","text":"before"}]},{"role":"user","parts":[]}]`),
			"report whole awaiting-completion (completed) task=t session=c\n"},
		{"a history beside an artifact", whole(`"status":{"state":"completed"},"artifacts":[{"artifactId":"a",` +
			`"parts":[{"text":"3"}]}],"history":[{"role":"agent","parts":[{"kind":"text","text":"4"}]}]`),
			"report whole awaiting-completion (completed) task=t session=c\n" + text("a", "3")},
		{"a history beside an empty artifact", whole(`"status":{"state":"completed"},"artifacts":[{"artifactId":"a",` +
			`"parts":[]}],"history":[{"role":"agent","parts":[{"kind":"text","text":"4"}]}]`),
			"report whole awaiting-completion (completed) task=t session=c\n" +
				"  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"4\"}]}\n"},
		{"rejected", whole(`"status":{"state":"rejected"}`), "report whole rejected (rejected) task=t session=c\n"},
		{"unknown", whole(`"status":{"state":"unknown"}`), "report whole  (unknown) task=t session=c\n"},
		{"auth-required",
			whole(`"status":{"state":"auth-required","message":{"parts":[{"kind":"text","text":"log in"}]}}`),
			"report whole awaiting-input (auth-required) open task=t session=c\n  says {\"id\":\"\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"log in\"},{\"type\":\"data\"," +
				"\"data\":{\"a2aState\":\"auth-required\"}}]}\n"},
		{"a state of no version", whole(`"status":{"state":"TASK_STATE_PAUSED"}`),
			"error invalid-agent-response: the agent's answer has the state \"TASK_STATE_PAUSED\", which A2A 0.3 does not " +
				"have\n"},

		{"a message",
			`{"result":{"kind":"message","messageId":"m","role":"agent","parts":[{"kind":"text","text":"a"},{"kind":"text",` +
				`"text":"b"}]}}`,
			"report whole awaiting-completion (message)\n  product {\"id\":\"m\",\"dataItems\":[{\"type\":\"text\"," +
				"\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}\n"},
		{"a message in a context", `{"result":{"messageId":"m","role":"agent","contextId":"c","parts":[]}}`,
			"report whole awaiting-completion (message) task= session=c\n  product {\"id\":\"m\",\"dataItems\":[]}\n"},
		{"a message without an id", `{"result":{"parts":[{"kind":"text","text":"a"}]}}`,
			"report whole awaiting-completion (message)\n" + text("message", "a")},

		{"texts are joined", whole(working +
			`,"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"1"},{"kind":"text","text":"2"},{"kind":"data",` +
			`"data":{}},{"kind":"text","text":"3"}]}]`),
			report +
				"  product {\"id\":\"a\",\"dataItems\":[{\"type\":\"text\",\"text\":\"12\"},{\"type\":\"data\",\"data\":{}}," +
				"{\"type\":\"text\",\"text\":\"3\"}]}\n"},
		{"pieces are put together",
			whole(working +
				`,"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"1"}]},{"artifactId":"b",` +
				`"parts":[{"text":"4"}]},{"artifactId":"a","name":"n","description":"d","append":true,` +
				`"parts":[{"kind":"text","text":"2"}]},{"artifactId":"a","parts":[{"kind":"text","text":"3"}]}]`),
			report +
				"  product {\"id\":\"a\",\"name\":\"n\",\"description\":\"d\",\"dataItems\":[{\"type\":\"text\",\"text\":\"123\"}" +
				"]}\n  " + strings.TrimLeft(text("b", "4"), " ")},
		{"a piece that begins anew",
			whole(working +
				`,"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"1"}]},{"artifactId":"a","append":false,` +
				`"parts":[{"kind":"text","text":"2"}]}]`),
			report + text("a", "2")},
		{"no artifactId", whole(working +
			`,"artifacts":[{"parts":[{"kind":"text","text":"1"}]},{"name":"n","parts":[]}]`),
			report + text("artifact", "1") + "  product {\"id\":\"artifact-n\",\"name\":\"n\",\"dataItems\":[]}\n"},
		{"a long artifactId", whole(working + `,"artifacts":[{"artifactId":"` + strings.Repeat("i", 257) +
			`","parts":[{"kind":"text","text":"1"}]}]`),
			report + text("artifact-eb610bfd56c0a924", "1")},
		{"files", whole(working +
			`,"artifacts":[{"artifactId":"a","parts":[{"kind":"file","file":{"fileWithBytes":"eA=="}},{"kind":"file",` +
			`"file":{"fileWithUri":"u"}}]}]`),
			report +
				"  product {\"id\":\"a\",\"dataItems\":[{\"type\":\"file\",\"bytes\":\"eA==\"},{\"type\":\"file\",\"uri\":\"u\"}" +
				"]}\n"},

		{"neither", `{"result":{"kind":"task","id":"t"}}`,
			"error invalid-agent-response: the agent's answer has neither a status nor a messageId, so it is no Task and no " +
				"Message\n"},
		{"no object", `{"result":null,"id":1}`,
			"error invalid-agent-response: the agent's answer has neither a status nor a messageId, so it is no Task and no " +
				"Message\n"},
		{"a long id", `{"result":{"id":"` + strings.Repeat("i", 257) + `","status":{"state":"working"}}}`,
			"error invalid-agent-response: the agent's answer has an id of more than 256 bytes\n"},
		{"artifacts that are no array", whole(working + `,"artifacts":{}`),
			"error invalid-agent-response: the agent's answer has artifacts that are no array\n"},
		{"an artifact that is no object", whole(working + `,"artifacts":[1]`),
			"error invalid-agent-response: the agent's answer has an artifact that is no object\n"},
		{"parts that are no array", whole(working + `,"artifacts":[{"artifactId":"a","parts":{}}]`),
			"error invalid-agent-response: the agent's answer has parts that are no array\n"},
		{"too many artifacts", whole(working + `,"artifacts":[` + many(1001) + `]`),
			"error invalid-agent-response: the agent's answer has more than 1000 artifacts\n"},
		{"no JSON",
			`<html>`,
			"error invalid-agent-response: the agent's answer is no JSON-RPC response: a JSON value is expected\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body := []byte(tc.in)
			rep, err := a2a.V03().Reply(body, nil)
			for i := range body {
				body[i] = '#' // the report is the reader's own
			}
			if diff := cmp.Diff(tc.want, a2atest.Show(rep, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func many(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"artifactId":"%d","name":"n"}`, i)
	}
	return strings.Join(list, ",")
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"code":-32700}`, "internal: the agent could not read the gateway's request"},
		{`{"code":-32600}`, "internal: the agent does not accept the gateway's request"},
		{`{"code":-32601}`, "method-not-found: the agent does not have this method"},
		{`{"code":-32602}`, "invalid-params: the agent does not accept the parameters"},
		{`{"code":-32603,"data":"no quota"}`, "internal: the agent failed: no quota"},
		{`{"code":-32001}`, "task-not-found: the agent does not know this task"},
		{`{"code":-32002}`, "task-not-cancelable: the agent refuses to cancel this task"},
		{`{"code":-32003}`, "notification-not-supported: the agent has no push notifications"},
		{`{"code":-32004}`, "unsupported-operation: the agent does not support this"},
		{`{"code":-32005}`, "content-type-not-supported: the agent does not take this kind of content"},
		{`{"code":-32006}`, "invalid-agent-response: the agent says that it made an invalid response"},
		{`{"code":-32007}`, "unsupported-operation: the agent has no extended card"},
		{`{"code":-32008,"message":"x"}`, "internal: the agent reports error -32008: x"},
		{`{"code":-32009}`, "internal: the agent reports error -32009"},
		{`{"code":-31401}`, "internal: the agent requires the gateway to authenticate itself"},
	} {
		body, want := []byte(`{"jsonrpc":"2.0","id":1,"error":`+tc.in+`}`), "error "+tc.want+"\n"
		if diff := cmp.Diff(want, a2atest.Show(a2a.V03().Reply(body, nil))); diff != "" {
			t.Errorf("reply (-want +got):\n%s", diff)
		}
		for _, name := range []string{"", "message", "error"} {
			if diff := cmp.Diff(want, a2atest.Show(a2a.V03().NewStream(nil).Event(name, body))); diff != "" {
				t.Errorf("event %q (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestPush(t *testing.T) {
	known := []task.Product{{ID: "a"}}
	for _, tc := range []struct{ name, in, want string }{
		{"a task", `{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}`,
			"report whole working (working) task=t session=c\n"},
		{"a task in an envelope", whole(`"status":{"state":"working"}`),
			"report whole working (working) task=t session=c\n"},
		{"a status", `{"taskId":"t","contextId":"c","status":{"state":"completed"},"final":true}`,
			"report awaiting-completion (completed) task=t session=c\n"},
		{"an artifact in a notification",
			`{"jsonrpc":"2.0","method":"x","params":{"taskId":"t","append":true,"lastChunk":true,"artifact":{"artifactId":"a",` +
				`"parts":[{"text":"1"}]}}}`,
			"report task=t session=\n  chunk append=true last=true {\"id\":\"a\",\"dataItems\":[{\"type\":\"text\"," +
				"\"text\":\"1\"}]}\n"},
		{"a message", `{"kind":"message","messageId":"m","parts":[{"text":"1"}]}`,
			"report whole awaiting-completion (message)\n  product {\"id\":\"m\",\"dataItems\":[{\"type\":\"text\"," +
				"\"text\":\"1\"}]}\n"},
		{"nothing", `{"x":1}`, "report\n"},
		{"no JSON", `{`, "error invalid-agent-response: the agent's notification is not one JSON value\n"},
	} {
		if diff := cmp.Diff(tc.want, a2atest.Show(a2a.V03().Push([]byte(tc.in), known))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// A settled report has the same revision from a stream and from a poll, and the next one has another.
func TestRevision(t *testing.T) {
	const done = `"status":{"state":"completed","timestamp":"1"}`
	revision := func(rep agent.Report, err error) string {
		if err != nil || rep.Revision == "" {
			t.Fatalf("revision %q, error %v", rep.Revision, err)
		}
		return rep.Revision
	}
	asked := revision(a2a.V03().Reply([]byte(whole(done+`,"artifacts":[{"artifactId":"a"}],"history":[1]`)), nil))
	if streamed := revision(a2a.V03().NewStream(nil).Event("",
		[]byte(`{"result":{"taskId":"t","final":true,`+done+`}}`))); streamed != asked {
		t.Errorf("asked %q, streamed %q", asked, streamed)
	}
	first := revision(a2a.V03().Reply([]byte(`{"result":{"messageId":"1","parts":[]}}`), nil))
	if second := revision(a2a.V03().Reply([]byte(`{"result":{"messageId":"2","parts":[]}}`), nil)); second == first ||
		first == asked {
		t.Errorf("two messages have the revisions %q and %q", first, second)
	}
}

func FuzzReply(f *testing.F) {
	a2atest.Seeds(f, captures, ".json")
	f.Add([]byte(whole(`"status":{"state":"auth-required"},"artifacts":[{"artifactId":"a","append":true,` +
		`"parts":[{"kind":"x"},{"file":{"bytes":"a","uri":"b"}},{"data":[1]}]},{"artifactId":"a"}]`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		rep, err := a2a.V03().Reply(body, []task.Product{{ID: "a"}})
		a2atest.Check(t, rep, err)
		if err == nil && rep.NativeState == "" {
			t.Fatal("a reply without a state")
		}
	})
}

func FuzzPush(f *testing.F) {
	f.Add([]byte(`{"kind":"task","id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"text":"x"}]}]}`))
	f.Add([]byte(`{"jsonrpc":"2.0","result":{"kind":"artifact-update","artifact":{"artifactId":"a","parts":[]},` +
		`"append":true}}`))
	f.Add([]byte(`1,"error":{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		rep, err := a2a.V03().Push(body, []task.Product{{ID: "a"}})
		a2atest.Check(t, rep, err)
	})
}

func BenchmarkReply(b *testing.B) {
	body := []byte(whole(`"status":{"state":"completed","message":{"kind":"message","messageId":"m","role":"agent",` +
		`"parts":[{"kind":"text","text":"ok"}]},"timestamp":"2026-11-20T19:32:51Z"},"artifacts":[{"artifactId":"a",` +
		`"name":"echo","parts":[{"kind":"text","text":"echo: hello"}]}]`))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a2a.V03().Reply(body, nil); err != nil {
			b.Fatal(err)
		}
	}
}
