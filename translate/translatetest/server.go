// SPDX-License-Identifier: Apache-2.0

// Package translatetest holds the properties of every dialect. A dialect's own tests call it.
package translatetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Server tests the side towards callers of a dialect over JSON-RPC, given bodies of requests for it, at least one for
// each of its commands.
func Server(t *testing.T, s translate.Server, requests ...[]byte) {
	if s.Name() == "" {
		t.Error("the dialect has no name")
	}
	if len(requests) == 0 {
		t.Fatal("no requests to test with")
	}
	for _, body := range requests {
		if _, err := decode(s, slices.Clone(body)); err != nil {
			t.Fatalf("%v, for\n%s", err, body)
		}
	}
	t.Run("ids", func(t *testing.T) { ids(t, s, requests) })
	t.Run("errors", func(t *testing.T) { errorKinds(t, s) })
	t.Run("responses", func(t *testing.T) { responses(t, s) })
	t.Run("ownership", func(t *testing.T) { ownership(t, s, requests) })
	t.Run("bytes", func(t *testing.T) {
		for _, body := range requests {
			mutatedBytes(body, 2000, func(body []byte) { refusable(t, s, body) })
		}
	})
	t.Run("values", func(t *testing.T) {
		for _, body := range requests {
			mutatedValues(t, body, func(body []byte) { refusable(t, s, body) })
		}
	})
}

// Decoder tests the decoding of bodies of a dialect without an envelope, given some it accepts: broken ones are decoded
// or refused as a caller's mistake, and a Call does not change when its body is used for something else.
func Decoder(t *testing.T, decode func(body []byte) (translate.Call, error), bodies ...[]byte) {
	try := func(body []byte) {
		t.Helper()
		defer func() {
			if p := recover(); p != nil {
				t.Fatalf("panic: %v, for\n%q", p, body)
			}
		}()
		call, err := decode(body)
		if _, malformed := errors.AsType[*jsonrpc.Error](err); malformed {
			return
		}
		decodedOrRefused(t, body, call, err)
	}
	for _, body := range bodies {
		want, err := decode(slices.Clone(body))
		if err != nil {
			t.Fatalf("%v, for\n%s", err, body)
		}
		used := slices.Clone(body)
		got, err := decode(used)
		if err != nil {
			t.Fatal(err)
		}
		for i := range used {
			used[i] = 'x'
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("the call is a view of its body:\n%s", cmp.Diff(want, got))
		}
		mutatedBytes(body, 2000, try)
		mutatedValues(t, body, try)
	}
}

// IDs are ids of requests. They come back byte for byte.
func IDs() []jsonrpc.ID {
	var out []jsonrpc.ID
	for _, s := range []string{
		`null`, `0`, `-0`, `1`, `1.0`, `1.50`, `1e3`, `1E+03`, `-1.5e-7`, `9007199254740993`,
		`123456789012345678901234567890`, `1e999`, `""`, `"1"`, `"\u0041"`, `"\u00e9\/\ud83d\ude00"`, `"é/😀"`,
		`"\\\"\b\f\n\r\t"`, `"<script>&"`, "\"\u2028\u2029\u007f\"", `"{}"`, `"` + strings.Repeat("x", 1000) + `"`,
	} {
		out = append(out, jsonrpc.ID(s))
	}
	return out
}

// Strings are strings easily mistaken for something else.
func Strings() []string {
	return []string{
		"", "plain", "北京 é 😀", "\"\\/", "a\nb\r\nc\rd\n\n", "\x00\x01\x1f\x7f", "\u2028\u2029\u0085",
		"data: x\n\ndata: y", "<a href='x'>&amp;</a>", `\u0041\ud800`, "{}", "null",
		"\xff\xfe invalid \xed\xa0\x80", "\ufeff", strings.Repeat("长", 1000),
	}
}

