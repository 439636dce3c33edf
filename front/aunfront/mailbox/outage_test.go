// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// outage is a store with a number of failing uses of inboxes.
type outage struct {
	replay.Store
	left    atomic.Int64
	written bool // failed appends are in the store all the same
}

func (o *outage) err(log string) error {
	if log[0] == logname.Inbox && o.left.Add(-1) >= 0 {
		return replay.ErrUnavailable
	}
	return nil
}

func (o *outage) Append(ctx context.Context, a replay.Append) error {
	if err := o.err(a.Log); err != nil {
		if o.written {
			err = errors.Join(err, o.Store.Append(ctx, a))
		}
		return err
	}
	return o.Store.Append(ctx, a)
}

func (o *outage) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	if err := o.err(log); err != nil {
		return replay.Head{}, nil, nil, err
	}
	return o.Store.Load(ctx, log)
}

// TestOutage: after an inbox could not be used for a time, a client gets everything it has missed, and nothing twice,
// no matter which call is the first to succeed again.
func TestOutage(t *testing.T) {
	for failures := range int64(6) {
		bubble.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.box.Close()
			store := &outage{Store: w.store}
			w.store = store
			w.open()
			w.say(alice, agentAID, "m1", "Review it")
			id := w.said[0].TaskID
			w.deliver(id, "p", "One", false)
			w.move(id, task.AwaitingInput, "Which?", nil)
			check(t, "before", w.got(alice), []string{"1 agent.aid.pub event: task.started", "2 agent.aid.pub text: One",
				"3 agent.aid.pub text: Which?", "4 agent.aid.pub status: input_required"})
			store.left.Store(failures)
			w.move(id, task.Working, "", nil)
			w.deliver(id, "q", "Two", false)
			w.move(id, task.Completed, "", nil)
			bubble.Pass(10 * retryAfter)
			check(t, "after", w.got(alice), []string{"5 agent.aid.pub event: task.started",
				"6 agent.aid.pub text: Two", "7 agent.aid.pub event: task.completed"})
		})
	}
}

// TestWrittenAllTheSame: a client gets the answer of the agent if its message was stored, though the store has failed.
func TestWrittenAllTheSame(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.box.Close()
		store := &outage{Store: w.store, written: true}
		w.store = store
		w.open()
		w.pulled(alice, 0)
		store.left.Store(1)
		check(t, "the first answer", w.say(alice, agentAID, "m1", "Review it"), "-32603")
		if got := gjson.Get(w.say(alice, agentAID, "m1", "Review it"), "status").Str; got != "sent" {
			t.Errorf("the message again is answered with %q", got)
		}
		w.move(w.said[0].TaskID, task.Completed, "Good", nil)
		check(t, "what alice gets", w.got(alice), []string{"1 agent.aid.pub event: task.started",
			"2 agent.aid.pub text: Good", "3 agent.aid.pub event: task.completed"})
	})
}
