// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// speaker is an agent whose card says one thing and which speaks what its methods say.
type speaker struct {
	card    string
	methods map[string]string // method → result

	mu    sync.Mutex
	calls []string
}

func (s *speaker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	method := gjson.GetBytes(body, "method").Str
	s.mu.Lock()
	s.calls = append(s.calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/")+method)
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && s.card != "" && strings.HasSuffix(r.URL.Path, "agent-card.json"):
		io.WriteString(w, strings.ReplaceAll(s.card, "HERE", "http://"+r.Host+"/"))
	case r.Method == http.MethodGet:
		http.NotFound(w, r)
	case s.methods[method] != "":
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":"x","result":`+s.methods[method]+`}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":"x","error":{"code":-32601,"message":"Method not found"}}`)
	}
}

func (s *speaker) count(call string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if strings.Contains(c, call) {
			n++
		}
	}
	return n
}

func findAt(t *testing.T, url string) *FoundAgent {
	t.Helper()
	a, err := NewFound(FoundConfig{
		Agent:    Config{Logger: slog.New(slog.DiscardHandler)},
		Discover: DiscoverConfig{URL: url, Finder: a2a.Finder()},
		Codecs: map[string]func() translate.Client{
			"a2a/1.0": a2a.V1, "a2a/0.3": a2a.V03, "a2a/legacy": a2a.Legacy,
		},
		Next: map[string]string{"a2a/1.0": "a2a/0.3", "a2a/0.3": "a2a/legacy"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

const (
	cardOf10 = `{"name":"n","supportedInterfaces":[{"url":"HERE","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`
	cardOf03 = `{"name":"n","protocolVersion":"0.3.0","url":"HERE","preferredTransport":"JSONRPC"}`
	done10   = `{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}`
	done03   = `{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}`
	doneOld  = `{"id":"t","status":{"state":"completed"}}`
)

func TestFoundAgent(t *testing.T) {
	for _, tc := range []struct {
		name, card string
		methods    map[string]string
		want       []string
	}{
		{"1.0", cardOf10, map[string]string{"SendMessage": done10, "GetTask": `{}`}, []string{"TASK_STATE_COMPLETED"}},
		{"0.3", cardOf03, map[string]string{"message/send": done03}, []string{"completed"}},
		{"no card, v0.1", "", map[string]string{"tasks/send": doneOld, "tasks/pushNotification/get": `{}`}, []string{"completed"}},
		{"says 1.0 and speaks 0.3", cardOf10, map[string]string{"message/send": done03}, []string{"completed"}},
		{"says 0.3 and speaks v0.1", cardOf03, map[string]string{"tasks/send": doneOld}, []string{"completed"}},
		{"says 1.0 and speaks nothing", cardOf10, map[string]string{"GetTask": `{}`},
			[]string{"invalid-agent-response: the agent does not speak a2a/0.3; the operator must check its dialect"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &speaker{card: tc.card, methods: tc.methods}
			server := httptest.NewServer(s)
			defer server.Close()
			a := findAt(t, server.URL)
			for range 2 { // what was found is remembered
				if diff := cmp.Diff(tc.want, show(a.Run(t.Context(), turn("x"), false))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if n := s.count("agent-card.json"); n != 1 {
				t.Errorf("the card was asked for %d times: %q", n, s.calls)
			}
		})
	}
}

func TestFoundTogether(t *testing.T) {
	s := &speaker{card: cardOf03, methods: map[string]string{"message/send": done03}}
	server := httptest.NewServer(s)
	defer server.Close()
	a := findAt(t, server.URL)
	var runs sync.WaitGroup
	for range 20 {
		runs.Go(func() {
			if diff := cmp.Diff([]string{"completed"}, show(a.Run(t.Context(), turn("x"), false))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	runs.Wait()
	if n := s.count("agent-card.json"); n != 1 {
		t.Errorf("the card was asked for %d times", n)
	}
}

func TestNotFound(t *testing.T) {
	server := httptest.NewServer(&speaker{})
	a := findAt(t, server.URL)
	server.Close()
	_, err := a.Cancel(t.Context(), turn("x"))
	if task.KindOf(err) != task.AgentUnavailable {
		t.Errorf("an agent that is down: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := findAt(t, server.URL).Cancel(ctx, turn("x")); err == nil {
		t.Error("nobody waits, and it was found")
	}
	if _, err := NewFound(FoundConfig{Discover: DiscoverConfig{URL: "ftp://x"}, Codecs: map[string]func() translate.Client{"a2a/0.3": a2a.V03}}); err == nil {
		t.Error("a URL that is none is accepted")
	}
}

func TestCardIsKept(t *testing.T) {
	s := &speaker{card: `{"name":"n","url":"HERE","capabilities":{"streaming":false,"pushNotifications":true}}`}
	server := httptest.NewServer(s)
	card := NewCard(DiscoverConfig{URL: server.URL, Finder: a2a.Finder()})
	first, changed, err := card.Get(t.Context())
	if err != nil || first.Name != "n" || time.Since(changed) > time.Minute {
		t.Fatalf("%+v, %v, %v", first, changed, err)
	}
	if !card.Pushes(t.Context()) {
		t.Error("the agent pushes and does not stream")
	}
	if n := s.count("agent-card.json"); n != 1 {
		t.Errorf("the card was asked for %d times", n)
	}
	server.Close()
	card.asked = time.Time{} // it has grown old
	if again, when, err := card.Get(t.Context()); err != nil || again != first || !when.Equal(changed) {
		t.Errorf("an agent that is down takes its card with it: %v, %v", again, err)
	}
	none := NewCard(DiscoverConfig{URL: server.URL, Finder: a2a.Finder()})
	if _, _, err := none.Get(t.Context()); err == nil || none.Pushes(t.Context()) {
		t.Errorf("there is a card: %v", err)
	}
}
