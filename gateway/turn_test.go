// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// busy is a dialect with long decoding. It tells the greatest number of large requests decoded at once.
type busy struct {
	translate.Server
	now, most *atomic.Int32
}

func (b busy) Decode(r *translate.Request) (translate.Call, error) {
	if len(r.Params.Raw) > 256<<10 {
		defer b.now.Add(-1)
		if now := b.now.Add(1); now > b.most.Load() {
			b.most.Store(now)
		}
		for range 1000 { // others run
			runtime.Gosched()
		}
	}
	return translate.Call{}, task.Errorf(task.InvalidParams, "it is read, and that is all")
}

// TestLargeRequestsTakeTurns sends large and small requests at once. Only one of the large ones is decoded at a time.
func TestLargeRequestsTakeTurns(t *testing.T) {
	var now, most atomic.Int32
	g := newGateway(t, func(c *gateway.Config) {
		c.Guard.Mode = identity.Off
		c.Callers = []translate.Server{busy{Server: aip.Server(), now: &now, most: &most}}
		c.Limits.Bytes = 1 << 20
	})
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			members := ""
			if i%2 == 0 {
				members = `,"more":"` + strings.Repeat("x", 300<<10) + `"`
			}
			f := &front{t: t, g: g, peer: identity.Peer{ID: "leader"}}
			f.sendTask("rpc", "get", "t", members)
			if len(f.seen) != 1 || f.seen[0] != "reply -32602" {
				t.Errorf("answered %q", f.seen)
			}
		})
	}
	group.Wait()
	if most.Load() != 1 {
		t.Errorf("%d large requests were decoded at once, want 1", most.Load())
	}
}
