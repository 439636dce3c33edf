// SPDX-License-Identifier: Apache-2.0

package group

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/aip-gateway/aip-gateway/task/agent"
)

// FuzzDelivery delivers anything: it is acknowledged once, or given to the membership to acknowledge.
func FuzzDelivery(f *testing.F) {
	names, err := filepath.Glob("../../translate/aip/testdata/vectors/*-group-m*.json")
	if err != nil || len(names) == 0 {
		f.Fatalf("%d examples, %v", len(names), err)
	}
	for _, name := range names {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body, "", "")
	}
	f.Add([]byte(`{"type":"task-command","senderId":"LEADER","mentions":"all","command":"start","taskId":"t"}`),
		"guest", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add([]byte(`{"type":"message","id":"m","senderId":"leader","command":"get","taskId":"t"}`), "LEADER", "")
	f.Add([]byte(`{"type":"message","senderId":"LEADER","command":"continue","taskId":"t"}`), "", "")
	f.Add([]byte(`{"type":"group-mgmt-command","senderId":"LEADER","groupId":"g","command":"mute","mentions":"all"}`),
		"", "")
	w := newWorld(f, func(*agent.Turn) []step { return []step{{0, working()}, {0, asks()}} }, nil)
	w.connect(true)
	f.Fuzz(func(t *testing.T, body []byte, userID, traceparent string) {
		w.headers = map[string]string{"traceparent": traceparent}
		w.managed = nil
		before := w.group.traffic()
		w.deliver(string(body), "message", userID)
		w.awaitIdle()
		acks := w.acknowledged()
		if len(acks)+len(w.managed) != 1 {
			t.Errorf("it is acknowledged %d times, and given to the membership %d times", len(acks), len(w.managed))
		}
		after := w.group.traffic()
		if after.Received != before.Received+1 ||
			after.Ignored+after.Poison+after.Executed+uint64(len(w.managed)) !=
				before.Ignored+before.Poison+before.Executed+1 {
			t.Errorf("the counts are %+v, and were %+v", after, before)
		}
		w.link.taken()
	})
}

// awaitIdle waits until every command is executed, and everything published is confirmed.
func (w *world) awaitIdle() {
	t := w.group
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.lanes) > 0 || len(t.replies)+len(t.sent) > 0 || t.running || t.ready.len() > 0 || t.counts.Unconfirmed > 0 {
		t.changed.Wait()
	}
}
