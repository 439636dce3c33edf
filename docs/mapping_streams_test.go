// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	var events [][]string
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
		events = append(events, row)
	}
	mapped(t, header("event", "aip", "aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0"), events)

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
		for at, s := range mappedServers {
			auto, confirm := "continues", "continues" // it is the log that ends an AIP stream
			if at >= inLegacy && state.Settled() {
				auto, confirm = "ends", "ends"
				if at >= in03 && state == task.AwaitingCompletion {
					auto = "not shown"
				}
			}
			if a, b := end(mappedServers)(at), end(confirming)(at); a != auto || b != confirm {
				t.Errorf("%s: %s %s and, with confirm, %s; want %s and %s", s.Name(), state, a, b, auto, confirm)
			}
		}
	}
	says(t, "An A2A stream ends when the task settles; with `auto`, from `a2a/0.3` on, `awaiting-completion` is not "+
		"shown.")

	// What an agent says along with having finished, where its task is completed at once.
	finished := []task.Status{
		{State: task.AwaitingCompletion, ChangedAt: at0, DataItems: hi},
		{State: task.Completed, ChangedAt: at0},
	}
	ended := task.Task{ID: "t", SessionID: "s", Status: finished[1]}
	listed := ended
	listed.StatusHistory = finished
	for _, r := range []struct {
		what string
		body func(s translate.Server) []byte
	}{
		{"not shown", func(s translate.Server) []byte { return shown(s, &ended) }}, // which has no histories
		{"shown", func(s translate.Server) []byte { return shown(s, &listed) }},
		{"shown", func(s translate.Server) (all []byte) {
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
		if got := alike(t, f, in03, in10, inREST); got != r.what {
			t.Errorf("the final text is %s, want %s", got, r.what)
		}
	}
	says(t, "Its text is in streams and answers to `get`, not in answers to messages.")

	// Which streams begin with the task as it is.
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
	for _, row := range [][]string{
		{alike(t, f, inAIP, inAIP2), begins(inLegacy, "tasks/sendSubscribe", "", nil),
			begins(in03, "message/stream", "message.taskId", "t"), begins(in10, "SendStreamingMessage", "message.taskId", "t")},
		{alike(t, g, inAIP, inAIP2), begins(inLegacy, "tasks/resubscribe", "", nil),
			begins(in03, "tasks/resubscribe", "", nil), begins(in10, "SubscribeToTask", "", nil)},
	} {
		if diff := cmp.Diff(append([]string{"the next event"}, events[0][3:]...), row); diff != "" {
			t.Errorf("a continue or re-stream does not begin as the page says (-page +code):\n%s", diff)
		}
	}
	says(t, "The stream of a start begins with the first event, the Task; a continue and a `re-stream` of AIP with the "+
		"next event, of A2A with the Task.")
}

func TestDocsMappingWebhooks(t *testing.T) {
	tk := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working}}
	w := task.Webhook{URL: "https://h", Token: "T", Scheme: "S", Credentials: "C"}
	said := make(map[string]string) // by dialect
	for _, row := range tables(pages(t)["docs/webhooks.md"],
		"| dialect | `Content-Type` | the token is in | the body is |") {
		said[inQuotes(row[0])[0]] = row[3]
	}
	said[mappedServers[inREST].Name()] = said[mappedServers[in10].Name()]
	for _, s := range mappedServers {
		body := s.AppendNotification(nil, &tk)
		var what string
		switch whole := string(shown(s, &tk)); string(body) {
		case whole:
			what = "the Task"
		case `{"task":` + whole + `}`:
			what = "a StreamResponse with the Task"
		default:
			t.Errorf("%s notifies a webhook with %s", s.Name(), body)
		}
		if page := said[s.Name()]; page != what && !strings.HasPrefix(page, "a TaskResult,") {
			t.Errorf("%s notifies a webhook with %s, the page says %s", s.Name(), what, page)
		}
		for _, field := range s.NotificationHeader(&w) {
			want := "T"
			switch field.Name {
			case "Content-Type":
				continue
			case "Authorization":
				want = "S C"
			}
			if field.Value != want {
				t.Errorf("%s: %s: %s", s.Name(), field.Name, field.Value)
			}
		}
	}
	rpc, rest := mappedServers[in10], mappedServers[inREST]
	if diff := cmp.Diff(rpc.NotificationHeader(&w), rest.NotificationHeader(&w)); diff != "" {
		t.Errorf("the two bindings of 1.0 notify webhooks differently:\n%s", diff)
	}
}
