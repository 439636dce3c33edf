// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// TestMessageIDs: an agent's message with a state has an id of no other message, although many tasks change at the same
// moment, and the id is the same in all places.
func TestMessageIDs(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	for _, s := range []translate.Server{a2a.V1RESTServer(false), a2a.V03RESTServer(false)} {
		seen := make(map[string]string)
		for _, id := range []string{"t1", "t2"} {
			for ms, text := range []string{"a", "a", "b"} {
				st := task.Status{State: task.Working, ChangedAt: at.Add(time.Duration(ms) * time.Millisecond),
					DataItems: []task.DataItem{task.Text(text)}}
				tk := &task.Task{ID: id, Status: st}
				shown := gjson.GetBytes(s.AppendTask(nil, nil, new(translate.Call), tk), "status.message.messageId").Str
				sent := s.NewStream(nil, new(translate.Call), tk).Event(nil, &task.Event{Status: &st})
				if got := gjson.GetBytes(sent.Data, "statusUpdate.status.message.messageId").Str; got != shown || got == "" {
					t.Errorf("%s: a stream has the id %q, a task %q", s.Name(), got, shown)
				}
				said := &task.Message{SenderRole: task.Partner, SentAt: st.ChangedAt, DataItems: []task.DataItem{task.Text("c")}}
				sent = s.NewStream(nil, new(translate.Call), tk).Event(nil, &task.Event{Message: said})
				also := gjson.GetBytes(sent.Data, "statusUpdate.status.message.messageId").Str
				for what, is := range map[string]string{shown: "a status", also: "a message"} {
					if other := seen[what]; other != "" {
						t.Errorf("%s: %s of %s has the id %q of %s", s.Name(), is, id, what, other)
					}
					seen[what] = is + " of " + id
				}
			}
		}
	}
}
