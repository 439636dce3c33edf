// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// threads is a service of messages with clients' tasks in its threads.
type threads map[string]string // by the AID of the client, and the thread

func (threads) Call(context.Context, *Session, string, gjson.Result) ([]byte, error) {
	return []byte("{}"), nil
}

func (all threads) TaskOf(_ context.Context, s *Session, agent, thread string) (string, error) {
	if agent != "" && agent != reviewer {
		return "", nil
	}
	return all[s.AID+" "+thread], nil
}

// TestCancelByThread: a client cancels the task of one of its threads by the thread's name. The name of a task comes
// first, and a thread of another client is as a missing one.
func TestCancelByThread(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		all := make(threads)
		w.config.Services = map[string]Service{"message": all}
		w.start()
		alice, bob := w.connect("alice.aid.test", ""), w.connect("bob.aid.test", "")
		for _, tc := range []struct {
			params   string
			client   *client
			code     int
			canceled bool
		}{
			{`{"thread_id":"th"}`, alice, 0, true},
			{`{"task_id":"th"}`, alice, 0, true},
			{`{"task_id":null,"thread_id":"th"}`, alice, 0, true},
			{`{"thread_id":"th","to":"` + reviewer + `"}`, alice, 0, true},
			{`{"thread_id":"th","to":"` + translator + `"}`, alice, -32170, false},
			{`{"thread_id":"no"}`, alice, -32170, false},
			{`{"task_id":"no","thread_id":"th"}`, alice, -32170, false},
			{`{"thread_id":"th"}`, bob, -32170, false},
			{`{"thread_id":7}`, alice, -32602, false},
			{`{}`, alice, -32602, false},
		} {
			id := alice.create(reviewer, "")
			other := alice.create(reviewer, "")
			w.say(id, working)
			all["alice.aid.test th"], all["alice.aid.test "+other] = id, id
			if _, code := tc.client.call("task.cancel", tc.params); code != tc.code {
				t.Errorf("%s is answered %d, want %d", tc.params, code, tc.code)
			}
			if got := alice.must("task.get", params(id)).Get("status").String() == "canceled"; got != tc.canceled {
				t.Errorf("%s has canceled the task: %v", tc.params, got)
			}
			alice.must("task.cancel", params(other))
			if tc.canceled {
				continue
			}
			if got := alice.must("task.get", params(id)).Get("status").String(); got != "working" {
				t.Errorf("a thread with the name of another task was canceled: %s", got)
			}
			alice.must("task.cancel", params(id))
		}
		w.stop()
	})
}
