// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

// Every request before 1.0 is of exactly one dialect.
func TestLegacyMatches(t *testing.T) {
	made := translate.TaskID(make([]byte, 17))
	for _, tc := range []struct{ version, method, id, want string }{
		{"", "tasks/send", "t", "a2a/legacy"},
		{"0.3", "tasks/sendSubscribe", "t", "a2a/legacy"},
		{"", "tasks/pushNotification/get", made, "a2a/legacy"},
		{"", "tasks/pushNotification/set", "t", "a2a/legacy"},
		{"", "message/send", "t", "a2a/0.3"},
		{"0.1", "message/stream", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/set", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/get", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/list", "t", "a2a/0.3"},
		{"", "tasks/pushNotificationConfig/delete", "t", "a2a/0.3"},
		{"", "agent/getAuthenticatedExtendedCard", "t", "a2a/0.3"},
		{"", "tasks/get", "t", "a2a/legacy"},
		{"", "tasks/get", made, "a2a/0.3"},
		{"", "tasks/cancel", made, "a2a/0.3"},
		{"", "tasks/resubscribe", "t", "a2a/legacy"},
		{"0.3", "tasks/get", "t", "a2a/0.3"},
		{"0.2.5", "tasks/cancel", "t", "a2a/0.3"},
		{"0.1", "tasks/cancel", made, "a2a/legacy"},
		{"1.0", "tasks/get", "t", ""},
		{"1.0", "message/send", "t", ""},
		{"1.0", "tasks/send", "t", ""},
		{"2.0", "tasks/send", "t", ""},
		{"x", "message/send", "t", ""},
		{"", "SendMessage", "t", ""},
		{"", "rpc", "t", ""},
	} {
		req, bad := jsonrpc.Parse(a2atest.Request(tc.method, `{"id":"`+tc.id+`"}`), jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		var got []string
		for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
			if s.Matches(&translate.Request{Request: req, HTTP: "POST", Version: tc.version}) {
				got = append(got, s.Name())
			}
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("version %q, %s, id %s: %v match it, want %q", tc.version, tc.method, tc.id, got, tc.want)
		}
	}
}

func TestLegacyRoute(t *testing.T) {
	for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
		for _, tc := range []struct {
			method, path string
			want         translate.Route
			ok           bool
		}{
			{"POST", "", translate.Route{}, true},
			{"GET", "", translate.Route{Allow: "POST"}, true},
			{"POST", "rpc", translate.Route{}, false},
		} {
			r, ok := s.Route(tc.method, tc.path)
			if diff := cmp.Diff(tc.want, r); diff != "" || ok != tc.ok {
				t.Errorf("%s: %s %q: %v (-want +got):\n%s", s.Name(), tc.method, tc.path, ok, diff)
			}
		}
	}
}

