// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

func TestClientVectors(t *testing.T) {
	c := Client("gateway")
	for _, name := range []string{
		"03-rpc-start.response-awaiting-completion.json", "05-rpc-continue.response-working.json",
		"07-rpc-get.response-failed-with-history.json",
		"09-rpc-complete.response.json", "11-rpc-cancel.response.json", "23-notification-start.response.json",
	} {
		res, bad := jsonrpc.ParseResponse(vector(t, name), jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		tk := decodeJSON[task.Task](t, res.Result.Raw)
		got, err := c.Reply(vector(t, name), nil)
		if d := cmp.Diff(reportOf(&tk), got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(agent.Report{}, "Revision",
			"RevisionDated")); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
	for _, name := range []string{
		"24-notification-callback.body-completed.json", "29-group-task-working.json",
		"30-group-task-awaiting-completion.json", "32-group-task-completed.json",
		"33-group-task-rejected.json", "34-group-task-failed.json", "36-group-task-canceled.json",
		"37-group-task-awaiting-input.json", "39-group-task-working-again.json",
	} {
		tk := decodeJSON[task.Task](t, string(vector(t, name)))
		got, err := c.Push(vector(t, name), nil)
		if d := cmp.Diff(reportOf(&tk), got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(agent.Report{}, "Revision",
			"RevisionDated")); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
	var fold task.Fold
	stream := c.NewStream(nil)
	for i, data := range decodeJSON[[]json.RawMessage](t, string(vector(t, "13-stream-start.events.json"))) {
		rep, err := stream.Event("", data)
		if err != nil {
			t.Fatal(err)
		}
		if last := i == 3; rep.State.Settled() != last {
			t.Errorf("event %d: settled %v", i, rep.State.Settled())
		}
		for i := range rep.Chunks {
			fold.Apply(task.Event{Chunk: &rep.Chunks[i]})
		}
	}
	if p := fold.Task().Products; len(p) != 1 || len(p[0].DataItems) != 2 ||
		p[0].DataItems[1].Name != "beijing_cultural_tour_part2.pdf" {
		t.Errorf("the chunks make %+v", p)
	}
	if _, err := c.Reply(vector(t, "01-error-task-not-found.response.json"), nil); task.KindOf(err) != task.TaskNotFound {
		t.Errorf("got %v", err)
	}
}

// TestClientErrors: every kind, as another gateway writes it.
func TestClientErrors(t *testing.T) {
	want := map[task.Kind]task.Kind{
		task.Internal:                 task.Internal,
		task.ParseError:               task.MethodNotFound, // as the reference SDK does
		task.InvalidRequest:           task.Internal,       // the gateway's own mistake
		task.MethodNotFound:           task.MethodNotFound,
		task.InvalidParams:            task.InvalidParams,
		task.TaskNotFound:             task.TaskNotFound,
		task.TaskNotCancelable:        task.TaskNotCancelable,
		task.NotificationNotSupported: task.NotificationNotSupported,
		task.UnsupportedOperation:     task.UnsupportedOperation,
		task.ContentTypeNotSupported:  task.ContentTypeNotSupported,
		task.InvalidAgentResponse:     task.InvalidAgentResponse,
		task.GroupNotSupported:        task.GroupNotSupported,
		task.AuthenticationRequired:   task.InvalidAgentResponse, // about the gateway's identity, and no Leader's
		task.AuthorizationFailed:      task.InvalidAgentResponse,
		task.AccessTokenInvalid:       task.InvalidAgentResponse,
		task.LimitExceeded:            task.LimitExceeded,
		task.AgentUnavailable:         task.Internal, // far away something may have been done
		task.AgentTimeout:             task.Internal,
		task.StoreUnavailable:         task.Internal,
		task.InvitationRejected:       task.InvalidAgentResponse, // −32009; never sent to the gateway
		task.ConnectionFailed:         task.Internal,
	}
	for version, s := range sides() {
		for _, k := range task.Kinds() {
			said := s.server.AppendError(nil, jsonrpc.ID("1"), task.Errorf(k, "a sentence"))
			_, reply := s.client.Reply(said, nil)
			_, event := s.client.NewStream(nil).Event("", said)
			for _, err := range []error{reply, event} {
				e, ok := errors.AsType[*task.Error](err)
				kind, known := want[k]
				if _, other := errorsV2[k]; other && s.server.Name() == nameV2 {
					kind = task.Internal // a code of its own
				}
				if !ok || !known || e.Kind != kind || e.Detail == "" || strings.ContainsAny(e.Detail, "\n\r") {
					t.Errorf("%s, %v: got %v, want %v", version, k, err, kind)
				}
			}
		}
	}
	for i, f := range failures {
		for _, g := range failures[:i] {
			if f.Code == g.Code {
				t.Errorf("code %d stands twice", f.Code)
			}
		}
	}
	unknown := jsonrpc.Failure{Code: -32099, Message: "no\n\x00\xff  way " + strings.Repeat("x", 1000)}
	if err := wire.Failed(failures, &unknown); err.Kind != task.Internal ||
		!strings.HasPrefix(err.Detail, "the agent reports error -32099: no way xxx") || len(err.Detail) > 300 {
		t.Errorf("an unknown code is %v", err)
	}
}

// news is a report in short, as the tests compare it.
type news struct {
	State    task.State
	Items    []task.DataItem
	Products []task.Product
	Whole    bool
}

func TestReply(t *testing.T) {
	text := func(s ...string) (items []task.DataItem) {
		for _, s := range s {
			items = append(items, task.Text(s))
		}
		return items
	}
	data := func(raw string) task.DataItem { return task.DataItem{Kind: task.DataKind, Data: json.RawMessage(raw)} }
	marked := func(raw string) task.DataItem {
		it := data(raw)
		it.Metadata = json.RawMessage(`{"data_part_compat":true}`)
		return it
	}
	items := func(list string) string {
		return `{"type":"task","status":{"state":"working","dataItems":[` + list + `]}}`
	}
	known := []task.Product{{ID: "old", DataItems: text("o")}, {ID: "m1", DataItems: text("before")}}
	for name, tt := range map[string]struct {
		result string
		want   news
	}{
		"least":     {`{"status":{"state":"accepted"}}`, news{State: task.Accepted}},
		"least, v1": {`{"type":"task","status":{"state":"accepted"}}`, news{State: task.Accepted, Whole: true}},
		"least, v2": {`{"type":"task-result","status":{"state":"rejected"}}`, news{State: task.Rejected, Whole: true}},
		"nulls": {`{"type":"task","id":null,"senderId":null,"status":{"state":"failed","stateChangedAt":null,` +
			`"dataItems":null},"products":null,` +
			`"messageHistory":null,"statusHistory":null,"groupId":null,"sessionId":null}`, news{State: task.Failed,
			Whole: true}},
		"null in a product": {`{"type":"task","status":{"state":"working"},"products":[{"id":"p","name":null,` +
			`"description":null,"dataItems":null}]}`,
			news{State: task.Working, Whole: true, Products: []task.Product{{ID: "p"}}}},
		"product twice": {`{"type":"task","status":{"state":"working"},"products":[{"id":"p","name":"a"},{"id":"q"},` +
			`{"id":"p","name":"b"}]}`,
			news{State: task.Working, Whole: true, Products: []task.Product{{ID: "p", Name: "b"}, {ID: "q"}}}},
		"products without ids": {`{"type":"task","status":{"state":"working"},"products":[{"name":"a"},{"id":null},` +
			`{"name":"a"},{"id":""}]}`,
			news{State: task.Working, Whole: true, Products: []task.Product{{ID: "product-a", Name: "a"}, {ID: "product"},
				{ID: "product-a-2", Name: "a"}, {ID: "product-2"}}}},
		"completed": {`{"type":"task","status":{"state":"completed"},"products":[]}`,
			news{State: task.AwaitingCompletion, Whole: true}},

		"text": {items(`{"type":"text","text":""},{"type":"text","text":"a","metadata":null}`),
			news{task.Working, text("", "a"), nil, true}},
		"text, metadata": {items(`{"type":"text","text":"a","metadata":{"b" : 1}}`),
			news{task.Working, []task.DataItem{{Kind: task.TextItem, Text: "a", Metadata: json.RawMessage(`{"b" : 1}`)}}, nil,
				true}},
		"file": {items(`{"type":"file","name":"n","mimeType":"a/b","uri":"u","bytes":null}`),
			news{task.Working, []task.DataItem{{Kind: task.FileItem, Name: "n", MIMEType: "a/b", URI: "u"}}, nil, true}},
		"file with both": {items(`{"type":"file","uri":"u","bytes":"QUI="}`),
			news{task.Working, []task.DataItem{{Kind: task.FileItem, Bytes: "QUI="}}, nil, true}},
		"file, url": {items(`{"type":"file","url":"u"}`), news{task.Working,
			[]task.DataItem{{Kind: task.FileItem, URI: "u"}}, nil, true}},
		"empty file": {items(`{"type":"file","name":"n"}`), news{task.Working,
			[]task.DataItem{data(`{"type":"file","name":"n"}`)}, nil, true}},
		"data": {items(`{"type":"data","data":{ "a" :` + "\n" + ` 1}}`),
			news{task.Working, []task.DataItem{data(`{"a":1}`)}, nil, true}},
		"data, no object": {items(`{"type":"data","data":[1]}`), news{task.Working, []task.DataItem{marked(`{"value":[1]}`)},
			nil, true}},
		"no data": {items(`{"type":"data","data":null}`), news{task.Working,
			[]task.DataItem{data(`{"type":"data","data":null}`)}, nil, true}},
		"text, no text": {items(`{"type":"text","text":1}`), news{task.Working,
			[]task.DataItem{data(`{"type":"text","text":1}`)}, nil, true}},
		"other type": {items(`{"type":"audio","x":1}`), news{task.Working,
			[]task.DataItem{data(`{"type":"audio","x":1}`)}, nil, true}},
		"no object": {items(`"a"`), news{task.Working, []task.DataItem{marked(`{"value":"a"}`)}, nil, true}},

		"message": {`{"type":"message","id":"m1","dataItems":[{"type":"text","text":"a"}]}`,
			news{task.AwaitingCompletion, nil, []task.Product{known[0], {ID: "m1", DataItems: text("a")}}, true}},
		"message without an id": {`{"dataItems":[{"type":"text","text":"a"}]}`,
			news{task.AwaitingCompletion, nil, append(known[:2:2], task.Product{ID: "message", DataItems: text("a")}), true}},
		"empty message": {`{"type":"message","dataItems":null}`, news{task.AwaitingCompletion, nil, known, true}},
	} {
		t.Run(name, func(t *testing.T) {
			for version, s := range sides() {
				body := `{"jsonrpc":"2.0","id":null,"result":` + tt.result + `,"error":null}`
				rep, err := s.client.Reply([]byte(body), known)
				if err != nil {
					t.Fatal(version, err)
				}
				if d := cmp.Diff(tt.want, news{rep.State, rep.Items, rep.Products, rep.Full}, cmpopts.EquateEmpty()); d != "" {
					t.Errorf("%s:\n%s", version, d)
				}
				if rep.NativeState == "" || rep.Revision == "" || rep.Ref != nil || rep.SelfResuming {
					t.Errorf("%s: %+v", version, rep)
				}
			}
		})
	}
	if d := cmp.Diff(text("before"), known[1].DataItems); d != "" {
		t.Errorf("what was known has changed:\n%s", d)
	}
}

func TestReplyRefuses(t *testing.T) {
	result := func(s string) string { return `{"jsonrpc":"2.0","id":1,"result":` + s + `}` }
	state := func(s string) string { return result(`{"type":"task","status":{"state":` + s + `}}`) }
	product := func(s string) string {
		return result(`{"type":"task","status":{"state":"working"},"products":[` + s + `]}`)
	}
	many := func(one string) string { return strings.Repeat(one+",", 1000) + one }
	for name, tt := range map[string]struct {
		body string
		kind task.Kind
	}{
		"empty":        {``, task.InvalidAgentResponse},
		"page":         {`<html>`, task.InvalidAgentResponse},
		"cut":          {`{"jsonrpc":"2.0","id":1,"result":{"type":"task"`, task.InvalidAgentResponse},
		"neither":      {`{"jsonrpc":"2.0","id":1}`, task.InvalidAgentResponse},
		"null":         {result(`null`), task.InvalidAgentResponse},
		"true":         {result(`true`), task.InvalidAgentResponse},
		"empty result": {result(`{}`), task.InvalidAgentResponse},
		"other type":   {result(`{"type":"group-mgmt-result","dataItems":[]}`), task.InvalidAgentResponse},
		"status text":  {result(`{"type":"task","status":"working"}`), task.InvalidAgentResponse},
		"no state":     {result(`{"type":"task","status":{}}`), task.InvalidAgentResponse},
		"state number": {state(`1`), task.InvalidAgentResponse},
		"empty state":  {state(`""`), task.InvalidAgentResponse},
		"PascalCase":   {state(`"AwaitingInput"`), task.InvalidAgentResponse},
		"upper case":   {state(`"WORKING"`), task.InvalidAgentResponse},
		"underscore":   {state(`"awaiting_input"`), task.InvalidAgentResponse},
		"A2A":          {state(`"submitted"`), task.InvalidAgentResponse},
		"British":      {state(`"cancelled"`), task.InvalidAgentResponse},
		"items object": {result(`{"status":{"state":"working","dataItems":{}}}`), task.InvalidAgentResponse},
		"many items": {result(`{"status":{"state":"working","dataItems":[` + many(`1`) + `]}}`),
			task.InvalidAgentResponse},
		"products object":   {result(`{"status":{"state":"working"},"products":{}}`), task.InvalidAgentResponse},
		"product text":      {product(`"a"`), task.InvalidAgentResponse},
		"product id number": {product(`{"id":1}`), task.InvalidAgentResponse},
		"product id long":   {product(`{"id":"` + strings.Repeat("p", 257) + `"}`), task.InvalidAgentResponse},
		"product items":     {product(`{"id":"p","dataItems":"a"}`), task.InvalidAgentResponse},
		"message items":     {result(`{"type":"message","dataItems":"a"}`), task.InvalidAgentResponse},
		"key twice":         {result(`{"status":{"state":"working"},"status":null}`), task.InvalidAgentResponse},

		"bare error": {`{"detail":{"code":-32001,"message":"Task not found","data":null}}`, task.TaskNotFound},
		"form error": {`{"detail":[{"loc":["body","method"],"msg":"Input should be 'rpc'","type":"literal_error"}]}`,
			task.MethodNotFound},
		"other detail":    {`{"detail":"Not Found"}`, task.InvalidAgentResponse},
		"detail, no code": {`{"detail":{"code":"x"}}`, task.InvalidAgentResponse},
		"error, null": {`{"jsonrpc":"2.0","id":null,"error":{"code":-32004,"message":null,"data":null},"result":null}`,
			task.UnsupportedOperation},
		"code text": {`{"jsonrpc":"2.0","id":null,"error":{"code":"a"}}`, task.InvalidAgentResponse},
	} {
		t.Run(name, func(t *testing.T) {
			for version, s := range sides() {
				rep, err := s.client.Reply([]byte(tt.body), nil)
				e, ok := errors.AsType[*task.Error](err)
				if !ok || e.Kind != tt.kind || e.Detail == "" {
					t.Errorf("%s: got %+v, %v, want %v", version, rep, err, tt.kind)
				}
				if d := cmp.Diff(agent.Report{}, rep); d != "" {
					t.Errorf("%s: a report beside the error:\n%s", version, d)
				}
			}
		})
	}
	var ids []string
	for i := range 1001 {
		ids = append(ids, fmt.Sprintf(`{"id":"p%d"}`, i))
	}
	if _, err := Client("").Reply([]byte(product(strings.Join(ids, ","))),
		nil); task.KindOf(err) != task.InvalidAgentResponse {
		t.Errorf("1001 products: %v", err)
	}
	if rep, err := Client("").Reply([]byte(product(strings.Join(ids[1:], ","))), nil); err != nil ||
		len(rep.Products) != 1000 {
		t.Errorf("1000 products: %d, %v", len(rep.Products), err)
	}
}

func TestRevision(t *testing.T) {
	get := func(result string) string {
		t.Helper()
		rep, err := Client("").Reply([]byte(`{"jsonrpc":"2.0","id":1,"result":`+result+`}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		return rep.Revision
	}
	event := func(data string) string {
		t.Helper()
		rep, err := Client("").NewStream(nil).Event("", []byte(`{"result":{"eventSeq":1,"eventData":`+data+`}}`))
		if err != nil {
			t.Fatal(err)
		}
		return rep.Revision
	}
	const rest = `"state":"awaiting-input","stateChangedAt":"2025-09-01T12:00:00+08:00"`
	was := get(`{"type":"task","status":{` + rest + `,"dataItems":null},"products":null}`)
	for name, now := range map[string]string{
		"with products": get(`{"type":"task","status":{` + rest + `},"products":[{"id":"p"}]}`),
		"in a stream":   event(`{"type":"status-update","status":{ ` + rest + ` }}`),
	} {
		if now != was {
			t.Errorf("%s: %q, want %q", name, now, was)
		}
	}
	if !strings.HasPrefix(was, "awaiting-input 2025-09-01T12:00:00+08:00 ") {
		t.Errorf("got %q", was)
	}
	for name, now := range map[string]string{
		"other words": get(`{"type":"task","status":{` + rest + `,"dataItems":[{"type":"text","text":"a"}]}}`),
		"later": get(`{"type":"task",` +
			`"status":{"state":"awaiting-input","stateChangedAt":"2025-09-01T12:00:01+08:00"}}`),
		"other state": get(`{"type":"task","status":{"state":"completed","stateChangedAt":"2025-09-01T12:00:00+08:00"}}`),
	} {
		if now == was {
			t.Errorf("%s: still %q", name, now)
		}
	}
	const works = `{"type":"task","status":{"state":"working","stateChangedAt":"x"},"products":`
	if a, b := get(works+`[]}`), get(works+`[{"id":"p"}]}`); a == b {
		t.Errorf("progress leaves the revision at %q", a)
	}
}

// TestClientOwnership: a report does not change when its body is used for something else.
func TestClientOwnership(t *testing.T) {
	c := Client("gateway")
	for name, read := range map[string]func([]byte) (agent.Report, error){
		"03-rpc-start.response-awaiting-completion.json": func(b []byte) (agent.Report, error) { return c.Reply(b, nil) },
		"30-group-task-awaiting-completion.json":         func(b []byte) (agent.Report, error) { return c.Push(b, nil) },
		"13-stream-start.events.json": func(b []byte) (agent.Report, error) {
			return c.NewStream(nil).Event("", decodeJSON[[]json.RawMessage](t, string(b))[1])
		},
	} {
		want, err := read(vector(t, name))
		if err != nil {
			t.Fatal(name, err)
		}
		body := vector(t, name)
		got, err := read(body)
		if err != nil {
			t.Fatal(name, err)
		}
		for i := range body {
			body[i] = 'x'
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: the report is a view of its body:\n%s", name, d)
		}
	}
}

// plausible checks the properties of every report. It must be read the same again from the answer to a Leader.
func plausible(t *testing.T, rep agent.Report, err error) {
	t.Helper()
	if err != nil {
		if e, ok := errors.AsType[*task.Error](err); !ok || e.Detail == "" {
			t.Fatalf("refused without a kind or a sentence: %v", err)
		}
		if d := cmp.Diff(agent.Report{}, rep); d != "" {
			t.Fatalf("a report beside the error:\n%s", d)
		}
		return
	}
	if rep.State != task.None && !rep.State.Valid() || rep.State == task.Completed ||
		(rep.State == task.None) != (rep.Revision == "") {
		t.Fatalf("got %+v", rep)
	}
	tk := task.Task{ID: "t", Status: task.Status{State: task.Working, DataItems: rep.Items}, Products: rep.Products}
	for _, c := range rep.Chunks {
		tk.Products = append(tk.Products, c.Product)
	}
	for version, s := range sides() {
		out := s.server.AppendTask(nil, jsonrpc.ID("1"), nil, &tk)
		if strings.ContainsAny(string(out), "\n\r") {
			t.Fatalf("%s: more than one line: %q", version, out)
		}
		again, err := s.client.Reply(out, nil)
		if d := cmp.Diff(reportOf(&tk), again, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(agent.Report{}, "Revision",
			"RevisionDated")); d != "" || err != nil {
			t.Fatalf("%s: %v\n%s", version, err, d)
		}
	}
}

func FuzzClientReply(f *testing.F) {
	for _, name := range []string{
		"01-error-task-not-found.response.json", "03-rpc-start.response-awaiting-completion.json",
		"07-rpc-get.response-failed-with-history.json",
	} {
		f.Add(vector(f, name))
	}
	f.Add([]byte(`{"result":{"type":"message","id":"m","dataItems":[{"type":"file","url":"u"},{"type":"x"}]},` +
		`"error":null}`))
	f.Add([]byte(`{"detail":{"code":-32001,"message":"Task not found"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := ClientV2("gateway").Reply(data, []task.Product{{ID: "known"}})
		plausible(t, rep, err)
	})
}
