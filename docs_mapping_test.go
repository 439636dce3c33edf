// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// The tables of docs/mapping.md are made here, by running the codecs, and compared with the page. Where they differ,
// the test shows what the page should say.

// mapped compares a table of the page, known by its header, with its rows as the codecs make them.
func mapped(t *testing.T, header string, want [][]string) {
	t.Helper()
	got := tables(pages(t)["docs/mapping.md"], header)
	if diff := cmp.Diff(want, got); diff != "" {
		var table strings.Builder
		for _, row := range want {
			table.WriteString("| " + strings.Join(row, " | ") + " |\n")
		}
		t.Errorf("docs/mapping.md does not say what the codecs do (-code +page):\n%s\nIt should be:\n%s\n%s", diff, header, table.String())
	}
}

// header returns that of a table.
func header(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }

// quoted returns words as the page shows them: a dash where there are none.
func quoted(words ...string) string {
	words = slices.DeleteFunc(slices.Clone(words), func(s string) bool { return s == "" })
	if len(words) == 0 {
		return "–"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// Both sides of every dialect. Every dialect is a name in the page.
var (
	mappedServers = []translate.Server{
		aip.Server(), aip.ServerV2("P"), a2a.LegacyServer(false), a2a.V03Server(false), a2a.V1Server(false), a2a.V1RESTServer(false),
	}
	confirming = []translate.Server{
		aip.Server(), aip.ServerV2("P"), a2a.LegacyServer(true), a2a.V03Server(true), a2a.V1Server(true), a2a.V1RESTServer(true),
	}
	mappedClients = []translate.Client{aip.Client("L"), aip.ClientV2("L"), a2a.Legacy(), a2a.V03(), a2a.V1(), a2a.V1REST()}
)

// The places of the dialects in these lists.
const (
	inAIP = iota
	inAIP2
	inLegacy
	in03
	in10
	inREST
)

// mappedNames returns the names of dialects.
func mappedNames(at ...int) string {
	var names []string
	for _, i := range at {
		names = append(names, mappedServers[i].Name())
	}
	return strings.Join(names, ", ")
}

// alike returns what f says of dialects, which must be the same for all of them.
func alike(t *testing.T, f func(at int) string, at ...int) string {
	t.Helper()
	first := f(at[0])
	for _, i := range at[1:] {
		if other := f(i); other != first {
			t.Errorf("%s and %s share a column of the page, but have %q and %q", mappedServers[at[0]].Name(), mappedServers[i].Name(), first, other)
		}
	}
	return first
}

// sorted returns the words that f has for dialects, and which of the dialects have each.
func sorted(f func(at int) string, at ...int) (words []string, names []string) {
	for _, i := range at {
		n := slices.Index(words, f(i))
		if n < 0 {
			words, names = append(words, f(i)), append(names, mappedNames(i))
			continue
		}
		names[n] += ", " + mappedNames(i)
	}
	return words, names
}

// dig returns the JSON at a path of members and indices; nothing where there is none.
func dig(body []byte, path ...string) json.RawMessage {
	for _, name := range path {
		if n, err := strconv.Atoi(name); err == nil {
			var list []json.RawMessage
			if json.Unmarshal(body, &list) != nil || n >= len(list) {
				return nil
			}
			body = list[n]
			continue
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(body, &object) != nil {
			return nil
		}
		body = object[name]
	}
	return body
}

// word is dig for strings.
func word(body []byte, path ...string) (s string) {
	_ = json.Unmarshal(dig(body, path...), &s) // what is no string is none
	return s
}

// memberNames returns the names of an object's members, sorted.
func memberNames(body []byte) (names []string) {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(body, &object) // likewise
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shown returns the Task by which a dialect answers a get.
func shown(s translate.Server, tk *task.Task) []byte {
	body := s.AppendTask(nil, jsonrpc.ID("1"), &translate.Call{Call: task.Call{Message: task.Message{Command: task.Get}}}, tk)
	if result := dig(body, "result"); result != nil {
		return result
	}
	return body
}

// asked has a dialect read a call with params.
func asked(t *testing.T, s translate.Server, method, params string) (translate.Call, error) {
	t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	req, bad := jsonrpc.Parse([]byte(body), jsonrpc.Limits{Bytes: len(body), Depth: 64})
	if bad != nil {
		t.Fatalf("%s: %v", body, bad)
	}
	return s.Decode(&translate.Request{Request: req, HTTP: "POST"})
}

func TestDocsMappingStates(t *testing.T) {
	stateShown := func(s translate.Server, state task.State) string {
		tk := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: state}}
		cell := quoted(word(shown(s, &tk), "status", "state"))
		if tells := word(shown(s, &tk), "metadata", "aipState"); tells == string(state) {
			cell += " +"
		} else if tells != "" {
			t.Errorf("%s tells of %s as %s", s.Name(), state, tells)
		}
		return cell
	}
	var want [][]string
	for _, state := range task.States() {
		for _, at := range []int{inAIP, inAIP2} {
			if got := stateShown(mappedServers[at], state); got != quoted(string(state)) {
				t.Errorf("%s shows %s as %s", mappedServers[at].Name(), state, got)
			}
		}
		row := func(list []translate.Server) []string {
			f := func(at int) string { return stateShown(list[at], state) }
			return []string{quoted(string(state)), f(inLegacy), f(in03), alike(t, f, in10, inREST)}
		}
		auto, confirm := row(mappedServers), row(confirming)
		if slices.Equal(auto, confirm) {
			want = append(want, auto)
			continue
		}
		auto[0], confirm[0] = auto[0]+", `auto`", confirm[0]+", `confirm`"
		want = append(want, auto, confirm)
	}
	mapped(t, header("canon", "a2a/legacy", "a2a/0.3", "a2a/1.0, a2a/1.0-rest"), want)
}

func TestDocsMappingAgentStates(t *testing.T) {
	said := []string{"submitted", "working", "input-required", "auth-required", "completed", "canceled", "cancelled", "failed", "rejected", "unknown",
		"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED", "TASK_STATE_COMPLETED", "TASK_STATE_FAILED",
		"TASK_STATE_CANCELED", "TASK_STATE_CANCELLED", "TASK_STATE_REJECTED", "TASK_STATE_UNSPECIFIED", "accepted", "awaiting-input", "awaiting-completion", "done", "SUBMITTED"}
	means := func(at int, state string) string {
		rep, err := mappedClients[at].Reply(fmt.Appendf(nil, enveloped(at), fmt.Sprintf(`{"id":"t","contextId":"c","status":{"state":%q}}`, state)), nil)
		switch {
		case err != nil && task.KindOf(err) == task.InvalidAgentResponse:
			return "refused"
		case err != nil:
			t.Fatal(err)
		case rep.Open:
			return quoted(string(rep.State)) + ", but may go on by itself"
		case rep.State == task.None:
			return "nothing: it is asked again"
		}
		return quoted(string(rep.State))
	}
	var all []string
	for _, state := range said {
		for at := range mappedClients {
			if m := means(at, state); m != "refused" && !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	var want [][]string
	for _, meaning := range all {
		f := func(at int) string {
			var words []string
			for _, state := range said {
				if means(at, state) == meaning {
					words = append(words, state)
				}
			}
			return quoted(words...)
		}
		want = append(want, []string{alike(t, f, inAIP, inAIP2), alike(t, f, inLegacy, in03), alike(t, f, in10, inREST), meaning})
	}
	mapped(t, header("aip, aip/2", "a2a/legacy, a2a/0.3", "a2a/1.0, a2a/1.0-rest", "means"), want)
}

// enveloped is the format of an agent's answer.
func enveloped(at int) string {
	if at == inREST {
		return `%s`
	}
	return `{"jsonrpc":"2.0","id":1,"result":%s}`
}

const mappedParts = `"parts":[{"type":"text","kind":"text","text":"x"}]`

// mappedParams hold what any method of a dialect needs.
var mappedParams = [...]string{
	inAIP:    `{"id":"w","message":{"id":"m","senderId":"L","taskId":"t","sessionId":"s","command":"start"},"taskId":"t","url":"https://h","token":"x"}`,
	inAIP2:   `{"id":"w","command":{"id":"m","senderId":"L","taskId":"t","sessionId":"s","command":"start"},"taskId":"t","url":"https://h","token":"x"}`,
	inLegacy: `{"id":"t","sessionId":"s","message":{"role":"user",` + mappedParts + `},"pushNotificationConfig":{"url":"https://h"}}`,
	in03: `{"id":"t","taskId":"t","message":{"role":"user","messageId":"m",` + mappedParts + `},"configuration":{},` +
		`"pushNotificationConfig":{"url":"https://h"}}`,
	in10:   `{"id":"t","taskId":"t","url":"https://h","message":{"role":"ROLE_USER","messageId":"m","parts":[{"text":"x"}]},"configuration":{}}`,
	inREST: `{"id":"t","taskId":"t","url":"https://h","message":{"role":"ROLE_USER","messageId":"m","parts":[{"text":"x"}]},"configuration":{}}`,
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
var mappedAsks = []string{"start or continue", "the same, by a stream", "`get`", "`cancel`", "`re-stream`", "`complete`", "set a webhook",
	"get one webhook", "get all webhooks", "delete a webhook", "delete all webhooks", "start with a webhook", "list tasks", "the extended card", "join a group"}

// asks returns what a call asks for.
func asks(s translate.Server, c *translate.Call, err error) string {
	switch {
	case task.KindOf(err) == task.GroupNotSupported:
		return "join a group"
	case err != nil:
		return ""
	case c.Op == translate.SetWebhook:
		return "set a webhook"
	case c.Op == translate.GetWebhooks:
		two := []task.Webhook{{ID: "first", TaskID: "t", URL: "u"}, {ID: "second", TaskID: "t", URL: "u"}}
		if answer := string(s.AppendWebhooks(nil, jsonrpc.ID("1"), c, two)); c.Webhook.ID == "" && strings.Contains(answer, "second") {
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
	methods := strings.Fields("rpc stream group notification/set notification/get notification/delete notification/start message/send message/stream " +
		"tasks/send tasks/sendSubscribe tasks/get tasks/list tasks/cancel tasks/resubscribe tasks/pushNotification/set tasks/pushNotification/get " +
		"tasks/pushNotification/list tasks/pushNotification/delete tasks/pushNotificationConfig/set tasks/pushNotificationConfig/get " +
		"tasks/pushNotificationConfig/list tasks/pushNotificationConfig/delete agent/getAuthenticatedExtendedCard agent/card " +
		"SendMessage SendStreamingMessage GetTask ListTasks CancelTask SubscribeToTask CreateTaskPushNotificationConfig SetTaskPushNotificationConfig " +
		"GetTaskPushNotificationConfig ListTaskPushNotificationConfigs ListTaskPushNotificationConfig DeleteTaskPushNotificationConfig GetExtendedAgentCard GetAgentCard")
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
					tries = append(tries, changed(t, params, "message.commandParams", map[string]any{"notificationConfigId": "w"}))
				case inAIP2:
					params = changed(t, params, "command.command", command)
					tries = append(tries, changed(t, params, "command.commandParams", map[string]any{"notificationConfigId": "w"}))
				}
				tries = append(tries, params, changed(t, params, "notificationConfigId", "w"), changed(t, params, "pushNotificationConfigId", "w"))
			}
			for _, params := range tries {
				call, err := asked(t, s, method, params)
				if k := task.KindOf(err); err != nil && k != task.MethodNotFound && k != task.InvalidParams && k != task.GroupNotSupported {
					t.Errorf("%s %s %s: %v", s.Name(), method, params, err)
				}
				note(at, asks(s, &call, err), method)
			}
		}
	}
	rest := make(map[string][]string) // verbs and paths of a2a/1.0-rest, by what they ask for
	for _, path := range []string{"", "message:send", "message:stream", "tasks", "tasks/{id}", "tasks/{id}:cancel", "tasks/{id}:subscribe",
		"tasks/{id}/pushNotificationConfigs", "tasks/{id}/pushNotificationConfigs/{configId}", "extendedAgentCard", "card", "v1/message:send"} {
		for _, verb := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			r, ok := mappedServers[inREST].Route(verb, path)
			if !ok || r.Allow != "" {
				continue
			}
			call, err := asked(t, mappedServers[inREST], r.Method, mappedParams[inREST])
			what := asks(mappedServers[inREST], &call, err)
			if n := len(rest[what]); n > 0 && strings.HasSuffix(rest[what][n-1], " /"+path) {
				rest[what][n-1] = strings.Replace(rest[what][n-1], " ", ", "+verb+" ", 1)
				continue
			}
			rest[what] = append(rest[what], verb+" /"+path)
		}
	}
	var before, since [][]string
	for _, what := range mappedAsks {
		f := func(at int) string { return quoted(found[at][what]...) }
		if cells := []string{what, alike(t, f, inAIP, inAIP2), f(inLegacy), f(in03)}; strings.Join(cells[1:], "") != "–––" {
			before = append(before, cells)
		}
		if cells := []string{what, alike(t, f, in10, inREST), quoted(rest[what]...)}; strings.Join(cells[1:], "") != "––" {
			since = append(since, cells)
		}
	}
	mapped(t, header("asks for", "aip, aip/2", "a2a/legacy", "a2a/0.3"), before)
	mapped(t, header("asks for", "a2a/1.0", "a2a/1.0-rest"), since)
}

func TestDocsMappingRequests(t *testing.T) {
	ref := task.Ref{Task: "T", Session: "S"}
	turn := func(from task.State) *task.Turn {
		return &task.Turn{Ref: ref, From: from, Stamp: "x", Message: task.Message{ID: "M", DataItems: []task.DataItem{task.Text("hi")}}}
	}
	hooked := turn(task.None)
	hooked.Webhook = &task.Webhook{URL: "https://h"}
	// Where it is answered by a stream, AIP 2 may say otherwise than v01.00.
	var want [][]string
	for _, r := range []struct {
		what string
		make func(c translate.Client) []byte
	}{
		{"start", func(c translate.Client) []byte { return c.AppendTurn(nil, turn(task.None), false) }},
		{"start, by a stream", func(c translate.Client) []byte { return c.AppendTurn(nil, turn(task.None), true) }},
		{"continue", func(c translate.Client) []byte { return c.AppendTurn(nil, turn(task.AwaitingInput), false) }},
		{"continue, by a stream", func(c translate.Client) []byte { return c.AppendTurn(nil, turn(task.AwaitingInput), true) }},
		{"cancel", func(c translate.Client) []byte { return c.AppendCancel(nil, ref) }},
		{"ask how it stands", func(c translate.Client) []byte { return c.AppendGet(nil, ref) }},
		{"take up a cut stream", func(c translate.Client) []byte { return c.AppendResubscribe(nil, ref) }},
		{"complete", func(c translate.Client) []byte {
			if c, ok := c.(translate.Completer); ok {
				return c.AppendComplete(nil, ref)
			}
			return nil
		}},
		{"register a webhook", func(c translate.Client) []byte {
			if c, ok := c.(translate.Registrar); ok {
				return c.AppendRegister(nil, ref, hooked.Webhook)
			}
			return nil
		}},
		{"the extended card", func(c translate.Client) []byte {
			if c, ok := c.(translate.Describer); ok {
				return c.AppendDescribe(nil)
			}
			return nil
		}},
	} {
		row := []string{r.what}
		for _, c := range mappedClients[:inREST] {
			row = append(row, quoted(word(r.make(c), "method")))
		}
		want = append(want, row)
	}
	mapped(t, header("for", "aip", "aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0"), want)

	want = nil
	bind := mappedClients[inREST].(translate.Binder)
	for _, r := range []struct {
		what   string
		errand translate.Errand
	}{
		{"start, continue", translate.Send}, {"the same, by a stream", translate.SendStream}, {"cancel", translate.Cancel},
		{"ask how it stands", translate.Get}, {"take up a cut stream", translate.Resubscribe}, {"the extended card", translate.Describe},
	} {
		method, path := bind.Bind(r.errand, task.Ref{Task: "{id}"})
		want = append(want, []string{r.what, quoted(method + " " + strings.NewReplacer("%7B", "{", "%7D", "}").Replace(path))})
	}
	mapped(t, header("for", "a2a/1.0-rest"), want)

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
	want = nil
	for _, r := range []struct {
		what, value string
		turn        *task.Turn
	}{
		{"task, in a start", `"T"`, turn(task.None)},
		{"task, in a continue", `"T"`, turn(task.AwaitingInput)},
		{"task, after it has finished", `"T"`, turn(task.AwaitingCompletion)},
		{"session, in a start", `"S"`, turn(task.None)},
		{"session, in a continue", `"S"`, turn(task.AwaitingInput)},
		{"session, after it has finished", `"S"`, turn(task.AwaitingCompletion)},
		{"message", `"M"`, turn(task.None)},
		{"webhook, with a turn", `"https://h"`, hooked},
	} {
		f := func(i int) string {
			return at(mappedClients[i], mappedClients[i].AppendTurn(nil, r.turn, false), r.value)
		}
		want = append(want, []string{r.what, alike(t, f, inAIP, inAIP2), f(inLegacy), f(in03), alike(t, f, in10, inREST)})
	}
	mapped(t, header("the agent is told", "aip, aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0, a2a/1.0-rest"), want)
}

// mappedSend are the methods that send a message; mappedMessage is where it stands in the params.
var (
	mappedSend    = [...]string{inAIP: "rpc", inAIP2: "rpc", inLegacy: "tasks/send", in03: "message/send", in10: "SendMessage", inREST: "SendMessage"}
	mappedMessage = [...]string{inAIP: "message", inAIP2: "command", inLegacy: "message", in03: "message", in10: "message", inREST: "message"}
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
			return [...]string{inAIP: "message.sessionId", inAIP2: "command.sessionId", inLegacy: "sessionId", in03: "message.contextId", in10: "message.contextId", inREST: "message.contextId"}[at]
		}, func(c *translate.Call) string { return c.Message.SessionID }},
		{"message", "none", func(at int) string {
			return mappedMessage[at] + map[bool]string{true: ".messageId", false: ".id"}[at >= in03]
		},
			func(c *translate.Call) string { return c.Message.ID }},
	} {
		f := func(at int) string { return id(at, r.path(at), r.madeHere, r.of) }
		want = append(want, []string{r.what, alike(t, f, inAIP, inAIP2), f(inLegacy), alike(t, f, in03, in10, inREST)})
	}
	mapped(t, header("id", "aip, aip/2", "a2a/legacy", "a2a/0.3, a2a/1.0, a2a/1.0-rest"), want)

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
		for _, methods := range [][]string{inLegacy: {"tasks/send", "tasks/get"}, in03: {"message/send", "tasks/get"}, in10: {"SendMessage", "GetTask"}}[inLegacy:] {
			row = append(row, amount(inLegacy+len(row)-1, methods[i]))
		}
		want = append(want, row)
	}
	mapped(t, header("answer to", "a2a/legacy", "a2a/0.3", "a2a/1.0"), want)
}

