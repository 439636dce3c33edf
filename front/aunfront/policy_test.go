// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// reads is a store counting lookups.
type reads struct {
	replay.Store
	n atomic.Int64
}

func (r *reads) Head(ctx context.Context, log string) (replay.Head, error) {
	r.n.Add(1)
	return r.Store.Head(ctx, log)
}

// countedThreads counts what is looked up of threads.
type countedThreads struct {
	threads
	*reads
}

func (c countedThreads) TaskOf(ctx context.Context, s *Session, agent, thread string) (string, error) {
	c.n.Add(1)
	return c.threads.TaskOf(ctx, s, agent, thread)
}

// TestPolicy: a policy decides by the actual caller, also if it is not the owner of the task, and by the methods of
// AUN. A quota says when to come back. Nothing is looked up for a call denied by the rules, and it is counted. A
// decision point denies missing tasks, too.
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
		w.config.Services = map[string]Service{"message": countedThreads{nil, looked}}
		w.start()
		alice, bob := w.connect("alice.aid.test", "d"), w.connect("bob.aid.test", "d")
		carol := w.connect("carol.aid.test", "d")
		id := alice.create(reviewer, `,"participants":["bob.aid.test","carol.aid.test"]`)
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
			{bob, "task.cancel", `{"thread_id":"th"}`, denied},
			{bob, "task.send_input", `{"task_id":"task_X","input":"x"}`, denied},
			{alice, "task.get", `{"task_id":"task_X"}`, -32170},
			{carol, "task.get", `{"task_id":"task_X"}`, denied}, // by the decision point, since it knows no tasks
			{carol, "task.subscribe", `{"task_ids":["task_X"]}`, denied},
			{bob, "task.children", params(id), denied},
			{bob, "task.children", params("task_X"), denied},
			{bob, "task.complete", params(id), denied},
			{bob, "task.fail", params("task_X"), denied},
			{bob, "task.delegate", `{"task_id":"` + id + `","to":"` + reviewer + `","input":"x"}`, denied},
			{bob, "task.delegate", `{"task_id":"task_X","to":"` + reviewer + `","input":"x"}`, denied},
			{carol, "task.children", params(id), denied},
			{carol, "task.children", params("task_X"), denied},
			{carol, "task.accept", params(id), denied},
			{carol, "task.delegate", `{"task_id":"` + id + `","to":"` + reviewer + `","input":"x"}`, denied},
			{alice, "task.children", params(id), 0},
			{alice, "task.children", params("task_X"), -32170},
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
			if c.Name == policy.NoRule && c.Denied != 13 {
				t.Errorf("%d calls are denied", c.Denied)
			}
		}
		w.stop()
	})
}

// policyOf sets the policy of all agents.
func (w *world) policyOf(c policy.Config) {
	w.t.Helper()
	store := replay.NewMemory(replay.Settings{})
	book := policy.OpenBook(shard.One(store), time.Now, slog.New(slog.DiscardHandler))
	w.t.Cleanup(func() {
		book.Close()
		_ = store.Close()
	})
	c.Names = policy.Names{Commands: gateway.Commands(), Dialects: gateway.CallerDialects()}
	c.Meter, c.Log, c.Partner = new(policy.Meter), slog.New(slog.DiscardHandler), reviewer
	p, err := policy.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	p.Open(book)
	w.policy = p
}

// TestDelegateByName: a rule has a call under the client's own name for it, though it starts a task as task.create
// does.
//
// Promise: a Leader does what it is not meant to do
func TestDelegateByName(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.policyOf(policy.Config{Rules: []policy.Rule{
			{Name: "none", Deny: true, Match: policy.Match{Method: []string{"task.delegate"}}}, {},
		}})
		w.start()
		alice := w.connect("alice.aid.test", "d")
		id := alice.create(reviewer, "")
		for _, to := range []string{reviewer, translator} {
			_, code := alice.call("task.delegate", fmt.Sprintf(`{"task_id":%q,"to":%q,"input":"x"}`, id, to))
			if code != -32004 {
				t.Errorf("to %s: %d, want that it is denied", to, code)
			}
		}
		if n := alice.must("task.children", params(id)).Get("children.#").Int(); n != 0 {
			t.Errorf("there are %d children", n)
		}
		w.stop()
	})
}

// TestAnsweredHereCounts: calls answered by the front itself count in the quotas as others do.
//
// Promise: a Leader uses more than its share
func TestAnsweredHereCounts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for _, method := range []string{"task.children", "task.complete"} {
			w := newWorld(t)
			w.stop()
			w.policyOf(policy.Config{Quotas: []policy.Quota{{Name: "q", Calls: policy.Rate{N: 3, Per: time.Hour, Burst: 3}}}})
			w.start()
			alice := w.connect("alice.aid.test", "d")
			id := alice.create(reviewer, "")
			for i, of := range []string{id, "task_X", id} {
				if _, code := alice.call(method, params(of)); (code == -32050) != (i == 2) {
					t.Errorf("%s, call %d: %d", method, i, code)
				}
			}
			w.stop()
		}
	})
}

