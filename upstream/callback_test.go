// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// pusher is an agent without streams that pushes. told is called once a turn has been sent, with what pushes to where
// the agent was told to; reply answers the turn.
type pusher struct {
	t         *testing.T
	callbacks *Callbacks
	told      func(push func(body string) int)
	reply     string // to tasks/send, once told has returned
	get       string
}

func (p *pusher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch gjson.GetBytes(body, "method").Str {
	case "tasks/pushNotification/set":
		config := gjson.GetBytes(body, "params.pushNotificationConfig")
		url, token := config.Get("url").Str, config.Get("token").Str
		p.told = func(told func(func(string) int)) func(func(string) int) {
			return func(func(string) int) {
				told(func(body string) int { return push(p.callbacks, url, token, body) })
			}
		}(p.told)
		io.WriteString(w, `{"jsonrpc":"2.0","id":"x","result":`+gjson.GetBytes(body, "params").Raw+`}`)
	case "tasks/send":
		p.told(nil)
		io.WriteString(w, p.reply)
	case "tasks/get":
		io.WriteString(w, p.get)
	}
}

// push posts a body as an agent does, and returns the status of the answer.
func push(c *Callbacks, url, token, body string) int {
	r := httptest.NewRequest(http.MethodPost, url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-A2A-Notification-Token", token)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Code
}

func result(rpc string) string { return gjson.Get(rpc, "result").Raw }

func TestPushed(t *testing.T) {
	notify := func(rpc string) string {
		return `{"jsonrpc":"2.0","method":"tasks/notifyEvent","params":{"id":"x","eventType":"task_status_update","event":` + result(rpc) + `}}`
	}
	update := func(rpc string) string {
		return `{"eventType":"taskUpdate","taskId":"x",` + strings.TrimPrefix(result(rpc), "{")
	}
	for _, tc := range []struct {
		name       string
		pushes     []string
		reply, get string
		want       []string
		took       time.Duration
	}{
		{"tasks, before the answer", []string{result(is("working", has("a"))), result(is("completed", has("a", "b")))}, is("working"), is("working"),
			[]string{"working artifact-0=a", "completed artifact-0=ab"}, 0},
		{"twice the same", []string{result(is("working", has("a"))), result(is("working", has("a"))), result(is("completed", has("a")))}, is("working"), is("working"),
			[]string{"working artifact-0=a", "completed artifact-0=a"}, 0},
		{"taskUpdate", []string{update(is("completed", has("a")))}, is("working"), is("working"), []string{"completed artifact-0=a"}, 0},
		{"nonsense", []string{"[]", `{"x":1}`, `{"status":{"state":"dancing"}}`}, is("completed", has("a")), "", []string{"completed artifact-0=a"}, 0},
		{"nothing", nil, is("completed"), "", []string{"completed"}, 0},
		{"all pushes are lost", nil, is("working"), is("completed", has("a")), []string{"working", "completed artifact-0=a"}, 100 * time.Millisecond},
		{"an event is a reason to ask", []string{notify(is("working"))}, is("working"), is("completed"), nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var callbacks Callbacks
			p := &pusher{t: t, callbacks: &callbacks, reply: tc.reply, get: tc.get}
			p.told = func(push func(string) int) {
				for _, body := range tc.pushes {
					if status := push(body); status != http.StatusOK {
						t.Errorf("a push was answered with %d", status)
					}
				}
			}
			settings := func(c *Config) {
				c.Callbacks, c.CallbackURL = &callbacks, "http://gateway.example/callback/"
				c.Pushes = func(context.Context) bool { return true }
			}
			withAgent(t, p, settings, func(t *testing.T, h *HTTP, _ *memory) {
				begun := time.Now()
				got := show(h.Run(t.Context(), turn("x"), true))
				if tc.want == nil { // how many reports there are depends on which comes first
					if len(got) == 0 || got[len(got)-1] != "completed" {
						t.Errorf("got %q", got)
					}
				} else if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(begun); tc.want != nil && took != tc.took {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
				if len(callbacks.open) != 0 {
					t.Error("the run is over, but can still be pushed to")
				}
			})
		})
	}
}

func TestCallbacks(t *testing.T) {
	var callbacks Callbacks
	cb := callbacks.begin()
	url := "/some/where/" + cb.id
	for _, tc := range []struct {
		name, method, url string
		header            []string
		body              string
		status            int
		says              string
	}{
		{"in order", "POST", url, []string{"X-A2A-Notification-Token", cb.token}, "{}", 200, ""},
		{"as 1.0 has it", "POST", url, []string{"A2A-Notification-Token", cb.token}, "{}", 200, ""},
		{"as AIP has it", "POST", url, []string{"X-ACPS-AIP-Notification-Token", cb.token}, "{}", 200, ""},
		{"as a bearer", "POST", url, []string{"Authorization", "Bearer " + cb.token}, "{}", 200, ""},
		{"the wrong token", "POST", url, []string{"X-A2A-Notification-Token", cb.token + "x"}, "{}", 401, "token"},
		{"no token", "POST", url, nil, "{}", 401, "token"},
		{"another address", "POST", "/some/where/else", []string{"X-A2A-Notification-Token", cb.token}, "{}", 404, "no run"},
		{"no JSON", "POST", url, []string{"X-A2A-Notification-Token", cb.token, "Content-Type", "text/plain"}, "{}", 415, "JSON"},
		{"too large", "POST", url, []string{"X-A2A-Notification-Token", cb.token}, strings.Repeat("x", maxPush+1), 413, "too large"},
		{"a challenge", "GET", url + "?validationToken=a%20b", nil, "", 200, "a b"},
		{"no challenge", "GET", url, nil, "", 400, "validationToken"},
		{"a long challenge", "GET", url + "?validationToken=" + strings.Repeat("x", maxChallenge+1), nil, "", 400, "validationToken"},
		{"another method", "DELETE", url, nil, "", 405, "POST"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, tc.url, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/json; charset=utf-8")
			for i := 0; i < len(tc.header); i += 2 {
				r.Header.Set(tc.header[i], tc.header[i+1])
			}
			w := httptest.NewRecorder()
			callbacks.ServeHTTP(w, r)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("got %d %q, want %d with %q", w.Code, w.Body, tc.status, tc.says)
			}
		})
	}
	for len(cb.bodies) < maxPushes {
		cb.bodies <- nil
	}
	if status := push(&callbacks, url, cb.token, "{}"); status != http.StatusServiceUnavailable {
		t.Errorf("a run that is behind answers %d", status)
	}
	callbacks.end(cb)
	if status := push(&callbacks, url, cb.token, "{}"); status != http.StatusNotFound {
		t.Errorf("a run that is over answers %d", status)
	}
}
