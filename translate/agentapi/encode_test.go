// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// short returns an object as a line: its kind, its message or content, and its text.
func short(line string) string {
	v := gjson.Parse(line)
	s := v.Get("object").Str + " " + v.Get("status").Str
	switch v.Get("object").Str {
	case "message":
		id := v.Get("id").Str
		s += " " + id[strings.LastIndexByte(id, '_')+1:] + " " + v.Get("type").Str
	case "content":
		id := v.Get("msg_id").Str
		s += fmt.Sprintf(" %s[%d] %s", id[strings.LastIndexByte(id, '_')+1:], v.Get("index").Int(), v.Get("type").Str)
		for _, name := range []string{"text", "image_url", "file_url", "file_data", "refusal"} {
			if said := v.Get(name); said.Exists() {
				s += " " + strconv.Quote(said.Str)
			}
		}
		if data := v.Get("data"); data.Exists() {
			s += " " + data.Raw
		}
	case "response":
		if out := v.Get("output"); out.IsArray() {
			s += fmt.Sprintf(" with %d", len(out.Array()))
		}
		if e := v.Get("error"); e.IsObject() {
			s += " " + e.Get("code").Str + ": " + e.Get("message").Str
		}
	}
	return s
}

func shorts(lines []string) (list []string) {
	for _, line := range lines {
		list = append(list, short(line))
	}
	return list
}

