// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestInactive: a Partner without calls refuses all of them, ends its streams with the reason, is not found, and is not
// active in its ACS. Its tasks go on, and are there when it takes calls again.
func TestInactive(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var why atomic.Pointer[task.Error]
		var p *gateway.Process
		g := newGateway(t, func(c *gateway.Config) {
			p = c.Process
			c.Inactive = func() error {
				if err := why.Load(); err != nil {
					return err
				}
				return nil
			}
		})
		peer := identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}
		f := &front{t: t, g: g, peer: peer}
		s := f.send(t.Context(), "stream", "start") // the agent works for a second
		ended := make(chan struct{})
		go func() {
			s.Run(f)
			s.Close()
			close(ended)
		}()
		synctest.Wait()
		f.seen = nil
		why.Store(task.Errorf(task.AgentUnavailable, "the Partner is not active"))
		p.CutInactive()
		<-ended
		f.send(t.Context(), "rpc", "get")
		if third := f.send(t.Context(), "stream", "re-stream"); third != nil {
			t.Error("a stream is open")
		}
		if err := g.MayCall(t.Context(), peer); task.KindOf(err) != task.AgentUnavailable {
			t.Errorf("may it be called? %v", err)
		}
		active := func() bool {
			body, err := g.Document(".well-known/acs.json")(context.Background(), "https://agent.example", "")
			if err != nil {
				t.Fatal(err)
			}
			return gjson.GetBytes(body, "active").Bool()
		}
		if active() {
			t.Error("it is active in its ACS")
		}
		bubble.Pass(time.Minute)
		why.Store(nil)
		f.send(t.Context(), "rpc", "get")
		want := []string{"-32603", "reply -32603", "reply -32603", "reply awaiting-input"}
		if diff := cmp.Diff(want, f.seen); diff != "" {
			t.Errorf("the caller has seen (-want +got):\n%s", diff)
		}
		if err := g.MayCall(t.Context(), peer); err != nil || !active() {
			t.Errorf("it is not active again: %v", err)
		}
	})
}
