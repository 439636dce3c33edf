// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Step is where an agent's task is: its state, what the agent says about it, and its artifacts.
type Step struct {
	State, Says string   // of the task
	Artifacts   []string // the text of each
}

// Status returns the task's status as A2A v0.1 writes it.
func (s Step) Status() string {
	return fmt.Sprintf(
		`{"state":%q,"timestamp":"2026-01-02T03:04:05Z","message":{"role":"agent","parts":[{"type":"text","text":%q}]}}`,
		s.State,
		s.Says,
	)
}

// Task returns the whole task as A2A v0.1 writes it.
func (s Step) Task(id string) string {
	var artifacts []string
	for i, text := range s.Artifacts {
		artifacts = append(
			artifacts,
			fmt.Sprintf(`{"name":"part %d","index":%d,"parts":[{"type":"text","text":%q}]}`, i, i, text),
		)
	}
	return fmt.Sprintf(`{"id":%q,"status":%s,"artifacts":[%s]}`, id, s.Status(), strings.Join(artifacts, ","))
}

// PushAgent is an agent of A2A v0.1 whose card says that it has no streams, but pushes.
type PushAgent struct {
	t       testing.TB
	URL     string        // of its endpoint
	Asked   chan Heard    // a tasks/send that waits for its answer
	Answers chan struct{} // lets it have one

	mu    sync.Mutex
	now   Step
	hooks map[string]PushHook // by task
}

// PushHook is where an agent is to push.
type PushHook struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// NewPushAgent serves an agent until the end of the test.
func NewPushAgent(t testing.TB) *PushAgent {
	t.Helper()
	a := &PushAgent{t: t, Asked: make(chan Heard), Answers: make(chan struct{}), hooks: make(map[string]PushHook)}
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
	a.URL = server.URL
	return a
}

func (a *PushAgent) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var h Heard
	var hook struct {
		Params struct {
			Set  PushHook `json:"pushNotificationConfig"`
			Send PushHook `json:"pushNotification"`
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
		if hook.Params.Send != a.Hook(h.Params.ID) {
			a.t.Errorf("tasks/send names the webhook %+v, tasks/pushNotification/set %+v", hook.Params.Send, a.Hook(h.Params.ID))
		}
		select {
		case a.Asked <- h:
		case <-r.Context().Done():
			return
		}
		select {
		case <-a.Answers:
		case <-r.Context().Done():
			return
		}
	case "tasks/get":
	default:
		WriteError(w, h, -32601, "Method not found")
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, h.ID, a.now.Task(h.Params.ID))
}

// Hook returns the webhook of a task.
func (a *PushAgent) Hook(id string) PushHook {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hooks[id]
}

// Is sets the state of the agent's task.
func (a *PushAgent) Is(s Step) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = s
}

// Push sends something to a URL and returns the status and the body of the answer.
func (a *PushAgent) Push(method, url, token, kind, body string) (int, string) {
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

// KnowsCard waits until the gateway has the card of an agent. A turn waits for the first card for 500 ms only, and is
// polled without one.
func (s *Site) KnowsCard(agent string) {
	s.T.Helper()
	Eventually(s.T, "the gateway has the card of "+agent, func() bool {
		status, _ := s.Asked(http.MethodGet, "/aip/agents/card?partner="+url.QueryEscape(agent), "")
		return status == http.StatusOK
	})
}
