// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// enveloped is the format of an agent's answer.
func enveloped(at int) string {
	if at == inREST {
		return `%s`
	}
	return `{"jsonrpc":"2.0","id":1,"result":%s}`
}

const mappedParts = `"parts":[{"type":"text","kind":"text","text":"x"}]`

// mappedItems are the content of a command of AIP.
var mappedItems = []any{map[string]any{"type": "text", "text": "x"}}

// mappedParams hold what any method of a dialect needs.
var mappedParams = [...]string{
	inAIP: `{"id":"w","message":{"id":"m","senderId":"L","taskId":"t","sessionId":"s","command":"start"},"taskId":"t",` +
		`"url":"https://h","token":"x"}`,
	inAIP2: `{"id":"w","command":{"id":"m","senderId":"L","taskId":"t","sessionId":"s","command":"start"},"taskId":"t",` +
		`"url":"https://h","token":"x"}`,
	inLegacy: `{"id":"t","sessionId":"s","message":{"role":"user",` + mappedParts +
		`},"pushNotificationConfig":{"url":"https://h"}}`,
	in03: `{"id":"t","taskId":"t","message":{"role":"user","messageId":"m",` + mappedParts + `},"configuration":{},` +
		`"pushNotificationConfig":{"url":"https://h"}}`,
	in10: `{"id":"t","taskId":"t","url":"https://h","message":{"role":"ROLE_USER","messageId":"m",` +
		`"parts":[{"text":"x"}]},"configuration":{}}`,
	inREST: `{"id":"t","taskId":"t","url":"https://h","message":{"role":"ROLE_USER","messageId":"m",` +
		`"parts":[{"text":"x"}]},"configuration":{}}`,
}

