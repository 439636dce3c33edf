// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestWebhookConfigs sets, gets and deletes webhooks, of tasks that exist and of others.
func TestWebhookConfigs(t *testing.T) {
	t.Parallel()
	const secret = "the-secret-of-the-Leader"
	agent, up, gone := site.NewFakeAgent(t, nil), site.NewSink(t), site.NewSink(t)
	gone.Down()
	refusing := site.NewSink(t)
	refusing.Answers(site.Always(site.Refusal(500)))
	s := site.Serve(t, site.Config{Options: "debug", Notify: site.AllowHere + "timeout 1s",
		Handle: "aip_gateway a2a/legacy " + agent.URL})
	p := site.Certificates(t)
	one := site.LeaderOf(t, s.URL())
	two := site.CallerWith(t, s.URL(), string(p.LeaderV1.AIC), site.Issue(t, string(p.LeaderV1.AIC)))

	if got := string(one.Granted("get", site.IDs("a", ""))); got != "[]" {
		t.Errorf("the webhooks of an unknown task are %s", got)
	}
	url := func(s *site.Sink, path string) string { return s.Origin() + path + "?key=" + secret }
	want := site.Hook{URL: url(up, "/first"), Token: secret, TaskID: "a"}
	first := one.SetHook(want)
	if want.ID = first.ID; first != want || want.ID == "" {
		t.Errorf("set is answered %+v, want %+v and an id", first, want)
	}
	second := one.SetHook(site.Hook{URL: url(refusing, "/second"), Token: secret, TaskID: "a"})
	third := one.SetHook(site.Hook{URL: url(gone, "/third"), Token: secret + "3", TaskID: "a"})
	check := func(what string, want ...site.Hook) {
		t.Helper()
		if diff := cmp.Diff(want, one.Hooks("a", ""), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("all webhooks", first, second, third)
	if diff := cmp.Diff([]site.Hook{second}, one.Hooks("a", second.ID)); diff != "" {
		t.Errorf("one webhook (-want +got):\n%s", diff)
	}
	_, raw := one.Post(
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
	if got := one.SetHook(third); got != third {
		t.Errorf("an update is answered %+v, want %+v", got, third)
	}
	check("all webhooks after an update", first, second, third)

	unknown := third
	unknown.ID = "notification-none"
	one.Denied(-32602, "set", unknown)
	one.Denied(-32001, "get", site.IDs("a", unknown.ID))
	one.Denied(-32001, "delete", site.IDs("a", unknown.ID))
	one.Denied(-32602, "get", map[string]any{})
	one.Denied(-32602, "set", map[string]any{"taskId": "a", "token": "t"})
	one.Denied(-32602, "set", map[string]any{"taskId": "a", "url": want.URL})
	check("all webhooks after what was refused", first, second, third)

	// For another Leader none of it exists.
	if got := two.Hooks("a", ""); len(got) != 0 {
		t.Errorf("another Leader gets %+v", got)
	}
	two.Denied(-32001, "get", site.IDs("a", first.ID))
	two.Denied(-32001, "delete", site.IDs("a", first.ID))
	two.Denied(-32602, "set", first)
	two.Denied(-32001, "start", startWith(two, "a", "hello", map[string]any{"notificationConfigId": first.ID}))
	subscribe := func(c *site.Caller) map[string]any {
		params := startWith(c, "a", "", map[string]any{"notificationConfigId": first.ID})
		delete(params["message"].(map[string]any), "dataItems")
		return params
	}
	two.Denied(-32001, "start", subscribe(two))
	two.Denied(-32009, "start", subscribe(one))
	if got := string(one.Granted("start", subscribe(one))); got != "true" {
		t.Errorf("a subscription before the task is answered %s", got)
	}
	two.Granted("delete", site.IDs("a", ""))
	if got := two.Refused(site.CommandCall(task.Get, "a")); got.Code != -32001 {
		t.Errorf("a start that was refused has made a task: %s", got.Raw)
	}
	check("all webhooks after another Leader", first, second, third)

	one.Start("a", "hello")
	up.WaitForChanges(first.URL[len(up.Origin()):], one.Get("a").StatusHistory)
	site.Eventually(t, "the sink that refuses was asked", func() bool { return len(refusing.Arrived("")) > 0 })

	if got := string(one.Granted("delete", site.IDs("a", third.ID))); got != `{"success":true}` {
		t.Errorf("delete is answered %s", got)
	}
	check("all webhooks but the deleted one", first, second)
	one.Denied(-32001, "delete", site.IDs("a", third.ID))

	// A webhook that is set for a running task is notified of later changes; so are earlier webhooks; a deleted one is
	// not.
	had := len(one.Get("a").StatusHistory)
	late := one.SetHook(site.Hook{URL: url(up, "/late"), Token: secret, TaskID: "a"})
	one.Granted("delete", site.IDs("a", first.ID))
	one.GoOn("a", "more")
	one.Complete("a")
	history := one.Get("a").StatusHistory
	up.WaitForChanges(late.URL[len(up.Origin()):], history[had:])
	if diff := cmp.Diff(site.Stamps(history[:had]), up.Changes(first.URL[len(up.Origin()):])); diff != "" {
		t.Errorf("the notifications of a webhook before it was deleted (-want +got):\n%s", diff)
	}
	for range 2 {
		if got := string(one.Granted("delete", site.IDs("a", ""))); got != `{"success":true}` {
			t.Errorf("delete of all is answered %s", got)
		}
		check("no webhooks")
	}

	// A task has 16 at most.
	var many []site.Hook
	for i := range 16 {
		many = append(many, one.SetHook(site.Hook{URL: url(up, "/many"), Token: fmt.Sprint(i), TaskID: "full"}))
	}
	members := one.Denied(-32050, "set", site.Hook{URL: url(up, "/many"), Token: "17", TaskID: "full"})
	if diff := cmp.Diff(map[string]any{"limit": "webhooks", "max": 16.0},
		map[string]any{"limit": members["limit"], "max": members["max"]}); diff != "" {
		t.Errorf("the data of the error (-want +got):\n%s", diff)
	}
	one.SetHook(many[7])
	one.Granted("delete", site.IDs("full", many[3].ID))
	one.SetHook(site.Hook{URL: url(up, "/many"), Token: "17", TaskID: "full"})
	if got := one.Hooks("full", ""); len(got) != 16 {
		t.Errorf("there are %d webhooks", len(got))
	}

	s.WaitFor(t, "a notification was not delivered")
	s.Stop(t) // then all of the log is here
	said := s.Out.String()
	if strings.Contains(said, secret) {
		t.Errorf("the log has the token, or the query of the URL: %s", said[strings.Index(said, secret)-200:])
	}
}

// TestWebhookStart starts tasks by notification/start, with all the forms of notifyOnStates.
func TestWebhookStart(t *testing.T) {
	t.Parallel()
	agent, up := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.Serve(t, site.Config{Store: "store memory", Notify: site.AllowHere,
		Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
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
		set := leader.SetHook(site.Hook{URL: up.Origin() + path, Token: "t", TaskID: id})
		params := map[string]any{"notificationConfigId": set.ID}
		if tc.states != "" {
			params["notifyOnStates"] = tc.states
		}
		var got task.Task
		if err := json.Unmarshal(leader.Granted("start", startWith(leader, id, "hello", params)), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"done"}},
			site.AnswerOf(&got)); diff != "" {
			t.Errorf("%s: notification/start (-want +got):\n%s", id, diff)
		}
		// A start that is repeated changes nothing, neither the task nor the states of its notifications.
		var again task.Task
		params["notifyOnStates"] = []string{"accepted"}
		if err := json.Unmarshal(leader.Granted("start", startWith(leader, id, "other", params)), &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("%s: a repeated notification/start (-first +second):\n%s", id, diff)
		}
		leader.GoOn(id, "more")
		leader.Complete(id)
		history := leader.Get(id).StatusHistory
		if len(tc.want) > 0 {
			history = slices.DeleteFunc(history, func(s task.Status) bool { return !slices.Contains(tc.want, s.State) })
		}
		up.WaitForChanges(path, history)
		idle(s)
		up.WaitForChanges(path, history)
		up.InOrder(path)
	}

	set := leader.SetHook(site.Hook{URL: up.Origin() + "/bad", Token: "t", TaskID: "bad"})
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
		params := startWith(leader, "bad", "hello", map[string]any{"notificationConfigId": set.ID})
		tc.change(params["message"].(map[string]any))
		leader.Denied(tc.code, "start", params)
		if got := leader.Refused(site.CommandCall(task.Get, "bad")); got.Code != -32001 {
			t.Errorf("%s: the task was started: %s", name, got.Raw)
		}
	}
	// What was refused has changed nothing.
	notifyStart(leader, "bad", set.ID)
	up.WaitForChanges("/bad", leader.Get("bad").StatusHistory)
}

// TestWebhookIdentityOff proves that requests without a senderId act for the Leader of the task, where no caller
// verifies who calls, and that a webhook may even then be set before the task exists.
func TestWebhookIdentityOff(t *testing.T) {
	t.Parallel()
	agent, up := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.Serve(
		t,
		site.Config{Store: "store memory", Mode: "request", Notify: site.AllowHere,
			Handle: "aip_gateway a2a/legacy " + agent.URL + ` {
		identity off
	}`},
	)
	one, other := site.CallerWith(t, s.URL(), "one"), site.CallerWith(t, s.URL(), "other")
	before := one.SetHook(site.Hook{URL: up.Origin() + "/before", Token: "t", TaskID: "a"})
	if diff := cmp.Diff([]site.Hook{before}, other.Hooks("a", "")); diff != "" {
		t.Errorf("the webhooks of a task that was not started (-want +got):\n%s", diff)
	}
	notifyStart(one, "a", before.ID)
	after := one.SetHook(site.Hook{URL: up.Origin() + "/after", Token: "t", TaskID: "a"})
	if diff := cmp.Diff([]site.Hook{before, after}, one.Hooks("a", "")); diff != "" {
		t.Errorf("the webhooks of a task (-want +got):\n%s", diff)
	}
	had := len(one.Get("a").StatusHistory)
	before.Token = "u"
	one.SetHook(before)
	one.Complete("a")
	history := one.Get("a").StatusHistory
	up.WaitForChanges("/before", history)
	up.WaitForChanges("/after", history[had:])
	one.Granted("delete", site.IDs("a", ""))
	if got := one.Hooks("a", ""); len(got) != 0 {
		t.Errorf("what was deleted is still there: %+v", got)
	}
	// The webhooks have become those of one's task.
	other.Start("a", "hello")
	idle(s)
	up.WaitForChanges("/before", history)
}

// startWith returns the params of notification/start.
func startWith(c *site.Caller, taskID, text string, commandParams map[string]any) map[string]any {
	return map[string]any{"message": map[string]any{
		"type": "message", "id": leader.NewID("msg"), "sentAt": time.Now().Format(time.RFC3339), "senderRole": "leader",
		"senderId": c.Sender,
		"command":  "start", "commandParams": commandParams, "taskId": taskID, "sessionId": "session-of-" + taskID,
		"dataItems": []any{map[string]any{"type": "text", "text": text}},
	}}
}

// notifyStart starts a task by notification/start.
func notifyStart(c *site.Caller, taskID, configID string, header ...string) *task.Task {
	c.T.Helper()
	var got task.Task
	params := startWith(c, taskID, "hello", map[string]any{"notificationConfigId": configID})
	result := c.Granted("start", params, header...)
	if err := json.Unmarshal(result, &got); err != nil {
		c.T.Fatal(err)
	}
	return &got
}

// idle waits until nothing is to be delivered any more, now or later.
func idle(s *site.Site) {
	s.T.Helper()
	site.Eventually(s.T, "nothing is left to be delivered", func() bool {
		return len(s.Deliveries("status=pending")) == 0 && len(s.Deliveries("status=failing")) == 0
	})
}
