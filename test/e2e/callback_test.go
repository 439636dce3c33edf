// SPDX-License-Identifier: Apache-2.0

package e2e

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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// step is where an agent's task is: its state, what the agent says about it, and its artifacts.
type step struct {
	state, says string
	artifacts   []string
}

func (s step) status() string {
	return fmt.Sprintf(
		`{"state":%q,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"agent","parts":[{"type":"text","text":%q}]}}`,
		s.state,
		s.says,
	)
}

// task returns the whole task as A2A v0.1 writes it.
func (s step) task(id string) string {
	var artifacts []string
	for i, text := range s.artifacts {
		artifacts = append(
			artifacts,
			fmt.Sprintf(`{"name":"part %d","index":%d,"parts":[{"type":"text","text":%q}]}`, i, i, text),
		)
	}
	return fmt.Sprintf(`{"id":%q,"status":%s,"artifacts":[%s]}`, id, s.status(), strings.Join(artifacts, ","))
}

// The forms in which agents of A2A v0.1 push. Only the first one shows the whole task.
var pushForms = map[string]func(id string, s step) string{
	"task": func(id string, s step) string { return s.task(id) },
	"notifyEvent": func(id string, s step) string {
		return fmt.Sprintf(
			`{"jsonrpc":"2.0","method":"tasks/notifyEvent","params":{"id":%q,"eventType":"task_status_update",`+
				`"event":{"id":%q,"status":%s,"final":false}}}`,
			id,
			id,
			s.status(),
		)
	},
	"taskUpdate": func(id string, s step) string {
		return fmt.Sprintf(`{"eventType":"taskUpdate","taskId":%q,"status":%s}`, id, s.status())
	},
}

// pushAgent is an agent of A2A v0.1 whose card says that it has no streams, but pushes.
type pushAgent struct {
	t       testing.TB
	url     string
	asked   chan heard    // a tasks/send that waits for its answer
	answers chan struct{} // lets it have one

	mu    sync.Mutex
	now   step
	hooks map[string]pushHook // by task
}

// pushHook is where an agent is to push.
type pushHook struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

func newPushAgent(t testing.TB) *pushAgent {
	t.Helper()
	a := &pushAgent{t: t, asked: make(chan heard), answers: make(chan struct{}), hooks: make(map[string]pushHook)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/agent.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w,
			`{"name":"pushes","url":"http://%s/","version":"1","capabilities":{"streaming":false,"pushNotifications":true,`+
				`"stateTransitionHistory":false},"skills":[]}`,
			r.Host,
		)
	})
	mux.HandleFunc("POST /{$}", a.serve)
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	a.url = server.URL
	return a
}