// changed returns JSON with a value at a path of members and indices, or without one where the value is nil.
func changed(t *testing.T, body, path string, value any) string {
	t.Helper()
	var root any
	if err := json.Unmarshal([]byte(body), &root); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	at, names := root, strings.Split(path, ".")
	for i, name := range names {
		if list, ok := at.([]any); ok {
			n, err := strconv.Atoi(name)
			if err != nil {
				t.Fatalf("%s is no path in %s", path, body)
			}
			at = list[n]
			continue
		}
		object, ok := at.(map[string]any)
		switch {
		case !ok:
			t.Fatalf("%s is no path in %s", path, body)
		case i < len(names)-1:
			at = object[name]
		case value == nil:
			delete(object, name)
		default:
			object[name] = value
		}
	}
	out, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// mappedAsks are what the page says that calls ask for, in its order.
var mappedAsks = []string{
	"start or continue",
	"the same, by a stream",
	"`get`",
	"`cancel`",
	"`re-stream`",
	"`complete`",
	"set a webhook",
	"get one webhook",
	"get all webhooks",
	"delete a webhook",
	"delete all webhooks",
	"start with a webhook",
	"subscribe by a webhook",
	"list tasks",
	"the extended card",
	"join a group",
}

// asks returns what a call asks for.
func asks(s translate.Server, c *translate.Call, err error) string {
	switch {
	case task.KindOf(err) == task.GroupNotSupported:
		return "join a group"
	case err != nil:
		return ""
	case c.Subscribe:
		return "subscribe by a webhook"
	case c.Op == translate.SetWebhook:
		return "set a webhook"
	case c.Op == translate.GetWebhooks:
		two := []task.Webhook{{ID: "first", TaskID: "t", URL: "u"}, {ID: "second", TaskID: "t", URL: "u"}}
		if answer := string(s.AppendWebhooks(nil, jsonrpc.ID("1"), c, two)); c.Webhook.ID == "" &&
			strings.Contains(answer, "second") {
			return "get all webhooks"
		}
		return "get one webhook"
	case c.Op == translate.DeleteWebhooks && c.Webhook.ID == "":
		return "delete all webhooks"
	case c.Op == translate.DeleteWebhooks:
		return "delete a webhook"
	case c.Op == translate.ListTasks:
		return "list tasks"
	case c.Op == translate.ExtendedCard:
		return "the extended card"
	case c.Webhook != nil:
		return "start with a webhook"
	case c.Message.Command != task.Start && c.Message.Command != task.Continue:
		return quoted(string(c.Message.Command))
	case c.Stream:
		return "the same, by a stream"
	}
	return "start or continue"
}

func TestDocsMappingMethods(t *testing.T) {
	methods := strings.Fields(
		"rpc stream group notification/set notification/get notification/delete notification/start message/send " +
			"message/stream " +
			"tasks/send tasks/sendSubscribe tasks/get tasks/list tasks/cancel tasks/resubscribe tasks/pushNotification/set " +
			"tasks/pushNotification/get " +
			"tasks/pushNotification/list tasks/pushNotification/delete tasks/pushNotificationConfig/set " +
			"tasks/pushNotificationConfig/get " +
			"tasks/pushNotificationConfig/list tasks/pushNotificationConfig/delete agent/getAuthenticatedExtendedCard " +
			"agent/card " +
			"SendMessage SendStreamingMessage GetTask ListTasks CancelTask SubscribeToTask CreateTaskPushNotificationConfig " +
			"SetTaskPushNotificationConfig " +
			"GetTaskPushNotificationConfig ListTaskPushNotificationConfigs ListTaskPushNotificationConfig " +
			"DeleteTaskPushNotificationConfig GetExtendedAgentCard GetAgentCard",
	)
	found := make([]map[string][]string, len(mappedServers)) // methods by what they ask for
	note := func(at int, what, method string) {
		if found[at] == nil {
			found[at] = make(map[string][]string)
		}
		if what != "" && !slices.Contains(found[at][what], method) {
			found[at][what] = append(found[at][what], method)
		}
	}
	for at, s := range mappedServers {
		for _, method := range methods {
			var tries []string
			for _, command := range task.Commands() {
				params := mappedParams[at]
				switch at {
				case inAIP:
					params = changed(t, params, "message.command", command)
					named := changed(t, params, "message.commandParams", map[string]any{"notificationConfigId": "w"})
					tries = append(tries, named, changed(t, named, "message.dataItems", mappedItems))
				case inAIP2:
					params = changed(t, params, "command.command", command)
					named := changed(t, params, "command.commandParams", map[string]any{"notificationConfigId": "w"})
					tries = append(tries, named, changed(t, named, "command.dataItems", mappedItems))
				}
				tries = append(
					tries,
					params,
					changed(t, params, "notificationConfigId", "w"),
					changed(t, params, "pushNotificationConfigId", "w"),
				)
			}
			for _, params := range tries {
				call, err := asked(t, s, method, params)
				if k := task.KindOf(err); err != nil && k != task.MethodNotFound && k != task.InvalidParams &&
					k != task.GroupNotSupported {
					t.Errorf("%s %s %s: %v", s.Name(), method, params, err)
				}
				note(at, asks(s, &call, err), method)
			}
		}
	}
	// The verbs and paths of a dialect over plain HTTP, by what they ask for.
	paths := func(s translate.Server, params string) map[string][]string {
		rest := make(map[string][]string)
		for _, path := range []string{"", "message:send", "message:stream", "tasks", "tasks/{id}", "tasks/{id}:cancel",
			"tasks/{id}:subscribe",
			"tasks/{id}/pushNotificationConfigs", "tasks/{id}/pushNotificationConfigs/{configId}", "extendedAgentCard", "card",
			"v1", "v1/message:send", "v1/message:stream", "v1/tasks", "v1/tasks/{id}", "v1/tasks/{id}:cancel",
			"v1/tasks/{id}:subscribe",
			"v1/tasks/{id}/pushNotificationConfigs", "v1/tasks/{id}/pushNotificationConfigs/{configId}", "v1/extendedAgentCard",
			"v1/card"} {
			for _, verb := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				r, ok := s.Route(verb, path)
				if !ok || r.Allow != "" {
					continue
				}
				call, err := asked(t, s, r.Method, params)
				what := asks(s, &call, err)
				if n := len(rest[what]); n > 0 && strings.HasSuffix(rest[what][n-1], " /"+path) {
					rest[what][n-1] = strings.Replace(rest[what][n-1], " ", ", "+verb+" ", 1)
					continue
				}
				rest[what] = append(rest[what], verb+" /"+path)
			}
		}
		return rest
	}
	rest := paths(mappedServers[inREST], mappedParams[inREST])
	old := paths(
		a2a.V03RESTServer(false),
		changed(t, mappedParams[inREST], "pushNotificationConfig", map[string]any{"url": "https://hooks.example.com/"}),
	)
	toAgents := make([]map[string]string, inREST)
	for at, c := range mappedClients[:inREST] {
		toAgents[at] = requests(c)
	}
	var want, between [][]string
	for _, what := range mappedAsks {
		f := func(at int) string {
			sent := toAgents[min(at, in10)][what]
			switch {
			case sent == "":
				return quoted(found[at][what]...)
			case !slices.Contains(found[at][what], sent):
				t.Errorf("agents of %s get %s, and callers send %v", mappedServers[at].Name(), sent, found[at][what])
			}
			return quoted(found[at][what]...) + "*"
		}
		want = append(want, []string{what, alike(t, f, inAIP, inAIP2), f(inLegacy), f(in03), alike(t, f, in10, inREST),
			quoted(rest[what]...)})
		if cells := []string{what, quoted(old[what]...)}; cells[1] != "–" {
			between = append(between, cells)
		}
	}
	mapped(t, header("request", "aip, aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0", "a2a/1.0-rest"), merged(want, 0))
	// Below /v1 HTTP+JSON of 0.3 has the paths of 1.0, but for the extended card.
	var below [][]string
	for _, row := range want {
		cell := strings.ReplaceAll(row[5], " /", " /v1/")
		if row[0] == "the extended card" {
			cell = quoted("GET /v1/card")
		}
		if cell != "–" {
			below = append(below, []string{row[0], cell})
		}
	}
	if diff := cmp.Diff(below, between); diff != "" {
		t.Errorf("a2a/0.3-rest has other requests than 1.0 (-1.0 +0.3):\n%s", diff)
	}
}