func TestDocsMappingContent(t *testing.T) {
	items := []struct {
		what string
		item task.DataItem
	}{
		{"text", task.Text("T")},
		{"file, its bytes", task.DataItem{Kind: task.FileItem, Name: "N", MIMEType: "M", Bytes: "QQ=="}},
		{"file, its place", task.DataItem{Kind: task.FileItem, Name: "N", MIMEType: "M", URI: "U"}},
		{"data", task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"a":1}`)}},
		{"data that was no object", task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"value":[1]}`)}},
		{"any, with metadata", task.DataItem{Kind: task.TextItem, Text: "T", Metadata: json.RawMessage(`{"k":1}`)}},
	}
	var want, artifacts [][]string
	for at, c := range mappedClients[:inREST] {
		if at == inAIP2 {
			continue
		}
		inMessage, inTask, artifactItems := "parts", "artifacts", "parts"
		if at == inAIP {
			inMessage, inTask, artifactItems = "dataItems", "products", "dataItems"
		}
		for _, it := range items {
			part := dig(c.AppendTurn(nil, &task.Turn{Message: task.Message{DataItems: []task.DataItem{it.item}}}, false), "params", "message", inMessage, "0")
			want = append(want, []string{it.what, mappedServers[at].Name(), quoted(string(part))})

			product := task.Product{ID: "p", DataItems: []task.DataItem{it.item}}
			told := shown(mappedServers[at], &task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working}, Products: []task.Product{product}})
			if diff := cmp.Diff(string(part), string(dig(told, inTask, "0", artifactItems, "0"))); diff != "" {
				t.Errorf("%s: %s is not told to callers as it is to agents:\n%s", mappedServers[at].Name(), it.what, diff)
			}
			rep, err := c.Reply(fmt.Appendf(nil, enveloped(at), told), nil)
			if err != nil || len(rep.Products) != 1 {
				t.Fatalf("%s: %+v %v", told, rep, err)
			}
			if diff := cmp.Diff(product.DataItems, rep.Products[0].DataItems); diff != "" {
				t.Errorf("%s: %s does not come back:\n%s", mappedServers[at].Name(), it.what, diff)
			}
		}
		told := shown(mappedServers[at], &task.Task{ID: "t", Products: []task.Product{{ID: "P", Name: "N", Description: "D"}}})
		artifacts = append(artifacts, []string{mappedServers[at].Name(), quoted(string(dig(told, inTask, "0")))})
	}
	slices.SortStableFunc(want, func(a, b []string) int {
		of := func(what string) int {
			return slices.IndexFunc(items, func(it struct {
				what string
				item task.DataItem
			}) bool {
				return it.what == what
			})
		}
		return of(a[0]) - of(b[0])
	})
	mapped(t, header("item", "dialect", "on the wire"), want)
	mapped(t, header("dialect", "the product P"), artifacts)
}

