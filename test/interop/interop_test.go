// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func js(file string) program { return program{"node", file} }

// pairs are the agents, each with the clients that it must get on with: those of its own SDK in every way that they
// speak, and those of the others that speak the same version.
var pairs = []struct {
	name   string
	agent  program
	client program
	legacy bool // A2A v0.1
	list   bool // there is a list of tasks
	mute   bool // there is no way to ask for push notifications
}{
	{name: "legacy-trpc", agent: program{"legacy-trpc"}, client: program{"legacy-trpc-client"}, legacy: true},
	{name: "a2a-go-03", agent: program{"a2a-go-03", "agent"}, client: program{"a2a-go-03", "client"}},
	{name: "a2a-go-10", agent: program{"a2a-go-10", "agent"}, client: program{"a2a-go-10", "client"}, list: true},
	{
		name:   "a2a-go-10 REST",
		agent:  program{"a2a-go-10", "agent"},
		client: program{"a2a-go-10", "client", "-rest"},
		list:   true,
	},
	{
		name:   "a2a-go-10 v0.3",
		agent:  program{"a2a-go-10", "agent", "-compat"},
		client: program{"a2a-go-10", "client", "-compat"},
	},
	{
		name:   "a2a-go-10 v0.3 REST",
		agent:  program{"a2a-go-10", "agent", "-compat"},
		client: program{"a2a-go-10", "client", "-compat", "-rest"},
	},
	{name: "js-03", agent: js("js-03/agent.mjs"), client: js("js-03/client.mjs")},
	{
		name:   "js-03 REST",
		agent:  js("js-03/agent.mjs"),
		client: js("js-03/client.mjs").with("-rest"),
		mute:   true,
	}, // the SDK's server does not take what its client sends
	{name: "js-10", agent: js("js-10/agent.mjs"), client: js("js-10/client.mjs"), list: true},
	{name: "js-10 REST", agent: js("js-10/agent.mjs"), client: js("js-10/client.mjs").with("-rest"), list: true},
	{name: "js-10 v0.3", agent: js("js-10/agent.mjs").with("-compat"), client: js("js-10/client.mjs").with("-compat")},
	{
		name:   "js-10 v0.3 REST",
		agent:  js("js-10/agent.mjs").with("-compat"),
		client: js("js-10/client.mjs").with("-compat", "-rest"),
	},
	{name: "js-03 agent, a2a-go-03 client", agent: js("js-03/agent.mjs"), client: program{"a2a-go-03", "client"}},
	{name: "a2a-go-03 agent, js-03 client", agent: program{"a2a-go-03", "agent"}, client: js("js-03/client.mjs")},
	{
		name:   "js-10 v0.3 agent, a2a-go-03 client",
		agent:  js("js-10/agent.mjs").with("-compat"),
		client: program{"a2a-go-03", "client"},
	},
	{
		name:   "a2a-go-10 v0.3 agent, js-03 client",
		agent:  program{"a2a-go-10", "agent", "-compat"},
		client: js("js-03/client.mjs"),
	},
	{
		name:   "js-10 agent, a2a-go-10 client",
		agent:  js("js-10/agent.mjs"),
		client: program{"a2a-go-10", "client"},
		list:   true,
	},
	{
		name:   "a2a-go-10 agent, js-10 client",
		agent:  program{"a2a-go-10", "agent"},
		client: js("js-10/client.mjs"),
		list:   true,
	},
	{
		name:   "a2a-go-10 agent, js-10 client, gRPC",
		agent:  program{"a2a-go-10", "agent"},
		client: js("js-10/client.mjs").with("-grpc"),
		list:   true,
	},
}