// TestStories tests the objects sent for the events of a task.
func TestStories(t *testing.T) {
	data := func(kind, s string) task.DataItem {
		it := task.DataItem{Kind: task.DataKind, Data: json.RawMessage(s)}
		if kind != "" {
			it.Metadata = typed(kind)
		}
		return it
	}
	whole := func(id, name string, items ...task.DataItem) task.Event {
		return task.Event{Chunk: &task.Chunk{Product: task.Product{ID: id, Name: name, DataItems: items}}}
	}
	offers := func(ev task.Event, ids ...string) task.Event {
		ev.Offer = ids
		return ev
	}
	working, finished := state(task.Working), state(task.AwaitingCompletion)
	for name, tt := range map[string]struct {
		events []task.Event
		want   []string // behind the response created and in progress
	}{
		"nothing is said": {[]task.Event{working, finished}, []string{"response completed with 0"}},
		"a reason to reject": {[]task.Event{state(task.Rejected, task.Text("not me"), task.Text("ask others"))},
			[]string{"response rejected REQUEST_REJECTED: not me\nask others"}},
		"canceled": {[]task.Event{working, state(task.Canceled)},
			[]string{"response canceled TASK_CANCELED: The task is canceled."}},
		"completed by the Leader": {[]task.Event{working, state(task.Completed)}, []string{"response completed with 0"}},
		"two products, one behind the other": {
			[]task.Event{working, last(piece("a", "A", false)), last(piece("b", "B", false)), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "A"`, "message in_progress 2 message",
				`content completed 1[0] text "A"`, "message completed 1 message", `content in_progress 2[0] text "B"`,
				`content completed 2[0] text "B"`, "message completed 2 message", "response completed with 2"}},
		"two products at once": {
			[]task.Event{working, piece("a", "A", false), piece("b", "B", false), piece("a", "a", true), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "A"`, "message in_progress 2 message",
				`content in_progress 2[0] text "B"`, `content in_progress 1[0] text "a"`, `content completed 1[0] text "Aa"`,
				"message completed 1 message", `content completed 2[0] text "B"`, "message completed 2 message",
				"response completed with 2"}},
		"a text that is replaced": {
			[]task.Event{working, piece("a", "one", false), piece("a", "two", false), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "one"`, `content completed 1[0] text "two"`,
				"message completed 1 message", "response completed with 1"}},
		"a text that is repeated and grows": {
			[]task.Event{working, piece("a", "one", false), piece("a", "one two", false), piece("a", "one two", false),
				finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "one"`,
				`content in_progress 1[0] text " two"`, `content completed 1[0] text "one two"`,
				"message completed 1 message", "response completed with 1"}},
		"more behind the end": {
			[]task.Event{working, last(piece("a", "one", false)), piece("a", "two", true), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "one"`,
				`content in_progress 1[0] text "two"`, `content completed 1[0] text "onetwo"`, "message completed 1 message",
				"response completed with 1"}},
		"more behind the end, and behind another product": {
			[]task.Event{working, last(piece("a", "one", false)), last(piece("b", "B", false)), piece("a", "two", true),
				finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "one"`, "message in_progress 2 message",
				`content completed 1[0] text "one"`, "message completed 1 message", `content in_progress 2[0] text "B"`,
				"message in_progress 3 message", `content completed 2[0] text "B"`, "message completed 2 message",
				`content in_progress 3[0] text "two"`, `content completed 3[0] text "two"`, "message completed 3 message",
				"response completed with 3"}},
		"another product in its place, behind the end": {
			[]task.Event{working, last(piece("a", "one", false)), piece("a", "two", false), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "one"`, `content completed 1[0] text "two"`,
				"message completed 1 message", "response completed with 1"}},
		"a product that is over, and withdrawn": {
			[]task.Event{working, last(piece("a", "A", false)), offers(working, "b"), piece("b", "B", false), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "A"`, "message in_progress 2 message",
				`content in_progress 2[0] text "B"`, `content completed 2[0] text "B"`, "message completed 2 message",
				"response completed with 1"}},
		"a product that is withdrawn": {
			[]task.Event{working, piece("a", "A", false), piece("b", "B", false), offers(working, "b"), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "A"`, "message in_progress 2 message",
				`content in_progress 2[0] text "B"`, `content completed 2[0] text "B"`, "message completed 2 message",
				"response completed with 1"}},
		"files and data": {
			[]task.Event{working, last(whole("a", "", task.Text("see"),
				task.DataItem{Kind: task.FileItem, URI: "https://x/a.png", MIMEType: "image/png"},
				task.DataItem{Kind: task.FileItem, Bytes: "QUJD", MIMEType: "text/plain", Name: "n"}, data("", `{"b":1}`),
				task.DataItem{Kind: task.TextItem, Text: "no", Metadata: typed(typeRefusal)})), finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "see"`, `content completed 1[0] text "see"`,
				`content completed 1[1] image "https://x/a.png"`, `content completed 1[2] file "data:text/plain;base64,QUJD"`,
				`content completed 1[3] data {"b":1}`, `content in_progress 1[4] text "no"`, `content completed 1[4] refusal "no"`,
				"message completed 1 message", "response completed with 1"}},
		"what the agent says while it works, and at the end": {
			[]task.Event{state(task.Working, task.Text("hm")), state(task.AwaitingInput, task.Text("which?"))},
			[]string{"message in_progress 1 reasoning", `content completed 1[0] text "hm"`, "message in_progress 2 message",
				"message completed 1 reasoning", `content in_progress 2[0] text "which?"`,
				`content completed 2[0] text "which?"`, "message completed 2 message", "response completed with 2"}},
		"a function that the agent calls": {
			[]task.Event{working,
				state(task.AwaitingInput, task.Text("call f"), data(typeFunctionCall, `{"call_id":"c","name":"f"}`))},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "call f"`,
				"message in_progress 2 function_call", `content completed 1[0] text "call f"`, "message completed 1 message",
				`content completed 2[0] data {"call_id":"c","name":"f"}`, "message completed 2 function_call",
				"response completed with 2"}},
		"a product that was reasoning": {
			[]task.Event{working, last(whole("a", typeReasoning, task.Text("hm"))), finished},
			[]string{"message in_progress 1 reasoning", `content in_progress 1[0] text "hm"`, `content completed 1[0] text "hm"`,
				"message completed 1 reasoning", "response completed with 1"}},
		"a message of the agent": {
			[]task.Event{working,
				{Message: &task.Message{SenderRole: task.Partner, DataItems: []task.DataItem{task.Text("hi")}}}, finished},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "hi"`, `content completed 1[0] text "hi"`,
				"message completed 1 message", "response completed with 1"}},
		"a task that is finished when it is first seen": {
			[]task.Event{{Task: &task.Task{Status: task.Status{State: task.AwaitingCompletion, ChangedAt: at},
				Products: []task.Product{{ID: "a", DataItems: []task.DataItem{task.Text("A")}}}}}},
			[]string{"message in_progress 1 message", `content in_progress 1[0] text "A"`, `content completed 1[0] text "A"`,
				"message completed 1 message", "response completed with 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := append([]string{"response created", "response in_progress"}, tt.want...)
			if d := cmp.Diff(want, shorts(sent(t, tt.events...))); d != "" {
				t.Errorf("it is sent as (-want +got):\n%s", d)
			}
		})
	}
}

