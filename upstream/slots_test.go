// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// counted counts the requests under way, and the most at once.
type counted struct {
	http.Handler
	now, most atomic.Int64
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := c.now.Add(1)
	for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	defer c.now.Add(-1)
	c.Handler.ServeHTTP(w, r)
}

// TestMaxRuns: no agent gets more requests at once than it has slots for. Every turn has a slot of its own in the end.
// A turn keeps none while its agent is only polled.
func TestMaxRuns(t *testing.T) {
	const tasks, slots = 100, 16
	later := func(after time.Duration, then step) step {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			pass(r, after)
			then(w, r, n)
		}
	}
	for _, tc := range []struct {
		name   string
		stream bool
		resume bool
		agent  script
		atMost time.Duration
	}{
		{"answers later", false, false, script{"send": later(time.Second, says(is("completed")))}, 9 * time.Second},
		{"streams", true, false, script{"sendSubscribe": later(time.Second, streams(true, news("completed")))},
			9 * time.Second},
		{"is polled", false, false,
			script{"send": says(is("working")), "get": func(w http.ResponseWriter, r *http.Request, n int) {
				says(is([]string{"working", "completed"}[min(n/(5*tasks), 1)]))(w, r, n)
			}}, 20 * time.Second},
		{"is resumed", false, true,
			script{"resubscribe": streams(true, news("working")),
				"get": later(time.Second/10, func(w http.ResponseWriter, r *http.Request, n int) {
					says(is([]string{"working", "completed"}[min(n/(2*tasks), 1)]))(w, r, n)
				})}, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &counted{Handler: tc.agent.handler()}
			all := upstream.NewSlots(slots, 0)
			slow := func(c *settings) {
				dial := c.Dial
				c.Slots, c.Dial = all, func(ctx context.Context, network, address string) (net.Conn, error) {
					time.Sleep(time.Nanosecond) // meanwhile the agent notices closed connections
					return dial(ctx, network, address)
				}
			}
			withAgent(t, c, slow,
				func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
					begun := time.Now()
					var turns sync.WaitGroup
					var finished atomic.Int64
					for i := range tasks {
						turns.Go(func() {
							x := turn("x")
							run := carryOut(t.Context(), h, x, tc.stream)
							if tc.resume {
								run = h.Resume(t.Context(), x)
							}
							for rep, err := range run {
								if err != nil {
									t.Errorf("task %d: %v", i, err)
								}
								if rep.EndsTurn() {
									finished.Add(1)
								}
							}
						})
					}
					turns.Wait()
					if n := finished.Load(); n != tasks {
						t.Errorf("%d of %d tasks were finished", n, tasks)
					}
					if most := c.most.Load(); most > slots {
						t.Errorf("the agent was sent %d requests at once", most)
					}
					if took := time.Since(begun); took > tc.atMost {
						t.Errorf("all of them took %v", took)
					}
					if used, waiting := all.Taken(); used != 0 || waiting != 0 {
						t.Errorf("%d turns wait and %d slots are taken, though all is done", waiting, used)
					}
				})
		})
	}
}

// TestTooManyWait: the queue of an agent has a bound. A Leader has half of it, and another Leader half of the rest. A
// waiting turn says so, and leaves the queue when its caller gives up.
func TestTooManyWait(t *testing.T) {
	all := upstream.NewSlots(4, 0)
	agents := script{"send": hangs, "get": says(fails(-32001, "?"))}.handler()
	withAgent(t, agents, func(c *settings) { c.Slots = all }, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		ctx, stop := context.WithCancel(t.Context())
		var turns sync.WaitGroup
		var waiting atomic.Int64
		for range 3 + 32 {
			if err := h.Admit("l"); err != nil {
				t.Fatal(err)
			}
			x := turn("x")
			x.Leader = "l"
			turns.Go(func() {
				for rep := range carryOut(ctx, h, x, false) {
					if rep.Delivery == agent.DeliveryQueued {
						waiting.Add(1)
					}
				}
			})
			synctest.Wait()
		}
		if n := waiting.Load(); n != 32 {
			t.Errorf("%d turns wait", n)
		}
		want := task.Errorf(task.LimitExceeded,
			"the agent is busy: it has 4 runs, and 32 of your tasks wait for one; try again later").WithData("limit",
			"max_runs").WithData("max", 4)
		if diff := cmp.Diff(error(want), h.Admit("l")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if err := h.Admit("another"); err != nil {
			t.Errorf("the turns of one Leader have no other one admitted: %v", err)
		}
		stop()
		turns.Wait()
		if err := h.Admit("l"); err != nil {
			t.Errorf("no turn waits any more: %v", err)
		}
		if _, waiting := all.Taken(); waiting != 0 {
			t.Errorf("%d turns wait, though all have ended", waiting)
		}
	})
}

// TestResubscribesOnce: a resumed turn polls first, and resubscribes only if the agent still works.
func TestResubscribesOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		get  step
		want []string
	}{
		"it is done":    {says(is("completed")), []string{"get"}},
		"it is unknown": {says(fails(-32001, "?")), []string{"get"}},
		"it works": {says(is("working"), is("working"), is("completed")),
			[]string{"get", "resubscribe", "get", "get"}},
	} {
		var mu sync.Mutex
		var asked []string
		note := func(method string, then step) step {
			return func(w http.ResponseWriter, r *http.Request, n int) {
				mu.Lock()
				asked = append(asked, method)
				mu.Unlock()
				then(w, r, n)
			}
		}
		a := script{"get": note("get", tc.get), "resubscribe": note("resubscribe", streams(true))}
		withAgent(t, a.handler(), nil, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
			show(h.Resume(t.Context(), turn("x")))
		})
		if diff := cmp.Diff(tc.want, asked); diff != "" {
			t.Errorf("%s: the agent is asked (-want +got):\n%s", name, diff)
		}
	}
}