// TestAllowIsOfTheCaller: allow decides about the caller, and not about the owner of the named task. An agent learns of
// its own tasks, though it is no Leader.
//
// Promise: a Leader reads or changes a task of another Leader
func TestAllowIsOfTheCaller(t *testing.T) {
	const aic = "10001000011K912345E789ABCDEF2353"
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Identities = new(identity.Identities)
		if err := w.config.Identities.Add(aic, "alice.aid.test"); err != nil {
			t.Fatal(err)
		}
		w.config.Assignees, w.worker, w.allow = &worker{}, "worker.aid.test", []identity.AIC{aic}
		w.start()
		alice, eve := w.connect("alice.aid.test", "d"), w.connect("eve.aid.test", "d")
		works := w.connect("worker.aid.test", "d")
		const denied = -32004
		for _, more := range []string{`,"visibility":"public"`, `,"participants":["eve.aid.test"]`} {
			id := alice.create(reviewer, more)
			w.say(id, working)
			synctest.Wait()
			for _, method := range []string{"task.get", "task.children", "task.cancel", "task.complete"} {
				if _, code := eve.call(method, params(id)); code != denied {
					t.Errorf("%s of a task with %s: %d, want that it is denied", method, more, code)
				}
			}
			if _, code := eve.call("task.subscribe", `{"task_ids":["`+id+`"]}`); code != denied {
				t.Errorf("a subscription of a task with %s: %d, want that it is denied", more, code)
			}
			for _, c := range []*client{alice, eve} { // one agent admits eve
				c.is(codes.TaskNotFound, "task.get", params("task_none"))
			}
			for _, c := range []*client{alice, works} {
				c.must("task.get", params(id))
				c.must("task.children", params(id))
			}
		}
		w.stop()
	})
}

// TestOpenConnections: connections from before a reload are under the rules of the configuration in force, and end at
// once if it does not serve their clients.
//
// Promise: a Leader does what it is not meant to do
func TestOpenConnections(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.DrainFor = time.Hour
		w.start()
		alice, bob := w.connect("alice.aid.test", "d"), w.connect("bob.aid.test", "d")
		id, bobs := alice.create(reviewer, ""), bob.create(reviewer, "")
		// replace puts another configuration in force. It returns a function to put it out of force.
		replace := func(c Config) context.CancelFunc {
			var stop context.CancelFunc
			c.Drain, stop = context.WithCancel(t.Context())
			w.open.Serve(New(c))
			return stop
		}
		w.policyOf(policy.Config{Rules: []policy.Rule{
			{Name: "bob", Deny: true, Match: policy.Match{Leader: []string{"aid:bob.aid.test"}}}, {},
		}})
		next := w.front.config
		next.Agents = w.agents()
		defer replace(next)()
		bob.is(-32004, "task.get", params(bobs))
		bob.is(-32004, "task.create", `{"to":"`+reviewer+`","input":"x"}`)
		alice.is(0, "task.get", params(id))
		w.drain()
		synctest.Wait()
		bob.is(-32004, "task.get", params(bobs))
		alice.is(0, "task.create", `{"to":"`+reviewer+`","input":"x"}`)
		alice.cut()
		bob.cut()
		w.stop()
		w.policy = nil

		for what, change := range map[string]func(*Config){
			"another store": func(c *Config) { c.Index = new(Index) },
			"a rule about what it follows": func(c *Config) {
				w.policyOf(policy.Config{Rules: []policy.Rule{
					{Name: "streams", Deny: true, Match: policy.Match{Command: []string{"re-stream"}}}, {},
				}})
				c.Agents = w.agents()
				w.policy = nil
			},
			"another AIC": func(c *Config) {
				c.Identities = new(identity.Identities)
				if err := c.Identities.Add("10001000011K912345E789ABCDEF2353", "alice.aid.test"); err != nil {
					t.Fatal(err)
				}
			},
		} {
			w.start()
			alice, begun := w.connect("alice.aid.test", "d"), time.Now()
			alice.must("task.subscribe", `{"task_ids":["`+alice.create(reviewer, "")+`"]}`)
			next := w.front.config
			change(&next)
			stop := replace(next)
			w.drain()
			if code, took := alice.closed(), time.Since(begun); code != aun.CloseAbnormal || took > 0 {
				t.Errorf("%s: the connection ends with %d after %v", what, code, took)
			}
			stop()
			w.stop()
		}
	})
}

// is calls a method, and checks the code of its error; 0 for none.
func (c *client) is(want int, method, params string) {
	c.t.Helper()
	if result, code := c.call(method, params); code != want {
		c.t.Errorf("%s %s: %d, want %d: %s", method, params, code, want, result.Raw)
	}
}