// TestAnswers: without a stream, the answer is the last object of the stream.
func TestAnswers(t *testing.T) {
	call := &translate.Call{AnswerID: "r"}
	for s, want := range map[task.State]string{
		task.AwaitingCompletion: "response completed with 2", task.AwaitingInput: "response completed with 2",
		task.Completed: "response completed with 2", task.Working: "response in_progress",
		task.Accepted: "response in_progress", task.Failed: "response failed with 1 AGENT_UNKNOWN_ERROR: ok",
	} {
		state := task.Task{ID: "t", SessionID: "u/s", Status: task.Status{State: s, ChangedAt: at,
			DataItems: []task.DataItem{task.Text("ok")}}}
		state.Products = []task.Product{{ID: "p", DataItems: []task.DataItem{task.Text("A")}}}
		out := Server(false).AppendTask([]byte("before "), nil, call, &state)
		body, ok := strings.CutPrefix(string(out), "before ")
		if got := short(body); !ok || got != want {
			t.Errorf("%s is answered with %s", s, out)
		}
		v := gjson.Parse(body)
		if !gjson.Valid(body) || v.Get("id").Str != "r" || v.Get("session_id").Str != "s" ||
			v.Get("created_at").Int() != at.Unix() {
			t.Errorf("%s is answered with %s", s, out)
		}
	}
}

