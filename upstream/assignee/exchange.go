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
	closed  bool       // nothing that the agent says is read any more
	waiting []upstream.Message
	bytes   int                     // of waiting
	asking  map[chan error]struct{} // has a channel for each call that is to be answered
}

// task returns the task as the agent sees it.
func (x *exchange) task() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return codec.JoinStatus(x.status, x.rest)
}

// say checks what the agent says, and queues it for the turn. Of a call, stored then gets whether it was stored; the
// caller must call forget.
func (x *exchange) say(method string, params gjson.Result, call bool) (status string, stored chan error, err error) {
	state, err := codec.Says(method, params)
	if err != nil {
		return "", nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	submitted, asks := x.status == submittedStatus, x.status == askingStatus
	switch {
	case x.left != task.None:
		return "", nil, stateError(x.left)
	case x.closed:
		return "", nil, errNotStored()
	case method == codec.Accept && !submitted:
		return "", nil, codec.AlreadyAccepted()
	case method == codec.Reject && !submitted, (method == codec.Complete || method == codec.Fail) && submitted:
		return "", nil, task.Errorf(task.UnsupportedOperation, "the task is %s", x.status)
	case len(x.waiting) >= maxWaiting || x.bytes+len(params.Raw) > maxWaitingBytes && len(x.waiting) > 0:
		return "", nil, task.Errorf(task.LimitExceeded, "the gateway has still to store what you have sent about the task").
			WithData("limit", "messages").WithData("max", maxWaiting)
	}
	if asks && method == codec.MessageSend {
		method = codec.NoteEvent
	}
	if asks && method == codec.ArtifactEvent {
		state = task.Working // it works on
	}
	if state != task.None && state != task.Accepted {
		x.status = codec.StateName(state, false)
	}
	if state.Settled() && state != task.AwaitingInput {
		x.left = state
	}
	m := upstream.Message{Name: method, Data: []byte(params.Raw)}
	if call {
		stored = make(chan error, 1)
		if x.asking == nil {
			x.asking = make(map[chan error]struct{})
		}
		x.asking[stored] = struct{}{}
		m.Stored = func() {
			select {
			case stored <- nil:
			default:
			}
		}
	}
	x.waiting = append(x.waiting, m)
	x.bytes += len(params.Raw)
	x.signal()
	return x.status, stored, nil
}

// The statuses of a task that its assignee has still to accept, and of one that it waits with.
var (
	submittedStatus = codec.StateName(task.Accepted, false)
	askingStatus    = codec.StateName(task.AwaitingInput, false)
)

// forget ends the wait for a call.
func (x *exchange) forget(stored chan error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.asking, stored)
}

// errNotStored is the error of a call that came too late, or that the gateway could not take.
func errNotStored() error {
	return task.Errorf(task.UnsupportedOperation, "the task went on without this; get it to see how it stands")
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

// Close implements upstream.Exchange. An agent that has exceeded its time is informed that the task has failed. Calls
// that were not stored are answered with that.
func (x *exchange) Close(err error) {
	x.mu.Lock()
	x.closed = true
	if x.left == task.None && task.KindOf(err) == task.AgentTimeout && err != nil {
		x.status, x.left = codec.StateName(task.Failed, false), task.Failed
		defer x.hub.send(x.agent, updated(codec.JoinStatus(x.status, x.rest)))
	}
	for stored := range x.asking {
		select {
		case stored <- errNotStored():
		default: // it is stored
		}
	}
	left := x.left
	x.mu.Unlock()
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