// Tasks are tasks, some of them with every field set, with each of Strings everywhere.
func Tasks() []task.Task {
	at := time.Date(2025, 9, 1, 12, 0, 0, 1e6, time.FixedZone("", 8*60*60))
	out := []task.Task{{ID: "t", SessionID: "s", Status: task.Status{State: task.Accepted, ChangedAt: at}}}
	extra := json.RawMessage(`{"a2a":{"x":[1.0],"metadata":{"k":null},"message":{"extensions":[]}},"other":{}}`)
	for _, s := range Strings() {
		items := []task.DataItem{
			task.Text(s),
			{Kind: task.TextItem, Text: s, Metadata: json.RawMessage(`{"a":"\n"}`)},
			{Kind: task.FileItem, Name: s, MIMEType: s, URI: s},
			{Kind: task.FileItem, Name: s, Bytes: "QUJD"},
			{Kind: task.DataKind, Data: json.RawMessage(`{"b":[1.0,null,{}]}`), Metadata: json.RawMessage(`{}`)},
		}
		status := task.Status{State: task.AwaitingInput, ChangedAt: at, DataItems: items, Extensions: extra}
		out = append(out, task.Task{
			ID: s, SessionID: s, SenderID: s, GroupID: s,
			Status:     status,
			Extensions: extra,
			Products:   []task.Product{{ID: s, Name: s, Description: s, DataItems: items, Extensions: extra}, {ID: "p2"}},
			MessageHistory: []task.Message{{
				ID: s, SentAt: at, SenderRole: task.Leader, SenderID: s, Mentions: []string{s, s}, Command: task.Start,
				Params: json.RawMessage(`{"responseTimeout":1}`), DataItems: items, TaskID: s, GroupID: s, SessionID: s,
				Extensions: extra,
			}, {ID: "m2", SentAt: at, SenderRole: task.Partner}},
			StatusHistory: []task.Status{{State: task.Working, ChangedAt: at}, status},
		})
	}
	return out
}

// Events are the possible events of t, of every kind.
func Events(t *task.Task) []task.Event {
	out := []task.Event{
		{Seq: 1, Task: t},
		{Seq: 2, Status: &t.Status},
	}
	for i := range t.Products {
		out = append(out,
			task.Event{Seq: 3, Chunk: &task.Chunk{Product: t.Products[i]}},
			task.Event{Seq: 4, Chunk: &task.Chunk{Product: t.Products[i], Append: true, Last: true}})
	}
	for i := range t.MessageHistory {
		m := &t.MessageHistory[i]
		out = append(out,
			task.Event{Seq: 5, Message: m},
			task.Event{Seq: 1<<64 - 1, Status: &t.Status, Cause: m})
	}
	return out
}

func decode(s translate.Server, body []byte) (translate.Call, error) {
	req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
	if bad != nil {
		return translate.Call{}, bad
	}
	return s.Decode(&translate.Request{Request: req, HTTP: "POST"})
}

// ids: whatever the id is, every response to a request has the same.
func ids(t *testing.T, s translate.Server, requests [][]byte) {
	state := Tasks()[0]
	for _, body := range requests {
		req, _ := jsonrpc.Parse(body, jsonrpc.Limits{})
		for _, id := range IDs() {
			body := jsonrpc.End(append(jsonrpc.BeginRequest(nil, id, req.Method), req.Params.Raw...))
			req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
			if bad != nil {
				t.Fatalf("id %s: %v", id, bad)
			}
			call, err := s.Decode(&translate.Request{Request: req, HTTP: "POST"})
			if err != nil {
				t.Fatalf("id %s: %v", id, err)
			}
			for name, out := range map[string][]byte{
				"AppendTask":  s.AppendTask(nil, req.ID, &call, &state),
				"Event":       s.NewStream(req.ID, &call, &state).Event(nil, &task.Event{Seq: 1, Status: &state.Status}).Data,
				"AppendError": s.AppendError(nil, req.ID, task.Errorf(task.TaskNotFound, "gone")),
			} {
				if name == "Event" && notification(out) {
					continue
				}
				if res := response(t, name, out); string(res.ID) != string(id) {
					t.Errorf("%s answers the id %s with %s", name, id, res.ID)
				}
			}
		}
	}
	noID := s.AppendError(nil, nil, task.Errorf(task.ParseError, "x"))
	if res := response(t, "AppendError", noID); string(res.ID) != "null" {
		t.Errorf("no id is answered with %s", res.ID)
	}
}

// notification reports whether a frame is a notification of JSON-RPC. Some dialects have one for events.
func notification(frame []byte) bool {
	req, bad := jsonrpc.Parse(frame, jsonrpc.Limits{})
	return bad == nil && len(req.ID) == 0 && !bytes.ContainsAny(frame, "\n\r")
}