// mappedTurn returns a turn of a task in a state.
func mappedTurn(from task.State) *agent.Turn {
	return &agent.Turn{Ref: agent.Ref{Task: "T", Session: "S"}, From: from, Revision: "x",
		Message: task.Message{ID: "M", DataItems: []task.DataItem{task.Text("hi")}}}
}

// requests returns the methods of the requests to agents of a dialect, by the words of mappedAsks.
func requests(c translate.Client) map[string]string {
	ref := agent.Ref{Task: "T", Session: "S"}
	methods := map[string]string{
		"start or continue":     word(c.AppendTurn(nil, mappedTurn(task.None), false), "method"),
		"the same, by a stream": word(c.AppendTurn(nil, mappedTurn(task.None), true), "method"),
		"`cancel`":              word(c.(translate.Canceler).AppendCancel(nil, ref), "method"),
		"`get`":                 word(c.(translate.Getter).AppendGet(nil, ref), "method"),
		"`re-stream`":           word(c.(translate.Resubscriber).AppendResubscribe(nil, ref), "method"),
	}
	if c, ok := c.(translate.Completer); ok {
		methods["`complete`"] = word(c.AppendComplete(nil, ref), "method")
	}
	if c, ok := c.(translate.Registrar); ok {
		methods["set a webhook"] = word(c.AppendRegister(nil, ref, &task.Webhook{URL: "https://h"}), "method")
	}
	if c, ok := c.(translate.Describer); ok {
		methods["the extended card"] = word(c.AppendDescribe(nil), "method")
	}
	return methods
}

