// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
)

// pushNode is a gateway of several, as far as pushes go.
type pushNode struct {
	*Pushes
	node *replaytest.Node
	own  callback.Server
}

// pushNodes returns gateways that own shards in turns.
func pushNodes(t *testing.T, n int) (all []*pushNode) {
	t.Helper()
	shards := replaytest.NewShards(4)
	for range n {
		p := &pushNode{node: shards.Node()}
		set := shard.Join(p.node, slog.New(slog.DiscardHandler))
		t.Cleanup(func() {
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
		p.Pushes = OpenPushes(set, &p.own)
		all = append(all, p)
	}
	for i := range 4 {
		p := all[i%n]
		shards.Assign(i, p.node, false)
		asynctest.Eventually(t, "the shard is owned", func() bool { return p.shards.Owns(i) })
	}
	return all
}

// TestPushes: an agent may push to any gateway. What is not from the agent is refused as where the turn runs.
func TestPushes(t *testing.T) {
	all := pushNodes(t, 3)
	inbox := all[1].own.At("https://gateway.example/push", func(context.Context) bool { return true }).
		Listen(t.Context(), agent.Ref{})
	defer inbox.Close()
	for _, tc := range []struct {
		method, url, token, body string
		status                   int
	}{
		{"POST", inbox.Webhook.URL, inbox.Webhook.Token, `{"a":1}`, http.StatusOK},
		{"POST", inbox.Webhook.URL, "guessed", `{}`, http.StatusUnauthorized},
		{"POST", inbox.Webhook.URL, inbox.Webhook.Token, strings.Repeat(" ", callback.MaxPush+1),
			http.StatusRequestEntityTooLarge},
		{"GET", inbox.Webhook.URL + "?validationToken=hello", "", "", http.StatusOK},
		{"POST", "https://gateway.example/push/unknown", inbox.Webhook.Token, `{}`, 0},
	} {
		r := httptest.NewRequest(tc.method, tc.url, strings.NewReader(tc.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-A2A-Notification-Token", tc.token)
		w := httptest.NewRecorder()
		forwarded := all[0].Forward(w, r)
		if forwarded != (tc.status != 0) || forwarded && w.Code != tc.status {
			t.Errorf("%s %s: forwarded %t, status %d, want %d", tc.method, tc.url, forwarded, w.Code, tc.status)
		}
		if tc.method == "GET" && w.Body.String() != "hello" {
			t.Errorf("the challenge is answered %q", w.Body)
		}
	}
	if body := <-inbox.Messages; string(body) != `{"a":1}` {
		t.Errorf("the turn has got %q", body)
	}
}

// TestPushInTime: a gateway that does not answer does not keep a push from the one that runs the turn.
func TestPushInTime(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		all := pushNodes(t, 3)
		all[1].node.Handle("push", func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		inbox := all[2].own.At("https://gateway.example/push", func(context.Context) bool { return true }).
			Listen(t.Context(), agent.Ref{})
		defer inbox.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		r := httptest.NewRequestWithContext(ctx, "POST", inbox.Webhook.URL, strings.NewReader(`{}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-A2A-Notification-Token", inbox.Webhook.Token)
		w := httptest.NewRecorder()
		if !all[0].Forward(w, r) || w.Code != http.StatusOK || time.Since(begun) > Patience {
			t.Errorf("after %v the status is %d", time.Since(begun), w.Code)
		}
	})
}

// TestPushBroken: what another gateway answers to a push is checked.
func TestPushBroken(t *testing.T) {
	all := pushNodes(t, 2)
	for _, answer := range []string{
		`{"Has":true,"Shard":4}`, `{"Has":true,"Shard":-1}`, `{"Has":true,"Shard":1}`, `{"Has":true,"Shard":1,"Status":101}`,
	} {
		all[1].node.Handle("push", func(context.Context, int, []byte) ([]byte, error) {
			return []byte(`{"answer":` + answer + `}`), nil
		})
		r := httptest.NewRequest("POST", "https://gateway.example/push/known", strings.NewReader(`{}`))
		w := httptest.NewRecorder()
		if !all[0].Forward(w, r) || w.Code != http.StatusBadGateway {
			t.Errorf("after %s, the status is %d", answer, w.Code)
		}
	}
}