func TestDocsMappingAgentContent(t *testing.T) {
	answer := func(at int, artifact string) task.Product {
		result := fmt.Sprintf(`{"id":"t","contextId":"c","status":{"state":"completed"},"artifacts":[%s]}`, artifact)
		switch {
		case strings.Contains(artifact, "messageId"):
			result = map[bool]string{true: artifact, false: `{"message":` + artifact + `}`}[at == in03]
		case at == in10:
			result = strings.Replace(result, `"completed"`, `"TASK_STATE_COMPLETED"`, 1)
		case at == inAIP:
			result = fmt.Sprintf(`{"type":"task","id":"t","status":{"state":"working"},"products":[%s]}`, artifact)
		}
		rep, err := mappedClients[at].Reply(fmt.Appendf(nil, enveloped(at), result), nil)
		if err != nil || len(rep.Products) != 1 {
			t.Fatalf("%s: %+v %v", result, rep, err)
		}
		return rep.Products[0]
	}
	var want [][]string
	for _, r := range []struct {
		at   []int
		part string
	}{
		{[]int{inLegacy, in03}, `{"text":"T"}`},
		{[]int{inLegacy, in03}, `{"type":"file","file":{"uri":"U","bytes":"QQ=="}}`},
		{[]int{inLegacy, in03}, `{"kind":"data","data":[1]}`},
		{[]int{inLegacy, in03}, `{"kind":"video","url":"U"}`},
		{[]int{in10}, `{"text":"T","mediaType":"text/csv"}`},
		{[]int{in10}, `{"raw":"_w"}`},
		{[]int{in10}, `{"data":[1]}`},
		{[]int{in10}, `{"video":"U"}`},
		{[]int{inAIP}, `{"type":"file","url":"U"}`},
		{[]int{inAIP}, `{"type":"video","url":"U"}`},
	} {
		f := func(at int) string {
			members := `"artifactId":"a","parts"`
			if at == inAIP {
				members = `"id":"a","dataItems"`
			}
			p := answer(at, fmt.Sprintf(`{%s:[%s]}`, members, r.part))
			text, err := json.Marshal(p.DataItems[0])
			if err != nil {
				t.Fatal(err)
			}
			return quoted(string(text))
		}
		want = append(want, []string{mappedNames(r.at...), quoted(r.part), alike(t, f, r.at...)})
	}
	mapped(t, header("agent of", "part", "data item"), want)

	want = nil
	for _, r := range []struct {
		at       []int
		artifact string
	}{
		{[]int{inLegacy}, `{"parts":[]}`},
		{[]int{inLegacy}, `{"index":1,"name":"N"}`},
		{[]int{in03, in10}, `{"artifactId":"A","name":"N"}`},
		{[]int{in03, in10}, `{"name":"N"}`},
		{[]int{in03, in10}, `{"parts":[]}`},
		{[]int{in03, in10}, `{"messageId":"M","parts":[]}`},
	} {
		f := func(at int) string { return quoted(answer(at, r.artifact).ID) }
		want = append(want, []string{mappedNames(r.at...), quoted(r.artifact), alike(t, f, r.at...)})
	}
	mapped(t, header("agent of", "artifact, or message", "the product's id"), want)
}

