// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// TestUnclaimedWebhook: with identity off, a webhook set for a task before it is there becomes one of the task when the
// latter is started, in whatever shard the Leader is.
func TestUnclaimedWebhook(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const count = 4
		shards := replaytest.NewShards(count)
		node := shards.Node()
		set := shard.Join(node, quiet)
		for i := range count {
			shards.Assign(i, node, false)
		}
		var tasks *gateway.Tasks
		g := newGatewayAt(t, set, func(c *gateway.Config) {
			c.Guard.Mode, c.Callers = identity.Off, []translate.Server{aip.Server()}
		}, func(of *gateway.Tasks) { tasks = of })
		tasks.Configure(notify.Config{}) // nothing is delivered
		bubble.Pass(time.Second)         // the shards are opened
		hooks := func(leader, id string) int {
			t.Helper()
			_, engine, err := tasks.Of("agent", leader)
			if err != nil {
				t.Fatal(err)
			}
			list, err := engine.Get(t.Context(), logname.New("agent", leader, id), "")
			if err != nil && task.KindOf(err) != task.TaskNotFound {
				t.Fatal(err)
			}
			return len(list)
		}
		in := make(map[int]bool)
		for i := range 20 {
			leader, id := fmt.Sprint("LEADER", i), fmt.Sprint("t", i)
			in[logname.Shard(count, "agent", leader)] = true
			var r gateway.Request
			if !g.Match(&r, "POST", "") {
				t.Fatal("no dialect has the request")
			}
			r.Body = gateway.NewBody()
			*r.Body = fmt.Appendf(*r.Body, `{"jsonrpc":"2.0","id":1,"method":"notification/set","params":{"taskId":%q,`+
				`"token":"t","url":"https://hooks.example/"}}`, id)
			if a := g.Dispatch(t.Context(), identity.Peer{}, &r); a.Err != nil {
				t.Fatal(a.Err)
			}
			r.Release()
			if n := hooks(partner.Anyone, id); n != 1 {
				t.Fatalf("%d webhooks wait for the task", n)
			}
			f := &front{t: t, g: g, peer: identity.Peer{ID: leader}}
			f.sendTask("rpc", "start", id, "")
			if n, left := hooks(leader, id), hooks(partner.Anyone, id); n != 1 || left != 0 ||
				!strings.Contains(fmt.Sprint(f.seen), "awaiting-input") {
				t.Errorf("%s, which is answered %q, has %d webhooks, and %d are left", leader, f.seen, n, left)
			}
		}
		if len(in) != count {
			t.Errorf("the Leaders are in %d shards only", len(in))
		}
	})
}
