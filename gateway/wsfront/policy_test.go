// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/policy"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/shard"
)

// reads is a store that counts what is looked up.
type reads struct {
	replay.Store
	n atomic.Int64
}

func (r *reads) Head(ctx context.Context, log string) (replay.Head, error) {
	r.n.Add(1)
	return r.Store.Head(ctx, log)
}

// TestPolicy: a policy decides by who calls, also where that is not the owner of the task, and by the methods of AUN. A
// quota says when to come back. Nothing is looked up for a call that the rules deny, and it is counted. A decision
// point denies what is not there, too.
func TestPolicy(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		looked := &reads{Store: w.store}
		w.store = looked
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		book := policy.OpenBook(shard.One(store), time.Now, slog.New(slog.DiscardHandler))
		defer book.Close()
		meter := new(policy.Meter)
		p, err := policy.New(policy.Config{
			Rules: []policy.Rule{
				{Name: "alice", Match: policy.Match{Leader: []string{"aid:alice.aid.test"}}},
				{Name: "carol", Match: policy.Match{Leader: []string{"aid:carol.aid.test"}}},
				{Name: "bob", Match: policy.Match{Leader: []string{"aid:bob.aid.test"}, Method: []string{"task.list"}}},
			},
			Further: func(_ context.Context, c *policy.Call) error {
				if c.Leader == "aid:carol.aid.test" {
					return errors.New("not today")
				}
				return nil
			},
			Quotas: []policy.Quota{{Name: "daily", Starts: 2}},
			Names:  policy.Names{Commands: gateway.Commands(), Dialects: gateway.CallerDialects()},
			Meter:  meter, Log: slog.New(slog.DiscardHandler), Partner: reviewer,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.Open(book)
		w.policy = p
		w.start()
		alice, bob := w.connect("alice.aid.test", "d"), w.connect("bob.aid.test", "d")
		carol := w.connect("carol.aid.test", "d")
		id := alice.create(reviewer, `,"participants":["bob.aid.test"]`)
		w.say(id, working)
		synctest.Wait()
		const denied = -32004
		for _, tc := range []struct {
			c      *client
			method string
			params string
			want   int
		}{
			{alice, "task.get", fmt.Sprintf(`{"task_id":%q}`, id), 0},
			{bob, "task.get", fmt.Sprintf(`{"task_id":%q}`, id), denied},
			{bob, "task.get", `{"task_id":"task_X"}`, denied}, // never: not found
			{bob, "task.subscribe", `{"task_ids":["task_X"]}`, denied},
			{bob, "task.cancel", `{"task_id":"task_X"}`, denied},
			{bob, "task.send_input", `{"task_id":"task_X","input":"x"}`, denied},
			{alice, "task.get", `{"task_id":"task_X"}`, -32170},
			{carol, "task.get", `{"task_id":"task_X"}`, denied}, // by the decision point, which knows no tasks
			{carol, "task.subscribe", `{"task_ids":["task_X"]}`, denied},
			{bob, "task.create", `{"to":"` + reviewer + `","input":"x"}`, denied},
			{bob, "task.list", `{}`, 0},
			{alice, "task.create", `{"to":"` + reviewer + `","input":"x"}`, 0},
			{alice, "task.create", `{"to":"` + reviewer + `","input":"x"}`, -32050},
		} {
			before := looked.n.Load()
			result, code := tc.c.call(tc.method, tc.params)
			if n := looked.n.Load() - before; code == denied && tc.c != carol && n > 0 {
				t.Errorf("%s %s: %d are looked up", tc.method, tc.params, n)
			}
			if code != tc.want {
				t.Errorf("%s %s: %d, want %d: %s", tc.method, tc.params, code, tc.want, result.Raw)
			}
		}
		for c := range meter.Rules() {
			if c.Name == policy.NoRule && c.Denied != 6 {
				t.Errorf("%d calls are denied", c.Denied)
			}
		}
		w.stop()
	})
}
