// SPDX-License-Identifier: Apache-2.0

package translatetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// operations returns the functions for appending each possible request of a Client for a turn, by its operation.
func operations(c translate.Client, turn *agent.Turn) map[translate.Operation]func(dst []byte) []byte {
	ops := map[translate.Operation]func(dst []byte) []byte{
		translate.Send:       func(dst []byte) []byte { return c.AppendTurn(dst, turn, false) },
		translate.SendStream: func(dst []byte) []byte { return c.AppendTurn(dst, turn, true) },
	}
	if g, ok := c.(translate.Getter); ok {
		ops[translate.Get] = func(dst []byte) []byte { return g.AppendGet(dst, turn.Ref) }
	}
	if g, ok := c.(translate.Canceler); ok {
		ops[translate.Cancel] = func(dst []byte) []byte { return g.AppendCancel(dst, turn.Ref) }
	}
	if g, ok := c.(translate.Resubscriber); ok {
		ops[translate.Resubscribe] = func(dst []byte) []byte { return g.AppendResubscribe(dst, turn.Ref) }
	}
	if g, ok := c.(translate.Completer); ok {
		ops[translate.Complete] = func(dst []byte) []byte { return g.AppendComplete(dst, turn.Ref) }
	}
	if g, ok := c.(translate.Registrar); ok && turn.Webhook != nil {
		ops[translate.Register] = func(dst []byte) []byte { return g.AppendRegister(dst, turn.Ref, turn.Webhook) }
	}
	if g, ok := c.(translate.Describer); ok {
		ops[translate.Describe] = g.AppendDescribe
	}
	return ops
}

// clientRequests: every request is well-formed, is appended to earlier bytes, is the same when it is made again, is not
// much larger than its turn, and leaves the turn as it was.
func clientRequests(t *testing.T, c translate.Client) {
	const before = "already there"
	binder, bound := c.(translate.Binder)
	for _, turn := range Turns() {
		was := task.AppendMessage(nil, &turn.Message)
		most := 4*len(was) + 6*(len(turn.Ref.Task)+len(turn.Ref.Session)+len(turn.Revision)) + 1<<10
		if w := turn.Webhook; w != nil {
			most += 6 * (len(w.URL) + len(w.Token) + len(w.Credentials))
		}
		for op, appendTo := range operations(c, &turn) {
			out := appendTo([]byte(before))
			body, ok := bytes.CutPrefix(out, []byte(before))
			switch {
			case !ok:
				t.Fatalf("operation %d does not append: %s", op, out)
			case !bytes.Equal(body, appendTo(nil)):
				t.Errorf("operation %d is another request when it is made again", op)
			case len(body) > most:
				t.Errorf("operation %d makes %d bytes of a turn of %d", op, len(body), len(was))
			}
			if bound {
				method, path := binder.Bind(op, turn.Ref)
				if _, err := url.Parse("https://example.com/agent" + path); err != nil || !strings.HasPrefix(path, "/") {
					t.Errorf("operation %d is sent to %q: %v", op, path, err)
				}
				if len(body) == 0 || method == "GET" || !inJSON(c) {
					continue
				}
				if v, bad := jsonrpc.ParseValue(body, jsonrpc.Limits{}); bad != nil || !v.IsObject() {
					t.Errorf("operation %d is not one object: %v, for\n%s", op, bad, body)
				}
				continue
			}
			req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
			if bad == nil {
				bad = req.Check()
			}
			if bad != nil || req.Method == "" {
				t.Errorf("operation %d is not one request: %v, for\n%s", op, bad, body)
			}
		}
		if d := cmp.Diff(string(was), string(task.AppendMessage(nil, &turn.Message))); d != "" {
			t.Fatalf("the turn has changed:\n%s", d)
		}
	}
}

// requestsAreDecoded: a server of the dialect reads a request as the client meant it.
func requestsAreDecoded(t *testing.T, c translate.Client, s translate.Server) {
	for _, text := range Strings() {
		turn := agent.Turn{Ref: agent.Ref{Task: "t-1", Session: "s-1"}, Message: task.Message{
			ID: "m-1", SenderRole: task.Leader, SenderID: "leader", Command: task.Start,
			DataItems: []task.DataItem{task.Text(text)}}}
		for op, appendTo := range operations(c, &turn) {
			want, commanded := map[translate.Operation]task.Command{
				translate.Send: task.Start, translate.SendStream: task.Start, translate.Get: task.Get,
				translate.Cancel: task.Cancel, translate.Resubscribe: task.ReStream, translate.Complete: task.Complete,
			}[op]
			if !commanded {
				continue
			}
			body := appendTo(nil)
			call, err := received(c, s, op, turn.Ref, body)
			if err != nil {
				t.Errorf("operation %d is refused: %v, for\n%s", op, err, body)
				continue
			}
			if got := call.Message.Command; got != want {
				t.Errorf("operation %d is read as %s, want %s", op, got, want)
			}
			if stream := op == translate.SendStream || op == translate.Resubscribe; call.Stream != stream {
				t.Errorf("operation %d is answered by a stream: %v", op, call.Stream)
			}
			if want == task.Start {
				if d := cmp.Diff(asJSON(text), texts(call.Message.DataItems)); d != "" {
					t.Errorf("operation %d says something else (-written +read):\n%s", op, d)
				}
			} else if call.Message.TaskID != turn.Ref.Task {
				t.Errorf("operation %d is about %q", op, call.Message.TaskID)
			}
		}
	}
}

// received returns the call read by a server in a request of a client.
func received(c translate.Client, s translate.Server, op translate.Operation, ref agent.Ref,
	body []byte) (translate.Call, error) {
	binder, ok := c.(translate.Binder)
	if !ok {
		return decode(s, body)
	}
	method, path := binder.Bind(op, ref)
	u, err := url.Parse(path)
	if err != nil {
		return translate.Call{}, err
	}
	route, ok := s.Route(method, strings.TrimPrefix(u.EscapedPath(), "/"))
	if !ok || route.Allow != "" {
		return translate.Call{}, fmt.Errorf("the server has no %s %s", method, path)
	}
	req := translate.Request{HTTP: method, PathParams: route.PathParams, Query: u.Query()}
	req.Method = route.Method
	if t, ok := s.(translate.Transcoder); ok {
		if body, err = t.Params(route.Method, body); err != nil {
			return translate.Call{}, err
		}
	}
	if method != "GET" && len(body) > 0 {
		v, bad := jsonrpc.ParseValue(body, jsonrpc.Limits{})
		if bad != nil {
			return translate.Call{}, bad
		}
		req.Params = v
	}
	return s.Decode(&req)
}

// inJSON reports whether the messages of a dialect are JSON.
func inJSON(c translate.Client) bool {
	_, other := c.(translate.StatusReader)
	return !other
}

// asJSON returns a text as JSON can hold it.
func asJSON(text string) (out string) {
	if err := json.Unmarshal(task.AppendString(nil, text), &out); err != nil {
		panic(err)
	}
	return out
}
