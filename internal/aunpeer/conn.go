// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/coder/websocket"
)

// MaxFrame is the most bytes of a frame for SDKs of AUN.
const MaxFrame = 1_000_000

// Frame is an event, a notification, or a request of the other side.
type Frame struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// Error is an error of JSON-RPC.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) }

// Code returns the code of an error of JSON-RPC, 0 if err is none.
func Code(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// Conn is one side of a connection. As SDKs of AUN do, a client takes every frame with an id for a reply.
type Conn struct {
	ws     *websocket.Conn
	answer func(f Frame) (any, *Error) // of requests; nil for a client
	ended  chan struct{}

	serving sync.WaitGroup // requests of the other side

	mu      sync.Mutex
	changed chan struct{} // closed when anything below changes
	next    int
	replies map[string]chan reply
	events  []Frame // received, and not yet taken by Event
	log     []string
	err     error // the reason of the connection's end
}

type reply struct {
	Result json.RawMessage
	Error  *Error
}

// Dial opens a connection. Nothing is sent yet.
func Dial(ctx context.Context, client *http.Client, url string, header http.Header) (*Conn, error) {
	ws, res, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: header, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if res != nil {
			return nil, fmt.Errorf("%d: %w", res.StatusCode, err)
		}
		return nil, err
	}
	c := newConn(ws, nil)
	go c.read(context.WithoutCancel(ctx))
	return c, nil
}

func newConn(ws *websocket.Conn, answer func(Frame) (any, *Error)) *Conn {
	ws.SetReadLimit(-1)
	return &Conn{
		ws: ws, answer: answer, ended: make(chan struct{}),
		changed: make(chan struct{}), replies: make(map[string]chan reply),
	}
}

// change runs f under the lock, and wakes all waiting for a change.
func (c *Conn) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
}

// read reads frames until the connection ends.
func (c *Conn) read(ctx context.Context) {
	defer close(c.ended)
	defer c.serving.Wait()
	for {
		kind, data, err := c.ws.Read(ctx)
		if err == nil && kind != websocket.MessageText {
			err = errors.New("a frame that is no text")
		}
		var f struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  *Error
		}
		if err == nil {
			err = json.Unmarshal(data, &f)
		}
		if err != nil {
			c.change(func() { c.err = err })
			return
		}
		switch {
		case len(f.ID) == 0 || c.answer == nil && f.Method != "" && len(f.Result) == 0 && f.Error == nil:
			c.change(func() {
				c.log = append(c.log, string(data))
				c.events = append(c.events, Frame{f.ID, f.Method, f.Params})
			})
		case f.Method != "":
			c.serving.Go(func() { c.serve(ctx, Frame{f.ID, f.Method, f.Params}) })
		default:
			c.change(func() {
				if ch, ok := c.replies[string(f.ID)]; ok {
					delete(c.replies, string(f.ID))
					ch <- reply{f.Result, f.Error}
				} else {
					c.events = append(c.events, Frame{ID: f.ID, Method: "a reply that was not expected", Params: data})
				}
			})
		}
	}
}

// errSilent, as the result of a request, leaves it without an answer.
var errSilent = &Error{Message: "not answered"}

func (c *Conn) serve(ctx context.Context, f Frame) {
	result, failed := c.answer(f)
	if failed == errSilent {
		return
	}
	out := map[string]any{"jsonrpc": "2.0", "id": f.ID}
	if failed != nil {
		out["error"] = failed
	} else {
		out["result"] = result
	}
	_ = c.send(ctx, out) // the connection has ended
}

func (c *Conn) send(ctx context.Context, frame any) error {
	data, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return c.Write(ctx, websocket.MessageText, data)
}

// Write writes a frame as it is.
func (c *Conn) Write(ctx context.Context, kind websocket.MessageType, data []byte) error {
	return c.ws.Write(ctx, kind, data)
}

// Notify sends an event, without an id.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	return c.send(ctx, map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// Call sends a request, and returns its result. An error of the other side is an *Error.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	c.mu.Lock()
	c.next++
	id := c.next
	c.mu.Unlock()
	return c.CallID(ctx, strconv.Itoa(id), method, params)
}

// CallID is Call with an id, in JSON.
func (c *Conn) CallID(ctx context.Context, id, method string, params any) (json.RawMessage, error) {
	ch := make(chan reply, 1)
	c.change(func() { c.replies[id] = ch })
	request := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method}
	if params != nil {
		request["params"] = params
	}
	if err := c.send(ctx, request); err != nil {
		return nil, err
	}
	select {
	case r := <-ch:
		if r.Error != nil {
			return nil, r.Error
		}
		return r.Result, nil
	case <-c.ended:
		select {
		case r := <-ch:
			if r.Error != nil {
				return nil, r.Error
			}
			return r.Result, nil
		default:
		}
		return nil, c.Err()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s is not answered: %w", method, ctx.Err())
	}
}

// Event returns the next event matching match; a nil match takes any. Events before it are dropped.
func (c *Conn) Event(ctx context.Context, match func(Frame) bool) (Frame, error) {
	for {
		c.mu.Lock()
		for len(c.events) > 0 {
			f := c.events[0]
			c.events = c.events[1:]
			if match == nil || match(f) {
				c.mu.Unlock()
				return f, nil
			}
		}
		err, changed := c.err, c.changed
		c.mu.Unlock()
		if err != nil {
			return Frame{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Frame{}, fmt.Errorf("no such event: %w", ctx.Err())
		}
	}
}

// Received returns all received events, as they were sent.
func (c *Conn) Received() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.log...)
}

// Err returns the reason of the connection's end, nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Closed waits until the other side has closed the connection, and returns its close code.
func (c *Conn) Closed(ctx context.Context) (code int, reason string, err error) {
	select {
	case <-c.ended:
	case <-ctx.Done():
		return 0, "", fmt.Errorf("the connection stays open: %w", ctx.Err())
	}
	var closed websocket.CloseError
	if errors.As(c.Err(), &closed) {
		return int(closed.Code), closed.Reason, nil
	}
	return 0, "", c.Err()
}

// Close closes the connection in order.
func (c *Conn) Close() error {
	err := c.ws.Close(websocket.StatusNormalClosure, "")
	<-c.ended
	return err
}

// Cut closes the socket without a word.
func (c *Conn) Cut() {
	_ = c.ws.CloseNow()
	<-c.ended
}
