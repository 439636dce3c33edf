// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// leastV2 returns a TaskCommand with no more than it needs.
func leastV2(command task.Command) object {
	return with(least(command), object{"type": "task-command"})
}

// fullV2 returns a TaskCommand with everything in AIP v02.
func fullV2() object {
	return with(full(), object{"type": "task-command", "commandParams": object{"timeout": 1000, "maxProductsBytes": 4096,
		"x": []any{1}}})
}

func bodyV2(method string, command any) []byte { return params(method, object{"command": command}) }

// startedV2 is a start with the name of a webhook.
func startedV2() object {
	return with(fullV2(), object{"commandParams": object{"notificationConfigId": "n1",
		"notifyOnStates": []any{"working", "failed"}, "timeout": 7}})
}

func TestServerV2(t *testing.T) {
	translatetest.Server(t, ServerV2("partner"),
		bodyV2("rpc", fullV2()), bodyV2("rpc", leastV2(task.Start)), bodyV2("rpc", leastV2(task.Continue)),
		bodyV2("rpc", with(leastV2(task.Get), object{"commandParams": object{"lastCommandSentAt": "2025-09-01T11:58:00",
			"lastStateChangedAt": nil}})),
		bodyV2("rpc", leastV2(task.Cancel)), bodyV2("rpc", leastV2(task.Complete)),
		body("stream", leastV2(task.Start)), body("stream", with(leastV2(task.ReStream),
			object{"commandParams": object{"lastEventSeq": 2}})),
		bodyV2("notification/start", startedV2()), body("notification/start", startedV2()),
		vector(t, "16-notification-set.request.json"), vector(t, "18-notification-delete.request.json"), vector(t,
			"20-notification-get.request.json"),
	)
}

func TestRouteV2(t *testing.T) {
	for _, path := range []string{"", "rpc", "stream", "group", "notification/set", "notification/stop", "/rpc"} {
		for _, method := range []string{"GET", "POST"} {
			want, ok := Server().Route(method, path)
			got, also := ServerV2("").Route(method, path)
			if d := cmp.Diff(want, got); d != "" || ok != also {
				t.Errorf("%s %q: %v, want %v\n%s", method, path, also, ok, d)
			}
		}
	}
}

