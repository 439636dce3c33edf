// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// connectAs logs in with options, at a slot of the device d, and returns the result of auth.connect or the code of its
// error.
func (w *world) connectAs(aid, slot, options string) (*client, gjson.Result, int) {
	w.t.Helper()
	return w.connectWith(aid, slot, `"options":`+options)
}

// connectWith is connectAs with any more params.
func (w *world) connectWith(aid, slot, more string) (*client, gjson.Result, int) {
	w.t.Helper()
	c := w.dial("/aun")
	nonce := c.next().params.Get("nonce").String()
	tokens, err := aun.Login(w.t.Context(), c.conn, w.pki.Identity(aid), w.pki.Roots(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	result, code := c.call("auth.connect", fmt.Sprintf(`{"nonce":%q,"auth":{"method":"kite_token","token":%q},`+
		`"device":{"id":"d"},"client":{"slot_id":%q},%s}`, nonce, tokens.Access, slot, more))
	return c, result, code
}

// TestShort: a short connection stands beside the long one of its slot. The AID is not online by it, and it is sent
// nothing but answers and the events of tasks it follows.
func TestShort(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Assignees = &worker{open: []string{"x"}}
		w.start()
		c, hello, _ := w.connectAs("alice.aid.test", "s", `{"kind":"short"}`)
		is := hello.Get("connection")
		if is.Get("kind").String() != "short" || is.Get("short_ttl_ms").Int() != defaultShortTTL.Milliseconds() {
			t.Errorf("the connection is %s", is.Raw)
		}
		if w.open.Online("alice.aid.test") || w.open.Notify("alice.aid.test", "event/x", []byte(`{}`)) != 0 {
			t.Error("the AID is online by a short connection")
		}
		long, _, _ := w.connectAs("alice.aid.test", "s", `{"kind":"long"}`)
		if e := long.next(); e.String() != "updated submitted" {
			t.Errorf("the long connection is sent %s", e)
		}
		if !w.open.Online("alice.aid.test") || w.open.Notify("alice.aid.test", "event/x", []byte(`{}`)) != 1 {
			t.Error("the AID is not online by a long connection")
		}
		id := c.create(reviewer, "")
		c.must("task.subscribe", `{"task_ids":["`+id+`"]}`)
		w.say(id, working)
		if e := c.next(); e.String() != "updated submitted" || e.params.Get("task_id").String() != id {
			t.Errorf("the short connection is sent %s", e)
		}
		w.stop()
	})
}

// TestShortIdle: a short connection without a call ends, after the time requested by the client.
func TestShortIdle(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, bad := range []string{"-1", "1.5", `"x"`} {
			if _, _, code := w.connectAs("alice.aid.test", "s", `{"kind":"short","short_ttl_ms":`+bad+`}`); code != -32602 {
				t.Errorf("short_ttl_ms %s: %d", bad, code)
			}
		}
		for ms, want := range map[string]time.Duration{
			"2000": 2 * time.Second, "0": defaultShortTTL, "null": defaultShortTTL,
		} {
			c, _, _ := w.connectAs("alice.aid.test", "s", `{"kind":"short","short_ttl_ms":`+ms+`}`)
			time.Sleep(want - time.Millisecond)
			c.must("meta.status", `{}`)
			began := time.Now()
			<-c.served
			e := c.next()
			if quiet := time.Since(began); quiet != want || e.method != "event/gateway.disconnect" {
				t.Errorf("short_ttl_ms %s: after %v, want %v, there is %s", ms, quiet, want, e)
			}
			if diff := cmp.Diff(fmt.Sprintf(`{"aid":"alice.aid.test","device_id":"d","short_ttl_ms":%d,"slot_id":"s"}`,
				want.Milliseconds()), e.params.Get("detail").Raw); diff != "" {
				t.Errorf("the details (-want +got):\n%s", diff)
			}
			if code := c.conn.Err().Code; code != aun.CloseShortIdle {
				t.Errorf("it is closed with %d", code)
			}
		}
		_, hello, _ := w.connectAs("alice.aid.test", "s", `{"kind":"short","short_ttl_ms":1e12}`)
		if ms := hello.Get("connection.short_ttl_ms").Int(); ms != maxShortTTL.Milliseconds() {
			t.Errorf("the longest time is %d ms", ms)
		}
		long := w.connect("alice.aid.test", "d")
		time.Sleep(time.Minute)
		long.must("meta.ping", `{}`)
		w.stop()
	})
}

// TestDisconnectDetails: the client learns which connection has taken the place of its own, and which limit is reached.
func TestDisconnectDetails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.config.Limits.ConnectionsPerAID = maxShort + 1
		w.start()
		first, _, _ := w.connectWith("alice.aid.test", "s/1", `"extra_info":{"pid":1}`)
		second, _, _ := w.connectWith("alice.aid.test", "s/2", `"extra_info":{"pid":2}`)
		check := func(what string, c *client, code aun.CloseCode, detail string) {
			t.Helper()
			e := c.next()
			if got := e.params.Get("detail").Raw; e.params.Get("code").Int() != int64(code) || got != detail {
				t.Errorf("%s: %s %s, want %d %s", what, e.method, e.params.Raw, code, detail)
			}
			synctest.Wait()
			if got := c.conn.Err(); got == nil || got.Code != code {
				t.Errorf("%s: it is closed with %v", what, got)
			}
		}
		check("a newer connection", first, aun.CloseReplaced, `{"aid":"alice.aid.test","device_id":"d",`+
			`"evicted_by":{"aid":"alice.aid.test","device_id":"d","slot_id":"s/2"},"limit":1,`+
			`"new_extra_info":{"pid":2},"quota_kind":"aid_device_slot","self_extra_info":{"pid":1},"slot_id":"s/1"}`)
		third, _, _ := w.connectWith("alice.aid.test", "s/3", `"extra_info":{"much":"`+strings.Repeat("x", maxExtra)+`"}`)
		check("one that says too much", second, aun.CloseReplaced, `{"aid":"alice.aid.test","device_id":"d",`+
			`"evicted_by":{"aid":"alice.aid.test","device_id":"d","slot_id":"s/3"},"limit":1,`+
			`"quota_kind":"aid_device_slot","self_extra_info":{"pid":2},"slot_id":"s/2"}`)
		w.connectWith("alice.aid.test", "s", `"extra_info":"none"`)
		check("one that says nothing", third, aun.CloseReplaced, `{"aid":"alice.aid.test","device_id":"d",`+
			`"evicted_by":{"aid":"alice.aid.test","device_id":"d","slot_id":"s"},"limit":1,`+
			`"quota_kind":"aid_device_slot","slot_id":"s/3"}`)
		for range maxShort {
			w.connectAs("alice.aid.test", "s", `{"kind":"short"}`)
		}
		c, data, code := w.connectAs("alice.aid.test", "s", `{"kind":"short"}`)
		if reason := data.Get("reason").String(); code != -32050 || reason != "short_connection_capacity_exceeded" {
			t.Errorf("one more short connection: %d %s", code, data.Raw)
		}
		check("too many short connections", c, aun.CloseShortCapacity,
			`{"aid":"alice.aid.test","device_id":"d","limit":10,"quota_kind":"short_connections","slot_id":"s"}`)
		c, _, _ = w.connectAs("alice.aid.test", "other", `{}`)
		check("too many connections", c, aun.CloseQuota,
			`{"aid":"alice.aid.test","device_id":"d","limit":11,"quota_kind":"aid","slot_id":"other"}`)
		w.stop()
	})
}