func TestPairs(t *testing.T) {
	t.Parallel()
	for _, pair := range pairs {
		t.Run(pair.name, func(t *testing.T) {
			t.Parallel()
			url := pair.agent.start(t)
			client := pair.client.with("-url", url, "-timeout", "170") // seconds, which is less than our patience
			check := func(what string, got line, want view) {
				t.Helper()
				if diff := cmp.Diff(want, got.view()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}

			if card := client.one(t, "card"); card.Kind != "card" || !strings.HasSuffix(card.Name, "echo") {
				t.Errorf("card: %+v", card)
			}
			done := view{"task", "completed", "ok", "echo: hello you"}
			echo := client.one(t, "send", "echo hello you")
			check("echo", echo, done)
			check("get", client.one(t, "get", echo.task()), done)
			if pair.list {
				if all := client.one(t, "list"); all.Kind != "tasks" || len(all.Tasks) != 1 || all.Tasks[0].ID != echo.ID {
					t.Errorf("list: %+v, want the only task", all)
				}
			}

			var stream []view
			for _, l := range client.call(t, "stream", "stream 3 10") {
				if l.view().State != "submitted" { // v0.1 does not show it
					stream = append(stream, l.view())
				}
			}
			if diff := cmp.Diff([]view{
				{"status-update", "working", "", ""},
				{"artifact-update", "", "", "chunk-0 "}, {"artifact-update", "", "", "chunk-1 "},
				{"artifact-update", "", "", "chunk-2 "},
				{"status-update", "completed", "streamed", ""},
			}, stream); diff != "" {
				t.Errorf("stream (-want +got):\n%s", diff)
			}

			ask := client.one(t, "send", "ask")
			check("ask", ask, view{"task", "input-required", "which colour?", ""})
			hooks := newHook(t)
			if !pair.mute {
				set := client.one(t, "push-set", ask.task(), hooks.url, "secret-token")
				config := set.Push.ID
				if config == "" && !pair.legacy {
					config = set.ID
				}
				get := client.one(t, append([]string{"push-get", ask.task()}, strings.Fields(config)...)...)
				if get.Kind != "push-config" || get.Push.URL+get.URL != hooks.url {
					t.Errorf("push-get after push-set to %s: %+v", hooks.url, get)
				}
			}
			check(
				"answer",
				client.one(t, "send", "blue", "-task", ask.task()),
				view{"task", "completed", "done", "you said: blue"},
			)
			if !pair.mute {
				hooks.hears(t, ask.task(), "secret-token")
			}

			if pair.legacy {
				if _, said, err := client.try(t, "send", "fail"); err == nil || !strings.Contains(said, "agent broke") {
					t.Errorf("fail: %v, %s", err, said)
				}
			} else {
				check("fail", client.one(t, "send", "fail"), view{"task", "failed", "agent broke", ""})
				check("reject", client.one(t, "send", "reject"), view{"task", "rejected", "not my job", ""})
				check("msg", client.one(t, "send", "msg hi"), view{"message", "", "direct: hi", ""})
				auth := client.one(t, "send", "auth")
				check("auth", auth, view{"task", "auth-required", "log in at https://login.example/", ""})
				if got := client.one(t, "cancel", auth.task()).view(); got.State != "canceled" {
					t.Errorf("cancel while it waits: %+v", got)
				}
			}
			check("file", client.one(t, "send", "file"), view{"task", "completed", "ok", "aGVsbG8K"})
			check("data", client.one(t, "send", "data"), view{"task", "completed", "ok", `{"colour":"blue","parts":[1,2,3]}`})

			slow := client.follow(t, "stream", "slow 3000")
			id := slow.until("working").task()
			watching := []*following{slow}
			if !pair.legacy { // whose SDK may drop an event for a second reader
				again := client.follow(t, "resubscribe", id)
				if l := again.next(); l.task() != id {
					t.Errorf("resubscribe: %+v", l)
				}
				watching = append(watching, again)
			}
			canceled := client.one(t, "cancel", id).view()
			if canceled.State != "canceled" {
				t.Errorf("cancel: %+v", canceled)
			}
			for _, f := range watching {
				f.until("canceled")
			}
			if got := client.one(t, "get", id).view(); got.State != "canceled" {
				t.Errorf("get of what was canceled: %+v", got)
			}
			if pair.legacy {
				check("resubscribe", client.one(t, "resubscribe", echo.task()), view{"status-update", "completed", "ok", ""})
			}

			out, said, err := client.try(t, "get", "no-such-task")
			if err == nil || said == "" || out != nil {
				t.Errorf("get of nothing: %v, %q, %v", out, said, err)
			}
		})
	}
}

// hook is where push notifications go.
type hook struct {
	url  string
	says chan hooked // what no test reads is dropped when the channel is full
}

type hooked struct{ token, body string }

func newHook(t *testing.T) hook {
	t.Helper()
	h := hook{says: make(chan hooked, 100)}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		select {
		// a2a-go v2 has no X-
		case h.says <- hooked{r.Header.Get("X-A2A-Notification-Token") + r.Header.Get("A2A-Notification-Token"), string(b)}:
		default:
		}
	}))
	t.Cleanup(s.Close)
	h.url = s.URL + "/hook"
	return h
}

// hears waits until a notification says that a task is completed.
func (h hook) hears(t *testing.T, id, token string) {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case got := <-h.says:
			if got.token != token || !strings.Contains(got.body, id) {
				t.Errorf("the hook was notified, with the token %q: %s", got.token, got.body)
			}
			if strings.Contains(strings.ToLower(got.body), "completed") {
				return
			}
		case <-late:
			t.Fatal("the hook is not notified that the task is completed")
		}
	}
}
