// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
)

// inboxes is a Listener counting the open inboxes.
type inboxes struct {
	upstream.Listener
	open atomic.Int64
}

func listenAt(s *callback.Server) *inboxes {
	return &inboxes{Listener: s.At("http://gateway.example/callback/", func(context.Context) bool { return true })}
}

func (l *inboxes) Listen(ctx context.Context, ref agent.Ref) *upstream.Inbox {
	inbox := l.Listener.Listen(ctx, ref)
	l.open.Add(1)
	end := inbox.Close
	inbox.Close = func() { end(); l.open.Add(-1) }
	return inbox
}

// pusher is a pushing agent without streams. sent is called once a turn has been sent, with a function to push to the
// registered address; reply answers the turn.
type pusher struct {
	t         *testing.T
	callbacks *callback.Server
	sent      func(push func(body string) int)
	reply     string // to tasks/send, once sent has returned
	get       string
}

func (p *pusher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch gjson.GetBytes(body, "method").Str {
	case "tasks/pushNotification/set":
		config := gjson.GetBytes(body, "params.pushNotificationConfig")
		url, token := config.Get("url").Str, config.Get("token").Str
		p.sent = func(sent func(func(string) int)) func(func(string) int) {
			return func(func(string) int) {
				sent(func(body string) int { return push(p.callbacks, url, token, body) })
			}
		}(p.sent)
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":`+gjson.GetBytes(body, "params").Raw+`}`)
	case "tasks/send":
		p.sent(nil)
		io.WriteString(w, p.reply)
	case "tasks/get":
		io.WriteString(w, p.get)
	}
}

// push posts a body as an agent does, and returns the status of the answer.
func push(c *callback.Server, url, token, body string) int {
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
		return `{"jsonrpc":"2.0","method":"tasks/notifyEvent","params":{"id":"x",` +
			`"eventType":"task_status_update","event":` + result(rpc) + `}}`
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
		{"tasks, before the answer", []string{result(is("working", has("a"))), result(is("completed", has("a", "b")))},
			is("working"), is("working"),
			[]string{"working artifact-0=a", "completed artifact-0=ab"}, 0},
		{"twice the same", []string{result(is("working", has("a"))), result(is("working", has("a"))),
			result(is("completed", has("a")))}, is("working"), is("working"),
			[]string{"working artifact-0=a", "completed artifact-0=a"}, 0},
		{"taskUpdate", []string{update(is("completed", has("a")))}, is("working"), is("working"),
			[]string{"completed artifact-0=a"}, 0},
		{"nonsense", []string{"[]", `{"x":1}`, `{"status":{"state":"dancing"}}`}, is("completed", has("a")), "",
			[]string{"completed artifact-0=a"}, 0},
		{"nothing", nil, is("completed"), "", []string{"completed"}, 0},
		{"all pushes are lost", nil, is("working"), is("completed", has("a")),
			[]string{"working", "completed artifact-0=a"}, 100 * time.Millisecond},
		{"an event is a reason to ask", []string{notify(is("working"))}, is("working"), is("completed"), nil, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, way := range append(ways(true), ways(false)...) {
				var callbacks callback.Server
				inboxes := listenAt(&callbacks)
				p := &pusher{t: t, callbacks: &callbacks, reply: tc.reply, get: tc.get}
				p.sent = func(push func(string) int) {
					for _, body := range tc.pushes {
						if status := push(body); status != http.StatusOK {
							t.Errorf("a push was answered with %d", status)
						}
					}
				}
				withAgent(t, p, func(c *settings) { c.Listener = inboxes },
					func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
						begun := time.Now()
						got := show(way.run(t.Context(), h, turn("x")))
						if tc.want == nil { // the number of reports depends on the first to come
							if len(got) == 0 || got[len(got)-1] != "completed" {
								t.Errorf("got %q", got)
							}
						} else if diff := cmp.Diff(tc.want, got); diff != "" {
							t.Errorf("%s: (-want +got):\n%s", way.name, diff)
						}
						if took := time.Since(begun); tc.want != nil && took != tc.took {
							t.Errorf("%s: it took %v, want %v", way.name, took, tc.took)
						}
						if inboxes.open.Load() != 0 {
							t.Error("the run is over, but can still be pushed to")
						}
					})
			}
		})
	}
}