func TestDocsMappingErrors(t *testing.T) {
	told := func(at int, err error) string {
		body := mappedServers[at].AppendError(nil, jsonrpc.ID("1"), err)
		status := 200
		if s, ok := mappedServers[at].(translate.Statuser); ok {
			status = s.Status(err)
		}
		code, convErr := strconv.Atoi(string(dig(body, "error", "code")))
		if convErr != nil {
			t.Fatalf("%s: %s", mappedServers[at].Name(), body)
		}
		if at == inREST {
			if code != status {
				t.Errorf("%s: the status is %d, and the code %d", mappedServers[at].Name(), status, code)
			}
			return fmt.Sprintf("%d %s", status, quoted(word(body, "error", "details", "0", "reason")))
		}
		cell := minus(code)
		if status != 200 {
			cell += fmt.Sprintf(" (%d)", status)
		}
		if typ := word(body, "error", "data", "errorType"); typ != "" {
			cell += "*"
			if want := strings.ToUpper(strings.ReplaceAll(task.KindOf(err).String(), "-", "_")); typ != want {
				t.Errorf("%s: the errorType is %s, want %s", mappedServers[at].Name(), typ, want)
			}
		}
		return cell
	}
	var want, reserved [][]string
	var kinds []string
	for _, kind := range task.Kinds() {
		err := task.Errorf(kind, "x")
		f := func(at int) string { return told(at, err) }
		row := []string{kind.String(), alike(t, f, inAIP, inAIP2), f(inLegacy), f(in03), f(in10), f(inREST)}
		want, kinds = append(want, row), append(kinds, kind.String())
		for _, number := range []string{"−32007", "−32008", "−32009"} {
			switch {
			case row[1] == number:
				reserved = append(reserved, []string{number, kind.String(), row[2], row[3], row[4]})
			case slices.ContainsFunc(row[2:], func(cell string) bool { return strings.HasPrefix(cell, number) }):
				t.Errorf("%s is %s in %v", kind, number, row)
			}
		}
		if a, b := told(in10, err), told(inREST, err); word(mappedServers[in10].AppendError(nil, jsonrpc.ID("1"), err), "error", "data", "0", "reason") != strings.Trim(b[4:], "`") {
			t.Errorf("%s: the two bindings of 1.0 give different reasons (%s, %s)", kind, a, b)
		}
	}
	mapped(t, header("kind", "aip, aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0", "a2a/1.0-rest"), want)
	mapped(t, header("number", "for callers of AIP", "a2a/legacy", "a2a/0.3", "a2a/1.0"), reserved)

	var explained []string
	for _, row := range tables(pages(t)["docs/mapping.md"], "| kind | when |") {
		explained = append(explained, strings.Split(row[0], ", ")...)
	}
	slices.Sort(kinds)
	slices.Sort(explained)
	if diff := cmp.Diff(kinds, explained); diff != "" {
		t.Errorf("docs/mapping.md does not explain every kind (-code +page):\n%s", diff)
	}

	_, err := mappedServers[in10].Decode(&translate.Request{Request: jsonrpc.Request{Method: "GetTask"}, Version: "2.0"})
	if a, b := told(in10, err), told(inREST, err); a != "−32009" || b != "400 `VERSION_NOT_SUPPORTED`" {
		t.Errorf("a version that is not spoken is told as %s and %s", a, b)
	}
}