func TestMatchesV2(t *testing.T) {
	command := leastV2(task.Start)
	for name, tt := range map[string]struct {
		body []byte
		want bool
	}{
		"rpc":                        {bodyV2("rpc", command), true},
		"rpc, no type":               {bodyV2("rpc", least(task.Start)), true},
		"rpc, wrong command":         {bodyV2("rpc", "start"), true},
		"rpc, message":               {body("rpc", command), true},
		"rpc, message of v1":         {body("rpc", full()), false},
		"rpc, message without type":  {body("rpc", least(task.Start)), false},
		"rpc, null command":          {params("rpc", object{"command": nil, "message": full()}), false},
		"rpc, both":                  {params("rpc", object{"command": command, "message": full()}), true},
		"rpc, neither":               {params("rpc", object{}), false},
		"rpc, list":                  {params("rpc", []any{command}), false},
		"rpc, message list":          {body("rpc", []any{command}), false},
		"rpc, no params":             {[]byte(`{"jsonrpc":"2.0","id":1,"method":"rpc"}`), false},
		"stream":                     {body("stream", command), true},
		"stream, command":            {bodyV2("stream", command), true},
		"stream of v1":               {body("stream", full()), false},
		"notification/start":         {bodyV2("notification/start", command), true},
		"notification/start, 02.02":  {body("notification/start", command), true},
		"notification/start of v1":   {vector(t, "22-notification-start.request.json"), false},
		"notification/set":           {vector(t, "16-notification-set.request.json"), false},
		"notification/set, command":  {bodyV2("notification/set", command), false},
		"notification/delete":        {vector(t, "18-notification-delete.request.json"), false},
		"notification/get":           {vector(t, "20-notification-get.request.json"), false},
		"group":                      {vector(t, "25-group-invite.request.json"), false},
		"another protocol's method":  {bodyV2("message/send", command), false},
		"another protocol's message": {body("message/send", object{"kind": "message"}), false},
	} {
		req := request(t, tt.body)
		if got := ServerV2("").Matches(&translate.Request{Request: req, HTTP: "POST"}); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestDecodeV2: a TaskCommand is decoded as the same Message of v01.00.
func TestDecodeV2(t *testing.T) {
	stated := func(command task.Command, name, value string) object {
		return object{"commandParams": object{name: value, "lastStateChangedAt": "2025-09-01T11:58:00Z"}}
	}
	started := object{"commandParams": object{"responseTimeout": 1000, "maxProductsBytes": 4096, "x": []any{1}}}
	for name, tt := range map[string]struct{ v1, v2 []byte }{
		"least":      {body("rpc", least(task.Start)), bodyV2("rpc", leastV2(task.Start))},
		"no type":    {body("rpc", least(task.Start)), bodyV2("rpc", least(task.Start))},
		"full":       {body("rpc", with(full(), started)), bodyV2("rpc", fullV2())},
		"by message": {body("rpc", with(full(), started)), body("rpc", fullV2())},
		"null beside": {body("rpc", least(task.Cancel)), params("rpc",
			object{"command": leastV2(task.Cancel), "message": nil})},
		"nameless parameters": {body("rpc", with(least(task.Start), object{"commandParams": object{"": "x"}})),
			bodyV2("rpc", with(leastV2(task.Start), object{"commandParams": object{"": "x"}}))},
		"no dataItems": {body("rpc", with(full(), with(started, object{"dataItems": nil}))),
			bodyV2("rpc", with(fullV2(), object{"dataItems": absence{}}))},
		"mentions all": {body("rpc", with(least(task.Start), object{"mentions": "all"})),
			bodyV2("rpc", with(leastV2(task.Start), object{"mentions": "all"}))},
		"mentions null": {body("rpc", least(task.Start)), bodyV2("rpc", with(leastV2(task.Start),
			object{"mentions": nil}))},
		"get": {body("rpc", with(least(task.Get), stated(task.Get, "lastMessageSentAt",
			"2025-09-01"+"T11:58:00"))), bodyV2("rpc",
			with(leastV2(task.Get), stated(task.Get, "lastCommandSentAt", "2025-09-01T11:58:00")))},
		"stream":            {body("stream", least(task.Start)), body("stream", leastV2(task.Start))},
		"stream by command": {body("stream", least(task.Continue)), bodyV2("stream", leastV2(task.Continue))},
		"re-stream": {body("stream", with(least(task.ReStream), object{"commandParams": object{"lastEventSeq": 2}})),
			body("stream", with(leastV2(task.ReStream), object{"commandParams": object{"lastEventSeq": 2}}))},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := decodeBody(t, tt.v1)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeBy(t, ServerV2(""), tt.v2)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(task.Message{}, "Params")); d != "" {
				t.Error(d)
			}
			if (want.Message.Params == nil) != (got.Message.Params == nil) {
				t.Errorf("the parameters are %s", got.Message.Params)
			}
		})
	}
}

