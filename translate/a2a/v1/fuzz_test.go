// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/a2atest"
)

var known = []task.Product{{ID: "a", DataItems: []task.DataItem{task.Text("xy"), {Kind: task.FileItem, URI: "u"}}}}

// check checks the properties of everything read of an agent: an error has a kind, and a report can be stored as JSON
// on one line.
func check(t *testing.T, rep agent.Report, err error) {
	t.Helper()
	if err != nil {
		if e, ok := errors.AsType[*task.Error](err); !ok || e.Detail == "" || strings.ContainsAny(e.Detail, "\n\r") {
			t.Fatalf("%v", err)
		}
		return
	}
	if rep.State != task.None && (!rep.State.Valid() || rep.Revision == "") || rep.SelfResuming &&
		rep.State != task.AwaitingInput {
		t.Fatalf("%+v", rep)
	}
	all := append([]task.Product{{DataItems: rep.Items}}, rep.Products...)
	for _, c := range rep.Chunks {
		all = append(all, c.Product)
	}
	for i := range all {
		out := task.Form(nil).AppendProduct(nil, &all[i])
		if !json.Valid(out) || bytes.ContainsAny(out, "\n\r") {
			t.Fatalf("%q", out)
		}
	}
	task.Diff(known, rep.Products)
}

func FuzzReply(f *testing.F) {
	a2atest.Seeds(f, captures, ".json")
	f.Add([]byte(`{"result":{"task":{"id":"t","status":{"state":"TASK_STATE_AUTH_REQUIRED"},` +
		`"artifacts":[{"artifactId":"a","parts":[{"text":"x"},{"text":"y"},{"text":"z","mediaType":"m","metadata":{}},` +
		`{"raw":"-_"},{"data":[` +
		"\n" + `1]},7]}]}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, b := range bindings {
			rep, err := b.client.Reply(body, known)
			check(t, rep, err)
		}
	})
}

func FuzzEvent(f *testing.F) {
	a2atest.Seeds(f, captures, ".sse")
	f.Add([]byte(`data: {"artifactUpdate":{"append":true,"artifact":{"artifactId":"a","parts":[{"text":"z"}]}}}` +
		"\n\n" + `data: {"id":"t","status":{},"artifacts":[{"artifactId":"a"}]}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, b := range bindings {
			s := b.client.NewStream(known)
			for _, ev := range blocks(stream) {
				rep, err := s.Event(ev.name, ev.data)
				if check(t, rep, err); err != nil {
					break
				}
			}
		}
	})
}

func FuzzPush(f *testing.F) {
	a2atest.Seeds(f, captures, ".push")
	f.Add([]byte(`{"params":{"statusUpdate":{"status":{"state":"TASK_STATE_CANCELLED"}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		rep, err := a2a.V1().Push(body, known)
		check(t, rep, err)
	})
}

func FuzzDecode(f *testing.F) {
	a2atest.Seeds(f, captures, ".request")
	for _, v := range valid {
		f.Add(a2atest.Request(v.method, v.params))
	}
	rpc, rest := a2a.V1Server(false), a2a.V1RESTServer(true)
	f.Fuzz(func(t *testing.T, body []byte) {
		req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
		if bad != nil {
			return
		}
		call, err := rpc.Decode(&translate.Request{Request: req, HTTP: "POST"})
		again, other := rest.Decode(&translate.Request{Request: jsonrpc.Request{Method: req.Method, Params: req.Params},
			HTTP: "POST"})
		if (err == nil) != (other == nil) {
			t.Fatalf("the bindings differ: %v, %v", err, other)
		}
		if err != nil {
			e, ok := errors.AsType[*task.Error](err)
			if !ok || e.Detail == "" || e.Kind == task.InvalidParams && e.Field == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		if again.Message.ID != call.Message.ID || again.Op != call.Op {
			t.Fatalf("the bindings differ: %+v, %+v", call, again)
		}
		if m := call.Message; !m.Command.Valid() || m.SenderRole != task.Leader {
			t.Fatalf("%+v", m)
		}
		out := readParts(call.Message.DataItems)
		if len(call.Message.DataItems) > 0 && (!gjson.Valid(out) || strings.ContainsAny(out, "\n\r")) {
			t.Fatalf("%q", out)
		}
		// An understood message can be said again, and is understood as the same.
		if call.Op != translate.Command || call.Message.Command != task.Start {
			return
		}
		turn := &agent.Turn{Message: call.Message}
		said, err := decode(rpc, a2a.V1().AppendTurn(nil, turn, call.Stream))
		if err != nil {
			t.Fatalf("%v, for\n%s", err, a2a.V1().AppendTurn(nil, turn, call.Stream))
		}
		if got := readParts(said.Message.DataItems); got != out &&
			!strings.Contains(out, `"a2a"`) { // it is not said in the place of others
			t.Fatalf("%s\nis not\n%s", got, out)
		}
		a2atest.Sayable(t, &call)
	})
}