func TestDocsMappingRequests(t *testing.T) {
	for at, c := range mappedClients[:inREST] {
		sent := requests(c)
		for stream, want := range map[bool]string{false: sent["start or continue"], true: sent["the same, by a stream"]} {
			if at == inAIP2 { // as the page says
				want = "rpc"
			}
			got := word(c.AppendTurn(nil, mappedTurn(task.AwaitingInput), stream), "method")
			if got != want {
				t.Errorf("%s continues by %s, want %s", mappedServers[at].Name(), got, want)
			}
		}
	}
	bind := mappedClients[inREST].(translate.Binder)
	var got []string
	for _, op := range []translate.Operation{translate.Send, translate.SendStream, translate.Cancel, translate.Get,
		translate.Resubscribe, translate.Describe} {
		method, path := bind.Bind(op, agent.Ref{Task: "{id}"})
		got = append(got, method+" "+strings.NewReplacer("%7B", "{", "%7D", "}").Replace(path))
	}
	want := []string{"POST /message:send", "POST /message:stream", "POST /tasks/{id}:cancel",
		"GET /tasks/{id}?historyLength=0", "POST /tasks/{id}:subscribe", "GET /extendedAgentCard"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests of a2a/1.0-rest (-want +got):\n%s", diff)
	}
	says(t, quoted(want[3], want[4]))

	hooked := mappedTurn(task.None)
	hooked.Webhook = &task.Webhook{URL: "https://h"}
	// Where in a request is what: by a value that stands nowhere else.
	at := func(c translate.Client, body []byte, value string) string {
		params := dig(body, "params")
		if params == nil {
			params = body
		}
		var names []string
		for _, in := range [][]string{nil, {"message"}, {"command"}, {"configuration"}} {
			inner := dig(params, in...)
			for _, name := range memberNames(inner) {
				if v := string(dig(inner, name)); v == value || v == "["+value+"]" || strings.HasPrefix(v, `{"url":`+value) {
					names = append(names, name)
				}
			}
		}
		return quoted(names...)
	}
	var places [][]string
	for _, r := range []struct {
		what, value string
		turn        *agent.Turn
	}{
		{"task: start", `"T"`, mappedTurn(task.None)},
		{"task: continue", `"T"`, mappedTurn(task.AwaitingInput)},
		{"task: after its end", `"T"`, mappedTurn(task.AwaitingCompletion)},
		{"session", `"S"`, mappedTurn(task.None)},
		{"session", `"S"`, mappedTurn(task.AwaitingInput)},
		{"session", `"S"`, mappedTurn(task.AwaitingCompletion)},
		{"message", `"M"`, mappedTurn(task.None)},
		{"webhook", `"https://h"`, hooked},
	} {
		f := func(i int) string {
			return at(mappedClients[i], mappedClients[i].AppendTurn(nil, r.turn, false), r.value)
		}
		places = append(places, []string{r.what, alike(t, f, inAIP, inAIP2), f(inLegacy), f(in03), alike(t, f, in10, inREST)})
	}
	places = slices.CompactFunc(places, slices.Equal[[]string])
	mapped(t, header("in a request to the agent", "aip, aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0, a2a/1.0-rest"), places)
}

// mappedSend are the methods that send a message; mappedMessage is where it stands in the params.
var (
	mappedSend = [...]string{
		inAIP:    "rpc",
		inAIP2:   "rpc",
		inLegacy: "tasks/send",
		in03:     "message/send",
		in10:     "SendMessage",
		inREST:   "SendMessage",
	}
	mappedMessage = [...]string{
		inAIP:    "message",
		inAIP2:   "command",
		inLegacy: "message",
		in03:     "message",
		in10:     "message",
		inREST:   "message",
	}
)