// response checks that out is one response on one line, and parses it.
func response(t *testing.T, name string, out []byte) jsonrpc.Response {
	t.Helper()
	if bytes.ContainsAny(out, "\n\r") {
		t.Fatalf("%s: more than one line:\n%q", name, out)
	}
	if !json.Valid(out) {
		t.Fatalf("%s: not JSON:\n%s", name, out)
	}
	res, bad := jsonrpc.ParseResponse(out, jsonrpc.Limits{})
	if bad != nil {
		t.Fatalf("%s: %v:\n%s", name, bad, out)
	}
	return res
}

// Strict reads a request or a response of a codec: on one line, without a name appearing twice. It returns the params
// or the result.
func Strict(t testing.TB, body []byte) gjson.Result {
	t.Helper()
	if bytes.ContainsAny(body, "\n\r") {
		t.Fatalf("more than one line: %q", body)
	}
	if req, bad := jsonrpc.Parse(body, jsonrpc.Limits{}); bad == nil {
		return req.Params
	}
	res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{})
	if bad != nil {
		t.Fatalf("%v, for\n%s", bad, body)
	}
	return res.Result
}

// errorKinds: every kind has a number and a message, JSON-RPC's own kinds have JSON-RPC's own numbers, and causes not
// for callers stay here.
func errorKinds(t *testing.T, s translate.Server) {
	const secret = "do-not-show"
	standard := map[task.Kind]int64{
		task.ParseError: -32700, task.InvalidRequest: -32600, task.MethodNotFound: -32601,
		task.InvalidParams: -32602, task.Internal: -32603,
	}
	for _, k := range task.Kinds() {
		e := task.Errorf(k, "a sentence").WithField("params.a").WithData("max", 7).WithCause(errors.New(secret))
		for name, err := range map[string]error{"plain": e, "wrapped": fmt.Errorf(secret+": %w", e)} {
			out := s.AppendError(nil, jsonrpc.ID("1"), err)
			res := response(t, k.String(), out)
			f := res.Failure
			switch {
			case f == nil:
				t.Errorf("%v, %s: no error: %s", k, name, out)
			case f.Code == 0 || f.Message == "":
				t.Errorf("%v, %s: no code or message: %s", k, name, out)
			case standard[k] != 0 && f.Code != standard[k]:
				t.Errorf("%v, %s: code %d, want %d", k, name, f.Code, standard[k])
			case strings.Contains(string(out), secret):
				t.Errorf("%v, %s: shows its cause: %s", k, name, out)
			}
		}
	}
	for name, err := range map[string]error{
		"no kind":      errors.New(secret),
		"unknown kind": &task.Error{Kind: 255, Err: errors.New(secret)},
		"hostile": task.Errorf(task.InvalidParams, "%s", strings.Join(Strings(), "")).
			WithField("a\nb").WithData("\n", func() {}),
	} {
		out := s.AppendError(nil, jsonrpc.ID("1"), err)
		res := response(t, name, out)
		if res.Failure == nil || res.Failure.Code == 0 || strings.Contains(string(out), secret) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// responses: all responses are JSON on one line, appended to earlier bytes, and leave their task as it was.
func responses(t *testing.T, s translate.Server) {
	const before = "already there"
	for _, state := range Tasks() {
		was := task.AppendTask(nil, &state)
		hook := task.Webhook{ID: "w1", TaskID: state.ID, URL: "https://example.com/", Token: state.ID, Scheme: "Bearer",
			Credentials: state.ID}
		outs := map[string][]byte{
			"AppendTask": s.AppendTask([]byte(before), jsonrpc.ID("1"), new(translate.Call), &state),
			"AppendWebhooks, set": s.AppendWebhooks([]byte(before), jsonrpc.ID("1"),
				&translate.Call{Op: translate.SetWebhook}, []task.Webhook{hook}),
			"AppendWebhooks, get": s.AppendWebhooks([]byte(before), jsonrpc.ID("1"),
				&translate.Call{Op: translate.GetWebhooks}, []task.Webhook{hook}),
			"AppendWebhooks, delete": s.AppendWebhooks([]byte(before), jsonrpc.ID("1"),
				&translate.Call{Op: translate.DeleteWebhooks}, nil),
		}
		for i, ev := range Events(&state) {
			frame := s.NewStream(jsonrpc.ID("1"), new(translate.Call), &state).Event([]byte(before), &ev)
			if frame.Data != nil { // some dialects do not show some events
				outs[fmt.Sprintf("Event %d", i)] = frame.Data
			}
		}
		outs["Snapshot"] = s.NewStream(jsonrpc.ID("1"), new(translate.Call), &state).Snapshot([]byte(before), &state).Data
		if s.NotificationHeader(&hook) == nil { // the dialect has no webhooks
			maps.DeleteFunc(outs, func(name string, _ []byte) bool { return strings.HasPrefix(name, "AppendWebhooks") })
		} else {
			notified(t, s, &state, &hook)
		}
		for name, out := range outs {
			rest, ok := bytes.CutPrefix(out, []byte(before))
			if !ok {
				t.Fatalf("%s does not append: %s", name, out)
			}
			if (strings.HasPrefix(name, "Event") || name == "Snapshot") && notification(rest) {
				continue
			}
			if res := response(t, name, rest); res.Failure != nil {
				t.Errorf("%s has no result: %s", name, rest)
			}
		}
		if d := cmp.Diff(string(was), string(task.AppendTask(nil, &state))); d != "" {
			t.Errorf("the task has changed:\n%s", d)
		}
	}
}

// notified: a notification is JSON on one line, and its header fields name its content.
func notified(t *testing.T, s translate.Server, state *task.Task, hook *task.Webhook) {
	t.Helper()
	out := s.AppendNotification([]byte(" "), state)
	if out[0] != ' ' || !json.Valid(out) || bytes.ContainsAny(out, "\n\r") {
		t.Errorf("a notification is not one line of JSON: %q", out)
	}
	content, token := false, false
	for _, f := range s.NotificationHeader(hook) {
		content = content || f.Name == "Content-Type" && strings.Contains(f.Value, "json")
		token = token || f.Value == hook.Token || hook.Token == ""
	}
	if !content || !token {
		t.Errorf("a notification has no content type, or does not carry its token: %v", s.NotificationHeader(hook))
	}
}

// ownership: a Call does not change when its body is used for something else.
func ownership(t *testing.T, s translate.Server, requests [][]byte) {
	for _, body := range requests {
		want, err := decode(s, slices.Clone(body))
		if err != nil {
			t.Fatal(err)
		}
		body = slices.Clone(body)
		got, err := decode(s, body)
		if err != nil {
			t.Fatal(err)
		}
		for i := range body {
			body[i] = 'x'
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("the call is a view of its body:\n%s", cmp.Diff(want, got))
		}
	}
}

// refusable checks a body: it is decoded, or refused as a caller's mistake, with a sentence.
func refusable(t *testing.T, s translate.Server, body []byte) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("panic: %v, for\n%q", p, body)
		}
	}()
	req, bad := jsonrpc.Parse(body, jsonrpc.Limits{})
	if bad != nil {
		return
	}
	call, err := s.Decode(&translate.Request{Request: req, HTTP: "POST"})
	if decodedOrRefused(t, body, call, err); err != nil {
		response(t, "AppendError", s.AppendError(nil, req.ID, err))
	}
}

