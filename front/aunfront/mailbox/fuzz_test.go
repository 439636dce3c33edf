// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// FuzzMessage: whatever the parameters of message.* are, they are answered or refused, and the inboxes are the same
// after a restart.
func FuzzMessage(f *testing.F) {
	for _, params := range []string{
		`{"to":"bob.aid.pub","message_id":"m9","payload":{"type":"text","text":"x","thread_id":"th"}}`,
		`{"to":"agent.aid.pub","payload":{"type":"json","data":{"a":[1]}},"delivery_mode":{"mode":"queue"}}`,
		`{"to":"agent.aid.pub","payload":{"type":"file","attachments":[{"url":"u","filename":"f"}]}}`,
		`{"after_seq":0,"limit":200,"device_id":"d"}`, `{"seq":1,"device_id":"d","slot_id":""}`,
		`{"message_ids":["m1","m1","m9"]}`, `{"aids":["bob.aid.pub","agent.aid.pub"]}`, `[]`, `7`,
	} {
		f.Add(params)
	}
	const bob = "bob.aid.pub"
	f.Fuzz(func(t *testing.T, params string) {
		if !gjson.Valid(params) {
			return
		}
		bubble.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.online[bob] = true
			w.say(alice, bob, "m1", "Hello")
			w.say(alice, agentAID, "m2", "Review it")
			for _, method := range []string{"send", "pull", "ack", "query_online", "recall"} {
				for _, aid := range []string{alice, bob} {
					if got := w.call(aid, "message."+method, params); got == "-32603" {
						t.Errorf("message.%s of %s has an internal error", method, params)
					}
				}
			}
			synctest.Wait()
			inboxes := map[string][]string{alice: w.pulled(alice, 0), bob: w.pulled(bob, 0)}
			w.restart()
			synctest.Wait()
			for aid, before := range inboxes {
				check(t, "the inbox of "+aid+" after a restart", w.pulled(aid, 0), before)
			}
		})
	})
}