func (a *pushAgent) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var h heard
	var hook struct {
		Params struct {
			Set  pushHook `json:"pushNotificationConfig"`
			Send pushHook `json:"pushNotification"`
		}
	}
	if err != nil || json.Unmarshal(body, &h) != nil || json.Unmarshal(body, &hook) != nil {
		a.t.Errorf("the agent was sent %q: %v", body, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch h.Method {
	case "tasks/pushNotification/set":
		a.mu.Lock()
		a.hooks[h.Params.ID] = hook.Params.Set
		a.mu.Unlock()
		fmt.Fprintf(
			w,
			`{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"pushNotificationConfig":{"url":%q}}}`,
			h.ID,
			h.Params.ID,
			hook.Params.Set.URL,
		)
		return
	case "tasks/send":
		if hook.Params.Send != a.hook(h.Params.ID) {
			a.t.Errorf("tasks/send names the webhook %+v, tasks/pushNotification/set %+v", hook.Params.Send, a.hook(h.Params.ID))
		}
		select {
		case a.asked <- h:
		case <-r.Context().Done():
			return
		}
		select {
		case <-a.answers:
		case <-r.Context().Done():
			return
		}
	case "tasks/get":
	default:
		writeError(w, h, -32601, "Method not found")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, h.ID, a.now.task(h.Params.ID))
}

func (a *pushAgent) hook(id string) pushHook {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hooks[id]
}

func (a *pushAgent) is(s step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = s
}

// push sends something to a URL and returns the status and the body of the answer.
func (a *pushAgent) push(method, url, token, kind, body string) (int, string) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("X-A2A-Notification-Token", token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

// eventsOf reads the events of a stream as "state: words" and "+words".
func eventsOf(t *testing.T, f *follower) (out []string) {
	t.Helper()
	for _, data := range f.events {
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
			out = append(out, "+"+says(event.Product.DataItems))
		case event.Status != nil:
			out = append(out, string(event.Status.State)+": "+says(event.Status.DataItems))
		default:
			t.Errorf("the event %s shows nothing", data)
		}
	}
	return out
}

// knowsCard waits until the gateway has the card of an agent. A turn waits for the first card for 500 ms only, and is
// polled without one.
func (s *site) knowsCard(agent string) {
	s.t.Helper()
	eventually(s.t, "the gateway has the card of "+agent, func() bool {
		status, _ := s.asked(http.MethodGet, "/aip/agents/card?partner="+url.QueryEscape(agent), "")
		return status == http.StatusOK
	})
}

// callbackTo returns the configuration of a gateway that an agent may push to, and where.
func callbackTo(t testing.TB, agent string) (c config, url string) {
	t.Helper()
	port := freePort(t)
	url = fmt.Sprintf("http://127.0.0.1:%d/push", port)
	return config{
		notify:     "callback " + url + "/",
		handle:     "aip_gateway a2a/legacy " + agent,
		otherSites: fmt.Sprintf("http://127.0.0.1:%d {\nhandle /push/* {\naip_callback\n}\n}", port),
	}, url
}

// TestCallback has an agent without streams push what it does, before it answers and after it has.
func TestCallback(t *testing.T) {
	t.Parallel()
	one, two := step{"working", "one", []string{"half"}}, step{"working", "two", []string{"half", "more"}}
	end := step{"completed", "ready", []string{"half", "more", "rest"}}
	for form, body := range pushForms {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,late=%t", form, late), func(t *testing.T) {
				t.Parallel()
				agent := newPushAgent(t)
				s := newSite(t)
				c, callback := callbackTo(t, agent.url)
				c.store, c.options = "store memory", "debug"
				s.start(c)
				s.knowsCard(agent.url)
				f := &follower{caller: leaderOf(t, s.url()), id: "a"}
				agent.is(step{"working", "", nil})
				followed := make(chan error, 1)
				go func() { followed <- f.follow(within(t, 5*patience), "hello", "awaiting-completion") }()
				id := (<-agent.asked).Params.ID
				hook := agent.hook(id)
				if !strings.HasPrefix(hook.URL, callback+"/") || len(hook.Token) < 20 {
					t.Fatalf("the agent was given the webhook %+v", hook)
				}
				const js = "application/json"
				demand := func(want int, method, url, token, kind, body string) {
					t.Helper()
					if got, words := agent.push(method, url, token, kind, body); got != want {
						t.Errorf("%s %s with %.200q is answered %d %s, want %d", method, url, body, got, words, want)
					}
				}
				if late {
					agent.answers <- struct{}{}
				}
				demand(401, "POST", hook.URL, "wrong", js, end.task(id))
				demand(401, "POST", hook.URL, "", js, end.task(id))
				demand(404, "POST", hook.URL+"x", hook.Token, js, end.task(id))
				demand(404, "POST", callback+"/", hook.Token, js, end.task(id))
				demand(415, "POST", hook.URL, hook.Token, "text/plain", end.task(id))
				demand(405, "PUT", hook.URL, hook.Token, js, end.task(id))
				demand(400, "GET", hook.URL, "", "", "")
				if status, words := agent.push("GET", hook.URL+"?validationToken=a+b", "", "", ""); status != 200 ||
					words != "a b" {
					t.Errorf("the challenge is answered %d %q", status, words)
				}
				demand(200, "POST", hook.URL, hook.Token, js, `{"no":"sense"}`) // it is the run that makes nothing of it
				for _, now := range []step{one, two} {
					agent.is(now)
					demand(200, "POST", hook.URL, hook.Token, js, body(id, now))
					demand(200, "POST", hook.URL, hook.Token, js, body(id, now))
					if form == "task" || late {
						eventually(t, "the Leader sees "+now.says, func() bool {
							got := f.get("a")
							return says(got.Status.DataItems) == now.says && len(got.Products) == len(now.artifacts)
						})
					}
				}
				demand(200, "POST", hook.URL, hook.Token, js, body(id, one)) // once more, and too late
				switch {
				case form == "task": // which only the push shows
					demand(200, "POST", hook.URL, hook.Token, js, body(id, end))
				case late: // of which the push says only that there is something, and the run may have found out already
					agent.is(end)
					agent.push("POST", hook.URL, hook.Token, js, body(id, end))
				default: // which waits for the answer
					agent.is(end)
					demand(200, "POST", hook.URL, hook.Token, js, body(id, end))
					agent.answers <- struct{}{}
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
					want := []string{"accepted: ", "working: ", "+half", "working: one", "+more", "working: two", "+rest",
						"awaiting-completion: ready"}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the events (-want +got):\n%s", diff)
					}
				}
				eventually(t, "the address is gone", func() bool {
					status, _ := agent.push("POST", hook.URL, hook.Token, js, end.task(id))
					return status == 404
				})
				if got := f.rests("a"); got.Status.State != task.AwaitingCompletion {
					t.Errorf("the task is %+v", of(got))
				}
				if said := s.out.String(); strings.Contains(said, hook.Token) {
					t.Errorf("the log has the token of the callback")
				}
			})
		}
	}
}

