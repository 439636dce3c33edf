// SPDX-License-Identifier: Apache-2.0

package httptransport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

// open opens an exchange with an agent answering by handler, runs f in a bubble, and ends the agent.
func open(
	t *testing.T, handler http.HandlerFunc, makeInterrupt func() *upstream.Interrupt,
	f func(t *testing.T, x upstream.Exchange, cancel func()),
) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		l := upstreamtest.NewListener()
		srv := &http.Server{Handler: handler}
		var serving sync.WaitGroup
		serving.Go(func() { srv.Serve(l) })
		transport, err := httptransport.New(httptransport.Config{
			URL: "http://agent/", Codec: a2a.Legacy(), Dial: l.Dial,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		x, err := transport.Routes(translate.Send)[0].Open(ctx, &upstream.Request{
			Operation: translate.Send, Body: []byte("{}"), IdleTimeout: time.Hour, Interrupt: makeInterrupt(),
		})
		if err != nil {
			t.Fatal(err)
		}
		f(t, x, cancel)
		transport.Close()
		srv.Close()
		serving.Wait()
	})
}

// halting answers in three parts, the head first, with a pause before each.
func halting(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // only then the server sees the end of the connection
	for _, part := range []string{"", "one ", "two"} {
		select {
		case <-time.After(25 * time.Minute):
		case <-r.Context().Done():
			return
		}
		io.WriteString(w, part)
		w.(http.Flusher).Flush()
	}
}

// TestInterrupt: an interrupt ends the wait at any moment, once. Another goroutine then gets the whole answer.
func TestInterrupt(t *testing.T) {
	for _, after := range []time.Duration{0, time.Minute, 30 * time.Minute, 60 * time.Minute} {
		for _, until := range []bool{false, true} {
			ending := func() *upstream.Interrupt {
				var i upstream.Interrupt
				if until {
					i.Until = time.Now().Add(after)
				} else {
					time.AfterFunc(after, i.End)
				}
				return &i
			}
			open(t, halting, ending, func(t *testing.T, x upstream.Exchange, _ func()) {
				interrupted := 0
				again := func(f func() error) error {
					err := f()
					if !errors.Is(err, upstream.ErrInterrupted) {
						return err
					}
					interrupted++
					other := make(chan error)
					go func() { other <- f() }()
					return <-other
				}
				var m upstream.Message
				err := again(x.Begin)
				if err == nil {
					err = again(func() (err error) { m, err = x.Next(); return err })
				}
				if err != nil || string(m.Data) != "one two" || interrupted != 1 {
					t.Errorf("after %v: %q, error %v, interrupted %d times", after, m.Data, err, interrupted)
				}
				x.Close(nil)
			})
		}
	}
}

// TestInterruptAfterCancel: an exchange is over, not interrupted, if its context is canceled before its interrupt ends.
func TestInterruptAfterCancel(t *testing.T) {
	var i upstream.Interrupt
	open(t, halting, func() *upstream.Interrupt { return &i }, func(t *testing.T, x upstream.Exchange, cancel func()) {
		time.AfterFunc(time.Minute, func() { cancel(); i.End() })
		err := x.Begin()
		if task.KindOf(err) != task.Internal || errors.Is(err, upstream.ErrInterrupted) {
			t.Errorf("the error is %v", err)
		}
		x.Close(err)
	})
}

// TestInterruptedExchangeCloses: an exchange can be closed when no caller waits for its answer any more.
func TestInterruptedExchangeCloses(t *testing.T) {
	var i upstream.Interrupt
	open(t, halting, func() *upstream.Interrupt { return &i }, func(t *testing.T, x upstream.Exchange, _ func()) {
		i.End()
		if err := x.Begin(); !errors.Is(err, upstream.ErrInterrupted) {
			t.Errorf("the error is %v", err)
		}
		x.Close(upstream.ErrAbandoned)
	})
}