func TestWebhooksV2(t *testing.T) {
	s := ServerV2("partner")
	for name, tt := range map[string]struct {
		body []byte
		op   translate.Op
		want task.Webhook
	}{
		"set": {vector(t, "16-notification-set.request.json"), translate.SetWebhook,
			task.Webhook{TaskID: "task-5678", URL: "https://example.com/notifications", Token: "your_token", Dialect: "aip/2"}},
		"get": {vector(t, "20-notification-get.request.json"), translate.GetWebhooks, task.Webhook{TaskID: "task-5678"}},
		"delete": {vector(t, "18-notification-delete.request.json"), translate.DeleteWebhooks,
			task.Webhook{ID: "notification-1", TaskID: "task-5678"}},
		"start": {bodyV2("notification/start", startedV2()), translate.Command,
			task.Webhook{ID: "n1", TaskID: "t1", Dialect: "aip/2", States: []task.State{task.Working, task.Failed}}},
		"subscribe": {bodyV2("notification/start", with(leastV2(task.Start), object{"dataItems": []any{},
			"commandParams": object{"notificationConfigId": "n1", "notifyOnStates": []any{"failed"}}})), translate.SetWebhook,
			task.Webhook{ID: "n1", TaskID: "t1", Dialect: "aip/2", States: []task.State{task.Failed}}},
		"start, 02.02": {body("notification/start",
			with(startedV2(), object{"commandParams": object{"notificationConfigId": "n1",
				"notifyOnStates": nil}})), translate.Command,
			task.Webhook{ID: "n1", TaskID: "t1", Dialect: "aip/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := decodeBy(t, s, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(&tt.want, c.Webhook); d != "" || c.Op != tt.op || c.Message.TaskID != tt.want.TaskID || c.Stream {
				t.Errorf("op %v, task %s\n%s", c.Op, c.Message.TaskID, d)
			}
		})
	}
	hooks := []task.Webhook{aWebhook}
	for _, op := range []translate.Op{translate.SetWebhook, translate.GetWebhooks, translate.DeleteWebhooks} {
		want := Server().AppendWebhooks(nil, jsonrpc.ID("1"), &translate.Call{Op: op}, hooks)
		if d := cmp.Diff(string(want), string(s.AppendWebhooks(nil, jsonrpc.ID("1"), &translate.Call{Op: op},
			hooks))); d != "" {
			t.Error(d)
		}
	}
}

