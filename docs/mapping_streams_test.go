// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

func TestDocsMappingStreams(t *testing.T) {
	at0 := time.Unix(0, 0)
	tk := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working, ChangedAt: at0}}
	hi := []task.DataItem{task.Text("hi")}
	frame := func(list []translate.Server, at int, ev *task.Event) translate.Frame {
		ev.Seq = 1
		encoder := list[at].NewStream(jsonrpc.ID("1"), &translate.Call{}, &tk)
		if r, ok := encoder.(translate.ResultEncoder); ok && ev.Status != nil && ev.Status.State.Settled() {
			return r.Result(nil, ev.Seq, &task.Task{ID: tk.ID, SessionID: tk.SessionID, Status: *ev.Status})
		}
		return encoder.Event(nil, ev)
	}
	name := func(f translate.Frame) string {
		result := f.Data
		if inner := dig(f.Data, "result"); inner != nil {
			result = inner
		}
		switch {
		case f.Data == nil:
			return "–"
		case f.Name != "":
			return quoted(f.Name)
		case word(result, "kind") != "":
			return quoted(word(result, "kind"))
		case dig(result, "eventData") != nil:
			return quoted(word(result, "eventData", "type"))
		}
		return quoted(memberNames(result)...)
	}
	var want [][]string
	for _, r := range []struct {
		what string
		ev   task.Event
	}{
		{"the Task", task.Event{Task: &tk}},
		{"a status", task.Event{Status: &task.Status{State: task.Working, ChangedAt: at0}}},
		{"a status that settles the task", task.Event{Status: &task.Status{State: task.Completed, ChangedAt: at0}}},
		{"a piece", task.Event{Chunk: &task.Chunk{Product: task.Product{ID: "p", DataItems: hi}}}},
		{"a message of the agent", task.Event{Message: &task.Message{SenderRole: task.Partner, SentAt: at0, DataItems: hi}}},
	} {
		row := []string{r.what}
		for at := range mappedServers[:inREST] {
			f := frame(mappedServers, at, &r.ev)
			row = append(row, name(f))
			if (f.Name != "") != (at == inLegacy) {
				t.Errorf("the SSE event of %s has the name %q", mappedServers[at].Name(), f.Name)
			}
		}
		if a := name(frame(mappedServers, inREST, &r.ev)); a != row[len(row)-1] {
			t.Errorf("%s shows %s as %s", mappedServers[inREST].Name(), r.what, a)
		}
		want = append(want, row)
	}
	mapped(t, header("event", "aip", "aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0"), want)

	want = nil
	for _, state := range task.States() {
		end := func(list []translate.Server) func(at int) string {
			return func(at int) string {
				f := frame(list, at, &task.Event{Status: &task.Status{State: state, ChangedAt: at0}})
				switch {
				case f.Data == nil:
					return "not shown"
				case f.End:
					return "ends"
				}
				return "continues"
			}
		}
		auto, confirm := end(mappedServers), end(confirming)
		for _, at := range []int{inAIP, inAIP2} {
			if auto(at) != "continues" { // it is the log that ends an AIP stream
				t.Errorf("%s: %s %s", mappedServers[at].Name(), state, auto(at))
			}
		}
		if auto(inLegacy) != confirm(inLegacy) {
			t.Errorf("%s: %s is shown as %s, and as %s", mappedServers[inLegacy].Name(), state, auto(inLegacy),
				confirm(inLegacy))
		}
		want = append(
			want,
			[]string{
				quoted(string(state)),
				auto(inLegacy),
				alike(t, auto, in03, in10, inREST),
				alike(t, confirm, in03, in10, inREST),
			},
		)
	}
	mapped(t, header("state", "a2a/legacy", "a2a/0.3, a2a/1.0, auto", "confirm"), merged(want, 0))

	// What an agent says along with having finished, where its task is completed at once.
	finished := []task.Status{
		{State: task.AwaitingCompletion, ChangedAt: at0, DataItems: hi},
		{State: task.Completed, ChangedAt: at0},
	}
	ended := task.Task{ID: "t", SessionID: "s", Status: finished[1]}
	listed := ended
	listed.StatusHistory = finished
	want = nil
	for _, r := range []struct {
		what string
		body func(s translate.Server) []byte
	}{
		{"answer to a message", func(s translate.Server) []byte { return shown(s, &ended) }}, // which has no histories
		{"answer to a get", func(s translate.Server) []byte { return shown(s, &listed) }},
		{"stream", func(s translate.Server) (all []byte) {
			stream := s.NewStream(jsonrpc.ID("1"), &translate.Call{}, &tk)
			for i := range finished {
				all = append(all, stream.Event(nil, &task.Event{Seq: 1, Status: &finished[i]}).Data...)
			}
			return all
		}},
	} {
		f := func(at int) string {
			return map[bool]string{true: "shown", false: "not shown"}[strings.Contains(string(r.body(mappedServers[at])),
				`"hi"`)]
		}
		want = append(want, []string{r.what, f(in03), alike(t, f, in10, inREST)})
	}
	mapped(t, header("final text of an agent", "a2a/0.3", "a2a/1.0, a2a/1.0-rest"), want)

	// Which streams begin with the task as it is.
	want = nil
	begins := func(at int, method, path string, value any) string {
		params := mappedParams[at]
		if path != "" {
			params = changed(t, params, path, value)
		}
		call, err := asked(t, mappedServers[at], method, params)
		switch {
		case err != nil || !call.Stream:
			t.Fatalf("%s %s: %v", mappedServers[at].Name(), method, err)
		case !call.Snapshot:
			return "the next event"
		}
		return name(mappedServers[at].NewStream(jsonrpc.ID("1"), &call, &tk).Snapshot(nil, &tk))
	}
	again := func(at int, command, method string) string {
		if at == inAIP2 {
			return begins(at, method, "command.command", command)
		}
		return begins(at, method, "message.command", command)
	}
	f := func(at int) string { return again(at, "continue", "stream") }
	g := func(at int) string { return again(at, "re-stream", "stream") }
	want = append(want,
		[]string{"continue", alike(t, f, inAIP, inAIP2), begins(inLegacy, "tasks/sendSubscribe", "", nil),
			begins(in03, "message/stream", "message.taskId", "t"), begins(in10, "SendStreamingMessage", "message.taskId", "t")},
		[]string{"re-stream", alike(t, g, inAIP, inAIP2), begins(inLegacy, "tasks/resubscribe", "", nil),
			begins(in03, "tasks/resubscribe", "", nil), begins(in10, "SubscribeToTask", "", nil)})
	mapped(t, header("begins with", "aip, aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0"), want)
}

