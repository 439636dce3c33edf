// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestUnknownLeaders: if callers are believed, a webhook names no Leader. It is found at any process, whichever has the
// task, and a webhook set before there was a task is adopted by it, though another process has it.
func TestUnknownLeaders(t *testing.T) {
	w := newWorld(t)
	t.Cleanup(w.close)
	for i := range shardCount {
		w.shards.Assign(i, w.processes[i%2].node, false)
	}
	for _, p := range w.processes {
		p.guard.Mode = identity.Off
	}
	for n := range 6 {
		leader, id := fmt.Sprint("somebody-", n), fmt.Sprint("task-", n)
		set := func(at int, token string) {
			t.Helper()
			r, _, err := w.processes[at].post(t.Context(), "", "notification/set",
				fmt.Sprintf(`{"taskId":%q,"url":%q,"token":%q}`, id, w.receiver.URL, token))
			if err != nil || r.Error != nil {
				t.Fatalf("a webhook of %s: %v %+v", id, err, r.Error)
			}
		}
		set(n%2, id+" before")
		w.at((n+1)%2, leader, "start", id, id)
		set((n+1)%2, id+" after")
		if s := w.settled(t.Context(), leader, id); s != task.AwaitingCompletion {
			t.Errorf("%s is %s", id, s)
		}
		w.at(n%2, leader, "complete", id, "end")
		for _, token := range []string{id + " before", id + " after"} {
			asynctest.Eventually(t, token+" is notified of the end", func() bool {
				return slices.Contains(w.receiver.states(token), task.Completed)
			})
		}
	}
}