// TestCallbackRestart kills the gateway while an agent is at work that would push. What it has missed it asks for.
func TestCallbackRestart(t *testing.T) {
	t.Parallel()
	agent := newPushAgent(t)
	s := newSite(t)
	c, _ := callbackTo(t, agent.url)
	s.start(c)
	s.knowsCard(agent.url)
	leader := leaderOf(t, s.url())
	agent.is(step{"working", "", nil})
	start := startCall("a", "hello")
	start.Terms.Response = time.Millisecond
	if got := leader.do(start); got.Status.State != task.Working {
		t.Errorf("the start is answered %+v", of(got))
	}
	id := (<-agent.asked).Params.ID
	agent.answers <- struct{}{}
	s.kill()
	end := step{"completed", "ready", []string{"all"}}
	agent.is(end)
	s.start(c)
	hook := agent.hook(id)
	eventually(t, "the new process knows nothing of the address", func() bool {
		status, _ := agent.push("POST", hook.URL, hook.Token, "application/json", end.task(id))
		return status == 404
	})
	got := leader.rests("a")
	checkHistory(t, got)
	if diff := cmp.Diff(answered{task.AwaitingCompletion, "ready", []string{"all"}}, of(got)); diff != "" {
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
			agent := through(t, trpcAgent(t, "-push", form), func(res *http.Response) error {
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
			c.store = "store memory"
			c.notify = "callback " + through(t, callback, func(res *http.Response) error {
				if res.StatusCode == http.StatusOK {
					taken.Add(1)
				}
				return nil
			}) + "/push"
			s := newSite(t)
			s.start(c)
			s.knowsCard(agent)
			leader := leaderOf(t, s.url())
			leader.start("slow", "slow 1")
			got := leader.rests("slow")
			checkHistory(t, got)
			if diff := cmp.Diff(answered{task.AwaitingCompletion, "", []string{"slow done"}}, of(got)); diff != "" {
				t.Errorf("slow (-want +got):\n%s", diff)
			}
			if taken.Load() == 0 {
				t.Error("the agent has pushed nothing, or nothing that was taken")
			}
			leader.start("asks", "ask")
			if got := leader.rests("asks"); got.Status.State != task.AwaitingInput {
				t.Errorf("asks is %+v", of(got))
			}
			leader.goOn("asks", "blue")
			got = leader.rests("asks")
			checkHistory(t, got)
			if diff := cmp.Diff([]string{"you said: blue"}, product(got)); diff != "" ||
				got.Status.State != task.AwaitingCompletion {
				t.Errorf("asks is %+v, its products (-want +got):\n%s", of(got), diff)
			}
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
