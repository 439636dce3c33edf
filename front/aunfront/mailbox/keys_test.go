// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestKeys: clients publish the keys of their devices, and get those of their own AID again, also after a restart. Of
// any other one there are none, so no client encrypts a message the gateway has to read.
func TestKeys(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		put := `{"peer_aid":"alice.aid.pub","key_source":"peer_device_prekey","spk_id":%q,"spk_pk":"cGs=",` +
			`"spk_signature":"c2ln","spk_timestamp":1}`
		for _, id := range []string{"sha256:1", "sha256:2"} {
			if got := w.call(alice, "message.v2.put_peer_pk", fmt.Sprintf(put, id)); !gjson.Get(got, "ok").Bool() {
				t.Errorf("a key is answered by %s", got)
			}
		}
		check(t, "a prekey", w.call(alice, "message.e2ee.put_prekey", `{"prekey_id":"p1"}`), `{"ok":true}`)
		w.restart()
		for _, aid := range []string{agentAID, "bob.aid.pub"} {
			for _, by := range []string{alice, "carol.aid.pub"} {
				check(t, "the keys of "+aid, w.call(by, "message.v2.bootstrap", fmt.Sprintf(`{"peer_aid":%q}`, aid)),
					fmt.Sprintf(`{"peer_aid":%q,"peer_devices":[]}`, aid))
				check(t, "the prekeys of "+aid, w.call(by, "message.e2ee.get_prekey", fmt.Sprintf(`{"aid":%q}`, aid)),
					`{"found":false}`)
			}
		}
		check(t, "others ask for alice's", w.call("bob.aid.pub", "message.v2.bootstrap", `{"peer_aid":"alice.aid.pub"}`),
			`{"peer_aid":"alice.aid.pub","peer_devices":[]}`)
		own := w.call(alice, "message.v2.bootstrap", `{"peer_aid":"alice.aid.pub"}`)
		check(t, "her own", gjson.Get(own, "peer_devices.#.spk_id").Raw+gjson.Get(own, "peer_devices.0.device_id").Raw,
			`["sha256:2"]"d"`)
		own = w.call(alice, "message.e2ee.get_prekey", `{"aid":"alice.aid.pub"}`)
		check(t, "her own prekeys", gjson.Get(own, "device_prekeys.#.prekey_id").Raw, `["p1"]`)
	})
}

// TestKeysRefused: a client publishes keys for itself alone, and not many or large ones.
func TestKeysRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, c := range [][2]string{
			{"message.v2.put_peer_pk", `{"peer_aid":"bob.aid.pub","spk_id":"x"}`},
			{"message.v2.put_peer_pk", `[]`},
			{"message.v2.put_peer_pk", `{"device_id":"another"}`},
			{"message.e2ee.put_prekey", `{"public_key":"` + strings.Repeat("x", maxKey) + `"}`},
			{"message.v2.bootstrap", `{}`},
			{"message.e2ee.get_prekey", `{"aid":7}`},
		} {
			check(t, c[0]+" "+c[1][:min(len(c[1]), 40)], w.call(alice, c[0], c[1]), "-32602")
		}
		for i := range 2 * maxKeys {
			w.device = fmt.Sprint("d", i)
			w.call(alice, "message.v2.put_peer_pk", `{"spk_id":"x"}`)
		}
		own := w.call(alice, "message.v2.bootstrap", `{"peer_aid":"alice.aid.pub"}`)
		check(t, "the keys that are kept", gjson.Get(own, "peer_devices.#").Int(), int64(maxKeys))
		check(t, "the oldest one", gjson.Get(own, "peer_devices.0.device_id").Str, fmt.Sprint("d", maxKeys))
	})
}

// TestAckWithPull: the SDK for Node acknowledges a page with the request for the next one, and by nothing else.
func TestAckWithPull(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.say(alice, agentAID, "m1", "Review it")
		synctest.Wait()
		page := w.call(alice, "message.v2.pull", `{"after_seq":0}`)
		last := gjson.Get(page, "latest_seq").Int()
		page = w.call(alice, "message.v2.pull", fmt.Sprintf(`{"after_seq":%d,"ack_up_to_seq":%d}`, last, last))
		check(t, "acknowledged", gjson.Get(page, "server_ack_seq").Int(), last)
		check(t, "no number", w.call(alice, "message.v2.pull", `{"ack_up_to_seq":"x"}`), "-32602")
	})
}
