// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// inbox is where webhooks go: each test to a path of its own.
type inbox struct {
	url string
	mu  sync.Mutex
	got map[string][]delivered
}

type delivered struct {
	header http.Header
	body   gjson.Result
}

func newInbox(t testing.TB) *inbox {
	t.Helper()
	s := &inbox{got: make(map[string][]delivered)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.got[r.URL.Path] = append(s.got[r.URL.Path], delivered{r.Header, gjson.ParseBytes(body)})
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// heard returns the notifications that a webhook has got so far.
func (s *inbox) heard(path string) []delivered {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]delivered(nil), s.got[path]...)
}

// pushed is the form of a dialect's notifications.
type pushed struct {
	media string
	token []string          // the header fields that hold the token
	shape map[string]string // members that a body has, by path, and their values; empty for any
}

var (
	aipPush = pushed{
		"application/json",
		[]string{"X-Acps-Aip-Notification-Token"},
		map[string]string{"type": "task", "id": "", "status.stateChangedAt": ""},
	}
	aip2Push = pushed{
		"application/json",
		[]string{"X-Acps-Aip-Notification-Token"},
		map[string]string{"type": "task-result", "taskId": "", "senderRole": "partner"},
	}
	legacyPush = pushed{
		"application/json",
		[]string{"X-A2a-Notification-Token"},
		map[string]string{"id": "", "status.state": ""},
	}
	v03Push = pushed{
		"application/json",
		[]string{"X-A2a-Notification-Token"},
		map[string]string{"kind": "task", "id": "", "contextId": ""},
	}
	v1Push = pushed{"application/a2a+json", []string{"X-A2a-Notification-Token", "A2a-Notification-Token"}, nil}
)

// byPush registers a webhook and expects a notification of the task's end, in the caller's own dialect.
func byPush(t *testing.T, w *world, f front, b *back) {
	d := f.driver(t, w.mountFor(f, b))
	path := "/" + f.name + "/" + b.name
	const token = "a token of the caller"
	answered := d.hooked("echo hi", w.inbox.url+path, token)
	if answered.State != f.done {
		t.Errorf("the task is answered as %+v", answered)
	}
	var last delivered
	site.Eventually(t, "the webhook is notified that the task is "+f.done, func() bool {
		for _, n := range w.heard(path) {
			if viewOf(n.body).State == f.done {
				last = n
				return true
			}
		}
		return false
	})
	got := viewOf(last.body)
	if got.ID != answered.ID {
		t.Errorf("the webhook is notified of %q, not of %q", got.ID, answered.ID)
	}
	if got := last.header.Get("Content-Type"); got != f.push.media {
		t.Errorf("the body is said to be %q, want %q", got, f.push.media)
	}
	var tokens []string
	for name, values := range last.header {
		if strings.Contains(name, "Notification-Token") && cmp.Equal(values, []string{token}) {
			tokens = append(tokens, name)
		}
	}
	for _, name := range f.push.token {
		if last.header.Get(name) != token {
			t.Errorf("the token is in %q, not in %s", tokens, name)
		}
	}
	for member, want := range f.push.shape {
		if v := last.body.Get(member); !v.Exists() || want != "" && v.String() != want {
			t.Errorf("the body has the member %s as %s, want %q:\n%s", member, v.Raw, want, last.body.Raw)
		}
	}
	if f.push.shape == nil && !last.body.Get("task").Exists() && !last.body.Get("statusUpdate").Exists() {
		t.Errorf("the body is no StreamResponse: %s", last.body.Raw)
	}
}
