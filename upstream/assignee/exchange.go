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

// The most unread messages of an agent about a task.
const (
	maxWaiting      = 256     // messages
	maxWaitingBytes = 8 << 20 // bytes of them
)

// exchange is a turn of a task: the task as the agent sees it, and the agent's messages about it. say may be called by
// any goroutine, the other methods by the turn's.
type exchange struct {
	hub       *Hub
	agent, id string
	ctx       context.Context
	began     time.Time
	idle      time.Duration
	rest      []byte // the task as sent to the agent, without its status

	wake chan struct{} // holds a value if there may be something to read

	mu      sync.Mutex
	status  string     // of the task, as the agent sees it
	left    task.State // the state of the turn's end by the agent; None if it has not ended it
	cut     bool       // another exchange has taken the place of this one
	closed  bool       // no message of the agent is read any more
	waiting []upstream.Message
	bytes   int                     // of waiting
	asking  map[chan error]struct{} // has a channel for each call to be answered
}

// task returns the task as the agent sees it.
func (x *exchange) task() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return codec.JoinStatus(x.status, x.rest)
}

// say checks a message of the agent, and queues it for the turn. Of a call, stored then gets whether it was stored; the
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

// The statuses of a task still to be accepted by its assignee, and of a task waiting for input.
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

// errNotStored is the error of a call too late, or not to be taken by the gateway.
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

// Close implements upstream.Exchange. After a timeout, the agent is informed of the failure of the task. Calls not
// stored are answered by errNotStored.
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