func TestDocsMappingAgentErrors(t *testing.T) {
	kindOf := func(at int, failure string) (task.Kind, bool) {
		body := `{"jsonrpc":"2.0","id":1,"error":` + failure + `}`
		if at == inREST {
			body = `{"error":` + failure + `}`
		}
		_, err := mappedClients[at].Reply([]byte(body), nil)
		e, ok := errors.AsType[*task.Error](err)
		if !ok {
			t.Fatalf("%s %s: %v", mappedClients[at].Name(), failure, err)
		}
		return e.Kind, e.Kind != task.Internal || !strings.HasPrefix(e.Detail, "the agent reports error")
	}
	var codes []int
	for code := -32768; code <= -31000; code++ {
		codes = append(codes, code)
	}
	for code := 100; code < 600; code++ {
		codes = append(codes, code)
	}
	var want [][]string
	for _, code := range codes {
		var rows [][]string
		for at := range mappedClients {
			kind, known := kindOf(at, fmt.Sprintf(`{"code":%d,"message":""}`, code))
			if !known {
				continue
			}
			i := slices.IndexFunc(rows, func(row []string) bool { return row[1] == kind.String() })
			if i < 0 {
				i, rows = len(rows), append(rows, []string{minus(code), kind.String(), ""})
			}
			rows[i][2] = strings.TrimPrefix(rows[i][2]+", "+mappedServers[at].Name(), ", ")
		}
		for _, row := range rows {
			if row[2] == mappedNames(inAIP, inAIP2, inLegacy, in03, in10, inREST) {
				row[2] = "all"
			}
		}
		want = append(want, rows...)
	}
	mapped(t, header("agent's code", "kind", "in"), want)

	want = nil
	for _, reason := range strings.Fields("PARSE_ERROR INVALID_REQUEST METHOD_NOT_FOUND INVALID_PARAMS INTERNAL_ERROR TASK_NOT_FOUND TASK_NOT_CANCELABLE " +
		"PUSH_NOTIFICATION_NOT_SUPPORTED UNSUPPORTED_OPERATION CONTENT_TYPE_NOT_SUPPORTED INVALID_AGENT_RESPONSE EXTENDED_AGENT_CARD_NOT_CONFIGURED " +
		"EXTENSION_SUPPORT_REQUIRED VERSION_NOT_SUPPORTED UNAUTHENTICATED ACCESS_TOKEN_INVALID PERMISSION_DENIED LIMIT_EXCEEDED AGENT_UNAVAILABLE AGENT_TIMEOUT") {
		f := func(at int) string {
			list := `"details"`
			if at == in10 {
				list = `"data"`
			}
			kind, _ := kindOf(at, fmt.Sprintf(`{"code":-1,"message":"",%s:[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%q}]}`, list, reason))
			return kind.String()
		}
		kind := alike(t, f, in10, inREST)
		i := slices.IndexFunc(want, func(row []string) bool { return row[1] == kind })
		if i < 0 {
			want = append(want, []string{quoted(reason), kind})
			continue
		}
		want[i][0] += ", " + quoted(reason)
	}
	mapped(t, header("agent's reason", "kind"), want)
}

