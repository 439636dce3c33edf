// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// speaker is an agent with a card of its own choice. It speaks the dialect of its methods.
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
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","result":`+s.methods[method]+`}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"Method not found"}}`)
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

// foundAgent returns an agent with its dialect to be found at a URL. dial may be nil.
func foundAgent(
	t *testing.T, url string, dial func(context.Context, string, string) (net.Conn, error),
) *upstream.Agent {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	resolver, err := discovery.NewResolver(resolverConfig(url, dial))
	if err != nil {
		t.Fatal(err)
	}
	a := upstream.New(upstream.Config{Resolver: resolver, RetryFor: 10 * time.Second, Logger: log})
	a.NumberAll("1")
	t.Cleanup(a.Close)
	return a
}

func resolverConfig(url string, dial func(context.Context, string, string) (net.Conn, error)) discovery.ResolverConfig {
	return discovery.ResolverConfig{
		Discover: discovery.Config{URL: url, Finder: a2a.Finder(), Dial: dial},
		Dialects: map[string]discovery.Dialect{
			"a2a/1.0": {Codec: a2a.V1, Older: "a2a/0.3"}, "a2a/0.3": {Codec: a2a.V03, Older: "a2a/legacy"},
			"a2a/legacy": {Codec: a2a.Legacy},
		},
		Open: func(url string, codec translate.Client) (upstream.Transport, error) {
			return httptransport.New(httptransport.Config{URL: url, Codec: codec, Dial: dial})
		},
		Logger: slog.New(slog.DiscardHandler),
	}
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
		{"no card, v0.1", "", map[string]string{"tasks/send": doneOld, "tasks/pushNotification/get": `{}`},
			[]string{"completed"}},
		{"says 1.0 and speaks 0.3", cardOf10, map[string]string{"message/send": done03}, []string{"completed"}},
		{"says 0.3 and speaks v0.1", cardOf03, map[string]string{"tasks/send": doneOld}, []string{"completed"}},
		{"says 1.0 and speaks nothing", cardOf10, map[string]string{"GetTask": `{}`},
			[]string{"invalid-agent-response: the agent does not speak a2a/0.3; the operator must check its dialect"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &speaker{card: tc.card, methods: tc.methods}
			server := httptest.NewServer(s)
			defer server.Close()
			a := foundAgent(t, server.URL, nil)
			for range 2 { // the finding is remembered
				if diff := cmp.Diff(tc.want, show(carryOut(t.Context(), a, turn("x"), false))); diff != "" {
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
	a := foundAgent(t, server.URL, nil)
	var runs sync.WaitGroup
	for range 20 {
		runs.Go(func() {
			if diff := cmp.Diff([]string{"completed"}, show(carryOut(t.Context(), a, turn("x"), false))); diff != "" {
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
	down := fmt.Sprint("http://127.0.0.1:", freeport.Closed(t))
	_, err := foundAgent(t, down, nil).Cancel(t.Context(), turn("x"))
	if task.KindOf(err) != task.AgentUnavailable {
		t.Errorf("an agent that is down: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := foundAgent(t, down, nil).Cancel(ctx, turn("x")); err == nil {
		t.Error("no caller waits, and it was found")
	}
	if _, err := discovery.NewResolver(resolverConfig("ftp://x", nil)); err == nil {
		t.Error("a URL that is none is accepted")
	}
}
