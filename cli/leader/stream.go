// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
)

// Event is one event of a stream.
type Event struct {
	task.Event
	Raw []byte // the whole frame as it was sent; valid until the next event
}

// The delays and the number of attempts to resume an interrupted stream.
const (
	firstWait = 100 * time.Millisecond
	maxWait   = 5 * time.Second
	tries     = 12 // in a row without an event
)

// Follow sends a start, continue or re-stream by stream and yields its events, each once and in order, until the task
// ends. Event numbers rise, with gaps if a Partner leaves some out (AIP v01.00 §6.2.6 (3)). When the stream is
// interrupted, Follow calls interrupted with the reason and resumes the stream. It cannot resume the stream of a
// continue interrupted before its first event, because the continue may have been executed. If the Partner answers an
// error, Follow yields an *Error and returns.
func (c *Client) Follow(ctx context.Context, call *task.Call, interrupted func(error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		next := *call
		last, begun, failures := call.AfterSeq, false, 0
		for wait := firstWait; ; wait = min(2*wait, maxWait) {
			done := false // the task has ended, or the caller has stopped the iteration
			err := c.stream(ctx, &next, func(ev Event) error {
				switch {
				case ev.Seq <= last && !begun && next.Message.Command == task.Start:
					return nil // a repeated start sends all events again
				case ev.Seq <= last, !begun && next.Message.Command == task.Start && ev.Seq != 1:
					return fmt.Errorf("%w: event %d came after %d", errOutOfOrder, ev.Seq, last)
				}
				last, begun, failures, wait = ev.Seq, true, 0, firstWait
				if done = !yield(ev, nil); done {
					return errStopped
				}
				done = ev.Status != nil && ev.Status.State.Terminal() || ev.Task != nil && ev.Task.Status.State.Terminal()
				return nil
			})
			var refused *Error
			var status *StatusError
			var format *FormatError
			switch {
			case done:
				return
			case ctx.Err() != nil:
				yield(Event{}, ctx.Err())
				return
			case err == nil && next.Message.Command == task.ReStream && !begun:
				return // the task has ended, and there were no more events
			case errors.As(err, &refused), errors.As(err, &status), errors.Is(err, errOutOfOrder),
				(errors.Is(err, ErrEmpty) || errors.As(err, &format)) && !begun:
				yield(Event{}, err)
				return
			case !begun && next.Message.Command == task.Continue:
				yield(Event{}, fmt.Errorf("the stream was interrupted before its first event; "+
					"whether the continue was executed is unknown: %w", err))
				return
			}
			if failures++; failures >= tries {
				yield(Event{}, fmt.Errorf("the stream was interrupted after event %d and cannot be resumed: %w", last, err))
				return
			}
			if err == nil {
				err = io.EOF
			}
			interrupted(err)
			if begun {
				m := task.Message{Command: task.ReStream, TaskID: call.Message.TaskID, SessionID: call.Message.SessionID}
				next = task.Call{Message: m, AfterSeq: last}
			}
			select {
			case <-time.After(wait/2 + rand.N(wait/2)):
			case <-ctx.Done():
			}
		}
	}
}

var (
	errOutOfOrder = errors.New("the Partner's stream is not in order")
	errStopped    = errors.New("the caller has stopped the iteration")
)

// stream sends one request by stream and calls each with its events, until the stream ends or each fails.
func (c *Client) stream(ctx context.Context, call *task.Call, each func(Event) error) error {
	m := c.complete(call)
	id := requestID(&m)
	res, err := c.post(ctx, "stream", c.version().appendRequest(nil, id, "stream", &m))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || media != "text/event-stream" {
		body, err := c.read(res.Body)
		if err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK {
			return refusal(res.StatusCode, body)
		}
		if _, err := c.version().decode(body, id); err != nil {
			return err
		}
		return errors.New("the answer is no stream")
	}
	events := sseproxy.NewReader(res.Body, sseproxy.Limits{})
	for {
		frame, err := events.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		ev, err := c.version().decodeEvent(frame.Data, id)
		if err != nil {
			return err
		}
		if err := each(ev); err != nil {
			return err
		}
	}
}

// decodeEvent reads one frame of a stream (AIP v01.00 §6.2.2).
func (v *version) decodeEvent(frame []byte, id jsonrpc.ID) (Event, error) {
	ev := Event{Raw: bytes.Clone(frame)}
	res, bad := jsonrpc.ParseResponse(ev.Raw, jsonrpc.Limits{Bytes: len(frame)})
	if bad != nil {
		return ev, fmt.Errorf("%w: a frame is not a JSON-RPC response: %s", errOutOfOrder, bad.Detail)
	}
	if f := res.Failure; f != nil {
		return ev, &Error{Code: f.Code, Message: f.Message, Data: json.RawMessage(f.Data.Raw), Raw: ev.Raw}
	}
	if !sameID(res.ID, id) {
		return ev, fmt.Errorf("%w: a frame has another id", errOutOfOrder)
	}
	seq, whole := jsonrpc.Int(res.Result.Get("eventSeq"))
	if !whole || seq < 1 {
		return ev, fmt.Errorf("%w: a frame has no eventSeq", errOutOfOrder)
	}
	ev.Seq = uint64(seq)
	data := res.Result.Get("eventData")
	var into any
	switch kind := data.Get("type").Str; kind {
	case v.task:
		var err error
		if ev.Task, err = v.readTask(data.Raw); err != nil {
			return ev, fmt.Errorf("%w: event %d is no valid AIP event: %w", errOutOfOrder, seq, err)
		}
		return ev, nil
	case "message":
		ev.Message = new(task.Message)
		into = ev.Message
	case v.status:
		into = &struct{ Status **task.Status }{&ev.Status}
	case "product-chunk":
		ev.Chunk = new(task.Chunk)
		into = ev.Chunk
	default:
		return ev, fmt.Errorf("%w: event %d has an unknown type", errOutOfOrder, seq)
	}
	if err := json.Unmarshal([]byte(data.Raw), into); err != nil {
		return ev, fmt.Errorf("%w: event %d is no valid AIP event: %w", errOutOfOrder, seq, err)
	}
	if ev.Task == nil && ev.Message == nil && ev.Chunk == nil && ev.Status == nil {
		return ev, fmt.Errorf("%w: event %d is empty", errOutOfOrder, seq)
	}
	return ev, nil
}