// TestDocsMappingHTTP has agents answer with a page in place of JSON.
func TestDocsMappingHTTP(t *testing.T) {
	rows := tables(pages(t)["docs/mapping.md"], header("HTTP", "the task's status says"))
	said := 0
	for _, row := range rows {
		for status := range strings.SplitSeq(row[0], ", ") {
			code, err := strconv.Atoi(strings.Replace(status, "xx", "02", 1))
			if err != nil {
				code = http.StatusTeapot // the others
			}
			agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
			h, err := upstream.NewHTTP(upstream.Config{URL: agent.URL, Codec: a2a.Legacy(), Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err = h.Cancel(ctx, &task.Turn{Ref: task.Ref{Task: "t"}})
			cancel()
			h.Close()
			agent.Close()
			e, ok := errors.AsType[*task.Error](err)
			if !ok || !strings.HasPrefix(e.Detail, row[1]) || !strings.Contains(e.Detail, fmt.Sprintf("(HTTP %d", code)) {
				t.Errorf("docs/mapping.md says of HTTP %s %q, the gateway %v", status, row[1], err)
			}
			said++
		}
	}
	if said < 11 {
		t.Errorf("only %d statuses were found", said)
	}
}

func TestDocsMappingStreams(t *testing.T) {
	at0 := time.Unix(0, 0)
	tk := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working, ChangedAt: at0}}
	hi := []task.DataItem{task.Text("hi")}
	tell := func(list []translate.Server, at int, ev *task.Event) translate.Frame {
		ev.Seq = 1
		return list[at].NewStream(jsonrpc.ID("1"), &translate.Call{}, &tk).Event(nil, ev)
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
		{"a piece", task.Event{Chunk: &task.Chunk{Product: task.Product{ID: "p", DataItems: hi}}}},
		{"a message of the agent", task.Event{Message: &task.Message{SenderRole: task.Partner, SentAt: at0, DataItems: hi}}},
	} {
		row := []string{r.what}
		for at := range mappedServers[:inREST] {
			f := tell(mappedServers, at, &r.ev)
			row = append(row, name(f))
			if (f.Name != "") != (at == inLegacy) {
				t.Errorf("the SSE event of %s has the name %q", mappedServers[at].Name(), f.Name)
			}
		}
		if a := name(tell(mappedServers, inREST, &r.ev)); a != row[len(row)-1] {
			t.Errorf("%s tells of %s as %s", mappedServers[inREST].Name(), r.what, a)
		}
		want = append(want, row)
	}
	mapped(t, header("event", "aip", "aip/2", "a2a/legacy", "a2a/0.3", "a2a/1.0"), want)

	want = nil
	for _, state := range task.States() {
		end := func(list []translate.Server) func(at int) string {
			return func(at int) string {
				f := tell(list, at, &task.Event{Status: &task.Status{State: state, ChangedAt: at0}})
				switch {
				case f.Data == nil:
					return "not told"
				case f.End:
					return "ends"
				}
				return "goes on"
			}
		}
		auto, confirm := end(mappedServers), end(confirming)
		for _, at := range []int{inAIP, inAIP2} {
			if auto(at) != "goes on" { // it is the log that ends an AIP stream
				t.Errorf("%s: %s %s", mappedServers[at].Name(), state, auto(at))
			}
		}
		if auto(inLegacy) != confirm(inLegacy) {
			t.Errorf("%s: %s is told as %s, and as %s", mappedServers[inLegacy].Name(), state, auto(inLegacy), confirm(inLegacy))
		}
		want = append(want, []string{quoted(string(state)), auto(inLegacy), alike(t, auto, in03, in10, inREST), alike(t, confirm, in03, in10, inREST)})
	}
	mapped(t, header("state", "a2a/legacy", "a2a/0.3, a2a/1.0, auto", "confirm"), want)

	// What an agent says along with having finished, where its task is completed at once.
	finished := []task.Status{{State: task.AwaitingCompletion, ChangedAt: at0, DataItems: hi}, {State: task.Completed, ChangedAt: at0}}
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
			return map[bool]string{true: "shown", false: "not shown"}[strings.Contains(string(r.body(mappedServers[at])), `"hi"`)]
		}
		want = append(want, []string{r.what, f(in03), alike(t, f, in10, inREST)})
	}
	mapped(t, header("last words of an agent", "a2a/0.3", "a2a/1.0, a2a/1.0-rest"), want)

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
			t.Errorf("%s tells a webhook %s", s.Name(), body)
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
				t.Errorf("%s tells webhooks otherwise than %s", s.Name(), last[0])
			}
			continue
		}
		want = append(want, []string{s.Name(), what, quoted(media), quoted(others...)})
	}
	mapped(t, header("dialect", "body", "Content-Type", "token, credentials"), want)
}

