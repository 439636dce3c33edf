// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// TestReceived: an agent has a continue if it is one of the messages of its task, and lacks it if it has only the one
// before.
func TestReceived(t *testing.T) {
	with := func(history string) string {
		return `{"jsonrpc":"2.0","id":"1","result":{"id":"t","status":{"state":"awaiting-input"}` + history + `}}`
	}
	messages := func(ids ...string) string {
		for i, id := range ids {
			ids[i] = `{"type":"message","id":"` + id + `"}`
		}
		return with(`,"messageHistory":[` + strings.Join(ids, ",") + `]`)
	}
	history := func(ids ...string) (all []task.Message) {
		for _, id := range ids {
			all = append(all, task.Message{ID: id, Command: task.Continue})
		}
		return all
	}
	v2 := func(body string) string { return strings.Replace(body, "message", "command", 1) }
	const noTask = `{"jsonrpc":"2.0","id":"1","error":{"code":-32001,"message":"?"}}`
	for name, tt := range map[string]struct {
		body            string
		history         []task.Message
		received, known bool
		kind            task.Kind
	}{
		"it has it":                     {messages("a", "b"), history("a", "b"), true, true, 0},
		"it has it, in v02":             {v2(messages("a", "b")), history("a", "b"), true, true, 0},
		"it lacks it":                   {messages("a"), history("a", "b"), false, true, 0},
		"it lacks the one before, too":  {messages("a"), history("a", "b", "c"), false, false, 0},
		"the one before has no id":      {messages("a", "x"), history("a", "", "b"), false, true, 0},
		"the id was used before":        {messages("a"), history("a", "a"), false, true, 0},
		"the id was used before, twice": {messages("a", "a"), history("a", "a"), true, true, 0},
		"an empty history":              {messages(), history("a", "b"), false, false, 0},
		"no history":                    {with(""), history("a", "b"), false, false, 0},
		"null":                          {with(`,"messageHistory":null`), history("a", "b"), false, false, 0},
		"no task":                       {noTask, history("a", "b"), false, false, task.TaskNotFound},
		"nothing":                       {`{}`, history("a", "b"), false, false, task.InvalidAgentResponse},
	} {
		t.Run(name, func(t *testing.T) {
			turn := &agent.Turn{Ref: agent.Ref{Task: "t"}, From: task.AwaitingInput, History: tt.history,
				Message: tt.history[len(tt.history)-1]}
			received, known, err := Client("gateway").(translate.LateActor).Received([]byte(tt.body), turn)
			failed := err != nil
			if received != tt.received || known != tt.known || failed != (tt.kind != 0) ||
				failed && task.KindOf(err) != tt.kind {
				t.Errorf("received %v, known %v, %v", received, known, err)
			}
		})
	}
}

// TestGetMessages: a get asking for the messages of a task is decoded as one.
func TestGetMessages(t *testing.T) {
	for version, s := range sides() {
		body := s.client.(translate.LateActor).AppendGetMessages(nil, agent.Ref{Task: "t", Session: "s"})
		req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		got, err := s.server.Decode(&translate.Request{Request: req, HTTP: "POST"})
		if err != nil || got.Message.Command != task.Get || !got.MessagesAfter.IsZero() || got.StatesAfter.IsZero() {
			t.Errorf("%s: %v, for\n%s", version, err, body)
		}
	}
}