func TestDocsMappingWebhooks(t *testing.T) {
	tk := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working}}
	w := task.Webhook{URL: "https://h", Token: "T", Scheme: "S", Credentials: "C"}
	var want [][]string
	for at, s := range mappedServers {
		body := s.AppendNotification(nil, &tk)
		var what string
		switch whole := string(shown(s, &tk)); string(body) {
		case whole:
			what = "the Task"
		case `{"task":` + whole + `}`:
			what = "in `task`"
		default:
			t.Errorf("%s notifies a webhook with %s", s.Name(), body)
		}
		var media string
		var others []string
		for _, field := range s.NotificationHeader(&w) {
			switch field.Name {
			case "Content-Type":
				media = field.Value
			case "Authorization":
				if field.Value != "S C" {
					t.Errorf("%s: Authorization: %s", s.Name(), field.Value)
				}
				others = append(others, field.Name)
			default:
				if field.Value != "T" {
					t.Errorf("%s: %s: %s", s.Name(), field.Name, field.Value)
				}
				others = append(others, field.Name)
			}
		}
		if at == inREST {
			if last := want[len(want)-1]; !slices.Equal(last[1:], []string{what, quoted(media), quoted(others...)}) {
				t.Errorf("%s notifies webhooks otherwise than %s", s.Name(), last[0])
			}
			continue
		}
		want = append(want, []string{s.Name(), what, quoted(media), quoted(others...)})
	}
	mapped(t, header("dialect", "body", "Content-Type", "token, credentials"), want)
}