func TestDecodeV2Refuses(t *testing.T) {
	const c, m = "params.command.", "params.message."
	commanded := func(members object) []byte { return bodyV2("rpc", with(fullV2(), members)) }
	started := func(p any) []byte {
		return bodyV2("notification/start", with(fullV2(), object{"commandParams": p}))
	}
	for name, tt := range map[string]struct {
		body  []byte
		kind  task.Kind
		field string
	}{
		"group":          {params("group", object{}), task.GroupNotSupported, ""},
		"other protocol": {params("message/send", object{}), task.MethodNotFound, ""},
		"no params":      {[]byte(`{"jsonrpc":"2.0","id":1,"method":"rpc"}`), task.InvalidParams, "params"},
		"list":           {params("rpc", []any{}), task.InvalidParams, "params"},
		"neither":        {params("rpc", object{}), task.InvalidParams, "params.command"},
		"both": {params("rpc", object{"command": fullV2(), "message": fullV2()}), task.InvalidParams,
			"params.message"},
		"command text":     {bodyV2("rpc", "start"), task.InvalidParams, "params.command"},
		"message text":     {body("stream", "start"), task.InvalidParams, "params.message"},
		"type":             {commanded(object{"type": "message"}), task.InvalidParams, c + "type"},
		"type in message":  {body("rpc", full()), task.InvalidParams, m + "type"},
		"type number":      {commanded(object{"type": 1}), task.InvalidParams, c + "type"},
		"senderRole":       {commanded(object{"senderRole": "partner"}), task.InvalidParams, c + "senderRole"},
		"no command":       {commanded(object{"command": absence{}}), task.InvalidParams, c + "command"},
		"other command":    {commanded(object{"command": "pause"}), task.InvalidParams, c + "command"},
		"re-stream by rpc": {bodyV2("rpc", leastV2(task.ReStream)), task.InvalidParams, c + "command"},
		"get by stream":    {body("stream", leastV2(task.Get)), task.InvalidParams, m + "command"},
		"no senderId":      {commanded(object{"senderId": nil}), task.InvalidParams, c + "senderId"},
		"no taskId":        {commanded(object{"taskId": absence{}}), task.InvalidParams, c + "taskId"},
		"stream, no taskId": {body("stream", with(leastV2(task.Start), object{"taskId": nil})), task.InvalidParams,
			m + "taskId"},
		"sessionId number": {commanded(object{"sessionId": 1}), task.InvalidParams, c + "sessionId"},
		"sentAt":           {commanded(object{"sentAt": "now"}), task.InvalidParams, c + "sentAt"},
		"mentions":         {commanded(object{"mentions": []any{"a", 1}}), task.InvalidParams, c + "mentions[1]"},
		"item": {commanded(object{"dataItems": []any{object{"type": "audio"}}}), task.InvalidParams,
			c + "dataItems[0].type"},
		"item in message": {body("rpc", with(fullV2(), object{"dataItems": []any{object{"type": "text"}}})),
			task.InvalidParams, m + "dataItems[0].text"},
		"params text": {commanded(object{"commandParams": "x"}), task.InvalidParams, c + "commandParams"},
		"timeout": {commanded(object{"commandParams": object{"timeout": -1}}), task.InvalidParams,
			c + "commandParams.timeout"},
		"maxProductsBytes": {commanded(object{"commandParams": object{"maxProductsBytes": "1"}}), task.InvalidParams,
			c + "commandParams.maxProductsBytes"},
		"lastCommandSentAt": {bodyV2("rpc",
			with(leastV2(task.Get), object{"commandParams": object{"lastCommandSentAt": 1}})), task.InvalidParams, c +
			"commandParams.lastCommandSentAt"},
		"lastEventSeq": {body("stream",
			with(leastV2(task.ReStream), object{"commandParams": object{"lastEventSeq": -1}})), task.InvalidParams, m +
			"commandParams.lastEventSeq"},

		"webhook, continue": {bodyV2("notification/start", leastV2(task.Continue)), task.InvalidParams, c + "command"},
		"webhook, params":   {started(nil), task.InvalidParams, c + "commandParams"},
		"webhook, no id":    {started(object{}), task.InvalidParams, c + "commandParams.notificationConfigId"},
		"webhook, states": {started(object{"notificationConfigId": "n", "notifyOnStates": "all"}), task.InvalidParams,
			c + "commandParams.notifyOnStates"},
		"webhook, state": {started(object{"notificationConfigId": "n", "notifyOnStates": []any{"Working"}}),
			task.InvalidParams, c + "commandParams.notifyOnStates[0]"},
		"webhook in message": {body("notification/start",
			with(fullV2(), object{"commandParams": object{"notificationConfigId": 1}})), task.InvalidParams, m +
			"commandParams.notificationConfigId"},
		"webhook, no URL": {params("notification/set", object{"taskId": "t", "token": "x"}), task.InvalidParams,
			"params.url"},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := decodeBy(t, ServerV2(""), tt.body)
			e, ok := errors.AsType[*task.Error](err)
			if !ok || e.Kind != tt.kind || e.Field != tt.field || e.Detail == "" {
				t.Errorf("got %+v, %v, want %v at %s", call, err, tt.kind, tt.field)
			}
			if d := cmp.Diff(translate.Call{}, call); d != "" {
				t.Errorf("a call beside the error:\n%s", d)
			}
		})
	}
}

