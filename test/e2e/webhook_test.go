// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// here lets webhooks reach the sinks of these tests.
const here = "allow_networks 127.0.0.0/8 ::1/128\n"

// hook is AIP's NotificationConfig (v01.00 §6.3.1).
type hook struct {
	ID     string `json:"id,omitempty"`
	URL    string `json:"url"`
	Token  string `json:"token"`
	TaskID string `json:"taskId"`
}

// refusedWith is an error that a request was answered with.
type refusedWith struct {
	Code int64           `json:"code"`
	Data json.RawMessage `json:"data"`
}

// notification sends a request of AIP's notification style, and returns its result or the error.
func (c *caller) notification(method string, params any, header ...string) (json.RawMessage, *refusedWith) {
	c.t.Helper()
	body, err := json.Marshal(
		map[string]any{"jsonrpc": "2.0", "id": "1", "method": "notification/" + method, "params": params},
	)
	if err != nil {
		c.t.Fatal(err)
	}
	res, raw := c.post("/notification/"+method, body, header...)
	var answer struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *refusedWith    `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || res.StatusCode != 200 || answer.ID != "1" ||
		(answer.Result == nil) == (answer.Error == nil) {
		c.t.Fatalf("notification/%s was answered with status %d: %s", method, res.StatusCode, raw)
	}
	return answer.Result, answer.Error
}

// granted is notification for what must not be refused.
func (c *caller) granted(method string, params any, header ...string) json.RawMessage {
	c.t.Helper()
	result, refusal := c.notification(method, params, header...)
	if refusal != nil {
		c.t.Fatalf("notification/%s of %+v: %d %s", method, params, refusal.Code, refusal.Data)
	}
	return result
}

// denied demands that a request is refused with a code, and with words. It returns the error's data.
func (c *caller) denied(code int64, method string, params any) map[string]any {
	c.t.Helper()
	result, refusal := c.notification(method, params)
	if refusal == nil {
		c.t.Errorf("notification/%s of %+v is answered %s, want the error %d", method, params, result, code)
		return nil
	}
	members := data(c.t, refusal.Data)
	if details, _ := members["details"].(string); refusal.Code != code || !strings.Contains(details, " ") {
		c.t.Errorf(
			"notification/%s of %+v is refused with %d %s, want %d and a sentence",
			method,
			params,
			refusal.Code,
			refusal.Data,
			code,
		)
	}
	return members
}

// setHook creates or replaces a webhook, and returns it as it was answered.
func (c *caller) setHook(h hook) hook {
	c.t.Helper()
	var set hook
	if err := json.Unmarshal(c.granted("set", h), &set); err != nil {
		c.t.Fatal(err)
	}
	return set
}

// hooks returns the webhooks of a task, or the one of an id.
func (c *caller) hooks(taskID, id string) []hook {
	c.t.Helper()
	var hooks []hook
	if err := json.Unmarshal(c.granted("get", ids(taskID, id)), &hooks); err != nil || hooks == nil {
		c.t.Fatalf("the webhooks are %v: %v", hooks, err)
	}
	return hooks
}

// ids are the params of get and delete.
func ids(taskID, id string) map[string]any {
	params := map[string]any{"taskId": taskID}
	if id != "" {
		params["notificationConfigId"] = id
	}
	return params
}

// startWith returns the params of notification/start. states is left out where it is nil.
func (c *caller) startWith(taskID, text string, commandParams map[string]any) map[string]any {
	return map[string]any{"message": map[string]any{
		"type": "message", "id": leader.NewID("msg"), "sentAt": time.Now().Format(time.RFC3339), "senderRole": "leader",
		"senderId": c.Sender,
		"command":  "start", "commandParams": commandParams, "taskId": taskID, "sessionId": "session-of-" + taskID,
		"dataItems": []any{map[string]any{"type": "text", "text": text}},
	}}
}

// notifyStart starts a task by notification/start.
func (c *caller) notifyStart(taskID, configID string, header ...string) *task.Task {
	c.t.Helper()
	var got task.Task
	result := c.granted("start", c.startWith(taskID, "hello", map[string]any{"notificationConfigId": configID}), header...)
	if err := json.Unmarshal(result, &got); err != nil {
		c.t.Fatal(err)
	}
	return &got
}

// TestWebhookConfigs sets, gets and deletes webhooks, of tasks that exist and of others.
func TestWebhookConfigs(t *testing.T) {
	t.Parallel()
	const secret = "the-secret-of-the-Leader"
	agent, up, gone := newFakeAgent(t, nil), newSink(t), newSink(t)
	gone.down()
	refusing := newSink(t)
	refusing.answers(always(refusal(500)))
	s := serve(t, config{options: "debug", notify: here + "timeout 1s", handle: "aip_gateway a2a/legacy " + agent.url})
	p := certificates(t)
	one := leaderOf(t, s.url())
	two := callerWith(t, s.url(), string(p.LeaderV1.AIC), issue(t, string(p.LeaderV1.AIC)))

	if got := string(one.granted("get", ids("a", ""))); got != "[]" {
		t.Errorf("the webhooks of an unknown task are %s", got)
	}
	url := func(s *sink, path string) string { return s.origin() + path + "?key=" + secret }
	want := hook{URL: url(up, "/first"), Token: secret, TaskID: "a"}
	first := one.setHook(want)
	if want.ID = first.ID; first != want || want.ID == "" {
		t.Errorf("set is answered %+v, want %+v and an id", first, want)
	}
	second := one.setHook(hook{URL: url(refusing, "/second"), Token: secret, TaskID: "a"})
	third := one.setHook(hook{URL: url(gone, "/third"), Token: secret + "3", TaskID: "a"})
	check := func(what string, want ...hook) {
		t.Helper()
		if diff := cmp.Diff(want, one.hooks("a", ""), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("all webhooks", first, second, third)
	if diff := cmp.Diff([]hook{second}, one.hooks("a", second.ID)); diff != "" {
		t.Errorf("one webhook (-want +got):\n%s", diff)
	}
	_, raw := one.post(
		"",
		[]byte(
			`{"jsonrpc":"2.0","id":"1","method":"notification/get","params":{"taskId":"a",`+
				`"notificationConfigId":"`+second.ID+`"}}`,
		),
	)
	if !strings.Contains(string(raw), `"result":[{"id":"`+second.ID) {
		t.Errorf("at the mount point, the webhook is %s", raw)
	}
	third.URL, third.Token = url(gone, "/other"), secret+"4"
	if got := one.setHook(third); got != third {
		t.Errorf("an update is answered %+v, want %+v", got, third)
	}
	check("all webhooks after an update", first, second, third)

	unknown := third
	unknown.ID = "notification-none"
	one.denied(-32602, "set", unknown)
	one.denied(-32001, "get", ids("a", unknown.ID))
	one.denied(-32001, "delete", ids("a", unknown.ID))
	one.denied(-32602, "get", map[string]any{})
	one.denied(-32602, "set", map[string]any{"taskId": "a", "token": "t"})
	one.denied(-32602, "set", map[string]any{"taskId": "a", "url": want.URL})
	check("all webhooks after what was refused", first, second, third)

	// For another Leader none of it exists.
	if got := two.hooks("a", ""); len(got) != 0 {
		t.Errorf("another Leader gets %+v", got)
	}
	two.denied(-32001, "get", ids("a", first.ID))
	two.denied(-32001, "delete", ids("a", first.ID))
	two.denied(-32602, "set", first)
	two.denied(-32001, "start", two.startWith("a", "hello", map[string]any{"notificationConfigId": first.ID}))
	subscribe := func(c *caller) map[string]any {
		params := c.startWith("a", "", map[string]any{"notificationConfigId": first.ID})
		delete(params["message"].(map[string]any), "dataItems")
		return params
	}
	two.denied(-32001, "start", subscribe(two))
	two.denied(-32009, "start", subscribe(one))
	if got := string(one.granted("start", subscribe(one))); got != "true" {
		t.Errorf("a subscription before the task is answered %s", got)
	}
	two.granted("delete", ids("a", ""))
	if got := two.refused(commandCall(task.Get, "a")); got.Code != -32001 {
		t.Errorf("a start that was refused has made a task: %s", got.Raw)
	}
	check("all webhooks after another Leader", first, second, third)

	one.start("a", "hello")
	up.waitForChanges(first.URL[len(up.origin()):], one.get("a").StatusHistory)
	eventually(t, "the sink that refuses was asked", func() bool { return len(refusing.arrived("")) > 0 })

	if got := string(one.granted("delete", ids("a", third.ID))); got != `{"success":true}` {
		t.Errorf("delete is answered %s", got)
	}
	check("all webhooks but the deleted one", first, second)
	one.denied(-32001, "delete", ids("a", third.ID))

	// A webhook that is set for a running task is notified of later changes; so are earlier webhooks; a deleted one is
	// not.
	had := len(one.get("a").StatusHistory)
	late := one.setHook(hook{URL: url(up, "/late"), Token: secret, TaskID: "a"})
	one.granted("delete", ids("a", first.ID))
	one.goOn("a", "more")
	one.complete("a")
	history := one.get("a").StatusHistory
	up.waitForChanges(late.URL[len(up.origin()):], history[had:])
	if diff := cmp.Diff(stamps(history[:had]), up.changes(first.URL[len(up.origin()):])); diff != "" {
		t.Errorf("the notifications of a webhook before it was deleted (-want +got):\n%s", diff)
	}
	for range 2 {
		if got := string(one.granted("delete", ids("a", ""))); got != `{"success":true}` {
			t.Errorf("delete of all is answered %s", got)
		}
		check("no webhooks")
	}

	// A task has 16 at most.
	var many []hook
	for i := range 16 {
		many = append(many, one.setHook(hook{URL: url(up, "/many"), Token: fmt.Sprint(i), TaskID: "full"}))
	}
	members := one.denied(-32050, "set", hook{URL: url(up, "/many"), Token: "17", TaskID: "full"})
	if diff := cmp.Diff(map[string]any{"limit": "webhooks", "max": 16.0},
		map[string]any{"limit": members["limit"], "max": members["max"]}); diff != "" {
		t.Errorf("the data of the error (-want +got):\n%s", diff)
	}
	one.setHook(many[7])
	one.granted("delete", ids("full", many[3].ID))
	one.setHook(hook{URL: url(up, "/many"), Token: "17", TaskID: "full"})
	if got := one.hooks("full", ""); len(got) != 16 {
		t.Errorf("there are %d webhooks", len(got))
	}

	s.waitFor(t, "a notification was not delivered")
	s.stop(t) // then all of the log is here
	said := s.out.String()
	if strings.Contains(said, secret) {
		t.Errorf("the log has the token, or the query of the URL: %s", said[strings.Index(said, secret)-200:])
	}
}

// TestWebhookStart starts tasks by notification/start, with all the forms of notifyOnStates.
func TestWebhookStart(t *testing.T) {
	t.Parallel()
	agent, up := newFakeAgent(t, nil), newSink(t)
	s := serve(t, config{store: "store memory", notify: here, handle: "aip_gateway a2a/legacy " + agent.url})
	leader := leaderOf(t, s.url())
	for id, tc := range map[string]struct {
		states any // of notifyOnStates; "" to leave it out
		want   []task.State
	}{
		"absent": {"", nil},
		"null":   {nil, nil},
		"empty":  {[]string{}, nil},
		"one":    {[]string{"completed"}, []task.State{task.Completed}},
		"some": {[]string{"awaiting-completion", "working", "working"},
			[]task.State{task.Working, task.AwaitingCompletion}},
		"none": {[]string{"failed"}, []task.State{task.Failed}},
	} {
		path := "/" + id
		set := leader.setHook(hook{URL: up.origin() + path, Token: "t", TaskID: id})
		params := map[string]any{"notificationConfigId": set.ID}
		if tc.states != "" {
			params["notifyOnStates"] = tc.states
		}
		var got task.Task
		if err := json.Unmarshal(leader.granted("start", leader.startWith(id, "hello", params)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(answered{task.AwaitingCompletion, "", []string{"done"}}, of(&got)); diff != "" {
			t.Errorf("%s: notification/start (-want +got):\n%s", id, diff)
		}
		// A start that is repeated changes nothing, neither the task nor the states of its notifications.
		var again task.Task
		params["notifyOnStates"] = []string{"accepted"}
		if err := json.Unmarshal(leader.granted("start", leader.startWith(id, "other", params)), &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("%s: a repeated notification/start (-first +second):\n%s", id, diff)
		}
		leader.goOn(id, "more")
		leader.complete(id)
		history := leader.get(id).StatusHistory
		if len(tc.want) > 0 {
			history = slices.DeleteFunc(history, func(s task.Status) bool { return !slices.Contains(tc.want, s.State) })
		}
		up.waitForChanges(path, history)
		s.idle()
		up.waitForChanges(path, history)
		up.inOrder(path)
	}

	set := leader.setHook(hook{URL: up.origin() + "/bad", Token: "t", TaskID: "bad"})
	for name, tc := range map[string]struct {
		code   int64
		change func(message map[string]any)
	}{
		"an unknown state": {-32602, func(m map[string]any) {
			m["commandParams"] = map[string]any{"notificationConfigId": set.ID, "notifyOnStates": []string{"Working"}}
		}},
		"states that are no list": {-32602, func(m map[string]any) {
			m["commandParams"] = map[string]any{"notificationConfigId": set.ID, "notifyOnStates": "working"}
		}},
		"no id":           {-32602, func(m map[string]any) { m["commandParams"] = map[string]any{} }},
		"no parameters":   {-32602, func(m map[string]any) { delete(m, "commandParams") }},
		"another command": {-32602, func(m map[string]any) { m["command"] = "get" }},
		"an unknown config": {-32001,
			func(m map[string]any) { m["commandParams"] = map[string]any{"notificationConfigId": "none"} }},
	} {
		params := leader.startWith("bad", "hello", map[string]any{"notificationConfigId": set.ID})
		tc.change(params["message"].(map[string]any))
		leader.denied(tc.code, "start", params)
		if got := leader.refused(commandCall(task.Get, "bad")); got.Code != -32001 {
			t.Errorf("%s: the task was started: %s", name, got.Raw)
		}
	}
	// What was refused has changed nothing.
	leader.notifyStart("bad", set.ID)
	up.waitForChanges("/bad", leader.get("bad").StatusHistory)
}

// TestWebhookIdentityOff proves that requests without a senderId act for the Leader of the task, where no caller
// verifies who calls, and that a webhook may even then be set before the task exists.
func TestWebhookIdentityOff(t *testing.T) {
	t.Parallel()
	agent, up := newFakeAgent(t, nil), newSink(t)
	s := serve(
		t,
		config{store: "store memory", mode: "request", notify: here, handle: "aip_gateway a2a/legacy " + agent.url + ` {
		identity off
	}`},
	)
	one, other := callerWith(t, s.url(), "one"), callerWith(t, s.url(), "other")
	before := one.setHook(hook{URL: up.origin() + "/before", Token: "t", TaskID: "a"})
	if diff := cmp.Diff([]hook{before}, other.hooks("a", "")); diff != "" {
		t.Errorf("the webhooks of a task that was not started (-want +got):\n%s", diff)
	}
	one.notifyStart("a", before.ID)
	after := one.setHook(hook{URL: up.origin() + "/after", Token: "t", TaskID: "a"})
	if diff := cmp.Diff([]hook{before, after}, one.hooks("a", "")); diff != "" {
		t.Errorf("the webhooks of a task (-want +got):\n%s", diff)
	}
	had := len(one.get("a").StatusHistory)
	before.Token = "u"
	one.setHook(before)
	one.complete("a")
	history := one.get("a").StatusHistory
	up.waitForChanges("/before", history)
	up.waitForChanges("/after", history[had:])
	one.granted("delete", ids("a", ""))
	if got := one.hooks("a", ""); len(got) != 0 {
		t.Errorf("what was deleted is still there: %+v", got)
	}
	// The webhooks have become those of one's task.
	other.start("a", "hello")
	s.idle()
	up.waitForChanges("/before", history)
}
