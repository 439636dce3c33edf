// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// The forms in which agents of A2A v0.1 push. Only the first one shows the whole task.
var pushForms = map[string]func(id string, s site.Step) string{
	"task": func(id string, s site.Step) string { return s.Task(id) },
	"notifyEvent": func(id string, s site.Step) string {
		return fmt.Sprintf(
			`{"jsonrpc":"2.0","method":"tasks/notifyEvent","params":{"id":%q,"eventType":"task_status_update",`+
				`"event":{"id":%q,"status":%s,"final":false}}}`,
			id,
			id,
			s.Status(),
		)
	},
	"taskUpdate": func(id string, s site.Step) string {
		return fmt.Sprintf(`{"eventType":"taskUpdate","taskId":%q,"status":%s}`, id, s.Status())
	},
}

// eventsOf reads the events of a stream as "state: words" and "+words".
func eventsOf(t *testing.T, f *site.Follower) (out []string) {
	t.Helper()
	for _, data := range f.Events {
		var event struct {
			Status  *task.Status
			Product *task.Product
			Task    *task.Task
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatal(err)
		}
		switch {
		case event.Product != nil:
			out = append(out, "+"+site.Says(event.Product.DataItems))
		case event.Status != nil:
			out = append(out, string(event.Status.State)+": "+site.Says(event.Status.DataItems))
		default:
			t.Errorf("the event %s shows nothing", data)
		}
	}
	return out
}

