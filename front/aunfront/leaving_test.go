// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/partner"
)

// waits is a service whose calls end when their clients leave.
type waits struct{}

func (waits) Call(ctx context.Context, _ *Session, _ string, _ gjson.Result) ([]byte, error) {
	<-ctx.Done()
	return nil, partner.StoreError(ctx.Err(), "the messages cannot be read")
}

// TestClientsThatLeave has clients leave in the middle of a call, and while an event is sent to them. An operator need
// not read of it.
func TestClientsThatLeave(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		var logged bytes.Buffer
		w.config.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
		w.config.Services = map[string]Service{"message": waits{}}
		w.start()
		owner := w.connect("alice.aid.test", "")
		id := owner.create(reviewer, "")
		w.say(id, working)
		const clients = 50
		var calls sync.WaitGroup
		var leaving []*client
		for i := range clients {
			c := w.connect("alice.aid.test", strconv.Itoa(i))
			c.subscribe(id)
			calls.Go(func() { _, _ = c.conn.Call(context.Background(), "message.pull", []byte("{}")) })
			leaving = append(leaving, c)
		}
		synctest.Wait()
		for i, c := range leaving {
			w.say(id, piece(strconv.Itoa(i), false))
			c.conn.Cut(context.Canceled)
		}
		calls.Wait()
		synctest.Wait()
		if logged.Len() > 0 {
			t.Errorf("the log has:\n%s", &logged)
		}
		owner.cut()
		w.stop()
	})
}

// TestNoCloseAtTheEnd: at a reload and at a stop, a client following a task and one just answered read everything sent,
// and then their connections break. SDKs stay away after any close, and after an event/gateway.disconnect for good.
func TestNoCloseAtTheEnd(t *testing.T) {
	for what, exiting := range map[string]bool{"a reload": false, "a stop": true} {
		bubble.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.stop()
			w.config.Exiting = func() bool { return exiting }
			w.start()
			follows, calls := w.connect("alice.aid.test", "d1"), w.connect("alice.aid.test", "d2")
			id := follows.create(reviewer, "")
			follows.subscribe(id)
			stranger := w.dial("/aun")
			w.say(id, working, piece("0", false))
			synctest.Wait()
			calls.must("meta.ping", `{}`)
			w.stop()
			for name, c := range map[string]*client{"follows": follows, "calls": calls, "has not logged in": stranger} {
				if code := c.closed(); code != aun.CloseAbnormal || c.conn.Err().Local {
					t.Errorf("%s: the connection of the client that %s ends with %v", what, name, c.conn.Err())
				}
			}
			for _, want := range []string{"updated submitted", "updated working", "artifact 0"} {
				if e := follows.next(); e.String() != want {
					t.Errorf("%s: the client is sent %s %s, want %s", what, e.method, e.params.Raw, want)
				}
			}
			if len(follows.events)+len(calls.events) > 0 {
				t.Errorf("%s: the clients are sent more", what)
			}
		})
	}
}