func TestAppendV2(t *testing.T) {
	at := time.Date(2025, 9, 1, 12, 0, 0, 25e7, beijing)
	state := &task.Task{
		ID: "t1", SessionID: "s1", Status: task.Status{State: task.AwaitingCompletion, ChangedAt: at,
			DataItems: []task.DataItem{task.Text("a\nb")}},
		Products: []task.Product{{ID: "p", DataItems: []task.DataItem{task.Text("x")}}, {ID: "q"}},
	}
	group := *state
	group.GroupID, group.Products = "g1", nil
	group.MessageHistory = []task.Message{
		{ID: "said", SentAt: at, SenderRole: task.Partner},
		{ID: "m1", SentAt: at, SenderRole: task.Leader, SenderID: "leader", Mentions: []string{"all"}, Command: task.Start,
			TaskID: "t1"},
		{ID: "m2", SentAt: at, SenderRole: task.Leader, SenderID: "leader", Mentions: []string{"a"}, Command: task.Cancel,
			TaskID: "t1"},
	}
	group.StatusHistory = []task.Status{{State: task.Working, ChangedAt: at}}
	const (
		rest  = `"sentAt":"2025-09-01T12:00:00.25+08:00","senderRole":"partner","senderId":"partner","taskId":"t1",`
		since = `"stateChangedAt":"2025-09-01T12:00:00.25+08:00"`
		done  = `"status":{"state":"awaiting-completion",` + since + `,"dataItems":[{"type":"text","text":"a\nb"}]}`
		had   = `"products":[{"id":"p","dataItems":[{"type":"text","text":"x"}]},{"id":"q","dataItems":[]}]}`
		sent  = `"sentAt":"2025-09-01T12:00:00.25+08:00","senderRole":"leader","senderId":"leader",`
	)
	s := ServerV2("partner")
	asked := jsonrpc.ID(`"x"`)
	result := func(r string) string { return `{"jsonrpc":"2.0","id":"x","result":` + r + `}` }
	same := func(name, want string, got []byte) {
		t.Helper()
		if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
	const whole = `{"type":"task-result","id":"t1-awaiting-completion-1756699200250",` + rest + `"sessionId":"s1",` +
		done + `,` + had
	same("task", result(whole), s.AppendTask(nil, asked, nil, state))
	same("notification", whole, s.AppendNotification(nil, state))
	same("histories",
		result(`{"type":"task-result","id":"t1-awaiting-completion-1756699200250",`+rest+
			`"groupId":"g1","sessionId":"s1",`+done+`,"products":[],`+
			`"commandHistory":[{"type":"task-command","mentions":"all","id":"m1",`+sent+`"command":"start","dataItems":[],`+
			`"taskId":"t1"},`+
			`{"type":"task-command","id":"m2",`+sent+`"mentions":["a"],"command":"cancel","dataItems":[],"taskId":"t1"}],`+
			`"statusHistory":[{"state":"working",`+since+`}]}`), s.AppendTask(nil, asked, nil, &group))

	stream := s.NewStream(asked, nil, &task.Task{ID: "t1", SessionID: "s1"})
	chunk := &task.Chunk{Product: task.Product{ID: "p", DataItems: []task.DataItem{task.Text("x")}}, Append: true}
	event := func(seq, data string) string { return result(`{"eventSeq":` + seq + `,"eventData":` + data + `}`) }
	const piece = `"product":{"id":"p","dataItems":[{"type":"text","text":"x"}]},"append":true,"lastChunk":false}`
	same("chunk before all", event("4",
		`{"type":"product-chunk","id":"t1-4","sentAt":"1970-01-01T08:00:00+08:00","senderRole":"partner",`+
			`"senderId":"partner","taskId":"t1","sessionId":"s1",`+piece),
		stream.Event(nil, &task.Event{Seq: 4, Chunk: chunk}).Data)
	same("task event", event("5", `{"type":"task-result","id":"t1-5",`+rest+`"sessionId":"s1",`+done+`,`+had),
		stream.Event(nil, &task.Event{Seq: 5, Task: state}).Data)
	same("chunk", event("6", `{"type":"product-chunk","id":"t1-6",`+rest+`"sessionId":"s1",`+piece),
		stream.Event(nil, &task.Event{Seq: 6, Chunk: chunk}).Data)
	same("status", event("7", `{"type":"task-status-update","id":"t1-7",`+rest+`"sessionId":"s1",`+done+`}`),
		stream.Event(nil, &task.Event{Seq: 7, Status: &state.Status, Cause: &task.Message{ID: "secret"}}).Data)
	same("snapshot", event("0", `{"type":"task-result","id":"t1-0",`+rest+`"sessionId":"s1",`+done+`,`+had),
		stream.Snapshot(nil, state).Data)
	if f := stream.Event([]byte("before"), &task.Event{Seq: 8, Message: &task.Message{ID: "m"}}); f.Data != nil || f.End {
		t.Errorf("a message is sent as %+v", f)
	}
}

// TestErrorsV2: the versions have the same errors, but for those of invitations.
func TestErrorsV2(t *testing.T) {
	for _, k := range task.Kinds() {
		err := task.Errorf(k, "a sentence").WithField("params.command.taskId")
		if w, ok := errorsV2[k]; ok {
			res, bad := jsonrpc.ParseResponse(ServerV2("").AppendError(nil, jsonrpc.ID("1"), err), jsonrpc.Limits{})
			if bad != nil || res.Failure.Code != int64(w.code) || res.Failure.Message != w.message {
				t.Errorf("%v: %v %+v", k, bad, res.Failure)
			}
			continue
		}
		if d := cmp.Diff(string(Server().AppendError(nil, jsonrpc.ID("1"), err)),
			string(ServerV2("").AppendError(nil, jsonrpc.ID("1"), err))); d != "" {
			t.Errorf("%v:\n%s", k, d)
		}
	}
}

// TestMessageRoundTripV2: a command written and read again is the same.
func TestMessageRoundTripV2(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for range 3000 {
		want := randomMessage(rnd)
		if rnd.IntN(4) == 0 {
			want.Mentions = []string{"all"}
		}
		method := methodRPC
		if !answers(want.Command) {
			method = methodStream
		}
		got, err := decodeBy(t, ServerV2(""), appendCommandRequest(nil, new(translate.Query), method, &want))
		if err != nil {
			t.Fatalf("%v, for\n%+v", err, want)
		}
		if d := cmp.Diff(want, got.Message, cmpopts.EquateEmpty()); d != "" {
			t.Fatal(d)
		}
	}
}

// FuzzDecodeV2: a decoded request can be written, and is then decoded to the same.
func FuzzDecodeV2(f *testing.F) {
	f.Add(bodyV2("rpc", fullV2()))
	f.Add(body("stream", with(leastV2(task.ReStream), object{"commandParams": object{"lastEventSeq": 2}})))
	f.Add(bodyV2("rpc", with(leastV2(task.Get),
		object{"commandParams": object{"lastCommandSentAt": "2025-09-01T11:58:00"}})))
	f.Add(bodyV2("notification/start", startedV2()))
	f.Add(vector(f, "16-notification-set.request.json"))
	f.Fuzz(func(t *testing.T, data []byte) {
		req, bad := jsonrpc.Parse(data, jsonrpc.Limits{})
		if bad != nil {
			return
		}
		whole := &translate.Request{Request: req, HTTP: "POST"}
		matches := ServerV2("").Matches(whole)
		want, err := ServerV2("").Decode(whole)
		if err != nil {
			if e, ok := errors.AsType[*task.Error](err); !ok || e.Detail == "" || e.Kind == task.MethodNotFound && matches {
				t.Fatalf("refused without a kind or a sentence: %v", err)
			}
			return
		}
		if want.Op != translate.Command {
			if matches || want.Webhook == nil || want.Webhook.TaskID == "" {
				t.Fatalf("got %+v", want)
			}
			return
		}
		again := appendCommandRequest(nil, new(translate.Query), req.Method, &want.Message)
		if strings.ContainsAny(string(again), "\n\r") {
			t.Fatalf("more than one line: %q", again)
		}
		got, err := decodeBy(t, ServerV2(""), again)
		if err != nil {
			t.Fatalf("%v, for\n%s", err, again)
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), unknown); d != "" {
			t.Fatal(d)
		}
	})
}

// TestOtherVersion: a Partner of one version refuses a command of the other one by an error naming it.
func TestOtherVersion(t *testing.T) {
	for name, tt := range map[string]struct {
		server translate.Server
		body   []byte
		want   string
	}{
		"2 at 1, a stream": {Server(), body("stream", leastV2(task.Start)), "takes no commands of aip/2"},
		"2 at 1":           {Server(), bodyV2("rpc", leastV2(task.Start)), "takes no commands of aip/2"},
		"1 at 2": {ServerV2(""), body("rpc", with(least(task.Start), object{"type": "message"})),
			"takes no commands of aip;"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeBy(t, tt.server, tt.body)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