// TestDocsMappingLost adds members to what a peer says, and looks where they come out.
func TestDocsMappingLost(t *testing.T) {
	const mark = "lost-on-the-way"
	object, list := map[string]any{"k": mark}, []any{mark}
	var want [][]string
	for _, r := range []struct {
		at    []int
		path  string
		value any
	}{
		{[]int{inAIP}, "message.mentions", list}, {[]int{inAIP2}, "command.mentions", list},
		{[]int{inAIP}, "message.groupId", mark}, {[]int{inAIP2}, "command.groupId", mark},
		{[]int{inAIP}, "message.commandParams", object}, {[]int{inAIP2}, "command.commandParams", object},
		{[]int{inAIP}, "message.other", mark}, {[]int{inAIP2}, "command.other", mark},
		{[]int{inLegacy, in03, in10}, "metadata", object},
		{[]int{inLegacy, in03, in10}, "message.metadata", object},
		{[]int{inLegacy, in03, in10}, "message.parts.0.metadata", object},
		{[]int{in03, in10}, "message.extensions", list},
		{[]int{in03, in10}, "message.referenceTaskIds", list},
		{[]int{in03, in10}, "configuration.acceptedOutputModes", list},
		{[]int{in10}, "tenant", mark},
		{[]int{inLegacy, in03, in10}, "message.other", mark},
	} {
		f := func(at int) string {
			plain, err := asked(t, mappedServers[at], mappedSend[at], mappedParams[at])
			if err != nil {
				t.Fatal(err)
			}
			call, err := asked(t, mappedServers[at], mappedSend[at], changed(t, mappedParams[at], r.path, r.value))
			if err != nil {
				t.Fatal(err)
			}
			kept := cmp.Diff(plain, call, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })) != ""
			told := func(at int) string {
				sent := mappedClients[at].AppendTurn(nil, &task.Turn{Ref: task.Ref{Task: "t"}, Message: call.Message}, false)
				switch {
				case strings.Contains(string(sent), mark):
					return "told"
				case kept:
					return "in the task only"
				}
				return "dropped"
			}
			other := in10
			if at >= inLegacy {
				other = inAIP
			}
			return told(at) + "|" + told(other)
		}
		words, names := sorted(f, r.at...)
		for i := range words {
			want = append(want, append([]string{names[i], quoted(r.path)}, strings.Split(words[i], "|")...))
		}
	}
	mapped(t, header("caller of", "member of params", "agent of the same", "agent of the other protocol"), want)

	answers := [...]string{
		inAIP: `{"type":"task","id":"t","sessionId":"s","status":{"state":"working","dataItems":[{"type":"text","text":"x"}]},` +
			`"products":[{"id":"p","dataItems":[{"type":"text","text":"x"}]}]}`,
		inLegacy: `{"id":"t","status":{"state":"working","message":{"role":"agent",` + mappedParts + `}},"artifacts":[{` + mappedParts + `}]}`,
		in03: `{"kind":"task","id":"t","contextId":"c","status":{"state":"working","message":{"role":"agent","messageId":"m",` + mappedParts + `}},` +
			`"artifacts":[{"artifactId":"a",` + mappedParts + `}]}`,
		in10: `{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING","message":{"role":"ROLE_AGENT","messageId":"m","parts":[{"text":"x"}]}},` +
			`"artifacts":[{"artifactId":"a","parts":[{"text":"x"}]}]}`,
	}
	want = nil
	for _, r := range []struct {
		at    []int
		path  string
		value any
	}{
		{[]int{inAIP}, "messageHistory", []any{object}},
		{[]int{inAIP}, "status.stateChangedAt", "2025-09-01T14:30:00+08:00"},
		{[]int{inAIP}, "products.0.dataItems.0.metadata", object},
		{[]int{inAIP}, "products.0.other", mark},
		{[]int{inLegacy, in03, in10}, "metadata", object},
		{[]int{inLegacy, in03, in10}, "history", []any{object}},
		{[]int{inLegacy, in03, in10}, "status.timestamp", "2025-09-01T06:30:00Z"},
		{[]int{inLegacy, in03, in10}, "status.message.metadata", object},
		{[]int{in03, in10}, "status.message.extensions", list},
		{[]int{inLegacy, in03, in10}, "artifacts.0.metadata", object},
		{[]int{in03, in10}, "artifacts.0.extensions", list},
		{[]int{inLegacy, in03, in10}, "artifacts.0.parts.0.metadata", object},
		{[]int{inLegacy, in03, in10}, "artifacts.0.parts.0.other", mark},
	} {
		f := func(at int) string {
			read := func(result string) task.Report {
				rep, err := mappedClients[at].Reply(fmt.Appendf(nil, enveloped(at), result), nil)
				if err != nil {
					t.Fatalf("%s: %v", result, err)
				}
				rep.Stamp = "" // a sum of what was said, read or not
				return rep
			}
			if cmp.Diff(read(answers[at]), read(changed(t, answers[at], r.path, r.value))) == "" {
				return "dropped"
			}
			return "kept"
		}
		words, names := sorted(f, r.at...)
		for i := range words {
			want = append(want, []string{names[i], quoted(r.path), words[i]})
		}
	}
	mapped(t, header("agent of", "member of the answer", "is"), want)
}