// decodedOrRefused checks the result of a dialect's decoding of a body.
func decodedOrRefused(t *testing.T, body []byte, call translate.Call, err error) {
	t.Helper()
	if err == nil {
		if call.Op != translate.Command {
			if call.Webhook == nil && call.List == nil && call.Invitation == nil && call.Op != translate.ExtendedCard {
				t.Fatalf("decoded without saying what it is about, for\n%q", body)
			}
			return
		}
		if m := call.Message; !m.Command.Valid() || m.SenderRole != task.Leader {
			t.Fatalf("decoded without a command or a Leader: %+v, for\n%q", m, body)
		}
		return
	}
	e, ok := errors.AsType[*task.Error](err)
	if !ok || e.Detail == "" {
		t.Fatalf("refused without a kind or a sentence: %v, for\n%q", err, body)
	}
	switch e.Kind {
	case task.InvalidRequest, task.InvalidParams:
		if e.Field == "" {
			t.Fatalf("refused without a field: %v, for\n%q", err, body)
		}
	case task.MethodNotFound, task.NotificationNotSupported, task.GroupNotSupported, task.UnsupportedOperation,
		task.ContentTypeNotSupported, task.LimitExceeded, task.AccessTokenInvalid:
	default:
		t.Fatalf("refused as %v: %v, for\n%q", e.Kind, err, body)
	}
}