// randomEvents returns the events of a turn.
func randomEvents(r *rand.Rand) []task.Event {
	events := []task.Event{began(), state(task.Working)}
	texts := translatetest.Strings()
	item := func() task.DataItem {
		switch r.IntN(6) {
		case 0:
			return task.DataItem{Kind: task.FileItem, URI: "https://x/" + strconv.Itoa(r.IntN(100)), MIMEType: "image/png"}
		case 1:
			return task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"n":` + strconv.Itoa(r.IntN(100)) + `}`)}
		}
		return task.Text(strings.ToValidUTF8(texts[r.IntN(len(texts))], "\ufffd"))
	}
	ended := make(map[string]bool)
	for range r.IntN(12) {
		c := &task.Chunk{Product: task.Product{ID: strconv.Itoa(r.IntN(3))}, Append: r.IntN(3) > 0, Last: r.IntN(6) == 0}
		if ended[c.Product.ID] {
			continue
		}
		ended[c.Product.ID] = c.Last
		for range 1 + r.IntN(3) {
			c.Product.DataItems = append(c.Product.DataItems, item())
		}
		events = append(events, task.Event{Chunk: c})
	}
	return append(events, state(task.AwaitingCompletion))
}

// TestClientReadsServer: the codec for agents reads a stream of the codec for callers as it was written.
func TestClientReadsServer(t *testing.T) {
	for seed := range uint64(2000) {
		events := randomEvents(rand.New(rand.NewPCG(seed, 0)))
		var fold task.Fold
		for _, ev := range events {
			fold.Apply(ev)
		}
		var want []string
		for _, p := range fold.Task().Products {
			want = append(want, said(wire.JoinTexts(nil, p.DataItems)))
		}
		slices.Sort(want) // a product is seen when it says something
		lines := sent(t, events...)
		var raw [][]byte
		for i, line := range lines {
			if strings.ContainsAny(line, "\r\n") || !json.Valid([]byte(line)) {
				t.Fatalf("seed %d: no line of JSON: %q", seed, line)
			}
			if n := gjson.Get(line, "sequence_number"); n.Int() != int64(i) || !n.Exists() {
				t.Fatalf("seed %d: object %d has the number %s", seed, i, n.Raw)
			}
			raw = append(raw, []byte(line))
		}
		var got []string
		end := lines[len(lines)-1]
		var whole []string // of the last response alone
		for _, h := range []heard{hear(Options{}, raw[len(raw)-1:]), hear(Options{}, raw)} {
			whole, got = got, nil
			for _, p := range h.Products {
				got = append(got, said(wire.JoinTexts(nil, p.DataItems)))
			}
			slices.Sort(got)
			if h.Err != "" || len(h.States) == 0 || h.States[len(h.States)-1] != "awaiting-completion" {
				t.Fatalf("seed %d: heard %+v", seed, h)
			}
		}
		if d := cmp.Diff(whole, got); d != "" {
			t.Fatalf("seed %d: the stream says something else than its last response (-response +stream):\n%s\n%s", seed, d, end)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("seed %d: (-written +read):\n%s\n%s", seed, d, strings.Join(lines, "\n"))
		}
	}
}

// TestRetained: an encoder reports the bytes it keeps.
func TestRetained(t *testing.T) {
	for seed := range uint64(500) {
		e := newEncoder(&translate.Call{}, &task.Task{ID: "t", SessionID: "s"})
		events := randomEvents(rand.New(rand.NewPCG(seed, 1)))
		withdraws := state(task.Working)
		withdraws.Offer = []string{"1"}
		for _, ev := range slices.Insert(events, len(events)-1, withdraws) {
			if ev.Chunk != nil {
				ev.Chunk.Product.Extensions = json.RawMessage(`{"agentapi":{"usage":{"n":3}}}`)
			}
			for f := e.Event(nil, &ev); f.Next != nil; {
				f = f.Next(nil)
			}
			var held int64
			for _, m := range e.messages {
				held += int64(len(m.written)) + overhead
				if m.product != nil {
					held += int64(len(m.product.Extensions))
				}
				for i := range m.contents {
					held += m.contents[i].size() + overhead
				}
			}
			if e.Kept() != held {
				t.Fatalf("seed %d: it says that it keeps %d bytes, and keeps %d, after %+v", seed, e.Kept(), held, ev)
			}
		}
	}
}

// TestErrors: every kind has a status and a sentence, and causes not for callers stay here.
func TestErrors(t *testing.T) {
	const secret = "do-not-show"
	s := server{}
	for _, kind := range task.Kinds() {
		e := task.Errorf(kind, "a sentence").WithField("input[0].content").WithCause(errors.New(secret))
		for _, err := range []error{e, fmt.Errorf(secret+": %w", e), task.Errorf(kind, "")} {
			out := s.AppendError(nil, nil, err)
			v := gjson.ParseBytes(out)
			switch status := s.Status(err); {
			case !json.Valid(out) || strings.Contains(string(out), secret):
				t.Errorf("%s: %s", kind, out)
			case status == 422 && v.Get("detail.0.msg").Str == "", status != 422 && v.Get("error").Str == "", status < 200:
				t.Errorf("%s: %d, %s", kind, status, out)
			}
		}
	}
	for _, err := range []error{errors.New(secret), &task.Error{Kind: 255}} {
		if out := string(s.AppendError(nil, nil, err)); out != `{"error":"Internal server error"}` || s.Status(err) != 200 {
			t.Errorf("an error without a kind is answered with %s", out)
		}
	}
}

// TestTasks: every task is answered with one line of JSON, and left as it was.
func TestTasks(t *testing.T) {
	s := Server(false)
	for _, state := range translatetest.Tasks() {
		was := string(task.AppendTask(nil, &state))
		call := &translate.Call{}
		for name, out := range map[string][]byte{
			"answer":       s.AppendTask(nil, nil, call, &state),
			"notification": s.AppendNotification(nil, &state),
			"webhooks":     s.AppendWebhooks(nil, nil, call, nil),
		} {
			if !json.Valid(out) || strings.ContainsAny(string(out), "\r\n") {
				t.Errorf("%s: %q", name, out)
			}
		}
		for _, ev := range translatetest.Events(&state) {
			e := s.NewStream(nil, call, &state)
			for f := e.Event(nil, &ev); f.Data != nil; {
				if !json.Valid(f.Data) || strings.ContainsAny(string(f.Data), "\r\n") {
					t.Errorf("%+v: %q", ev, f.Data)
				}
				if f.Next == nil {
					break
				}
				f = f.Next(nil)
			}
		}
		if string(task.AppendTask(nil, &state)) != was {
			t.Error("the task has changed")
		}
	}
}
