// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// v1Valid are params that are taken, at least one for each method.
var v1Valid = []struct{ method, params string }{
	{"SendMessage", `{"tenant":"","message":{"messageId":"m1","contextId":"c","role":"ROLE_USER","parts":[{"text":"hi","mediaType":"text/markdown"},{"raw":"QUJD","filename":"f","mediaType":"m"},{"url":"u"},{"data":[1],"metadata":{"a":1}}],"extensions":[],"referenceTaskIds":["x"],"metadata":{}},"configuration":{"acceptedOutputModes":["text"],"historyLength":2,"returnImmediately":true,"taskPushNotificationConfig":{"id":"w","taskId":"","url":"https://h.example","token":"t","authentication":{"scheme":"Bearer","credentials":"c"}}},"metadata":{}}`},
	{"SendStreamingMessage", `{"message":{"messageId":"m1","taskId":"t1","role":"ROLE_USER","parts":[{"text":"hi"}]}}`},
	{"GetTask", `{"id":"t1","historyLength":0}`},
	{"ListTasks", `{"contextId":"c","status":"TASK_STATE_WORKING","pageSize":10,"pageToken":"p","historyLength":1,"statusTimestampAfter":"2026-01-02T03:04:05.678Z","includeArtifacts":true}`},
	{"CancelTask", `{"id":"t1","metadata":{}}`},
	{"SubscribeToTask", `{"id":"t1"}`},
	{"CreateTaskPushNotificationConfig", `{"taskId":"t1","id":"w","url":"https://h.example","token":"t","authentication":{"scheme":"Bearer","credentials":"c"}}`},
	{"GetTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`},
	{"ListTaskPushNotificationConfigs", `{"taskId":"t1","pageSize":5,"pageToken":""}`},
	{"DeleteTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`},
	{"GetExtendedAgentCard", `{}`},
}

func v1Request(method, params string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
}

// TestV1Server tests the properties of every dialect.
func TestV1Server(t *testing.T) {
	var requests [][]byte
	for _, v := range v1Valid {
		requests = append(requests, v1Request(v.method, v.params))
	}
	for _, confirm := range []bool{false, true} {
		t.Run(fmt.Sprint(confirm), func(t *testing.T) { translatetest.Server(t, a2a.V1Server(confirm), requests...) })
	}
}

func TestV1Decode(t *testing.T) {
	const message = `"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi"}]`
	for _, tc := range []struct{ name, method, params, want string }{
		{"start", "SendMessage", `{` + message + `}}`, "call op=0 start id=\"m1\" auto history=-1\n  says [{\"type\":\"text\",\"text\":\"hi\"}]\n"},
		{"start in a context, with everything", "SendMessage", v1Valid[0].params,
			"call op=0 start id=\"m1\" session=\"c\" auto response=1ns history=2\n" +
				`  says [{"type":"text","text":"hi","metadata":{"mediaType":"text/markdown"}},{"type":"file","name":"f","mimeType":"m","bytes":"QUJD"},{"type":"file","uri":"u"},{"type":"data","data":{"value":[1]},"metadata":{"a":1}}]` + "\n" +
				"  webhook {ID:w TaskID: URL:https://h.example Token:t Scheme:Bearer Credentials:c Dialect:a2a/1.0 States:[]}\n"},
		{"go on, with a stream", "SendStreamingMessage", `{` + message + `,"taskId":"t1"},"configuration":{"historyLength":"0","returnImmediately":false,"taskPushNotificationConfig":{"url":"u"}}}`,
			"call op=0 continue id=\"m1\" task=\"t1\" stream snapshot strict history=0\n  says [{\"type\":\"text\",\"text\":\"hi\"}]\n" +
				"  webhook {ID: TaskID:t1 URL:u Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"what is unset is written out", "SendMessage", `{"configuration":null,"message":{"messageId":"m1","taskId":"","contextId":"","role":"ROLE_UNSPECIFIED","parts":[{"text":"","data":null}]}}`,
			"call op=0 start id=\"m1\" auto history=-1\n  says [{\"type\":\"text\",\"text\":\"\"}]\n"},
		{"get", "GetTask", `{"id":"t1","historyLength":3}`, "call op=0 get task=\"t1\" history=3\n"},
		{"cancel", "CancelTask", `{"id":"t1"}`, "call op=0 cancel task=\"t1\" strict history=-1\n"},
		{"subscribe", "SubscribeToTask", `{"id":"t1"}`, "call op=0 re-stream task=\"t1\" stream snapshot history=-1\n"},
		{"list", "ListTasks", `{}`, "call op=4 get history=-1\n  list {SessionID: States:[] After:0001-01-01 00:00:00 +0000 UTC Size:0 Token: Products:false}\n"},
		{"list some", "ListTasks", v1Valid[3].params,
			"call op=4 get history=1\n  list {SessionID:c States:[working] After:2026-01-02 03:04:05.678 +0000 UTC Size:10 Token:p Products:true}\n"},
		{"list what is completed", "ListTasks", `{"status":"TASK_STATE_COMPLETED"}`,
			"call op=4 get history=-1\n  list {SessionID: States:[awaiting-completion completed] After:0001-01-01 00:00:00 +0000 UTC Size:0 Token: Products:false}\n"},
		{"list what is never so", "ListTasks", `{"status":"TASK_STATE_AUTH_REQUIRED"}`,
			"call op=4 get history=-1\n  list {SessionID: States:[auth-required] After:0001-01-01 00:00:00 +0000 UTC Size:0 Token: Products:false}\n"},
		{"set a webhook", "CreateTaskPushNotificationConfig", v1Valid[6].params,
			"call op=1 get task=\"t1\" history=-1\n  webhook {ID:w TaskID:t1 URL:https://h.example Token:t Scheme:Bearer Credentials:c Dialect:a2a/1.0 States:[]}\n"},
		{"get a webhook", "GetTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`,
			"call op=2 get task=\"t1\" method=\"GetTaskPushNotificationConfig\" history=-1\n  webhook {ID:w TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"list webhooks", "ListTaskPushNotificationConfigs", `{"taskId":"t1","id":"w"}`,
			"call op=2 get task=\"t1\" history=-1\n  webhook {ID: TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"delete a webhook", "DeleteTaskPushNotificationConfig", `{"taskId":"t1","id":"w"}`,
			"call op=3 get task=\"t1\" history=-1\n  webhook {ID:w TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"card", "GetExtendedAgentCard", `{}`, "call op=5 get history=-1\n"},

		{"no such method", "tasks/get", `{"id":"t1"}`, "error method-not-found: A2A 1.0 has no such method\n"},
		{"params that are none", "GetTask", `["t1"]`, "error invalid-params at params: params must be an object\n"},
		{"no id", "GetTask", `{"id":""}`, "error invalid-params at params.id: id is missing; it must be a string of 1 to 256 bytes\n"},
		{"an id that is none", "CancelTask", `{"id":1}`, "error invalid-params at params.id: id must be a string\n"},
		{"an id that is too long", "GetTask", `{"id":"` + strings.Repeat("x", 257) + `"}`, "error invalid-params at params.id: id must be at most 256 bytes long\n"},
		{"an id with a control character", "GetTask", `{"id":"a\u0000b"}`, "error invalid-params at params.id: id must have no control characters\n"},
		{"a history that is none", "GetTask", `{"id":"t","historyLength":-1}`, "error invalid-params at params.historyLength: historyLength must be an integer that is not negative\n"},
		{"no message", "SendMessage", `{}`, "error invalid-params at params.message: message is missing; it must be an object\n"},
		{"a message that is none", "SendMessage", `{"message":"hi"}`, "error invalid-params at params.message: message must be an object\n"},
		{"no messageId", "SendMessage", `{"message":{"role":"ROLE_USER","parts":[{"text":"hi"}]}}`, "error invalid-params at params.message.messageId: messageId is missing; it must be a string of 1 to 256 bytes\n"},
		{"an agent's message", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}]}}`, "error invalid-params at params.message.role: role must be ROLE_USER: an agent does not send messages here\n"},
		{"no parts", "SendMessage", `{"message":{"messageId":"m","role":"ROLE_USER"}}`, "error invalid-params at params.message.parts: parts is missing; it must be an array of parts, at least one\n"},
		{"empty parts", "SendMessage", `{"message":{"messageId":"m","parts":[]}}`, "error invalid-params at params.message.parts: parts must have at least one entry\n"},
		{"too many parts", "SendMessage", `{"message":{"messageId":"m","parts":[` + strings.Repeat(`{"text":"a"},`, 1000) + `{"text":"a"}]}}`, "error invalid-params at params.message.parts: parts must have at most 1000 entries\n"},
		{"a part of nothing", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":"a"},{"kind":"file","file":{}}]}}`, "error invalid-params at params.message.parts[1]: a part must be an object with one of text, raw, url and data, which is not empty\n"},
		{"a part of two things", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":"a","url":"u"}]}}`, "error invalid-params at params.message.parts[0]: a part must have only one of text, raw, url and data\n"},
		{"a text that is none", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":1}]}}`, "error invalid-params at params.message.parts[0].text: text must be a string\n"},
		{"bytes that are none", "SendMessage", `{"message":{"messageId":"m","parts":[{"raw":"%%"}]}}`, "error invalid-params at params.message.parts[0].raw: raw must be base64\n"},
		{"metadata that are none", "SendMessage", `{"message":{"messageId":"m","parts":[{"text":"a","metadata":1}]}}`, "error invalid-params at params.message.parts[0].metadata: metadata must be an object\n"},
		{"a configuration that is none", "SendMessage", `{` + message + `},"configuration":1}`, "error invalid-params at params.configuration: configuration must be an object\n"},
		{"a flag that is none", "SendMessage", `{` + message + `},"configuration":{"returnImmediately":1}}`, "error invalid-params at params.configuration.returnImmediately: returnImmediately must be true or false\n"},
		{"a webhook without a URL", "SendMessage", `{` + message + `},"configuration":{"taskPushNotificationConfig":{"token":"t"}}}`, "error invalid-params at params.configuration.taskPushNotificationConfig.url: url is missing; it must be a string of 1 to 2048 bytes\n"},
		{"a token that would break a header", "CreateTaskPushNotificationConfig", `{"taskId":"t","url":"u","token":"a\r\nb"}`, "error invalid-params at params.token: token must have no control characters\n"},
		{"credentials without a scheme", "CreateTaskPushNotificationConfig", `{"taskId":"t","url":"u","authentication":{"credentials":"c"}}`, "error invalid-params at params.authentication.scheme: scheme is missing; it must be a string of 1 to 256 bytes\n"},
		{"a webhook of no task", "CreateTaskPushNotificationConfig", `{"url":"u"}`, "error invalid-params at params.taskId: taskId is missing; it must be a string of 1 to 256 bytes\n"},
		{"no webhook", "DeleteTaskPushNotificationConfig", `{"taskId":"t"}`, "error invalid-params at params.id: id is missing; it must be a string of 1 to 256 bytes\n"},
		{"too large a page", "ListTasks", `{"pageSize":101}`, "error invalid-params at params.pageSize: pageSize must be at most 100\n"},
		{"a state that is none", "ListTasks", `{"status":"working"}`, "error invalid-params at params.status: status must be a state, such as TASK_STATE_WORKING\n"},
		{"a time that is none", "ListTasks", `{"statusTimestampAfter":"yesterday"}`, "error invalid-params at params.statusTimestampAfter: statusTimestampAfter must be a time in ISO 8601, such as 2025-09-01T06:30:00.000Z\n"},
	} {
		if diff := cmp.Diff(tc.want, v1Show(v1Decode(a2a.V1Server(false), v1Request(tc.method, tc.params)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		// A body without an envelope says the same; only what its fields are called differs.
		req := &translate.Request{HTTP: "POST"}
		req.Method, req.Params = tc.method, gjson.Parse(tc.params)
		want := strings.Replace(strings.Replace(tc.want, " at params.", " at ", 1), " at params: params", " at body: body", 1)
		if diff := cmp.Diff(want, v1Show(a2a.V1RESTServer(false).Decode(req))); diff != "" {
			t.Errorf("%s, without an envelope (-want +got):\n%s", tc.name, diff)
		}
	}
	for _, s := range []translate.Server{a2a.V1Server(true), a2a.V1RESTServer(true)} {
		req := &translate.Request{}
		req.Method, req.Params = "SendMessage", gjson.Parse(`{`+message+`}}`)
		if c, err := s.Decode(req); err != nil || c.Terms.AutoComplete {
			t.Errorf("%s with confirm: %+v, %v", s.Name(), c, err)
		}
		req.Method, req.Params = "ListTasks", gjson.Parse(`{"status":"TASK_STATE_INPUT_REQUIRED"}`)
		if c, err := s.Decode(req); err != nil || !slices.Equal(c.List.States, []task.State{task.AwaitingInput, task.AwaitingCompletion}) {
			t.Errorf("%s with confirm: %+v, %v", s.Name(), c.List, err)
		}
	}
	var c translate.Call
	if c, err := a2a.V1Server(false).Decode(&translate.Request{Request: jsonrpc.Request{Method: "GetExtendedAgentCard"}}); err != nil || c.Op != translate.ExtendedCard {
		t.Errorf("no params: %+v, %v", c, err)
	}
	_ = c
}

// TestV1Query tests what REST has in its path and query.
func TestV1Query(t *testing.T) {
	s := a2a.V1RESTServer(false)
	for _, tc := range []struct{ request, want string }{
		{"GET /tasks/t1?historyLength=4", "call op=0 get task=\"t1\" history=4\n"},
		{"GET /tasks/t1?historyLength=x", "error invalid-params at historyLength: historyLength must be an integer that is not negative\n"},
		{"POST /tasks/t1:cancel", "call op=0 cancel task=\"t1\" strict history=-1\n"},
		{"POST /tasks/t1:cancel\n{\"id\":\"t2\"}", "call op=0 cancel task=\"t1\" strict history=-1\n"},
		{"GET /tasks/t1:subscribe", "call op=0 re-stream task=\"t1\" stream snapshot history=-1\n"},
		{"GET /tasks?" + url.Values{"contextId": {"c"}, "status": {"TASK_STATE_FAILED"}, "pageSize": {"5"}, "pageToken": {"p"}, "historyLength": {"0"},
			"statusTimestampAfter": {"2026-01-02T03:04:05Z"}, "includeArtifacts": {"true"}}.Encode(),
			"call op=4 get history=0\n  list {SessionID:c States:[failed] After:2026-01-02 03:04:05 +0000 UTC Size:5 Token:p Products:true}\n"},
		{"GET /tasks?includeArtifacts=1", "error invalid-params at includeArtifacts: includeArtifacts must be true or false\n"},
		{"POST /tasks/t1/pushNotificationConfigs\n{\"taskId\":\"t2\",\"url\":\"u\"}",
			"call op=1 get task=\"t1\" history=-1\n  webhook {ID: TaskID:t1 URL:u Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"GET /tasks/t1/pushNotificationConfigs", "call op=2 get task=\"t1\" history=-1\n  webhook {ID: TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"GET /tasks/t1/pushNotificationConfigs/w", "call op=2 get task=\"t1\" method=\"GetTaskPushNotificationConfig\" history=-1\n  webhook {ID:w TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"DELETE /tasks/t1/pushNotificationConfigs/w", "call op=3 get task=\"t1\" history=-1\n  webhook {ID:w TaskID:t1 URL: Token: Scheme: Credentials: Dialect:a2a/1.0 States:[]}\n"},
		{"GET /extendedAgentCard", "call op=5 get history=-1\n"},
		{"POST /message:send\n[]", "error invalid-params at body: body must be an object\n"},
		{"POST /message:stream", "error invalid-params at message: message is missing; it must be an object\n"},
	} {
		if diff := cmp.Diff(tc.want, v1Show(v1Decode(s, []byte(tc.request)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.request, diff)
		}
	}
}

func TestV1Routes(t *testing.T) {
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
		{"GET", "", "none"}, {"GET", "tasks/", "ListTasks map[]"}, {"GET", "tasks//", "none"}, {"POST", "tasks/:cancel", "none"},
		{"GET", "tasks/t/other", "none"}, {"GET", "tasks//pushNotificationConfigs", "none"}, {"GET", "tasks/t/pushNotificationConfigs/a/b", "none"},
		{"GET", "tasks/t/pushNotificationConfigs//", "none"}, {"GET", "card", "none"}, {"POST", "message:other", "none"},
	} {
		r, ok := rest.Route(tc.method, tc.path)
		got := "none"
		switch {
		case ok && r.Allow != "":
			got = "allow " + r.Allow
		case ok && r.Bare:
			got = fmt.Sprintf("%s %v", r.Method, r.Vars)
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
		if ok != want || r.Method != "" || r.Bare || r.Allow != "" {
			t.Errorf("%q is %+v, %v", path, r, ok)
		}
	}
	if r, ok := rpc.Route("GET", ""); !ok || r.Allow != "POST" {
		t.Errorf("a GET is %+v, %v", r, ok)
	}
}

// TestV1Versions tests which requests are taken for 1.0, and what a version does that is none.
func TestV1Versions(t *testing.T) {
	for _, b := range v1Bindings {
		speaks := func(method, version string) bool {
			return b.server.Speaks(&translate.Request{Request: jsonrpc.Request{Method: method}, Version: version})
		}
		for _, v := range v1Valid {
			for _, version := range []string{"", "1.0", "0.3", "7"} {
				if !speaks(v.method, version) {
					t.Errorf("%s does not speak %s of version %q", b.name, v.method, version)
				}
			}
		}
		if speaks("message/send", "1.0") || speaks("rpc", "") || speaks("tasks/send", "") || !speaks("MadeUp", "1.0") {
			t.Errorf("%s speaks what it does not", b.name)
		}
		for version, want := range map[string]bool{"": true, "1.0": true, " 1.0 ": true, "1.0.1": true, "0.3": true, "0.3.0": true, "1.1": false, "2.0": false, "x": false, "99": false} {
			req := &translate.Request{Version: version}
			req.Method, req.Params = "GetTask", gjson.Parse(`{"id":"t"}`)
			_, err := b.server.Decode(req)
			if (err == nil) != want {
				t.Errorf("%s, version %q: %v", b.name, version, err)
			}
			if err == nil {
				continue
			}
			if e, ok := errors.AsType[*task.Error](err); !ok || e.Kind != task.UnsupportedOperation || e.Field != "A2A-Version" {
				t.Errorf("%s, version %q: %v", b.name, version, err)
			}
			out := string(b.server.AppendError(nil, jsonrpc.ID("1"), fmt.Errorf("wrapped: %w", err)))
			code, ok := `"code":-32009,`, b.name == "a2a/1.0"
			if s, is := b.server.(translate.Statuser); is {
				code, ok = `"code":400,`, s.Status(err) == 400
			}
			if !ok || !strings.Contains(out, code) || !strings.Contains(out, `"reason":"VERSION_NOT_SUPPORTED"`) {
				t.Errorf("%s, version %q: %s", b.name, version, out)
			}
		}
	}
}

// TestV1Errors tests how every kind of error is said.
func TestV1Errors(t *testing.T) {
	want := map[task.Kind]struct {
		code, http     int
		status, reason string
	}{
		task.Internal:                 {-32603, 500, "INTERNAL", "INTERNAL_ERROR"},
		task.ParseError:               {-32700, 400, "INVALID_ARGUMENT", "PARSE_ERROR"},
		task.InvalidRequest:           {-32600, 400, "INVALID_ARGUMENT", "INVALID_REQUEST"},
		task.MethodNotFound:           {-32601, 501, "UNIMPLEMENTED", "METHOD_NOT_FOUND"},
		task.InvalidParams:            {-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"},
		task.TaskNotFound:             {-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"},
		task.TaskNotCancelable:        {-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"},
		task.NotificationNotSupported: {-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		task.UnsupportedOperation:     {-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		task.ContentTypeNotSupported:  {-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"},
		task.InvalidAgentResponse:     {-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE"},
		task.GroupNotSupported:        {-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"},
		task.AuthenticationRequired:   {-32051, 401, "UNAUTHENTICATED", "UNAUTHENTICATED"},
		task.AuthorizationFailed:      {-32052, 403, "PERMISSION_DENIED", "PERMISSION_DENIED"},
		task.AccessTokenInvalid:       {-32051, 401, "UNAUTHENTICATED", "ACCESS_TOKEN_INVALID"},
		task.LimitExceeded:            {-32050, 429, "RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED"},
		task.AgentUnavailable:         {-32603, 502, "UNAVAILABLE", "AGENT_UNAVAILABLE"},
		task.AgentTimeout:             {-32603, 504, "DEADLINE_EXCEEDED", "AGENT_TIMEOUT"},
	}
	const info = `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"%s","domain":"a2a-protocol.org","metadata":{"field":"params.id","max":"7","taskId":"t\"1"}}]`
	rpc, rest := a2a.V1Server(false), a2a.V1RESTServer(false)
	for _, k := range task.Kinds() {
		w, ok := want[k]
		if !ok {
			t.Errorf("%v is not tested", k)
			continue
		}
		err := task.Errorf(k, "some words").At("params.id").With("taskId", `t"1`).With("max", 7).Because(errors.New("secret"))
		details := fmt.Sprintf(info, w.reason)
		for got, want := range map[string]string{
			string(rpc.AppendError(nil, jsonrpc.ID("1"), err)):                                               fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"some words","data":%s}}`, w.code, details),
			string(rest.AppendError(nil, nil, err)):                                                          fmt.Sprintf(`{"error":{"code":%d,"status":"%s","message":"some words","details":%s}}`, w.http, w.status, details),
			fmt.Sprint(rest.(translate.Statuser).Status(err)):                                                fmt.Sprint(w.http),
			gjson.GetBytes(rest.AppendError(nil, nil, &task.Error{Kind: k}), "error.details.0.metadata").Raw: "",
		} {
			if got != want {
				t.Errorf("%v is\n%s, want\n%s", k, got, want)
			}
		}
		if w.code <= -32007 && w.code >= -32049 {
			t.Errorf("%v has the code %d, which means something else", k, w.code)
		}
		// What a gateway says is understood by another one.
		_, first := a2a.V1().Reply(rpc.AppendError(nil, nil, err), nil)
		_, second := a2a.V1REST().Reply(rest.AppendError(nil, nil, err), nil)
		if first == nil || second == nil || first.Error() != second.Error() || task.KindOf(first) == task.Internal && w.code == -32001 {
			t.Errorf("%v is read as %v and %v", k, first, second)
		}
	}
	if _, ok := rpc.(translate.Statuser); ok {
		t.Error("errors of JSON-RPC are answers like any other")
	}
	for _, err := range []error{errors.New("secret"), &task.Error{Kind: 255, Detail: "secret"}} {
		for _, out := range []string{string(rpc.AppendError(nil, nil, err)), string(rest.AppendError(nil, nil, err))} {
			if strings.Contains(out, "secret") || !strings.Contains(out, `"message":"Internal error"`) {
				t.Errorf("%v is %s", err, out)
			}
		}
		if got := rest.(translate.Statuser).Status(err); got != 500 {
			t.Errorf("%v has the status %d", err, got)
		}
	}
}

var v1At = time.Date(2026, 1, 2, 11, 4, 5, 6e6, time.FixedZone("", 8*60*60))

// v1Whole is a task with everything that A2A can say.
func v1Whole(state task.State) *task.Task {
	return &task.Task{
		ID: "t1", SessionID: "c1",
		Status: task.Status{State: state, ChangedAt: v1At, DataItems: []task.DataItem{task.Text("so\n"), {Kind: task.DataKind, Data: json.RawMessage(`{"value":[1]}`)}}},
		Products: []task.Product{
			{ID: "p1", Name: "n", Description: "d", DataItems: []task.DataItem{
				task.Text("a"),
				{Kind: task.FileItem, Name: "f", MIMEType: "m", Bytes: "QUJD", Metadata: json.RawMessage(`{"k":1}`)},
				{Kind: task.FileItem, URI: "https://f.example"},
				{Kind: task.DataKind, Data: json.RawMessage(`{"value":{"b":1}}`)},
				{Kind: task.DataKind, Data: json.RawMessage(`{}`)},
			}},
			{ID: "p2"},
		},
		MessageHistory: []task.Message{
			{ID: "m1", SenderRole: task.Leader, Command: task.Start, DataItems: []task.DataItem{task.Text("do")}},
			{ID: "m2", SenderRole: task.Partner, DataItems: []task.DataItem{task.Text("I do")}},
			{ID: "m3", SenderRole: task.Leader, Command: task.Complete},
		},
	}
}

func TestV1Answers(t *testing.T) {
	rpc, rest := a2a.V1Server(false), a2a.V1RESTServer(false)
	const status = `"status":{"state":"TASK_STATE_WORKING","message":{"messageId":"status-mjwaid1q","role":"ROLE_AGENT","parts":[{"text":"so\n"},{"data":[1]}],"taskId":"t1","contextId":"c1"},"timestamp":"2026-01-02T03:04:05.006Z"}`
	const artifacts = `,"artifacts":[{"artifactId":"p1","name":"n","description":"d","parts":[{"text":"a"},{"raw":"QUJD","filename":"f","mediaType":"m","metadata":{"k":1}},{"url":"https://f.example"},{"data":{"value":{"b":1}}},{"data":{}}]},{"artifactId":"p2","parts":[]}]`
	const m1 = `{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"do"}],"taskId":"t1","contextId":"c1"}`
	const m2 = `{"messageId":"m2","role":"ROLE_AGENT","parts":[{"text":"I do"}],"taskId":"t1","contextId":"c1"}`
	whole := func(history string) string {
		return `{"id":"t1","contextId":"c1",` + status + artifacts + history + `}`
	}
	call := func(cmd task.Command, history int) *translate.Call {
		c := &translate.Call{History: history}
		c.Message.Command = cmd
		return c
	}
	working := v1Whole(task.Working)
	list := &translate.Call{Op: translate.ListTasks, History: 0, List: &task.List{}}
	some := &translate.Call{Op: translate.ListTasks, History: 1, List: &task.List{Products: true}}
	one := task.Webhook{ID: "w", TaskID: "t1", URL: "https://h.example", Token: "tok", Scheme: "Bearer", Credentials: "cred", Dialect: "x"}
	const config = `{"url":"https://h.example","id":"w","taskId":"t1","token":"tok","authentication":{"scheme":"Bearer","credentials":"cred"}}`
	for _, tc := range []struct {
		name   string
		answer func(s translate.Server, dst []byte, id jsonrpc.ID) []byte
		want   string
	}{
		{"start", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Start, -1), working)
		},
			`{"task":` + whole(`,"history":[`+m1+`,`+m2+`]`) + `}`},
		{"continue", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Continue, 1), working)
		},
			`{"task":` + whole(`,"history":[`+m2+`]`) + `}`},
		{"get", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Get, 0), working)
		}, whole("")},
		{"cancel", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Cancel, 9), working)
		},
			whole(`,"history":[` + m1 + `,` + m2 + `]`)},
		{"little to say", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendTask(dst, id, call(task.Get, -1), &task.Task{ID: "t", Status: task.Status{State: task.Accepted}, MessageHistory: []task.Message{{ID: "m"}}})
		}, `{"id":"t","status":{"state":"TASK_STATE_SUBMITTED"}}`},
		{"list", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.(translate.Lister).AppendTasks(dst, id, list, &task.Page{Tasks: []task.Task{*working, *working}, Next: "n", Size: 2, Total: 5})
		}, `{"tasks":[{"id":"t1","contextId":"c1",` + status + `},{"id":"t1","contextId":"c1",` + status + `}],"nextPageToken":"n","pageSize":2,"totalSize":5}`},
		{"list with products", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.(translate.Lister).AppendTasks(dst, id, some, &task.Page{Tasks: []task.Task{*working}, Size: 50, Total: 1})
		}, `{"tasks":[` + whole(`,"history":[`+m2+`]`) + `],"nextPageToken":"","pageSize":50,"totalSize":1}`},
		{"list of nothing", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.(translate.Lister).AppendTasks(dst, id, list, &task.Page{Size: 50})
		}, `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`},
		{"set a webhook", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.SetWebhook}, []task.Webhook{one})
		}, config},
		{"get a webhook", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.GetWebhooks, Method: "GetTaskPushNotificationConfig"}, []task.Webhook{one})
		}, config},
		{"list webhooks", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.GetWebhooks}, []task.Webhook{one, {ID: "v", URL: "u"}})
		}, `{"configs":[` + config + `,{"url":"u","id":"v"}],"nextPageToken":""}`},
		{"list no webhooks", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.GetWebhooks}, nil)
		}, `{"configs":[],"nextPageToken":""}`},
		{"delete a webhook", func(s translate.Server, dst []byte, id jsonrpc.ID) []byte {
			return s.AppendWebhooks(dst, id, &translate.Call{Op: translate.DeleteWebhooks}, nil)
		}, `{}`},
	} {
		if diff := cmp.Diff(`+{"jsonrpc":"2.0","id":"i","result":`+tc.want+`}`, string(tc.answer(rpc, []byte("+"), jsonrpc.ID(`"i"`)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
		if diff := cmp.Diff("+"+tc.want, string(tc.answer(rest, []byte("+"), nil))); diff != "" {
			t.Errorf("%s, without an envelope (-want +got):\n%s", tc.name, diff)
		}
	}
	for _, s := range []translate.Server{rpc, rest} {
		if diff := cmp.Diff(`+{"task":`+whole("")+`}`, string(s.AppendNotification([]byte("+"), working))); diff != "" {
			t.Errorf("a notification of %s (-want +got):\n%s", s.Name(), diff)
		}
		header := []translate.Field{{Name: "Content-Type", Value: "application/a2a+json"}, {Name: "X-A2A-Notification-Token", Value: "tok"},
			{Name: "A2A-Notification-Token", Value: "tok"}, {Name: "Authorization", Value: "Bearer cred"}}
		if diff := cmp.Diff(header, s.NotificationHeader(&one)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(header[:1], s.NotificationHeader(&task.Webhook{URL: "u"})); diff != "" {
			t.Error(diff)
		}
	}
}

// TestV1Shown tests every state as callers are shown it: in answers, and in streams with where those end.
func TestV1Shown(t *testing.T) {
	for _, tc := range []struct {
		state         task.State
		auto, confirm string
		end           bool
	}{
		{task.Accepted, "SUBMITTED", "SUBMITTED", false},
		{task.Working, "WORKING", "WORKING", false},
		{task.AwaitingInput, "INPUT_REQUIRED", "INPUT_REQUIRED", true},
		{task.AwaitingCompletion, "COMPLETED", "INPUT_REQUIRED", true},
		{task.Completed, "COMPLETED", "COMPLETED", true},
		{task.Canceled, "CANCELED", "CANCELED", true},
		{task.Failed, "FAILED", "FAILED", true},
		{task.Rejected, "REJECTED", "REJECTED", true},
		{task.None, "UNSPECIFIED", "UNSPECIFIED", false},
	} {
		for _, b := range v1Bindings {
			for i, s := range []translate.Server{b.server, b.confirm} {
				word := "TASK_STATE_" + []string{tc.auto, tc.confirm}[i]
				state := &task.Task{ID: "t1", SessionID: "c1", Status: task.Status{State: tc.state, ChangedAt: v1At}}
				sent, subscribed := new(translate.Call), new(translate.Call)
				sent.Message.Command, subscribed.Message.Command = task.Continue, task.ReStream
				told := func(what string, f translate.Frame, path string, end bool) {
					t.Helper()
					if b.name == "a2a/1.0" {
						path = "result." + path
					}
					if got := gjson.GetBytes(f.Data, path).Str; got != word || f.End != end || f.Name != "" {
						t.Errorf("%s, confirm %v, %v: %s is %q, end %v: %s", b.name, i == 1, tc.state, what, got, f.End, f.Data)
					}
				}
				told("a snapshot", s.NewStream(nil, sent, state).Snapshot(nil, state), "task.status.state", tc.end)
				told("a task", s.NewStream(nil, sent, state).Event(nil, &task.Event{Task: state}), "task.status.state", tc.end)
				f := s.NewStream(nil, sent, state).Event(nil, &task.Event{Status: &state.Status})
				if tc.state == task.AwaitingCompletion && i == 0 {
					if f.Data != nil || f.End {
						t.Errorf("%s: what is completed at once is told: %+v", b.name, f)
					}
				} else {
					told("an update", f, "statusUpdate.status.state", tc.end)
				}
				f = s.NewStream(jsonrpc.ID("7"), subscribed, state).Snapshot([]byte("+"), state)
				if tc.state.Terminal() || tc.state == task.AwaitingCompletion && i == 0 {
					if _, err := b.client.NewStream(nil).Event("", bytes.TrimPrefix(f.Data, []byte("+"))); task.KindOf(err) != task.UnsupportedOperation || !f.End || f.Data[0] != '+' {
						t.Errorf("%s: subscribing to %s: %s, end %v", b.name, tc.state, f.Data, f.End)
					}
				} else {
					told("a subscription", translate.Frame{Data: f.Data[1:], End: f.End}, "task.status.state", tc.end)
				}
			}
		}
	}
}

// TestV1Frames tests the frames of events that are not a state alone.
func TestV1Frames(t *testing.T) {
	c := &translate.Call{History: 1}
	state := v1Whole(task.Accepted)
	text := []task.DataItem{task.Text("x")}
	s := a2a.V1RESTServer(false).NewStream(nil, c, &task.Task{ID: "t1", SessionID: "c1"})
	for _, tc := range []struct {
		name, want string
		ev         task.Event
	}{
		{"a chunk", `{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"p","parts":[{"text":"x"}]}}}`,
			task.Event{Chunk: &task.Chunk{Product: task.Product{ID: "p", DataItems: text}}}},
		{"the last chunk", `{"artifactUpdate":{"taskId":"t1","contextId":"c1","artifact":{"artifactId":"p","name":"n","parts":[]},"append":true,"lastChunk":true}}`,
			task.Event{Chunk: &task.Chunk{Product: task.Product{ID: "p", Name: "n"}, Append: true, Last: true}}},
		{"what the Partner says", `{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"status-mjwaid1q","role":"ROLE_AGENT","parts":[{"text":"x"}],"taskId":"t1","contextId":"c1"},"timestamp":"2026-01-02T03:04:05.006Z"}}}`,
			task.Event{Message: &task.Message{ID: "m", SentAt: v1At, SenderRole: task.Partner, DataItems: text}}},
		{"what the Leader says", ``, task.Event{Message: &task.Message{ID: "m", SenderRole: task.Leader, DataItems: text}}},
		{"nothing", ``, task.Event{}},
		{"a state without its cause", `{"statusUpdate":{"taskId":"t1","contextId":"c1","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-01-02T03:04:05.006Z"}}}`,
			task.Event{Status: &task.Status{State: task.Working, ChangedAt: v1At}, Cause: &state.MessageHistory[0]}},
	} {
		f := s.Event(nil, &tc.ev)
		if diff := cmp.Diff(tc.want, string(f.Data)); diff != "" || f.End {
			t.Errorf("%s, end %v (-want +got):\n%s", tc.name, f.End, diff)
		}
	}
	f := s.Event(nil, &task.Event{Task: state})
	if got := gjson.GetBytes(f.Data, "task.history.#.messageId").Raw; got != `["m2"]` {
		t.Errorf("the history is %s", got)
	}
}

// TestV1Identity tests that what the server writes is what the client reads, in both bindings: in answers, in
// streams, in notifications and in requests.
func TestV1Identity(t *testing.T) {
	for _, b := range v1Bindings {
		for _, state := range task.States() {
			want := v1Whole(state)
			read := state
			if state == task.Completed {
				read = task.AwaitingCompletion
			}
			for _, cmd := range []task.Command{task.Start, task.Continue, task.Get, task.Cancel} {
				c := &translate.Call{History: -1}
				c.Message.Command = cmd
				rep, err := b.client.Reply(b.server.AppendTask(nil, jsonrpc.ID("1"), c, want), nil)
				v1Same(t, b.name+" "+string(cmd), want, read, rep, err)
			}
			rep, err := b.client.Push(b.server.AppendNotification(nil, want), nil)
			v1Same(t, b.name+" notification", want, read, rep, err)

			frames, events := b.confirm.NewStream(jsonrpc.ID("1"), new(translate.Call), want), b.client.NewStream(nil)
			rep, err = events.Event("", frames.Snapshot(nil, want).Data)
			if state != task.AwaitingCompletion {
				v1Same(t, b.name+" snapshot", want, read, rep, err)
			}
			for i := range want.Products {
				for _, adds := range []bool{false, true} {
					chunk := task.Chunk{Product: want.Products[i], Append: adds, Last: adds}
					rep, err := events.Event("", frames.Event(nil, &task.Event{Chunk: &chunk}).Data)
					if diff := cmp.Diff(task.Report{Chunks: []task.Chunk{chunk}}, rep); diff != "" || err != nil {
						t.Errorf("%s, a chunk: %v\n%s", b.name, err, diff)
					}
				}
			}
		}
		for _, from := range []task.State{task.None, task.AwaitingInput, task.AwaitingCompletion} {
			for _, stream := range []bool{false, true} {
				turn := &task.Turn{
					Ref: task.Ref{Task: "t1", Session: "c1"}, From: from,
					Message: task.Message{ID: "m1", DataItems: v1Whole(task.Working).Products[0].DataItems},
					Webhook: &task.Webhook{ID: "w", URL: "u", Token: "tok", Scheme: "s", Credentials: "c"},
				}
				body := b.client.AppendTurn(nil, turn, stream)
				if binder, ok := b.client.(translate.Binder); ok {
					errand := translate.Send
					if stream {
						errand = translate.SendStream
					}
					verb, path := binder.Bind(errand, turn.Ref)
					body = append([]byte(verb+" "+path+"\n"), body...)
				}
				c, err := v1Decode(b.server, body)
				if err != nil {
					t.Errorf("%s, from %q: %v", b.name, from, err)
					continue
				}
				var want translate.Call
				want.Message = task.Message{ID: "m1", SenderRole: task.Leader, Command: task.Start, DataItems: turn.Message.DataItems}
				want.Stream, want.Webhook = stream, &task.Webhook{ID: "w", URL: "u", Token: "tok", Scheme: "s", Credentials: "c", Dialect: "a2a/1.0"}
				want.Terms.AutoComplete = true
				switch from {
				case task.AwaitingInput:
					want.Message.Command, want.Message.TaskID, want.Message.SessionID = task.Continue, "t1", "c1"
					want.Strict, want.Snapshot, want.Webhook.TaskID, want.Terms.AutoComplete = true, stream, "t1", false
				case task.AwaitingCompletion:
					want.Message.SessionID = "c1"
				}
				if diff := cmp.Diff(want, c); diff != "" {
					t.Errorf("%s, from %q (-want +got):\n%s", b.name, from, diff)
				}
			}
		}
	}
}

func v1Same(t *testing.T, name string, want *task.Task, state task.State, rep task.Report, err error) {
	t.Helper()
	rep.Said, rep.Stamp = "", ""
	if diff := cmp.Diff(task.Report{
		State: state, Items: want.Status.DataItems, Whole: true, Products: want.Products, Ref: &task.Ref{Task: want.ID, Session: want.SessionID},
	}, rep); diff != "" || err != nil {
		t.Errorf("%s, %s: %v (-want +got)\n%s", name, want.Status.State, err, diff)
	}
}
