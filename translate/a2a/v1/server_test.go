// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// valid are accepted params, at least one for each method.
var valid = []struct{ method, params string }{
	{"SendMessage",
		`{"tenant":"","message":{"messageId":"m1","contextId":"c","role":"ROLE_USER","parts":[{"text":"hi",` +
			`"mediaType":"text/markdown"},{"raw":"QUJD","filename":"f","mediaType":"m"},{"url":"u"},{"data":[1],` +
			`"metadata":{"a":1}}],"extensions":[],"referenceTaskIds":["x"],"metadata":{}},` +
			`"configuration":{"acceptedOutputModes":["text"],"historyLength":2,"returnImmediately":true,` +
			`"taskPushNotificationConfig":{"id":"w","taskId":"","url":"https://h.example","token":"t",` +
			`"authentication":{"scheme":"Bearer","credentials":"c"}}},"metadata":{}}`},
	{"SendStreamingMessage", `{"message":{"messageId":"m1","taskId":"t1","role":"ROLE_USER","parts":[{"text":"hi"}]}}`},
	{"GetTask", `{"id":"t1","historyLength":0}`},
	{"ListTasks",
		`{"contextId":"c","status":"TASK_STATE_WORKING","pageSize":10,"pageToken":"p","historyLength":1,` +
			`"statusTimestampAfter":"2026-01-02T03:04:05.678Z","includeArtifacts":true}`},
	{"CancelTask", `{"id":"t1","metadata":{}}`},
	{"SubscribeToTask", `{"id":"t1"}`},
	{"CreateTaskPushNotificationConfig",
		`{"taskId":"t1","id":"w","url":"https://h.example","token":"t","authentication":{"scheme":"Bearer",` +
			`"credentials":"c"}}`},
	{"GetTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`},
	{"ListTaskPushNotificationConfigs", `{"taskId":"t1","pageSize":5,"pageToken":""}`},
	{"DeleteTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`},
	{"GetExtendedAgentCard", `{}`},
}

// TestServer tests the properties of every dialect.
func TestServer(t *testing.T) {
	var requests [][]byte
	for _, v := range valid {
		requests = append(requests, a2atest.Request(v.method, v.params))
	}
	for _, confirm := range []bool{false, true} {
		t.Run(fmt.Sprint(confirm), func(t *testing.T) { translatetest.Server(t, a2a.V1Server(confirm), requests...) })
	}
}

func TestDecode(t *testing.T) {
	const message = `"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]`
	for _, tc := range []struct{ name, method, params, want string }{
		{"start", "SendMessage", `{` + message + `}}`,
			"call op=0 start id=\"m1\" auto history=-1\n  says [{\"type\":\"text\",\"text\":\"hi\"}]\n"},
		{"an empty messageId", "SendMessage", `{"message":{"messageId":"","role":"ROLE_USER","parts":[{"text":"hi"}]}}`,
			"call op=0 start auto history=-1\n  says [{\"type\":\"text\",\"text\":\"hi\"}]\n"},
		{"start in a context, with everything", "SendMessage", valid[0].params,
			"call op=0 start id=\"m1\" session=\"c\" auto response=-1ns history=2\n" +
				`  says [{"type":"text","text":"hi","metadata":{"mediaType":"text/markdown"}},{"type":"file","name":"f",` +
				`"mimeType":"m","bytes":"QUJD"},{"type":"file","uri":"u"},{"type":"data","data":{"value":[1]},` +
				`"metadata":{"a":1,"data_part_compat":true}}]` +
				"\n" +
				"  webhook {ID:w TaskID: URL:https://h.example Token:t Scheme:Bearer Credentials:c Dialect:a2a/1.0 Confirm:false " +
				"States:[]}\n"},
		{"go on, with a stream", "SendStreamingMessage", `{` + message +
			`,"taskId":"t1"},"configuration":{"historyLength":"0","returnImmediately":false,` +
			`"taskPushNotificationConfig":{"url":"u"}}}`,
			"call op=0 continue id=\"m1\" task=\"t1\" stream snapshot strict history=0\n  says [{\"type\":\"text\"," +
				"\"text\":\"hi\"}]\n" +
				"  webhook {ID: TaskID:t1 URL:u Token: Scheme: Credentials: Dialect:a2a/1.0 Confirm:false States:[]}\n"},
		{"what is unset is written out", "SendMessage",
			`{"configuration":null,"message":{"messageId":"m1","taskId":"","contextId":"","role":"ROLE_UNSPECIFIED",` +
				`"parts":[{"text":"","data":null}]}}`,
			"call op=0 start id=\"m1\" auto history=-1\n  says [{\"type\":\"text\",\"text\":\"\"}]\n"},
		{"get", "GetTask", `{"id":"t1","historyLength":3}`, "call op=0 get task=\"t1\" history=3\n"},
		{"cancel", "CancelTask", `{"id":"t1"}`, "call op=0 cancel task=\"t1\" strict history=-1\n"},
		{"subscribe", "SubscribeToTask", `{"id":"t1"}`,
			"call op=0 re-stream task=\"t1\" stream snapshot strict history=-1\n"},
		{"list", "ListTasks", `{}`,
			"call op=4 get history=-1\n  list {SessionID: States:[] After:0001-01-01 00:00:00 +0000 UTC Size:0 Token: " +
				"Products:false " +
				"Count:true SelfResuming:false NotSelfResuming:false}\n"},
		{"list some", "ListTasks", valid[3].params,
			"call op=4 get history=1\n  list {SessionID:c States:[working] After:2026-01-02 03:04:05.678 +0000 UTC Size:10 " +
				"Token:p Products:true Count:true SelfResuming:false NotSelfResuming:false}\n"},
		{"list what is completed", "ListTasks", `{"status":"TASK_STATE_COMPLETED"}`,
			"call op=4 get history=-1\n  list {SessionID: States:[awaiting-completion completed] After:0001-01-01 00:00:00 " +
				"+0000 UTC Size:0 Token: Products:false " +
				"Count:true SelfResuming:false NotSelfResuming:false}\n"},
		{"list what waits for authorization", "ListTasks", `{"status":"TASK_STATE_AUTH_REQUIRED"}`,
			"call op=4 get history=-1\n  list {SessionID: States:[awaiting-input] After:0001-01-01 00:00:00 +0000 UTC " +
				"Size:0 Token: Products:false " +
				"Count:true SelfResuming:true NotSelfResuming:false}\n"},
		{"set a webhook", "CreateTaskPushNotificationConfig", valid[6].params,
			"call op=1 get task=\"t1\" history=-1\n  webhook {ID:w TaskID:t1 URL:https://h.example Token:t Scheme:Bearer " +
				"Credentials:c Dialect:a2a/1.0 Confirm:false States:[]}\n"},
		{"get a webhook", "GetTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`,
			"call op=2 get task=\"t1\" method=\"GetTaskPushNotificationConfig\" history=-1\n  webhook {ID:w TaskID:t1 URL: " +
				"Token: Scheme: Credentials: Dialect:a2a/1.0 Confirm:false States:[]}\n"},
		{"list webhooks", "ListTaskPushNotificationConfigs", `{"taskId":"t1","id":"w"}`,
			"call op=2 get task=\"t1\" history=-1\n  webhook {ID: TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 " +
				"Confirm:false States:[]}\n"},
		{"delete a webhook", "DeleteTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`,
			"call op=3 get task=\"t1\" history=-1\n  webhook {ID:w TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 " +
				"Confirm:false States:[]}\n"},
		{"card", "GetExtendedAgentCard", `{}`, "call op=5 get history=-1\n"},

		{"no such method", "tasks/get", `{"id":"t1"}`, "error method-not-found: A2A 1.0 has no such method\n"},
		{"params that are none", "GetTask", `["t1"]`, "error invalid-params at params: params must be an object\n"},
		{"no id", "GetTask", `{"id":""}`, "error invalid-params at params.id: id must be a string of 1 to 256 bytes\n"},
		{"an id that is none", "CancelTask", `{"id":1}`, "error invalid-params at params.id: id must be a string\n"},
		{"an id that is too long", "GetTask", `{"id":"` + strings.Repeat("x", 257) + `"}`,
			"error invalid-params at params.id: id must be at most 256 bytes long and have no control characters\n"},
		{"an id with a control character", "GetTask", `{"id":"a\u0000b"}`,
			"error invalid-params at params.id: id must be at most 256 bytes long and have no control characters\n"},
		{"a history that is none", "GetTask", `{"id":"t","historyLength":-1}`,
			"error invalid-params at params.historyLength: historyLength must be an integer that is not negative\n"},
		{"no message", "SendMessage", `{}`,
			"error invalid-params at params.message: message is missing; it must be an object\n"},
		{"a message that is none", "SendMessage", `{"message":"hi"}`,
			"error invalid-params at params.message: message must be an object\n"},
		{"no messageId", "SendMessage", `{"message":{"role":"ROLE_USER","parts":[{"text":"hi"}]}}`,
			"error invalid-params at params.message.messageId: messageId is missing; it must be a string of 1 to 256 bytes\n"},
		{"an agent's message", "SendMessage",
			`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}`,
			"error invalid-params at params.message.role: role must be ROLE_USER: callers are users here\n"},
		{"no parts", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER"}}`,
			"error invalid-params at params.message.parts: parts must be an array\n"},
		{"empty parts", "SendMessage", `{"message":{"messageId":"m","parts":[]}}`,
			"error invalid-params at params.message.parts: parts must have at least one entry\n"},
		{"too many parts", "SendMessage", `{"message":{"messageId":"m","parts":[` +
			strings.Repeat(`{"text":"a"},`, 1000) + `{"text":"a"}]}}`,
			"error invalid-params at params.message.parts: parts must have at most 1000 entries\n"},
		{"a part of nothing", "SendMessage",
			`{"message":{"messageId":"m","parts":[{"text":"a"},{"kind":"file","file":{}}]}}`,
			"error invalid-params at params.message.parts[1]: a part must be an object with one of text, raw, url and data, " +
				"which is not empty\n"},
		{"a part of two things", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":"a","url":"u"}]}}`,
			"error invalid-params at params.message.parts[0]: a part must have only one of text, raw, url and data\n"},
		{"a text that is none", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":1}]}}`,
			"error invalid-params at params.message.parts[0].text: text must be a string\n"},
		{"bytes that are none", "SendMessage", `{"message":{"messageId":"m","parts":[{"raw":"%%"}]}}`,
			"error invalid-params at params.message.parts[0].raw: raw must be base64\n"},
		{"metadata that are none", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":"a","metadata":1}]}}`,
			"error invalid-params at params.message.parts[0].metadata: metadata must be an object\n"},
		{"a configuration that is none", "SendMessage", `{` + message + `},"configuration":1}`,
			"error invalid-params at params.configuration: configuration must be an object\n"},
		{"a flag that is none", "SendMessage", `{` + message + `},"configuration":{"returnImmediately":1}}`,
			"error invalid-params at params.configuration.returnImmediately: returnImmediately must be true or false\n"},
		{"a webhook without a URL", "SendMessage", `{` + message +
			`},"configuration":{"taskPushNotificationConfig":{"token":"t"}}}`,
			"error invalid-params at params.configuration.taskPushNotificationConfig.url: url is missing; it must be a string " +
				"of 1 to 2048 bytes\n"},
		{"a token that would break a header", "CreateTaskPushNotificationConfig",
			`{"taskId":"t","url":"u","token":"a\r\nb"}`,
			"error invalid-params at params.token: token must be at most 4096 bytes long and have no control characters\n"},
		{"credentials without a scheme", "CreateTaskPushNotificationConfig",
			`{"taskId":"t","url":"u","authentication":{"credentials":"c"}}`,
			"error invalid-params at params.authentication.scheme: scheme is missing; it must be a string of 1 to 256 bytes\n"},
		{"a webhook of no task", "CreateTaskPushNotificationConfig", `{"url":"u"}`,
			"error invalid-params at params.taskId: taskId is missing; it must be a string of 1 to 256 bytes\n"},
		{"no webhook", "DeleteTaskPushNotificationConfig", `{"taskId":"t"}`,
			"error invalid-params at params.id: id is missing; it must be a string of 1 to 256 bytes\n"},
		{"too large a page", "ListTasks", `{"pageSize":101}`,
			"error invalid-params at params.pageSize: pageSize must be at most 100\n"},
		{"a state that is none", "ListTasks", `{"status":"working"}`,
			"error invalid-params at params.status: status must be a state, such as TASK_STATE_WORKING\n"},
		{"a time that is none", "ListTasks", `{"statusTimestampAfter":"yesterday"}`,
			"error invalid-params at params.statusTimestampAfter: statusTimestampAfter must be a time in ISO 8601, such as " +
				"2025-09-01T06:30:00.000Z\n"},
	} {
		if diff := cmp.Diff(tc.want,
			show(decode(a2a.V1Server(false), a2atest.Request(tc.method, tc.params)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		// A body without an envelope says the same; only the names of its fields differ.
		req := &translate.Request{HTTP: "POST"}
		req.Method, req.Params = tc.method, gjson.Parse(tc.params)
		want := strings.Replace(strings.Replace(tc.want, " at params.", " at ", 1), " at params: params",
			" at body: body", 1)
		if diff := cmp.Diff(want, show(a2a.V1RESTServer(false).Decode(req))); diff != "" {
			t.Errorf("%s, without an envelope (-want +got):\n%s", tc.name, diff)
		}
	}
	for _, s := range []translate.Server{a2a.V1Server(true), a2a.V1RESTServer(true)} {
		req := &translate.Request{}
		req.Method, req.Params = "SendMessage", gjson.Parse(`{`+message+`}}`)
		if c, err := s.Decode(req); err != nil || c.AutoComplete {
			t.Errorf("%s with confirm: %+v, %v", s.Name(), c, err)
		}
		req.Method, req.Params = "ListTasks", gjson.Parse(`{"status":"TASK_STATE_INPUT_REQUIRED"}`)
		if c, err := s.Decode(req); err != nil ||
			!slices.Equal(c.List.States, []task.State{task.AwaitingInput, task.AwaitingCompletion}) {
			t.Errorf("%s with confirm: %+v, %v", s.Name(), c.List, err)
		}
	}
	card := &translate.Request{Request: jsonrpc.Request{Method: "GetExtendedAgentCard"}}
	if c, err := a2a.V1Server(false).Decode(card); err != nil || c.Op != translate.ExtendedCard {
		t.Errorf("no params: %+v, %v", c, err)
	}
}

// TestQuery tests the parameters of REST in its path and query.
func TestQuery(t *testing.T) {
	s := a2a.V1RESTServer(false)
	for _, tc := range []struct{ request, want string }{
		{"GET /tasks/t1?historyLength=4", "call op=0 get task=\"t1\" history=4\n"},
		{"GET /tasks/t1?historyLength=x",
			"error invalid-params at historyLength: historyLength must be an integer that is not negative\n"},
		{"POST /tasks/t1:cancel", "call op=0 cancel task=\"t1\" strict history=-1\n"},
		{"POST /tasks/t1:cancel\n{\"id\":\"t2\"}", "call op=0 cancel task=\"t1\" strict history=-1\n"},
		{"GET /tasks/t1:subscribe", "call op=0 re-stream task=\"t1\" stream snapshot strict history=-1\n"},
		{"GET /tasks?" + url.Values{"contextId": {"c"}, "status": {"TASK_STATE_FAILED"}, "pageSize": {"5"},
			"pageToken": {"p"}, "historyLength": {"0"},
			"statusTimestampAfter": {"2026-01-02T03:04:05Z"}, "includeArtifacts": {"true"}}.Encode(),
			"call op=4 get history=0\n  list {SessionID:c States:[failed] After:2026-01-02 03:04:05 +0000 UTC Size:5 Token:p " +
				"Products:true Count:true SelfResuming:false NotSelfResuming:false}\n"},
		{"GET /tasks?includeArtifacts=1",
			"error invalid-params at includeArtifacts: includeArtifacts must be true or false\n"},
		{"POST /tasks/t1/pushNotificationConfigs\n{\"taskId\":\"t2\",\"url\":\"u\"}",
			"call op=1 get task=\"t1\" history=-1\n  webhook {ID: TaskID:t1 URL:u Token: Scheme: Credentials: Dialect:a2a/1.0 " +
				"Confirm:false States:[]}\n"},
		{"GET /tasks/t1/pushNotificationConfigs",
			"call op=2 get task=\"t1\" history=-1\n  webhook {ID: TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 " +
				"Confirm:false States:[]}\n"},
		{"GET /tasks/t1/pushNotificationConfigs/w",
			"call op=2 get task=\"t1\" method=\"GetTaskPushNotificationConfig\" history=-1\n  webhook {ID:w TaskID:t1 URL: " +
				"Token: Scheme: Credentials: Dialect:a2a/1.0 Confirm:false States:[]}\n"},
		{"DELETE /tasks/t1/pushNotificationConfigs/w",
			"call op=3 get task=\"t1\" history=-1\n  webhook {ID:w TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 " +
				"Confirm:false States:[]}\n"},
		{"GET /extendedAgentCard", "call op=5 get history=-1\n"},
		{"POST /message:send\n[]", "error invalid-params at body: body must be an object\n"},
		{"POST /message:stream", "error invalid-params at message: message is missing; it must be an object\n"},
	} {
		if diff := cmp.Diff(tc.want, show(decode(s, []byte(tc.request)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.request, diff)
		}
	}
}

func TestRoutes(t *testing.T) {
	rest := a2a.V1RESTServer(false)
	for _, tc := range []struct{ method, path, want string }{
		{"POST", "message:send", "SendMessage map[]"},
		{"POST", "message:send/", "SendMessage map[]"},
		{"GET", "message:send", "allow POST"},
		{"POST", "message:stream", "SendStreamingMessage map[]"},
		{"GET", "tasks", "ListTasks map[]"},
		{"DELETE", "tasks", "allow GET"},
		{"GET", "tasks/t", "GetTask map[id:t]"},
		{"GET", "tasks/a:b", "GetTask map[id:a:b]"},
		{"POST", "tasks/t", "allow GET"},
		{"POST", "tasks/a:b:cancel", "CancelTask map[id:a:b]"},
		{"GET", "tasks/t:cancel", "allow POST"},
		{"GET", "tasks/a%2Fb%25c", "GetTask map[id:a/b%c]"},
		{"GET", "tasks/t%3Acancel", "GetTask map[id:t:cancel]"},
		{"GET", "tasks/t%3asubscribe", "GetTask map[id:t:subscribe]"},
		{"POST", "tasks/a%2Ft%3Acancel:cancel", "CancelTask map[id:a/t:cancel]"},
		{"GET", "tasks/a%2Fb:subscribe", "SubscribeToTask map[id:a/b]"},
		{"POST", "tasks/t%3Acancel", "CancelTask map[id:t]"}, // nothing else is posted there
		{"POST", "tasks/t%3asubscribe", "SubscribeToTask map[id:t]"},
		{"POST", "message%3Asend", "SendMessage map[]"},
		{"POST", "tasks/%3Acancel", "none"}, {"GET", "tasks/%", "none"},
		{"GET", "tasks/a%2Fb/pushNotificationConfigs/c%2Fd", "GetTaskPushNotificationConfig map[id:c/d taskId:a/b]"},
		{"GET", "tasks/t:subscribe", "SubscribeToTask map[id:t]"},
		{"POST", "tasks/t:subscribe", "SubscribeToTask map[id:t]"},
		{"PUT", "tasks/t:subscribe", "allow GET, POST"},
		{"POST", "tasks/t/pushNotificationConfigs", "CreateTaskPushNotificationConfig map[taskId:t]"},
		{"GET", "tasks/t/pushNotificationConfigs/", "ListTaskPushNotificationConfigs map[taskId:t]"},
		{"PUT", "tasks/t/pushNotificationConfigs", "allow GET, POST"},
		{"GET", "tasks/t/pushNotificationConfigs/w", "GetTaskPushNotificationConfig map[id:w taskId:t]"},
		{"DELETE", "tasks/t/pushNotificationConfigs/w", "DeleteTaskPushNotificationConfig map[id:w taskId:t]"},
		{"POST", "tasks/t/pushNotificationConfigs/w", "allow GET, DELETE"},
		{"GET", "extendedAgentCard", "GetExtendedAgentCard map[]"},
		{"GET", "", "none"}, {"GET", "tasks/", "ListTasks map[]"}, {"GET", "tasks//", "none"},
		{"POST", "tasks/:cancel", "none"},
		{"GET", "tasks/t/other", "none"}, {"GET", "tasks//pushNotificationConfigs", "none"},
		{"GET", "tasks/t/pushNotificationConfigs/a/b", "none"},
		{"GET", "tasks/t/pushNotificationConfigs//", "none"}, {"GET", "card", "none"},
		{"POST", "message:other", "none"},
	} {
		r, ok := rest.Route(tc.method, tc.path)
		got := "none"
		switch {
		case ok && r.Allow != "":
			got = "allow " + r.Allow
		case ok && r.Unenveloped:
			got = fmt.Sprintf("%s %v", r.Method, r.PathParams)
		case ok:
			got = "an envelope"
		}
		if got != tc.want {
			t.Errorf("%s %s is %s, want %s", tc.method, tc.path, got, tc.want)
		}
	}
	rpc := a2a.V1Server(false)
	for path, want := range map[string]bool{"": true, "/": true, "rpc": false} {
		r, ok := rpc.Route("POST", path)
		if ok != want || r.Method != "" || r.Unenveloped || r.Allow != "" {
			t.Errorf("%q is %+v, %v", path, r, ok)
		}
	}
	if r, ok := rpc.Route("GET", ""); !ok || r.Allow != "POST" {
		t.Errorf("a GET is %+v, %v", r, ok)
	}
}

// TestVersions tests the requests taken for 1.0, and the effect of an unknown version.
func TestVersions(t *testing.T) {
	for _, b := range bindings {
		matches := func(method, version string) bool {
			return b.server.Matches(&translate.Request{Request: jsonrpc.Request{Method: method}, Version: version})
		}
		for _, v := range valid {
			for _, version := range []string{"", "1.0", "0.3", "7"} {
				if !matches(v.method, version) {
					t.Errorf("%s does not match %s of version %q", b.name, v.method, version)
				}
			}
		}
		if matches("message/send", "1.0") || matches("rpc", "") || matches("tasks/send", "") || !matches("MadeUp", "1.0") {
			t.Errorf("%s matches methods of other dialects", b.name)
		}
		for version, want := range map[string]bool{"": true, "1.0": true, " 1.0 ": true, "1.0.1": true, "0.3": true,
			"0.3.0": true, "1.1": false, "2.0": false, "x": false, "99": false} {
			req := &translate.Request{Version: version}
			req.Method, req.Params = "GetTask", gjson.Parse(`{"id":"t"}`)
			_, err := b.server.Decode(req)
			if (err == nil) != want {
				t.Errorf("%s, version %q: %v", b.name, version, err)
			}
			if err == nil {
				continue
			}
			if e, ok := errors.AsType[*task.Error](err); !ok || e.Kind != task.UnsupportedOperation ||
				e.Field != "A2A-Version" {
				t.Errorf("%s, version %q: %v", b.name, version, err)
			}
			out := string(b.server.AppendError(nil, jsonrpc.ID("1"), fmt.Errorf("wrapped: %w", err)))
			code, ok := `"code":-32009,`, b.name == "a2a/1.0"
			if s, is := b.server.(translate.Statuser); is && b.name != "a2a/1.0" {
				code, ok = `"code":400,`, s.Status(err) == 400
			}
			if !ok || !strings.Contains(out, code) || !strings.Contains(out, `"reason":"VERSION_NOT_SUPPORTED"`) {
				t.Errorf("%s, version %q: %s", b.name, version, out)
			}
		}
	}
}
