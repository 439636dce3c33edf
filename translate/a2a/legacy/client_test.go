// SPDX-License-Identifier: Apache-2.0

package legacy_test

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

const captures = "testdata/trpc.txtar"

// TestCaptures reads the answers of a real agent.
func TestCaptures(t *testing.T) { a2atest.Captures(t, captures, a2a.Legacy()) }

func TestRequests(t *testing.T) {
	c := a2a.Legacy()
	turn := func(items ...task.DataItem) *agent.Turn {
		return &agent.Turn{Ref: agent.Ref{Task: "t\"1", Session: "s1"}, Message: task.Message{DataItems: items}}
	}
	ref := agent.Ref{Task: "t1"}
	for _, tc := range []struct{ name, got, want string }{
		{"send", string(c.AppendTurn(nil, turn(task.Text("a \"b\"\n")), false)),
			`{"jsonrpc":"2.0","id":"t\"1","method":"tasks/send","params":{"id":"t\"1","sessionId":"s1",` +
				`"message":{"role":"user","parts":[{"type":"text","text":"a \"b\"\n"}]}}}`},
		{"stream", string(c.AppendTurn(nil, turn(), true)),
			`{"jsonrpc":"2.0","id":"t\"1","method":"tasks/sendSubscribe","params":{"id":"t\"1","sessionId":"s1",` +
				`"message":{"role":"user","parts":[]}}}`},
		{"no session", string(c.AppendTurn(nil, &agent.Turn{Ref: ref}, false)),
			`{"jsonrpc":"2.0","id":"t1","method":"tasks/send","params":{"id":"t1","message":{"role":"user","parts":[]}}}`},
		{"webhook", string(c.AppendTurn(nil,
			&agent.Turn{Ref: ref, Webhook: &task.Webhook{ID: "w", URL: "https://x/", Token: "k"}}, false)),
			`{"jsonrpc":"2.0","id":"t1","method":"tasks/send","params":{"id":"t1","message":{"role":"user","parts":[]},` +
				`"pushNotification":{"url":"https://x/","token":"k"}}}`},
		{"every kind of item", string(c.AppendTurn(nil, turn(
			task.DataItem{Kind: task.TextItem, Text: "x", Metadata: []byte(`{"m":1}`)},
			task.DataItem{Kind: task.FileItem, Name: "n", MIMEType: "text/plain", URI: "http://x/"},
			task.DataItem{Kind: task.FileItem, Bytes: "eA=="},
			task.DataItem{Kind: task.DataKind, Data: []byte(`{"d":[1]}`)},
			task.DataItem{Kind: task.DataKind},
		), false)),
			`{"jsonrpc":"2.0","id":"t\"1","method":"tasks/send","params":{"id":"t\"1","sessionId":"s1",` +
				`"message":{"role":"user","parts":[` +
				`{"type":"text","text":"x","metadata":{"m":1}},` +
				`{"type":"file","file":{"name":"n","mimeType":"text/plain","uri":"http://x/"}},` +
				`{"type":"file","file":{"bytes":"eA=="}},` +
				`{"type":"data","data":{"d":[1]}},{"type":"data","data":{}}]}}}`},
		{"get", string(c.(translate.Getter).AppendGet([]byte("x"), ref)),
			`x{"jsonrpc":"2.0","id":"t1","method":"tasks/get","params":{"id":"t1"}}`},
		{"cancel", string(c.(translate.Canceler).AppendCancel(nil, ref)),
			`{"jsonrpc":"2.0","id":"t1","method":"tasks/cancel","params":{"id":"t1"}}`},
		{"resubscribe", string(c.(translate.Resubscriber).AppendResubscribe(nil, ref)),
			`{"jsonrpc":"2.0","id":"t1","method":"tasks/resubscribe","params":{"id":"t1"}}`},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// whole wraps the members of a Task.
func whole(members string) string {
	return `{"jsonrpc":"2.0","id":1,"result":{"id":"t",` + members + `}}`
}

func TestReply(t *testing.T) {
	const working = `"status":{"state":"working"}`
	parts := func(list string) string {
		return whole(`"status":{"state":"working","message":{"role":"agent","parts":[` + list + `]}}`)
	}
	known := []task.Product{{ID: "artifact-0"}, {ID: "artifact-0-echo", Name: "echo"}, {ID: "artifact-00"},
		{ID: "artifact-1"}}
	for _, tc := range []struct{ name, in, want string }{
		{"submitted", whole(`"status":{"state":"submitted"}`), "report whole accepted (submitted)\n"},
		{"working", whole(working), "report whole working (working)\n"},
		{"input-required", whole(`"status":{"state":"input-required"}`),
			"report whole awaiting-input (input-required)\n"},
		{"completed", whole(`"status":{"state":"completed"}`), "report whole awaiting-completion (completed)\n"},
		{"canceled", whole(`"status":{"state":"canceled"}`), "report whole canceled (canceled)\n"},
		{"failed", whole(`"status":{"state":"failed"}`), "report whole failed (failed)\n"},
		{"unknown", whole(`"status":{"state":"unknown"}`), "report whole  (unknown)\n"},
		{"two l", whole(`"status":{"state":"cancelled"}`), "report whole canceled (cancelled)\n"},
		{"rejected", whole(`"status":{"state":"rejected"}`), "report whole rejected (rejected)\n"},
		{"auth-required", whole(`"status":{"state":"auth-required"}`),
			"report whole awaiting-input (auth-required) open\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"data\"," +
				"\"data\":{\"a2aState\":\"auth-required\"}}]}\n"},
		{"a state of no version", whole(`"status":{"state":"TASK_STATE_PAUSED"}`),
			"error invalid-agent-response: the agent's answer has the state \"TASK_STATE_PAUSED\", which A2A v0.1 does not " +
				"have\n"},
		{"a long and dirty state", whole(`"status":{"state":"x\n\u001b[1m` + strings.Repeat("y", 1000) + `"}`),
			"error invalid-agent-response: the agent's answer has the state \"x [1m" + strings.Repeat("y", 35) +
				"…\", which A2A v0.1 does not have\n"},
		{"an HTML state", whole(`"status":{"state":"<html>x"}`),
			"error invalid-agent-response: the agent's answer has the state \"\", which A2A v0.1 does not have\n"},
		{"nulls",
			whole(`"sessionId":null,"artifacts":null,"history":null,"metadata":null,"status":{"state":"working",` +
				`"message":null,"timestamp":null}`),
			"report whole working (working)\n"},
		{"nulls inside", whole(working +
			`,"artifacts":[{"name":null,"description":null,"index":null,"append":null,"lastChunk":null,"metadata":null,` +
			`"parts":null}]`), "report whole working (working)\n"},
		{"no envelope members", `{"result":{"status":{"state":"working"}}}`, "report whole working (working)\n"},

		{"parts without a type", parts(`{"text":"a"},{"file":{"uri":"u"}},{"data":{}}`),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}," +
				"{\"type\":\"file\",\"uri\":\"u\"},{\"type\":\"data\",\"data\":{}}]}\n"},
		{"parts with a kind", parts(`{"kind":"text","text":"a"}`),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"}]}\n"},
		{"metadata",
			parts(`{"type":"text","text":"a","metadata":{"m":1}},{"type":"text","text":"b","metadata":{}},{"type":"text",` +
				`"text":"c","metadata":[1]}`),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"," +
				"\"metadata\":{\"m\":1}},{\"type\":\"text\",\"text\":\"b\",\"metadata\":{}}," +
				"{\"type\":\"text\",\"text\":\"c\"}]}\n"},
		{"files",
			parts(`{"type":"file","file":{"name":"n","mimeType":"text/plain","bytes":"eA=="}},{"type":"file",` +
				`"file":{"bytes":"eA==","uri":"u"}},{"type":"file","file":{"name":"n"}},{"type":"file"}`),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"file\",\"name\":\"n\"," +
				"\"mimeType\":\"text/plain\",\"bytes\":\"eA==\"},{\"type\":\"file\",\"bytes\":\"eA==\"},{\"type\":\"data\"," +
				"\"data\":{\"type\":\"file\",\"file\":{\"name\":\"n\"}}},{\"type\":\"data\",\"data\":{\"type\":\"file\"}}]}\n"},
		{"data on one line", parts("{\"type\":\"data\",\"data\":{\n\"a\": \"x\\n\",\r\n\"b\":[]}}"),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"data\",\"data\":{\"a\":\"x\\n\"," +
				"\"b\":[]}}]}\n"},
		{"data that is no object", parts(`{"type":"data","data":[1]},{"type":"data","data":"x"}`),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"data\",\"data\":{\"value\":[1]}," +
				"\"metadata\":{\"data_part_compat\":true}}," +
				"{\"type\":\"data\",\"data\":{\"value\":\"x\"},\"metadata\":{\"data_part_compat\":true}}]}\n"},
		{"parts of no known type", parts(`{"type":"video","text":"a"},{"type":"text","text":1},{},7`),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"data\"," +
				"\"data\":{\"type\":\"video\",\"text\":\"a\"}},{\"type\":\"data\",\"data\":{\"type\":\"text\",\"text\":1}}," +
				"{\"type\":\"data\",\"data\":{}},{\"type\":\"data\",\"data\":{\"value\":7}," +
				"\"metadata\":{\"data_part_compat\":true}}]}\n"},

		{"chunks are put together",
			whole(working +
				`,"artifacts":[{"name":"out","parts":[{"type":"text","text":"a"},{"type":"data","data":{}},{"type":"text",` +
				`"text":"b"}]},` +
				`{"index":0,"append":true,"parts":[{"type":"text","text":"c"},{"type":"text","text":"d"}]},{"name":"out",` +
				`"append":true,"description":"D","parts":[{"type":"file","file":{"uri":"u"}},{"text":"e"}]}]`),
			"report whole working (working)\n  product {\"id\":\"artifact-0-out\",\"name\":\"out\",\"description\":\"D\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"data\",\"data\":{}},{\"type\":\"text\"," +
				"\"text\":\"bcd\"},{\"type\":\"file\",\"uri\":\"u\"},{\"type\":\"text\",\"text\":\"e\"}]}\n"},
		{"as many as it lists",
			whole(working + `,"artifacts":[{"parts":"a"},{"parts":"b"},{"index":0,"parts":"c"},{"name":"n","parts":"d"},` +
				`{"name":"n","parts":"e"},{"name":"n","append":true,"parts":"f"},{"name":"2","parts":"g"},` +
				`{"append":true,"parts":"h"},{"index":1,"name":"o","parts":"i"},{"index":1,"name":"o","parts":"j"}]`),
			"report whole working (working)\n" + texts("artifact-0", "", "a") + texts("artifact-0-2", "", "b") +
				texts("artifact-0-3", "", "c") + texts("artifact-0-n", "n", "d") + texts("artifact-0-n-2", "n", "ef") +
				texts("artifact-0-2-2", "2", "gh") + texts("artifact-1-o", "o", "i") + texts("artifact-1-o-2", "o", "j")},
		{"the same one again is another",
			whole(working +
				`,"artifacts":[{"parts":[{"text":"a"}]},{"append":true,"parts":[{"text":"b"}]},{"append":false,` +
				`"parts":[{"text":"c"}]},{"append":true,"parts":[{"text":"d"}]}]`),
			"report whole working (working)\n" + texts("artifact-0", "", "ab") + texts("artifact-0-2", "", "cd")},
		{"names distinguish artifacts",
			whole(working +
				`,"artifacts":[{"name":"a","parts":[{"text":"1"}]},{"name":"b","parts":[{"text":"2"}]},{"append":true,` +
				`"parts":[{"text":"3"}]},{"name":"a","append":true,"parts":[{"text":"4"}]},{"index":1,"parts":"6"},` +
				`{"append":true,"parts":[{"text":"5"}]}]`),
			"report whole working (working)\n  product {\"id\":\"artifact-0-a\",\"name\":\"a\"," +
				"\"dataItems\":[{\"type\":\"text\",\"text\":\"145\"}]}\n" +
				"  product {\"id\":\"artifact-0-b\",\"name\":\"b\",\"dataItems\":[{\"type\":\"text\",\"text\":\"23\"}]}\n" +
				texts("artifact-1", "", "6")},
		{"a list begins at the beginning", whole(working + `,"artifacts":[{"append":true,"parts":[{"text":"1"}]}]`),
			"report whole working (working)\n  product {\"id\":\"artifact-0\",\"dataItems\":[{\"type\":\"text\"," +
				"\"text\":\"1\"}]}\n"},
		{"a long name", whole(working + `,"artifacts":[{"name":"` + strings.Repeat("n", 65) + `","parts":[]}]`),
			"report whole working (working)\n  product {\"id\":\"artifact-0-64c34f2133638b71\",\"name\":\"" +
				strings.Repeat("n", 65) + "\",\"dataItems\":[]}\n"},
		{"indexes as floats", whole(working + `,"artifacts":[{"index":2.0,"parts":"a"}]`),
			"report whole working (working)\n" + texts("artifact-2", "", "a")},

		{"text that was cut", "\xef\xbb\xbf" + parts(`{"text":"cut \ud83d"},{"data":{"x":NaN}}`),
			"report whole working (working)\n  says {\"id\":\"\",\"dataItems\":[{\"type\":\"text\",\"text\":\"cut \ufffd\"}," +
				"{\"type\":\"data\",\"data\":{\"x\":null}}]}\n"},
		{"text that was cut, and no JSON", `{"result":"\ud83d"`,
			"error invalid-agent-response: the agent's answer is no JSON-RPC response: a comma or the end of the object is " +
				"expected\n"},

		{"not JSON", `<html>502</html>`,
			"error invalid-agent-response: the agent's answer is no JSON-RPC response: a JSON value is expected\n"},
		{"not UTF-8", "{\"result\":{\"x\":\"\xff\"}}",
			"error invalid-agent-response: the agent's answer is no JSON-RPC response: a string is not valid UTF-8\n"},
		{"empty", ``, "error invalid-agent-response: the agent's answer is no JSON-RPC response: the body is empty\n"},
		{"too deep", strings.Repeat("[", 1<<20),
			"error invalid-agent-response: the agent's answer is no JSON-RPC response: objects and arrays are nested more " +
				"than 64 deep\n"},
		{"neither result nor error", `{"jsonrpc":"2.0","id":1}`,
			"error invalid-agent-response: the agent's answer is no JSON-RPC response: a response needs a result or an error\n"},
		{"no object", `{"result":[]}`,
			"error invalid-agent-response: the agent's answer has no status, so it is no Task\n"},
		{"no status", whole(`"x":1`),
			"error invalid-agent-response: the agent's answer has no status, so it is no Task\n"},
		{"a status that is no object", whole(`"status":["working"]`),
			"error invalid-agent-response: the agent's answer has a status that is no object\n"},
		{"a status that is a word", whole(`"status":"working"`), "report whole working (working)\n"},
		{"a state in place of a status", whole(`"state":"done"`), "report whole awaiting-completion (done)\n"},
		{"capitals", whole(`"status":{"state":"COMPLETED"}`), "report whole awaiting-completion (COMPLETED)\n"},
		{"another spelling", whole(`"status":{"state":"Input_Required"}`),
			"report whole awaiting-input (Input_Required)\n"},
		{"queued", whole(`"status":{"state":"queued"}`), "report whole accepted (queued)\n"},
		{"in_progress", whole(`"status":{"state":"in_progress"}`), "report whole working (in_progress)\n"},
		{"success", whole(`"status":{"state":"success"}`), "report whole awaiting-completion (success)\n"},
		{"error", whole(`"status":{"state":"Error"}`), "report whole failed (Error)\n"},
		{"no state", whole(`"status":{}`),
			"error invalid-agent-response: the agent's answer has a status without a state\n"},
		{"parts that are no array", whole(`"status":{"state":"working","message":{"parts":{}}}`),
			"error invalid-agent-response: the agent's answer has parts that are no array\n"},
		{"artifacts that are no array", whole(working + `,"artifacts":7`),
			"error invalid-agent-response: the agent's answer has artifacts that are no array\n"},
		{"an artifact that is no object", whole(working + `,"artifacts":[1]`),
			"error invalid-agent-response: the agent's answer has an artifact that is no object\n"},
		{"a negative index", whole(working + `,"artifacts":[{"index":-1}]`),
			"error invalid-agent-response: the agent's answer has an artifact whose index is no number from 0 on\n"},
		{"an index that is no number", whole(working + `,"artifacts":[{"index":"x"}]`),
			"error invalid-agent-response: the agent's answer has an artifact whose index is no number from 0 on\n"},
		{"too many artifacts", whole(working + `,"artifacts":[` + many(1001) + `]`),
			"error invalid-agent-response: the agent's answer has more than 1000 artifacts\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, a2atest.Show(a2a.Legacy().Reply([]byte(tc.in), known))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// texts shows a product with a text.
func texts(id, name, text string) string {
	p := task.Product{ID: id, Name: name, DataItems: []task.DataItem{task.Text(text)}}
	return "  product " + a2atest.Product(&p) + "\n"
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"index":%d,"parts":"x"}`, i)
	}
	return b.String()
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"parse", `{"code":-32700}`, "internal: the agent could not read the gateway's request"},
		{"request", `{"code":-32600}`, "internal: the agent does not accept the gateway's request"},
		{"method", `{"code":-32601}`, "method-not-found: the agent does not have this method"},
		{"params", `{"code":-32602,"message":"text is missing"}`,
			"invalid-params: the agent does not accept the parameters: text is missing"},
		{"internal", `{"code":-32603,"message":null}`, "internal: the agent failed"},
		{"task", `{"code":-32001.0}`, "task-not-found: the agent does not know this task"},
		{"cancel", `{"code":-32002}`, "task-not-cancelable: the agent refuses to cancel this task"},
		{"push", `{"code":-32003}`, "notification-not-supported: the agent has no push notifications"},
		{"unsupported", `{"code":-32004}`, "unsupported-operation: the agent does not support this"},
		{"content", `{"code":-32005}`, "content-type-not-supported: the agent does not take this kind of content"},
		{"AIP's own numbers mean nothing here", `{"code":-32009,"message":"x"}`,
			"internal: the agent reports error -32009: x"},
		{"any number", `{"code":7}`, "internal: the agent reports error 7"},
		{"a page", `{"code":-32603,"message":"<!DOCTYPE html><p>oops</p>"}`, "internal: the agent failed"},
		{"many lines", `{"code":-32603,"message":"  a\n\tb\u0000\u001bc  "}`, "internal: the agent failed: a b c"},
		{"a long text", `{"code":-32603,"message":"` + strings.Repeat("äx", 200) + `"}`,
			"internal: the agent failed: " + strings.Repeat("äx", 100) + "…"},
		{"data", `{"code":-32603,"message":"x","data":"no quota"}`, "internal: the agent failed: x: no quota"},
		{"no code", `{"message":"x"}`, "internal: the agent reports an error: x"},
		{"a text", `"x"`, "internal: the agent reports an error: x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body, want := []byte(`{"jsonrpc":"2.0","id":1,"error":`+tc.in+`}`), "error "+tc.want+"\n"
			if diff := cmp.Diff(want, a2atest.Show(a2a.Legacy().Reply(body, nil))); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, a2atest.Show(a2a.Legacy().NewStream(nil).Event("message", body))); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

// The revision stays the same exactly as long as nothing of the task changes.
func TestRevision(t *testing.T) {
	revision := func(members string) string {
		rep, err := a2a.Legacy().Reply([]byte(whole(members)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return rep.Revision
	}
	base := revision(`"status":{"state":"working","timestamp":"1"},"artifacts":[{"parts":[{"text":"a"}]}]`)
	if base == "" ||
		base != revision(`"history":[1],"artifacts":[{"parts":[{"text":"a"}]}],`+
			`"status":{"state":"working","timestamp":"1"}`) {
		t.Errorf("the revision changes though nothing does")
	}
	for _, other := range []string{
		`"status":{"state":"submitted","timestamp":"1"},"artifacts":[{"parts":[{"text":"a"}]}]`,
		`"status":{"state":"working","timestamp":"2"},"artifacts":[{"parts":[{"text":"a"}]}]`,
		`"status":{"state":"working","timestamp":"1","message":{"parts":[{"text":"x"}]}},` +
			`"artifacts":[{"parts":[{"text":"a"}]}]`,
		`"status":{"state":"working","timestamp":"1"},"artifacts":[{"parts":[{"text":"b"}]}]`,
		`"status":{"state":"working","timestamp":"1"}`,
	} {
		if revision(other) == base {
			t.Errorf("the revision is the same for %s", other)
		}
	}
}

// The reports are the reader's own: a pooled body used again does not change them.
func TestKeepsNothingOfTheBody(t *testing.T) {
	body := []byte(whole(`"status":{"state":"failed","message":{"parts":[{"text":"a"},{"data":{"x":"y"}}]}},` +
		`"artifacts":[{"name":"n","parts":[{"text":"b"}]}]`))
	rep, err := a2a.Legacy().Reply(body, nil)
	want := a2atest.Show(rep, err)
	ev := []byte(`{"result":{"artifact":{"name":"n","parts":[{"text":"b"}]}}}`)
	news, err := a2a.Legacy().NewStream(nil).Event("", ev)
	wantNews := a2atest.Show(news, err)
	for _, b := range [][]byte{body, ev} {
		for i := range b {
			b[i] = '#'
		}
	}
	if diff := cmp.Diff(want+wantNews, a2atest.Show(rep, nil)+a2atest.Show(news, nil)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func FuzzReply(f *testing.F) {
	a2atest.Seeds(f, captures, ".json")
	f.Add([]byte(whole(`"status":{"state":"working"},"artifacts":[{"name":"a","append":true,"parts":[{"type":"x"},` +
		`{"file":{"bytes":"a","uri":"b"}},{"data":[1]}]}]`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		rep, err := a2a.Legacy().Reply(body, []task.Product{{ID: "artifact-0-a"}})
		a2atest.Check(t, rep, err)
		if err == nil && rep.NativeState == "" {
			t.Fatal("a reply without a state")
		}
	})
}

func BenchmarkReply(b *testing.B) {
	body := []byte(whole(`"sessionId":"s","status":{"state":"completed","message":{"role":"agent",` +
		`"parts":[{"type":"text","text":"ok"}]},"timestamp":"2026-11-20T19:32:51Z"},"artifacts":[{"name":"echo",` +
		`"parts":[{"type":"text","text":"echo: hello"}],"index":0,"lastChunk":true}]`))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a2a.Legacy().Reply(body, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	turn := &agent.Turn{Ref: agent.Ref{Task: "0123456789abcdef0123456789abcdef", Session: "s"},
		Message: task.Message{DataItems: []task.DataItem{task.Text("echo hello")}}}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = a2a.Legacy().AppendTurn(dst[:0], turn, false)
	}
}
