// SPDX-License-Identifier: Apache-2.0

package assignee

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// How much an agent may have sent about a task that has not been read yet.
const (
	maxWaiting      = 256     // messages
	maxWaitingBytes = 8 << 20 // bytes of them
)

// exchange is a turn of a task: how the agent sees the task, and what it says about it. say may be called by any
// goroutine, the other methods by that of the turn.
type exchange struct {
	hub       *Hub
	agent, id string
	ctx       context.Context
	began     time.Time
	idle      time.Duration
	rest      []byte // the task as the agent is sent it, without its status

	wake chan struct{} // holds a value if there may be something to read

	mu      sync.Mutex
	status  string     // of the task, as the agent sees it
	left    task.State // in which the agent has ended the turn; None if it has not
	cut     bool       // another exchange has taken the place of this one
	waiting []upstream.Message
	bytes   int // of waiting
}

// task returns the task as the agent sees it.
func (x *exchange) task() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return codec.JoinStatus(x.status, x.rest)
}

// say checks what the agent says, and queues it for the turn.
func (x *exchange) say(method string, params gjson.Result) (status string, err error) {
	state, err := codec.Says(method, params)
	if err != nil {
		return "", err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.left != task.None:
		return "", stateError(x.left)
	case method == codec.Accept && x.status != codec.StateName(task.Accepted, false):
		return "", codec.AlreadyAccepted()
	case method == codec.Reject && x.status != codec.StateName(task.Accepted, false):
		return "", stateError(task.Working)
	case len(x.waiting) >= maxWaiting || x.bytes+len(params.Raw) > maxWaitingBytes && len(x.waiting) > 0:
		return "", task.Errorf(task.LimitExceeded, "the gateway has still to store what you have sent about the task").
			WithData("limit", "messages").WithData("max", maxWaiting)
	}
	if state != task.None && state != task.Accepted {
		x.status = codec.StateName(state, false)
	}
	if state.Settled() {
		x.left = state
	}
	x.waiting = append(x.waiting, upstream.Message{Name: method, Data: []byte(params.Raw)})
	x.bytes += len(params.Raw)
	x.signal()
	return x.status, nil
}

// end ends the exchange, because another one has taken its place.
func (x *exchange) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cut = true
	x.signal()
}

func (x *exchange) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Begin implements upstream.Exchange. The agent may be offline, so it has not begun to answer.
func (x *exchange) Begin() error { return nil }

// Streams implements upstream.Exchange.
func (x *exchange) Streams() bool { return true }

// Next implements upstream.Exchange.
func (x *exchange) Next() (upstream.Message, error) {
	var timeout <-chan time.Time
	if x.idle > 0 {
		timer := time.NewTimer(x.idle)
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		if m, ok, cut := x.take(); ok {
			return m, nil
		} else if cut {
			return m, upstream.Failed(task.InvalidAgentResponse, upstream.StreamCut, nil,
				"the task has been sent to the agent again")
		}
		select {
		case <-x.wake:
		case <-x.ctx.Done():
			return upstream.Message{}, upstream.Ended(x.ctx)
		case <-timeout:
			return upstream.Message{}, task.Errorf(task.AgentTimeout, "the agent has reported nothing for %v", x.idle)
		}
	}
}

// take returns the next message, if there is one, and whether the exchange was cut.
func (x *exchange) take() (m upstream.Message, ok, cut bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.waiting) == 0 {
		return m, false, x.cut
	}
	m = x.waiting[0]
	x.waiting, x.bytes = x.waiting[1:], x.bytes-len(m.Data)
	return m, true, false
}

// Ready implements upstream.Exchange.
func (x *exchange) Ready() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.waiting) > 0
}

// SetIdleTimeout implements upstream.Exchange.
func (x *exchange) SetIdleTimeout(d time.Duration) { x.idle = d }

// Explain implements upstream.Exchange.
func (x *exchange) Explain(err error) error { return err }

// Close implements upstream.Exchange. An agent that has exceeded its time is informed that the task has failed.
func (x *exchange) Close(err error) {
	x.mu.Lock()
	if x.left == task.None && task.KindOf(err) == task.AgentTimeout && err != nil {
		x.status, x.left = codec.StateName(task.Failed, false), task.Failed
		defer x.hub.send(x.agent, updated(codec.JoinStatus(x.status, x.rest)))
	}
	left := x.left
	x.mu.Unlock()
	if left == task.None { // by the gateway, which is about to stop, or has canceled the task
		left = task.Canceled
	}
	x.hub.remove(x, left)
}

// canceled is the exchange of a cancel. The agent does not answer it.
type canceled struct{ answered bool }

func (*canceled) Begin() error                 { return nil }
func (*canceled) Streams() bool                { return false }
func (*canceled) Ready() bool                  { return true }
func (*canceled) SetIdleTimeout(time.Duration) {}
func (*canceled) Explain(err error) error      { return err }
func (*canceled) Close(error)                  {}

// Next implements upstream.Exchange.
func (c *canceled) Next() (upstream.Message, error) {
	if c.answered {
		return upstream.Message{}, io.EOF
	}
	c.answered = true
	return upstream.Message{Data: []byte(`{}`)}, nil
}

var _, _ upstream.Exchange = (*exchange)(nil), (*canceled)(nil)