// callbackTo returns the configuration of a gateway that an agent may push to, and where.
func callbackTo(t testing.TB, agent string) (c site.Config, url string) {
	t.Helper()
	port := site.FreePort(t)
	url = fmt.Sprintf("http://127.0.0.1:%d/push", port)
	return site.Config{
		Notify:     "callback " + url + "/",
		Handle:     "aip_gateway a2a/legacy " + agent,
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nhandle /push/* {\naip_callback\n}\n}", port),
	}, url
}

// TestCallback has an agent without streams push what it does, before it answers and after it has.
func TestCallback(t *testing.T) {
	t.Parallel()
	one, two := site.Step{State: "working", Says: "one", Artifacts: []string{"half"}},
		site.Step{State: "working", Says: "two", Artifacts: []string{"half", "more"}}
	end := site.Step{State: "completed", Says: "ready", Artifacts: []string{"half", "more", "rest"}}
	for form, body := range pushForms {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,late=%t", form, late), func(t *testing.T) {
				t.Parallel()
				agent := site.NewPushAgent(t)
				s := site.New(t)
				c, callback := callbackTo(t, agent.URL)
				c.Store, c.Options = "store memory", "debug"
				s.Start(c)
				s.KnowsCard(agent.URL)
				f := &site.Follower{Caller: site.LeaderOf(t, s.URL()), ID: "a"}
				agent.Is(site.Step{State: "working"})
				followed := make(chan error, 1)
				go func() { followed <- f.FollowTo(site.Within(t, 5*site.Patience), "hello", "awaiting-completion") }()
				id := (<-agent.Asked).Params.ID
				hook := agent.Hook(id)
				if !strings.HasPrefix(hook.URL, callback+"/") || len(hook.Token) < 20 {
					t.Fatalf("the agent was given the webhook %+v", hook)
				}
				const js = "application/json"
				demand := func(want int, method, url, token, kind, body string) {
					t.Helper()
					if got, words := agent.Push(method, url, token, kind, body); got != want {
						t.Errorf("%s %s with %.200q is answered %d %s, want %d", method, url, body, got, words, want)
					}
				}
				if late {
					agent.Answers <- struct{}{}
				}
				demand(401, "POST", hook.URL, "wrong", js, end.Task(id))
				demand(401, "POST", hook.URL, "", js, end.Task(id))
				demand(404, "POST", hook.URL+"x", hook.Token, js, end.Task(id))
				demand(404, "POST", callback+"/", hook.Token, js, end.Task(id))
				demand(415, "POST", hook.URL, hook.Token, "text/plain", end.Task(id))
				demand(405, "PUT", hook.URL, hook.Token, js, end.Task(id))
				demand(400, "GET", hook.URL, "", "", "")
				if status, words := agent.Push("GET", hook.URL+"?validationToken=a+b", "", "", ""); status != 200 ||
					words != "a b" {
					t.Errorf("the challenge is answered %d %q", status, words)
				}
				demand(200, "POST", hook.URL, hook.Token, js, `{"no":"sense"}`) // it is the run that makes nothing of it
				for _, now := range []site.Step{one, two} {
					agent.Is(now)
					demand(200, "POST", hook.URL, hook.Token, js, body(id, now))
					demand(200, "POST", hook.URL, hook.Token, js, body(id, now))
					if form == "task" || late {
						site.Eventually(t, "the Leader sees "+now.Says, func() bool {
							got := f.Get("a")
							return site.Says(got.Status.DataItems) == now.Says && len(got.Products) == len(now.Artifacts)
						})
					}
				}
				demand(200, "POST", hook.URL, hook.Token, js, body(id, one)) // once more, and too late
				switch {
				case form == "task": // which only the push shows
					demand(200, "POST", hook.URL, hook.Token, js, body(id, end))
				case late: // of which the push says only that there is something, and the run may have found out already
					agent.Is(end)
					agent.Push("POST", hook.URL, hook.Token, js, body(id, end))
				default: // which waits for the answer
					agent.Is(end)
					demand(200, "POST", hook.URL, hook.Token, js, body(id, end))
					agent.Answers <- struct{}{}
				}
				if err := <-followed; err != nil {
					t.Fatal(err)
				}
				// A stream shows after 250 ms that the agent works, and again when the agent says so later.
				got := slices.Compact(eventsOf(t, f))
				if form != "task" && !late {
					want := []string{"accepted: ", "working: ", "+half", "+more", "+rest", "awaiting-completion: ready"}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the events (-want +got):\n%s", diff)
					}
				} else {
					// Of the first two products more might have come; the last pieces, without a text, end them.
					want := []string{"accepted: ", "working: ", "+half", "working: one", "+more", "working: two", "+rest",
						"+", "awaiting-completion: ready"}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the events (-want +got):\n%s", diff)
					}
				}
				site.Eventually(t, "the address is gone", func() bool {
					status, _ := agent.Push("POST", hook.URL, hook.Token, js, end.Task(id))
					return status == 404
				})
				if got := f.Rests("a"); got.Status.State != task.AwaitingCompletion {
					t.Errorf("the task is %+v", site.AnswerOf(got))
				}
				if said := s.Out.String(); strings.Contains(said, hook.Token) {
					t.Errorf("the log has the token of the callback")
				}
			})
		}
	}
}

// TestCallbackRestart kills the gateway while an agent is at work that would push. What it has missed it asks for.
func TestCallbackRestart(t *testing.T) {
	t.Parallel()
	agent := site.NewPushAgent(t)
	s := site.New(t)
	c, _ := callbackTo(t, agent.URL)
	s.Start(c)
	s.KnowsCard(agent.URL)
	leader := site.LeaderOf(t, s.URL())
	agent.Is(site.Step{State: "working"})
	start := site.StartCall("a", "hello")
	start.Terms.Response = time.Millisecond
	if got := leader.Send(start); got.Status.State != task.Working {
		t.Errorf("the start is answered %+v", site.AnswerOf(got))
	}
	id := (<-agent.Asked).Params.ID
	agent.Answers <- struct{}{}
	s.Kill()
	end := site.Step{State: "completed", Says: "ready", Artifacts: []string{"all"}}
	agent.Is(end)
	s.Start(c)
	hook := agent.Hook(id)
	site.Eventually(t, "the new process knows nothing of the address", func() bool {
		status, _ := agent.Push("POST", hook.URL, hook.Token, "application/json", end.Task(id))
		return status == 404
	})
	got := leader.Rests("a")
	site.CheckHistory(t, got)
	if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Says: "ready", Products: []string{"all"}},
		site.AnswerOf(got)); diff != "" {
		t.Errorf("the task (-want +got):\n%s", diff)
	}
}

// TestCallbackOfTheRealAgent has an agent push that is built on another project's SDK. Only its card, which says that
// it has streams, is another one.
func TestCallbackOfTheRealAgent(t *testing.T) {
	t.Parallel()
	for form := range pushForms {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			agent := through(t, site.TRPCAgent(t, "-push", form), func(res *http.Response) error {
				if res.Request.URL.Path != "/.well-known/agent.json" {
					return nil
				}
				body, err := io.ReadAll(res.Body)
				if !bytes.Contains(body, []byte(`"streaming":true,"pushNotifications":true`)) {
					t.Errorf("the card is %s", body)
				}
				body = bytes.ReplaceAll(body, []byte(`"streaming":true`), []byte(`"streaming":false`))
				res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				res.Header.Set("Content-Length", strconv.Itoa(len(body)))
				return err
			})
			var taken atomic.Int64
			c, callback := callbackTo(t, agent)
			c.Store = "store memory"
			c.Notify = "callback " + through(t, callback, func(res *http.Response) error {
				if res.StatusCode == http.StatusOK {
					taken.Add(1)
				}
				return nil
			}) + "/push"
			s := site.New(t)
			s.Start(c)
			s.KnowsCard(agent)
			leader := site.LeaderOf(t, s.URL())
			leader.Start("slow", "slow 1")
			got := leader.Rests("slow")
			site.CheckHistory(t, got)
			if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"slow done"}},
				site.AnswerOf(got)); diff != "" {
				t.Errorf("slow (-want +got):\n%s", diff)
			}
			leader.Start("asks", "ask")
			if got := leader.Rests("asks"); got.Status.State != task.AwaitingInput {
				t.Errorf("asks is %+v", site.AnswerOf(got))
			}
			leader.GoOn("asks", "blue")
			got = leader.Rests("asks")
			site.CheckHistory(t, got)
			if diff := cmp.Diff([]string{"you said: blue"}, site.Product(got)); diff != "" ||
				got.Status.State != task.AwaitingCompletion {
				t.Errorf("asks is %+v, its products (-want +got):\n%s", site.AnswerOf(got), diff)
			}
			site.Eventually(t, "the agent has pushed something that was taken", func() bool { return taken.Load() > 0 })
		})
	}
}

// through returns the URL of a proxy that passes everything on to a host, and may look at the answers.
func through(t testing.TB, to string, look func(*http.Response) error) string {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		ModifyResponse: look,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(server.Close)
	return server.URL
}
