// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// TestClientOfServer: the two sides understand each other: a request is read as it was meant, and a stream makes the
// same task as its answer in one piece.
func TestClientOfServer(t *testing.T) {
	for _, turn := range translatetest.Turns() {
		turn.Ref.Session = "s" // the gateway makes it
		body := Client(Options{}).AppendTurn(nil, &turn, true)
		v, bad := jsonrpc.ParseValue(body, jsonrpc.Limits{})
		if bad != nil || !v.IsObject() {
			t.Fatalf("it is no object: %v, for\n%s", bad, body)
		}
		call, err := Server(false).Decode(&translate.Request{
			Request: jsonrpc.Request{Method: process, Params: v}, HTTP: "POST",
			NewID: func() string { return "new" },
		})
		if err != nil {
			t.Fatalf("it is refused: %v, for\n%s", err, body)
		}
		var texts []string
		for _, it := range call.Message.DataItems {
			texts = append(texts, it.Text)
		}
		var want string
		if err := json.Unmarshal(task.AppendString(nil, turn.Message.DataItems[0].Text), &want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(texts[:2], []string{want, want}) || len(texts) != 5 || !call.Stream {
			t.Errorf("it is read as %+v, want %q, for\n%s", call, want, body)
		}
	}
	translatetest.Streams(t, Client(Options{}), Server(false))
}

// TestBodies tests broken answers. Nothing of their memory is kept.
func TestBodies(t *testing.T) {
	var samples [][]byte
	for _, name := range []string{"hello", "tool", "boom", "badreq"} {
		samples = append(samples, vector(t, name)...)
	}
	translatetest.Bodies(t, Client(Options{Expose: ExposeStatus}), samples)
}

// TestSameSession: a request and its cancel name the same session, and other sessions have other names.
func TestSameSession(t *testing.T) {
	names := func(session string) (all []string) {
		c := Client(Options{CancelPath: "/stop"})
		ref := agent.Ref{Task: "t", Session: session}
		for _, body := range [][]byte{
			c.AppendTurn(nil, &agent.Turn{Ref: ref}, true), c.(translate.Canceler).AppendCancel(nil, ref),
		} {
			var is struct {
				User    string `json:"user_id"`
				Session string `json:"session_id"`
			}
			if err := json.Unmarshal(body, &is); err != nil {
				t.Fatal(err)
			}
			all = append(all, is.User, is.Session)
		}
		return all
	}
	if d := cmp.Diff([]string{"a", "a", "a", "a"}, names("a")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
