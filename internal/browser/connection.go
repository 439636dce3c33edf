// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coder/websocket"
)

// connection carries commands to the browser, and their results and events back.
type connection struct {
	ws     *websocket.Conn
	cancel context.CancelFunc
	reader sync.WaitGroup

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- answer
	pages   map[string]*Page // by their sessions
}

type answer struct {
	result json.RawMessage
	err    error
}

// frame is a message of the DevTools protocol, in either direction.
type frame struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

func newConnection(ws *websocket.Conn) *connection {
	ctx, cancel := context.WithCancel(context.Background())
	c := &connection{ws: ws, cancel: cancel, waiting: make(map[int]chan<- answer), pages: make(map[string]*Page)}
	ws.SetReadLimit(64 << 20) // a screenshot
	c.reader.Go(func() { c.read(ctx) })
	return c
}

func (c *connection) close() {
	c.cancel()
	_ = c.ws.CloseNow() // the browser may be gone
	c.reader.Wait()
}

func (c *connection) read(ctx context.Context) {
	for {
		_, data, err := c.ws.Read(ctx)
		var params json.RawMessage
		f := frame{Params: &params}
		if err == nil {
			err = json.Unmarshal(data, &f)
		}
		c.mu.Lock()
		if err != nil {
			for _, w := range c.waiting {
				w <- answer{err: err}
			}
			c.waiting = nil
			c.mu.Unlock()
			return
		}
		waiting, page := c.waiting[f.ID], c.pages[f.Session]
		delete(c.waiting, f.ID)
		c.mu.Unlock()
		switch {
		case waiting != nil && f.Error != nil:
			waiting <- answer{err: errors.New(f.Error.Message)}
		case waiting != nil:
			waiting <- answer{result: f.Result}
		case page != nil && f.Method != "":
			page.event(f.Method, params)
		}
	}
}

// call sends a command, and decodes its result unless into is nil.
func (c *connection) call(ctx context.Context, session, method string, params, into any) error {
	got := make(chan answer, 1)
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return errors.New("the browser has ended")
	}
	c.last++
	id := c.last
	c.waiting[id] = got
	c.mu.Unlock()
	data, err := json.Marshal(frame{ID: id, Session: session, Method: method, Params: params})
	if err != nil {
		return err
	}
	if err := c.ws.Write(ctx, websocket.MessageText, data); err != nil {
		return err
	}
	select {
	case a := <-got:
		if a.err != nil {
			return fmt.Errorf("%s: %w", method, a.err)
		}
		if into == nil {
			return nil
		}
		return json.Unmarshal(a.result, into)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
}
