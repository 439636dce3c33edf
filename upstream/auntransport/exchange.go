// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// exchange is one request. If it is for a turn with events to subscribe to, its answer is a stream: the response to the
// request, the response to a task.get, and the events of the task. Its own goroutine sends the first requests; after
// that, only the reading goroutine sends any. It implements upstream.Exchange.
type exchange struct {
	pool    *Pool
	link    *link
	request *upstream.Request
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	begun   chan struct{} // closed when the answer begins, or does not come
	err     error         // the reason if it does not come
	streams bool
	conn    *aun.Session // of a stream

	queue queue
	topic string        // the task of the events received by the exchange; empty for none
	ended atomic.Bool   // the task of topic has ended
	idle  time.Duration // of the request

	peer     string        // the agent's AID
	quiet    time.Duration // see Pool.New
	thread   string        // of the turn, if it is a conversation
	message  string        // the id of the first message of the turn; empty if it is not known
	talk     codec.Talk    // the turn by its messages; of the reading goroutine, once the exchange has begun
	messages bool          // the answer is the messages of the thread
	said     bool          // and the agent has said something in it
	works    bool          // and has declared itself at work
	// interrupt is the request's, until it has ended a call.
	interrupt *upstream.Interrupt
}

// carryOut sends the request, and subscribes to the events of its task.
func (x *exchange) carryOut() {
	defer func() {
		if p := recover(); p != nil { // the waiting goroutine handles it
			x.err = fmt.Errorf("auntransport: panic %T", p)
		}
		close(x.begun)
	}()
	body := x.request.Payload()
	call, bad := jsonrpc.Parse(body, jsonrpc.Limits{Bytes: maxRequest})
	if bad != nil {
		x.err = task.Errorf(task.Internal, "the gateway's request is invalid").WithCause(bad)
		return
	}
	ctx, cancel := context.WithTimeoutCause(x.ctx, x.idleOr(), context.DeadlineExceeded)
	defer cancel()
	session, err := x.link.Session(ctx)
	if err != nil {
		x.err = unreachable(ctx, err)
		return
	}
	x.conn = session
	if byMessages(&session.Hello) {
		x.converse(ctx, &call)
		return
	}
	known := x.request.Ref.Task
	switch x.request.Operation {
	case translate.Resubscribe:
		x.subscribe(ctx, known)
		if !x.streams && x.err == nil {
			x.err = task.Errorf(task.UnsupportedOperation, "the agent has no events of tasks")
		}
	case translate.Get:
		x.get(ctx, &call, known)
	case translate.Send, translate.SendStream:
		x.send(ctx, &call, known)
	default:
		x.answer(ctx, call.Method, []byte(call.Params.Raw))
	}
}

// maxRequest only bounds the gateway's own request; one too large for a frame is refused when it is sent.
const maxRequest = 64 << 20

func (x *exchange) idleOr() time.Duration {
	if x.idle > 0 {
		return x.idle
	}
	return 24 * time.Hour
}

// answer makes a call, and adds its response to the messages. It returns the result. If the other end has refused the
// call there is no result, and the codec reads the error from the response.
func (x *exchange) answer(ctx context.Context, method string, params []byte) (result gjson.Result, ok bool) {
	result, frame, err := x.call(ctx, method, params)
	if err != nil {
		x.err = err
		return result, false
	}
	x.queue.push(message{data: frame})
	return result, result.Exists()
}

// call makes a call, and returns its result, if there is one, and the whole response, which may be an error.
func (x *exchange) call(ctx context.Context, method string, params []byte) (gjson.Result, []byte, error) {
	result, err := x.conn.Call(ctx, method, params)
	if refused, ok := errors.AsType[*aun.Error](err); ok {
		return gjson.Result{}, jsonrpc.AppendError(nil, nil, int(refused.Code), refused.Message, refused.Data), nil
	}
	if err != nil {
		return gjson.Result{}, nil, lost(x.ctx, err)
	}
	return result, jsonrpc.End(append(jsonrpc.BeginResult(nil, nil), result.Raw...)), nil
}

// send sends a turn. Its events are subscribed to before an input, so none is missed. A new task has its id from the
// response, so it is asked for after the subscription.
func (x *exchange) send(ctx context.Context, call *jsonrpc.Request, known string) {
	input := call.Params.Get("task_id").Exists()
	if input {
		if x.subscribe(ctx, known); x.err != nil {
			return
		}
	}
	result, ok := x.answer(ctx, call.Method, []byte(call.Params.Raw))
	if !ok {
		x.streams = false
		return
	}
	if id := result.Get("task_id").String(); !input && id != "" {
		if x.subscribe(ctx, id); !x.streams {
			x.err = nil // the task exists: it is polled
			return
		}
		if now, frame, err := x.call(ctx, codec.Get, idParams(id)); err == nil && !x.link.topics.isOlder(id, now) {
			x.note(now)
			x.queue.push(message{data: frame})
		}
	}
}

// subscribe has the exchange receive the events of a task. If the other end has no subscriptions, the exchange is not a
// stream.
func (x *exchange) subscribe(ctx context.Context, taskID string) {
	x.topic = taskID
	x.link.topics.add(taskID, x)
	result, _, err := x.call(ctx, codec.Subscribe, codec.AppendSubscription(nil, taskID))
	if x.err = err; err != nil || !result.Exists() {
		return
	}
	for _, id := range result.Get("subscribed").Array() {
		if id.String() == taskID {
			x.streams = true
		}
	}
}

