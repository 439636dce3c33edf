// SPDX-License-Identifier: Apache-2.0

package aun_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// handler is a Handler made of functions.
type handler struct {
	request func(ctx context.Context, r *aun.Request)
	event   func(c *aun.Conn, method string, params gjson.Result)
}

func (h handler) Request(ctx context.Context, r *aun.Request) {
	if h.request == nil {
		r.Fail(aun.Errorf(codes.MethodNotFound, "Method not found"))
		return
	}
	h.request(ctx, r)
}

func (h handler) Event(c *aun.Conn, method string, params gjson.Result) {
	if h.event != nil {
		h.event(c, method, params)
	}
}

// serve returns a connection over ws, served until the test ends.
func serve(t *testing.T, ws *websocket.Conn, h aun.Handler, limits aun.Limits) *aun.Conn {
	c := aun.NewConn(ws, h, limits, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { c.Serve(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return c
}

func TestConn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		events := make(chan string, 10)
		serve(t, far, handler{
			request: func(ctx context.Context, r *aun.Request) {
				switch r.Method {
				case "echo":
					_ = r.Conn.Notify(ctx, "event/echoed", []byte(r.Params.Raw))
					_ = r.Reply([]byte(r.Params.Raw))
				case "refuse":
					r.Fail(&aun.Error{Code: -32170, Message: "Task not found", Data: []byte(`{"a":1}`)})
				case "secret":
					r.Fail(errors.New("secret"))
				case "panic":
					panic("a bug")
				case "silent":
				}
			},
		}, aun.Limits{})
		c := serve(t, near, handler{event: func(_ *aun.Conn, method string, params gjson.Result) {
			events <- method + params.Raw
		}}, aun.Limits{})

		result, err := c.Call(t.Context(), "echo", []byte(`{"x":[1,2]}`))
		if err != nil || result.Raw != `{"x":[1,2]}` {
			t.Errorf("echo: %s, %v", result.Raw, err)
		}
		if got := <-events; got != `event/echoed{"x":[1,2]}` {
			t.Errorf("event %s", got)
		}
		for method, want := range map[string]string{
			"refuse": `-32170 Task not found {"a":1}`, "secret": "-32603 Internal error ",
			"panic": "-32603 Internal error ", "silent": "-32603 Internal error ",
		} {
			_, err := c.Call(t.Context(), method, []byte(`{}`))
			e, _ := errors.AsType[*aun.Error](err)
			if e == nil || fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) != want {
				t.Errorf("%s: %v", method, err)
			}
		}
		c.Close(aun.CloseRestart, "reload")
		if _, err := c.Call(t.Context(), "echo", []byte(`{}`)); err == nil || err.(*aun.LostError).Sent {
			t.Errorf("after the end: %v", err)
		}
	})
}

// raw reads a frame of the other end, as it is.
func raw(t *testing.T, ws *websocket.Conn) string {
	t.Helper()
	_, frame, err := ws.Read(context.Background())
	if err != nil {
		return err.Error()
	}
	return string(frame)
}

func TestFramesAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		serve(t, far, handler{request: func(_ context.Context, r *aun.Request) { _ = r.Reply([]byte(`{}`)) }}, aun.Limits{})
		var counted aun.Frames
		c := aun.NewConn(near, handler{}, aun.Limits{}, quiet)
		c.CountBy(&counted)
		var served sync.WaitGroup
		served.Go(func() { c.Serve(t.Context()) })
		for range 3 {
			if _, err := c.Call(t.Context(), "echo", []byte(`{}`)); err != nil {
				t.Error(err)
			}
		}
		if sent, received := counted.Sent.Load(), counted.Received.Load(); sent != 3 || received != 3 {
			t.Errorf("%d frames were sent and %d received, want 3 and 3", sent, received)
		}
		c.Close(aun.CloseNormal, "")
		served.Wait()
	})
}

func TestFramesThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kind  websocket.MessageType
		frame string
		code  aun.CloseCode // 0 if the connection stays open
		want  string
	}{
		{"binary", websocket.MessageBinary, "{}", aun.CloseUnsupported, ""},
		{"no JSON", websocket.MessageText, "{", aun.CloseInvalidData, ""},
		{"no UTF-8", websocket.MessageText, "{\"a\":\"\xff\"}", aun.CloseInvalidData, ""},
		{"too large", websocket.MessageText, `{"a":"` + strings.Repeat("a", aun.MaxFrame) + `"}`, aun.CloseTooLarge, ""},
		{"batch", websocket.MessageText, `[]`, 0, `-32600`},
		{"a key twice", websocket.MessageText, `{"jsonrpc":"2.0","id":7,"method":"a","id":8}`, 0, `-32600`},
		{"no version", websocket.MessageText, `{"id":7,"method":"a"}`, 0, `"id":7`},
		{"params", websocket.MessageText, `{"jsonrpc":"2.0","id":"x","method":"a","params":3}`, 0, `"id":"x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				near, far := auntest.Pipe(t)
				c := serve(t, far, handler{}, aun.Limits{})
				near.SetReadLimit(-1)
				go func() { _ = near.Write(context.Background(), tt.kind, []byte(tt.frame)) }()
				got := raw(t, near)
				if tt.code == 0 {
					if !strings.Contains(got, tt.want) || c.Err() != nil {
						t.Errorf("answer %s; %v", got, c.Err())
					}
					_ = near.CloseNow()
					return
				}
				<-c.Done()
				if c.Err().Code != tt.code || !strings.Contains(got, fmt.Sprint(int(tt.code))) &&
					!strings.Contains(got, tt.code.String()) {
					t.Errorf("closed by %v; the other end saw %s", c.Err(), got)
				}
				_ = near.CloseNow()
			})
		})
	}
}

// TestSlowReaderIsCut: an end is cut if it does not read, and does not keep the sending goroutines for longer than the
// timeout.
func TestSlowReaderIsCut(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		c := serve(t, near, handler{}, aun.Limits{WriteTimeout: 3 * time.Second})
		began := time.Now()
		err := c.Notify(t.Context(), "event/a", []byte(`{}`)) // far is never read
		if lost, ok := errors.AsType[*aun.LostError](err); !ok || !lost.Sent || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		<-c.Done()
		_ = far.CloseNow()
	})
}

// TestLostCalls: a call on a lost connection knows whether it may have been received.
func TestLostCalls(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		c := serve(t, near, handler{}, aun.Limits{Calls: 1})
		go func() {
			raw(t, far)
			time.Sleep(time.Minute)
			_ = far.CloseNow()
		}()
		second := make(chan error, 1)
		go func() {
			synctest.Wait()
			_, err := c.Call(t.Context(), "b", []byte(`{}`))
			second <- err
		}()
		_, err := c.Call(t.Context(), "a", []byte(`{}`))
		if lost, ok := errors.AsType[*aun.LostError](err); !ok || !lost.Sent {
			t.Errorf("the first: %v", err)
		}
		err = <-second
		if lost, ok := errors.AsType[*aun.LostError](err); !ok || lost.Sent {
			t.Errorf("the second: %v", err)
		}
		if c.Err().Code != aun.CloseAbnormal {
			t.Errorf("ended by %v", c.Err())
		}
	})
}

// TestAbandonedCall: an abandoned call makes room for the next one, and its late answer is ignored.
func TestAbandonedCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		c := serve(t, near, handler{}, aun.Limits{Calls: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			for range 2 {
				raw(t, far)
			}
			for _, answer := range []string{`{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","id":2,"result":2}`} {
				_ = far.Write(context.Background(), websocket.MessageText, []byte(answer))
			}
		}()
		if _, err := c.Call(ctx, "a", []byte(`{}`)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first: %v", err)
		}
		if result, err := c.Call(t.Context(), "b", []byte(`{}`)); err != nil || result.Int() != 2 {
			t.Errorf("the second: %v, %v", result, err)
		}
		_ = far.CloseNow()
	})
}

// No more requests than the limit run at once; the rest waits in the connection.
func TestRequestsAreLimited(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		var mu sync.Mutex
		now, most := 0, 0
		serve(t, far, handler{request: func(_ context.Context, r *aun.Request) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			_ = r.Reply([]byte(`{}`))
		}}, aun.Limits{Requests: 3})
		c := serve(t, near, handler{}, aun.Limits{Calls: 20})
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := c.Call(t.Context(), "a", []byte(`{}`)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if most != 3 {
			t.Errorf("%d requests ran at once", most)
		}
	})
}

// TestRefusalsAreLimited: refused frames count as requests: the other end cannot have any number of answers wait for
// it.
func TestRefusalsAreLimited(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		serve(t, far, handler{}, aun.Limits{Requests: 3, WriteTimeout: time.Minute})
		invalid := []byte(`{"jsonrpc":"2.0","id":1,"method":5,"more":"` + strings.Repeat("x", 64<<10) + `"}`)
		var sent atomic.Int32
		var writes sync.WaitGroup
		writes.Go(func() { // it reads no answer
			for range 50 {
				if near.Write(context.Background(), websocket.MessageText, invalid) != nil {
					return
				}
				sent.Add(1)
			}
		})
		synctest.Wait()
		if n := sent.Load(); n < 3 || n > 5 {
			t.Errorf("%d frames are read while no answer is", n)
		}
		_ = near.CloseNow()
		writes.Wait()
	})
}

// The close code and the reason of the other end are known.
func TestRemoteClose(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		c := serve(t, near, handler{}, aun.Limits{})
		server := serve(t, far, handler{}, aun.Limits{})
		server.Close(aun.CloseReplaced, "a newer connection")
		<-c.Done()
		if e := c.Err(); e.Code != aun.CloseReplaced || e.Reason != "a newer connection" || e.Local || !e.Final() {
			t.Errorf("ended by %+v", e)
		}
	})
}

// TestStranger: the other end has one request under way at a time until it has logged in, and more afterwards.
func TestStranger(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		near, far := auntest.Pipe(t)
		var under atomic.Int32
		answer := make(chan struct{})
		serve(t, far, handler{request: func(_ context.Context, r *aun.Request) {
			under.Add(1)
			<-answer
			under.Add(-1)
			if r.Method == "login" {
				r.Conn.LoggedIn()
			}
			_ = r.Reply([]byte("{}"))
		}}, aun.Limits{Stranger: true})
		c := serve(t, near, handler{}, aun.Limits{})
		for _, at := range []struct {
			method string
			once   int32 // requests under way at once
		}{{"guess", 1}, {"login", 1}, {"work", 4}} {
			var calls sync.WaitGroup
			n := 4
			if at.method == "login" {
				n = 1
			}
			for range n {
				calls.Go(func() {
					if _, err := c.Call(t.Context(), at.method, []byte("{}")); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			if got := under.Load(); got != at.once {
				t.Errorf("%d requests %s are under way, want %d", got, at.method, at.once)
			}
			for range n {
				answer <- struct{}{}
			}
			calls.Wait()
		}
	})
}
