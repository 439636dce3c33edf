// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// TestSubscribe: a notification/start without content starts nothing. It narrows a webhook of the task to some states,
// and is answered with the task, or true if there is none yet. Each state is notified once, in the version of the
// subscription, whether the latter comes before the task is started, while it goes on, or when it has ended.
func TestSubscribe(t *testing.T) {
	for version, kind := range map[string]string{"aip": "message", "aip/2": "task-command"} {
		t.Run(version, func(t *testing.T) {
			notified := make(chan string, 16)
			sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got := gjson.GetManyBytes(body, "type", "status.state")
				notified <- got[0].Str + " " + got[1].Str
			}))
			defer sink.Close()
			shown := map[string]string{"aip": "task", "aip/2": "task-result"}[version]
			g := open(t, hooked, func(h *setup) {
				h.Callers = []translate.Server{aip.ServerV2("partner"), aip.Server()}
			})
			call := func(method, body string) gjson.Result {
				t.Helper()
				body = strings.Replace(body, `"message":{"type":"message"`, `"message":{"type":"`+kind+`"`, 1)
				_, answer := g.post("/agents/one/"+method, body)
				return gjson.Parse(answer)
			}
			subscribe := func(sender, id, webhook, states string) gjson.Result {
				t.Helper()
				body := message("notification/start", "start", id, "", `,"commandParams":{"notificationConfigId":"`+webhook+
					`","notifyOnStates":`+states+`}`)
				body = strings.Replace(body, `"dataItems":[{"type":"text","text":""}]`, `"dataItems":[]`, 1)
				return call("notification/start", strings.Replace(body, `"senderId":"leader"`, `"senderId":"`+sender+`"`, 1))
			}
			hears := func(states ...string) {
				t.Helper()
				for _, want := range states {
					if got := <-notified; got != shown+" "+want {
						t.Errorf("the webhook hears %q, want %s", got, want)
					}
				}
			}
			set := call("notification/set", `{"jsonrpc":"2.0","id":1,"method":"notification/set","params":{"taskId":"t",`+
				`"token":"t","url":"`+sink.URL+`"}}`)
			webhook := set.Get("result.id").Str

			if got := subscribe("leader", "t", webhook, "[]"); got.Get("result").Raw != "true" {
				t.Errorf("before the task, the answer is %s", got)
			}
			if got := subscribe("leader", "t", "none", "[]"); got.Get("error.code").Int() != -32001 {
				t.Errorf("by an unknown webhook, the answer is %s", got)
			}
			if n := g.requests.Load(); n != 0 {
				t.Errorf("the agent has got %d requests", n)
			}
			call("rpc", message("rpc", "start", "t", "ask"))
			hears("accepted", "working", "awaiting-input")
			asked := g.requests.Load()
			got := subscribe("leader", "t", webhook, `["awaiting-completion","completed"]`)
			if got.Get("result.status.state").Str != "awaiting-input" {
				t.Errorf("while the task goes on, the answer is %s", got)
			}
			if got := subscribe("another", "t", webhook, "[]"); got.Get("error.code").Int() != -32001 {
				t.Errorf("to another Leader, the answer is %s", got)
			}
			if n := g.requests.Load(); n != asked {
				t.Errorf("the agent has got %d requests more", n-asked)
			}
			call("rpc", message("rpc", "continue", "t", "more"))
			hears("awaiting-completion")
			call("rpc", message("rpc", "complete", "t", ""))
			hears("completed")
			if got := subscribe("leader", "t", webhook, "[]"); got.Get("result.status.state").Str != "completed" {
				t.Errorf("after the task, the answer is %s", got)
			}
			if n := len(notified); n != 0 {
				t.Errorf("%d notifications have come again: %s", n, <-notified)
			}
		})
	}
}