func TestDocsMappingIDs(t *testing.T) {
	id := func(at int, path, madeHere string, of func(*translate.Call) string) string {
		with, err := asked(t, mappedServers[at], mappedSend[at], changed(t, mappedParams[at], path, "X"))
		if err != nil {
			t.Fatal(err)
		}
		without, err := asked(t, mappedServers[at], mappedSend[at], changed(t, mappedParams[at], path, nil))
		switch {
		case err != nil && task.KindOf(err) == task.InvalidParams:
			return "the caller's"
		case of(&with) != "X":
			return "none"
		case without.Message.Command == task.Start && with.Message.Command == task.Continue:
			return "the gateway's"
		}
		return "the caller's, or " + madeHere
	}
	var want [][]string
	for _, r := range []struct {
		what, madeHere string
		path           func(at int) string
		of             func(*translate.Call) string
	}{
		{"task", "?", func(at int) string {
			return map[bool]string{true: "id", false: mappedMessage[at] + ".taskId"}[at == inLegacy]
		},
			func(c *translate.Call) string { return c.Message.TaskID }},
		{"session", "the gateway's", func(at int) string {
			return [...]string{inAIP: "message.sessionId", inAIP2: "command.sessionId", inLegacy: "sessionId",
				in03: "message.contextId", in10: "message.contextId", inREST: "message.contextId"}[at]
		}, func(c *translate.Call) string { return c.Message.SessionID }},
		{"message", "none", func(at int) string {
			return mappedMessage[at] + map[bool]string{true: ".messageId", false: ".id"}[at >= in03]
		},
			func(c *translate.Call) string { return c.Message.ID }},
	} {
		f := func(at int) string { return id(at, r.path(at), r.madeHere, r.of) }
		want = append(want, []string{r.what, alike(t, f, inAIP, inAIP2), f(inLegacy), alike(t, f, in03, in10, inREST)})
	}
	origins := [][]string{ // in AIP, in a2a/legacy, in later A2A
		{"task", "the caller's", "the caller's", "the gateway's"},
		{"session", "the caller's, or the gateway's", "the caller's, or the gateway's", "the caller's, or the gateway's"},
		{"message", "the caller's, or none", "none", "the caller's"},
	}
	if diff := cmp.Diff(origins, want); diff != "" {
		t.Errorf("the origin of ids (-want +got):\n%s", diff)
	}
	says(t, "Callers name tasks in AIP and `a2a/legacy`, the gateway in later A2A; callers name sessions (`sessionId`, "+
		"`contextId`), or the gateway does; messages have the caller's id or none in AIP, none in `a2a/legacy`, the "+
		"caller's in later A2A")

	made := translate.TaskID(make([]byte, 17))
	if !regexp.MustCompile(`^gw-[a-z2-7]{26}$`).MatchString(made) || !translate.MadeHere(made) {
		t.Errorf("the gateway makes the id %s", made)
	}

	amount := func(at int, method string) string {
		call, err := asked(t, mappedServers[at], method, mappedParams[at])
		if err != nil {
			t.Fatal(err)
		}
		return map[int]string{0: "none", -1: "all"}[call.History]
	}
	want = nil
	for i, what := range []string{"a message that is sent", "get"} {
		row := []string{what}
		for _, methods := range [][]string{inLegacy: {"tasks/send", "tasks/get"}, in03: {"message/send", "tasks/get"},
			in10: {"SendMessage", "GetTask"}}[inLegacy:] {
			row = append(row, amount(inLegacy+len(row)-1, methods[i]))
		}
		want = append(want, row)
	}
	histories := [][]string{{"a message that is sent", "none", "none", "all"}, {"get", "none", "all", "all"}}
	if diff := cmp.Diff(histories, want); diff != "" {
		t.Errorf("histories by default, in A2A (-want +got):\n%s", diff)
	}
	says(t, "Without a `historyLength`, an A2A answer to a message has the history in `a2a/1.0` alone, an answer to "+
		"`get` from `a2a/0.3` on.")
}
