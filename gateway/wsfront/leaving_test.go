// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/partner"
)

// waits is a service whose calls end when their clients leave.
type waits struct{}

func (waits) Call(ctx context.Context, _ *Session, _ string, _ gjson.Result) ([]byte, error) {
	<-ctx.Done()
	return nil, partner.StoreError(ctx.Err(), "the messages cannot be read")
}

// TestClientsThatLeave has clients leave in the middle of a call, and while an event is sent to them. That is nothing
// that an operator must read of.
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
