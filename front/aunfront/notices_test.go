// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
)

// unread are connections of an AID with clients reading nothing until their channel is closed.
func unread(w *world, aid string, n int) (clients []*client, read chan struct{}) {
	read = make(chan struct{})
	for i := range n {
		c := w.connect(aid, fmt.Sprint("d", i))
		c.reads.Store(&read)
		clients = append(clients, c)
	}
	return clients, read
}

// TestNoticesThatAreNotRead: for clients reading nothing, the gateway holds the frame being sent, once for all of them,
// and none of those waiting. When they read, they have all of it, in order.
func TestNoticesThatAreNotRead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.memory = limit.Limits{Total: 4 << 20, PerLeader: 2 << 20}
		w.start()
		clients, read := unread(w, "alice.aid.test", 20)
		const messages, size = 30, 200 << 10
		want := []string{}
		for i := range messages {
			params := fmt.Appendf(nil, `{"seq":%d,"text":%q}`, i, strings.Repeat("x", size))
			again := func(context.Context) ([]byte, error) { return params, nil }
			if n := w.open.Deliver("alice.aid.test", false, "event/message.received", params, again); n != len(clients) {
				t.Errorf("%d clients are notified", n)
			}
			want = append(want, fmt.Sprint(i, " ", size))
		}
		synctest.Wait()
		if held := w.process.Memory.Total(); held > 2*(size+1<<10) {
			t.Errorf("%d bytes are held for clients that do not read", held)
		}
		close(read)
		synctest.Wait()
		for i, c := range clients {
			got := []string{}
			for len(c.events) > 0 {
				e := c.next()
				got = append(got, fmt.Sprint(e.params.Get("seq").Int(), " ", len(e.params.Get("text").Str)))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("client %d (-want +got):\n%.500s", i, diff)
			}
		}
		w.stop()
	})
}

// TestNoticesAreCounted: notifications that cannot be read again are within the limit of memory: a client not taking
// them is cut if there is none left, and others have all of them.
func TestNoticesAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		w.memory = limit.Limits{Total: 4 << 20, PerLeader: 1 << 20}
		w.start()
		clients, read := unread(w, "alice.aid.test", 4)
		reader := w.connect("alice.aid.test", "reader")
		const messages, size = 30, 200 << 10
		for range messages {
			w.open.Send("alice.aid.test", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"event/x","params":{"text":%q}}`,
				strings.Repeat("x", size)))
			synctest.Wait()
			if held := w.process.Memory.Total(); held > 1<<20+2*size {
				t.Fatalf("%d bytes are held", held)
			}
		}
		if n := len(reader.events); n != messages {
			t.Errorf("the client that reads has %d notifications, want %d", n, messages)
		}
		close(read)
		for _, c := range clients {
			<-c.served
		}
		w.stop()
	})
}

// TestNoticesAfterALogin: a client's waiting notices are given up, with their memory, when its login ends.
func TestNoticesAfterALogin(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		clients, read := unread(w, "alice.aid.test", 1)
		const size = 200 << 10
		send := func() {
			w.open.Send("alice.aid.test", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"event/x","params":{"text":%q}}`,
				strings.Repeat("x", size)))
			synctest.Wait()
		}
		for range 10 {
			send()
		}
		if held := w.process.Memory.Total(); held < 8*size {
			t.Errorf("%d bytes are held before", held)
		}
		session := w.open.Of("alice.aid.test")[0]
		session.refuse(errNotLoggedIn)
		synctest.Wait()
		session.Notify("event/late", fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", size)))
		if held := w.process.Memory.Total(); held > 2*size { // one is being sent
			t.Errorf("%d bytes are held after the login", held)
		}
		close(read)
		<-clients[0].served
		w.stop()
		if held := w.process.Memory.Total(); held != 0 {
			t.Errorf("%d bytes are held after the connection", held)
		}
	})
}
