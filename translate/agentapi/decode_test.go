// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// TestConversations: each pair of a user_id and a session_id has a name of its own, from which both can be read.
func TestConversations(t *testing.T) {
	names := make(map[string][2]string)
	ids := []string{"a", "b", "a/b", "/", "//", "a%2Fb", "%", "é", "a b"}
	for _, user := range ids {
		for _, session := range ids {
			name := conversation(user, session)
			if other, twice := names[name]; twice {
				t.Errorf("%q is the name of %q and of %q", name, other, [2]string{user, session})
			}
			names[name] = [2]string{user, session}
			if u, s := userAndSession(name); u != user || s != session {
				t.Errorf("%q and %q come back as %q and %q", user, session, u, s)
			}
		}
	}
	if u, s := userAndSession("%zz/x"); u != "%zz/x" || s != u {
		t.Errorf("a name of another dialect is read as %q and %q", u, s)
	}
}

// TestDecodeSession: which session a request is for, and which id its response gets.
func TestDecodeSession(t *testing.T) {
	for body, want := range map[string]translate.Call{
		`{"input":[]}`: {Stream: true},
		`{"input":[],"session_id":"s","user_id":"u","stream":false,"id":"r"}`: {Blocking: true, AnswerID: "r"},
		`{"input":[],"session_id":"s","response_id":"r"}`:                     {Stream: true, AnswerID: "r"},
		`{"input":[],"user_id":"u","stream":true,"id":null}`:                  {Stream: true},
		`{"input":[],"previous_response_id":"response_t_1_m"}`:                {Stream: true, SessionOf: "t_1"},
		`{"input":[],"previous_response_id":"response_t_m","session_id":"s","user_id":"s"}`: {
			Stream: true, SessionOf: "t"},
	} {
		got, err := decode(body)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		session := map[string]string{
			`{"input":[]}`: "id1",
			`{"input":[],"session_id":"s","user_id":"u","stream":false,"id":"r"}`:               "u/s",
			`{"input":[],"session_id":"s","response_id":"r"}`:                                   "s",
			`{"input":[],"user_id":"u","stream":true,"id":null}`:                                "u/id1",
			`{"input":[],"previous_response_id":"response_t_m","session_id":"s","user_id":"s"}`: "s",
		}[body]
		want.BySession = true
		want.Message = got.Message
		want.Message.Command, want.Message.SenderRole, want.Message.SessionID = task.Start, task.Leader, session
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s is read as (-want +got):\n%s", body, d)
		}
		if got.Message.ID == "" || got.Message.TaskID != "" {
			t.Errorf("%s: the message has the id %q and the task %q", body, got.Message.ID, got.Message.TaskID)
		}
	}
}
