// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// aunSite is a site with one agent for AUN clients.
type aunSite struct {
	*site
	pki *aunpeer.PKI
}

func newAUNSite(t *testing.T) *aunSite {
	t.Helper()
	pki, err := aunpeer.NewPKI("aid.test")
	if err != nil {
		t.Fatal(err)
	}
	s := &aunSite{site: newSite(t), pki: pki}
	own, err := pki.Issue("gateway.aid.test")
	if err != nil {
		t.Fatal(err)
	}
	text, err := own.PEM()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"gateway.pem": text, "roots.pem": pki.Issuer.ChainPEM()} {
		if err := os.WriteFile(filepath.Join(s.dir, "..", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// config returns a configuration; more is what stands in the block of the gateway.
func (s *aunSite) config(more string) []byte {
	s.t.Helper()
	input := fmt.Sprintf(`{
	admin off
	auto_https off
	aip {
		store pebble %s
		drain 1s
		aun {
			cert %s
			roots %s
		}
	}
}
http://%s {
	aip_aun
	aip_gateway a2a/legacy %s {
		aid reviewer.aid.test
		callers aip aun
		identity off
		%s
	}
}
`, s.dir, filepath.Join(s.dir, "../gateway.pem"), filepath.Join(s.dir, "../roots.pem"), s.addr, s.agent, more)
	out := adapt(s.t, string(caddyfile.Format([]byte(input))))
	if strings.HasPrefix(out, "error") {
		s.t.Fatal(out)
	}
	return []byte(out)
}

func (s *aunSite) client(aid, device string) *aunpeer.Client {
	s.t.Helper()
	id, err := s.pki.Issue(aid)
	if err != nil {
		s.t.Fatal(err)
	}
	return &aunpeer.Client{ID: id, PKI: s.pki, HTTP: aunpeer.To(s.addr), URL: "ws://" + s.addr + "/aun", Device: device}
}

func (s *aunSite) online(c *aunpeer.Client) *aunpeer.Conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	conn, err := c.Online(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Cut)
	return conn
}

// TestAUN: a client logs in, gives an agent a task, answers its question, and gets the result. A reload breaks its
// connection without a close, and a connection of the same device continues with the next event.
func TestAUN(t *testing.T) {
	s := newAUNSite(t)
	s.mustLoad(s.config(""))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	alice := s.client("alice.aid.test", "d1")
	conn := s.online(alice)
	made, err := conn.Create(ctx, "reviewer.aid.test", "ask")
	if err != nil || made.Owner != "alice.aid.test" || made.Assignee != "reviewer.aid.test" {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := conn.Subscribe(ctx, made.TaskID); err != nil {
		t.Fatal(err)
	}
	ev, err := conn.TaskEvent(ctx, "event/task.updated", made.TaskID, "input_required")
	if err != nil || ev.Message.String() == "" {
		t.Fatalf("%+v, %v", ev, err)
	}

	s.mustLoad(s.config("heartbeat 20s"))
	if code, _, err := conn.Closed(ctx); code != 0 || ctx.Err() != nil {
		t.Fatalf("a reload closes with %d, %v", code, err)
	}
	conn = s.online(alice)
	if _, err := conn.Subscribe(ctx, made.TaskID); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Do(ctx, "task.send_input",
		map[string]any{"task_id": made.TaskID, "input": aunpeer.Text("blue")}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.TaskEvent(ctx, "event/task.completed", made.TaskID, "completed"); err != nil {
		t.Fatal(err)
	}
	if first := conn.Received()[1]; !strings.Contains(first, `"status":"working"`) { // after the challenge
		t.Errorf("the new connection begins with %s", first)
	}
	got, err := conn.Do(ctx, "task.get", map[string]any{"task_id": made.TaskID})
	if err != nil || got.Status != "completed" || got.Input.String() != "ask" || len(got.Artifacts) == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if code, _, err := conn.Closed(ctx); code != 0 || ctx.Err() != nil {
		t.Fatalf("a stop closes with %d, %v", code, err)
	}
}