// The tries to replace an answer older than an event, and the pause between them.
const (
	staleTries = 5
	staleWait  = 200 * time.Millisecond
)

// get asks for a task, again if the answer is older than an event received already.
func (x *exchange) get(ctx context.Context, call *jsonrpc.Request, taskID string) {
	for try := 1; ; try++ {
		result, frame, err := x.call(ctx, call.Method, []byte(call.Params.Raw))
		if err != nil {
			x.err = err
			return
		}
		if try == staleTries || !x.link.topics.isOlder(taskID, result) {
			x.queue.push(message{data: frame})
			return
		}
		select {
		case <-time.After(staleWait):
		case <-ctx.Done():
			x.err = upstream.Ended(ctx)
			return
		}
	}
}

// Begin implements upstream.Exchange. The interrupt ends only one call.
func (x *exchange) Begin() error {
	if _, _, err := upstream.Receive(x.ctx, x.begun, x.interrupt, 0); err != nil {
		x.interrupt = nil
		return err
	}
	return x.err
}

// Streams implements upstream.Exchange.
func (x *exchange) Streams() bool { return x.streams }

// Ready implements upstream.Exchange.
func (x *exchange) Ready() bool { return x.queue.ready() }

// SetIdleTimeout implements upstream.Exchange.
func (x *exchange) SetIdleTimeout(d time.Duration) { x.idle = d }

// Next implements upstream.Exchange.
func (x *exchange) Next() (upstream.Message, error) {
	for {
		m, ok, err := x.queue.pop()
		switch {
		case ok && x.messages:
			if !m.event || x.talk.Belongs(gjson.ParseBytes(m.data)) {
				x.said, x.works = x.said || m.says, x.works || m.starts
			}
			return upstream.Message{Name: m.name, Data: m.data}, nil
		case ok && m.event:
			m = x.complete(m)
			fallthrough
		case ok:
			return upstream.Message{Name: m.name, Data: m.data}, nil
		case err != nil:
			return upstream.Message{}, err
		case !x.streams:
			return upstream.Message{}, io.EOF
		}
		if err := x.waitForMessage(); err != nil {
			return upstream.Message{}, err
		}
	}
}

// waitForMessage waits until the queue has changed. The end of the connection ends the queue.
func (x *exchange) waitForMessage() error {
	var idle <-chan time.Time
	if x.idle > 0 {
		timer := time.NewTimer(x.idle)
		defer timer.Stop()
		idle = timer.C
	}
	var over <-chan time.Time
	if d := x.quietFor(); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-x.queue.wake:
	case <-over:
		x.queue.push(message{name: codec.MessagesOver, data: []byte(`{}`)})
	case <-x.conn.Done():
		x.queue.end(upstream.Failed(task.Internal, upstream.StreamCut, x.conn.Err(),
			"the connection to the agent broke"))
	case <-x.ctx.Done():
		return upstream.Ended(x.ctx)
	case <-idle:
		return task.Errorf(task.AgentTimeout, "the agent has reported nothing for %v", x.idle)
	}
	return nil
}

// complete adds the whole task to an event settling it without its artifacts. Events may be lost, or be of artifacts
// only when these are asked for.
func (x *exchange) complete(m message) message {
	params := gjson.ParseBytes(m.data)
	x.note(params)
	state, _ := codec.State(params.Get("status").String())
	if !state.Settled() || params.Get("artifacts").Exists() {
		return m
	}
	ctx, cancel := context.WithTimeout(x.ctx, completeTimeout)
	defer cancel()
	whole, _, err := x.call(ctx, codec.Get, idParams(x.topic))
	if err != nil || !whole.IsObject() || x.link.topics.isOlder(x.topic, whole) {
		return m
	}
	data := append([]byte(nil), m.data[:len(m.data)-1]...)
	m.data = append(append(append(data, `,"task":`...), whole.Raw...), '}')
	return m
}

// completeTimeout is the longest wait for the whole task.
const completeTimeout = 10 * time.Second

// Explain implements upstream.Exchange. An offline agent has received nothing.
func (x *exchange) Explain(err error) error {
	if task.KindOf(err) == task.AgentUnavailable && upstream.ReasonOf(err) == upstream.NoReason {
		e, _ := errors.AsType[*task.Error](err)
		return upstream.Failed(task.AgentUnavailable, upstream.Unreachable, err, "%s", e.Detail)
	}
	return err
}

// Close implements upstream.Exchange. The events of the task are no longer wanted.
func (x *exchange) Close(err error) {
	cut := x.messages && err != nil && x.ctx.Err() == nil && !errors.Is(err, upstream.ErrAbandoned)
	x.cancel()
	x.work.Wait()
	defer x.pool.release(x.link)
	if x.topic == "" {
		return
	}
	x.link.topics.remove(x.topic, x, cut)
	if !x.ended.Load() {
		return // the next turn may subscribe again at this moment
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if p, err := x.conn.Begin(ctx, codec.Unsubscribe, codec.AppendSubscription(nil, x.topic)); err == nil {
		p.Abandon() // it is not waited for
	}
}

// note notes whether a task has ended.
func (x *exchange) note(v gjson.Result) {
	if state, _ := codec.State(v.Get("status").String()); state.Settled() && state != task.AwaitingInput {
		x.ended.Store(true)
	}
}

func idParams(taskID string) []byte {
	return append(task.AppendString([]byte(`{"task_id":`), taskID), '}')
}