// Every kind has a number, and numbers with another meaning in AIP are never used.
func TestLegacyFaults(t *testing.T) {
	legacy := map[task.Kind]int64{
		task.Internal: -32603, task.ParseError: -32700, task.InvalidRequest: -32600, task.MethodNotFound: -32601,
		task.InvalidParams: -32602, task.TaskNotFound: -32001, task.TaskNotCancelable: -32002,
		task.NotificationNotSupported: -32003, task.UnsupportedOperation: -32004, task.ContentTypeNotSupported: -32005,
		task.InvalidAgentResponse: -32603, task.GroupNotSupported: -32004, task.AuthenticationRequired: -31401,
		task.AuthorizationFailed: -31403, task.AccessTokenInvalid: -31401, task.LimitExceeded: -32050,
		task.AgentUnavailable: -32603, task.AgentTimeout: -32603, task.StoreUnavailable: -32603,
		task.InvitationRejected: -32004, task.ConnectionFailed: -32603,
	}
	status := map[task.Kind]int{task.AuthenticationRequired: 401, task.AccessTokenInvalid: 401,
		task.AuthorizationFailed: 403}
	for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
		for _, k := range task.Kinds() {
			want, ok := legacy[k]
			if !ok {
				t.Fatalf("%v is not in the table", k)
			}
			if k == task.InvalidAgentResponse && s.Name() == "a2a/0.3" {
				want = -32006
			}
			err := task.Errorf(k, "x")
			res, bad := jsonrpc.ParseResponse(s.AppendError(nil, nil, err), jsonrpc.Limits{})
			if bad != nil || res.Failure == nil || res.Failure.Code != want {
				t.Errorf("%s, %v: %+v %v, want the code %d", s.Name(), k, res.Failure, bad, want)
			}
			http := max(200, status[k])
			if got := s.(translate.Statuser).Status(err); got != http {
				t.Errorf("%s, %v: status %d, want %d", s.Name(), k, got, http)
			}
		}
	}
	silent := task.Errorf(task.AgentTimeout, "it was silent").WithData("taskId", "t").WithField("f")
	got := string(a2a.LegacyServer(false).AppendError([]byte("x"), jsonrpc.ID("7"), silent))
	want := `x{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error",` +
		`"data":{"errorType":"AGENT_TIMEOUT","field":"f","taskId":"t","details":"it was silent"}}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	named := a2a.V03Server(false).(translate.VersionedServer).Named()
	for err, want := range map[error]string{
		silent:              `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"it was silent"}}`,
		errors.New("a bug"): `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}`,
	} {
		if diff := cmp.Diff(want, string(named.AppendError(nil, jsonrpc.ID("7"), err))); diff != "" {
			t.Errorf("to a caller that names its version (-want +got):\n%s", diff)
		}
	}
}

func TestLegacyNotificationHeader(t *testing.T) {
	content := translate.Field{Name: "Content-Type", Value: "application/json"}
	token := translate.Field{Name: "X-A2A-Notification-Token", Value: "k"}
	for _, s := range []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false)} {
		for _, tc := range []struct {
			in   task.Webhook
			want []translate.Field
		}{
			{task.Webhook{}, []translate.Field{content}},
			{task.Webhook{Token: "k", Scheme: "Bearer"}, []translate.Field{content, token}},
			{task.Webhook{Token: "k", Scheme: "Basic", Credentials: "c"},
				[]translate.Field{content, token, {Name: "Authorization", Value: "Basic c"}}},
			{task.Webhook{Credentials: "c"}, []translate.Field{content, {Name: "Authorization", Value: "Bearer c"}}},
		} {
			if diff := cmp.Diff(tc.want, s.NotificationHeader(&tc.in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", s.Name(), diff)
			}
		}
	}
}

// TestNamesOfSessions: the session has the name of the request, unless the agent says another one of its own.
func TestNamesOfSessions(t *testing.T) {
	const status = `"status":{"state":"completed"}`
	const status10 = `"status":{"state":"TASK_STATE_COMPLETED"}`
	for name, of := range map[string]struct {
		client translate.Client
		answer string // with a place for the session
		events []string
	}{
		"legacy": {a2a.Legacy(), `{"id":"T"%s,` + status + `}`, []string{`{"id":"T"%s,` + status + `,"final":true}`}},
		"0.3": {a2a.V03(), `{"id":"T"%s,` + status + `}`, []string{`{"taskId":"T"%s,` + status + `}`,
			`{"messageId":"m","parts":[]%s}`}},
		"1.0": {a2a.V1(), `{"task":{"id":"T"%s,` + status10 + `}}`, []string{
			`{"statusUpdate":{"taskId":"T"%s,` + status10 + `}}`,
			`{"message":{"messageId":"m","parts":[{"text":"x"}]%s}}`}},
	} {
		member := "contextId"
		if name == "legacy" {
			member = "sessionId"
		}
		for _, tc := range []struct {
			sent, said, want string
			own              bool
		}{
			{"s", `,"` + member + `":"s"`, "s", false},
			{"s", "", "s", false},
			{"s", `,"` + member + `":"own"`, "own", true},
			{"", `,"` + member + `":"own"`, "own", true},
		} {
			client := of.client.For(translate.Query{ID: "1", Task: "T", Session: tc.sent, Turn: true})
			result := func(form string) []byte {
				return []byte(`{"jsonrpc":"2.0","id":"1","result":` + strings.Replace(form, "%s", tc.said, 1) + `}`)
			}
			check := func(what string, rep agent.Report, err error) {
				t.Helper()
				got := tc.sent // if the answer has no names, as in a2a/legacy and in a Message without a context
				if rep.Ref != nil {
					got = rep.Ref.Session
				}
				if got != tc.want || rep.OwnSession != tc.own || err != nil {
					t.Errorf("%s, %s: sent %q, said %q: it is %q, own %v, %v", name, what, tc.sent, tc.said, got,
						rep.OwnSession, err)
				}
			}
			rep, err := client.Reply(result(of.answer), nil)
			check("answer", rep, err)
			for _, event := range of.events {
				rep, err := client.NewStream(nil).Event("", result(event))
				check("event", rep, err)
			}
		}
	}
}
