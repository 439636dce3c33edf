// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

// agentUnderTest is a test's way to its agent.
type agentUnderTest struct {
	*upstreamtest.Listener
	transport *httptransport.Transport
	codec     translate.Client
}

type (
	httpConfig = httptransport.Config
	turnConfig = upstream.Config
)

// settings are a test's possible changes.
type settings struct {
	httpConfig
	turnConfig
}

// withAgent runs f in a bubble, with an Agent whose agent is handler, reached by HTTP. The bubble fails the test when a
// goroutine is left.
func withAgent(
	t *testing.T, handler http.Handler, change func(*settings),
	f func(t *testing.T, a *upstream.Agent, at *agentUnderTest),
) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		l := upstreamtest.NewListener()
		srv := &http.Server{Handler: handler}
		var serving sync.WaitGroup
		serving.Go(func() { srv.Serve(l) })
		s := settings{
			httpConfig{URL: "http://agent/", Codec: a2a.Legacy(), Dial: l.Dial},
			turnConfig{Logger: slog.New(slog.DiscardHandler)},
		}
		if change != nil {
			change(&s)
		}
		transport, err := httptransport.New(s.httpConfig)
		if err != nil {
			t.Fatal(err)
		}
		s.Resolver = upstream.NewEndpoint(s.Codec, transport)
		a := upstream.New(s.turnConfig)
		a.NumberAll("1")
		a.SteadyJitter()
		f(t, a, &agentUnderTest{l, transport, s.Codec})
		a.Close()
		srv.Close()
		serving.Wait()
		if c, ok := handler.(io.Closer); ok {
			c.Close()
		}
	})
}

// agentAt returns an agent at a URL, speaking a dialect.
func agentAt(t testing.TB, config httptransport.Config) *upstream.Agent {
	t.Helper()
	transport, err := httptransport.New(config)
	if err != nil {
		t.Fatal(err)
	}
	a := upstream.New(upstream.Config{
		Resolver: upstream.NewEndpoint(config.Codec, transport), Logger: slog.New(slog.DiscardHandler),
	})
	a.NumberAll("1")
	t.Cleanup(a.Close)
	return a
}

// script is an agent answering every method in its own way. n counts the calls of a method from 0.
type script map[string]func(w http.ResponseWriter, r *http.Request, n int)

func (s script) handler() http.Handler {
	var mu sync.Mutex
	calls := map[string]int{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		method := strings.TrimPrefix(gjson.GetBytes(body, "method").Str, "tasks/")
		mu.Lock()
		n := calls[method]
		calls[method]++
		mu.Unlock()
		if f := s[method]; f != nil {
			f(w, r, n)
			return
		}
		io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"no `+method+`"}}`)
	})
}

type step = func(w http.ResponseWriter, r *http.Request, n int)

// breaksFirst breaks the connection n times, and then does as then does.
func breaksFirst(n int, then step) step {
	return func(w http.ResponseWriter, r *http.Request, call int) {
		if call < n {
			panic(http.ErrAbortHandler)
		}
		then(w, r, call-n)
	}
}

// busyFor refuses n requests as too busy, and then answers as then does.
func busyFor(n int, retryAfter string, then step) step {
	return func(w http.ResponseWriter, r *http.Request, call int) {
		if call >= n {
			then(w, r, call-n)
			return
		}
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// says answers with one body each time, the last one again and again.
func says(bodies ...string) step {
	return func(w http.ResponseWriter, _ *http.Request, n int) {
		io.WriteString(w, bodies[min(n, len(bodies)-1)])
	}
}

// raw answers with bytes, HTTP included, and breaks the connection.
func raw(answer string) step {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(conn, answer)
		conn.Close()
	}
}

// pass lets time go by while the client waits.
func pass(r *http.Request, d time.Duration) {
	select {
	case <-time.After(d):
	case <-r.Context().Done():
	}
}

func hangs(_ http.ResponseWriter, r *http.Request, _ int) { <-r.Context().Done() }

// streams answers with events; then it ends, or stays.
func streams(stays bool, events ...string) step {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, ev := range events {
			io.WriteString(w, "data: "+ev+"\n\n")
			w.(http.Flusher).Flush()
		}
		if stays {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
}

func is(state string, more ...string) string {
	return `{"jsonrpc":"2.0","id":"1","result":{"id":"t","status":{"state":"` + state + `"}` + strings.Join(more,
		"") + `}}`
}

func has(texts ...string) string {
	var list []string
	for i, s := range texts {
		list = append(list, fmt.Sprintf(`{"parts":[{"type":"text","text":%q}],"append":%t}`, s, i > 0))
	}
	return `,"artifacts":[` + strings.Join(list, ",") + `]`
}

func chunk(s string, adds bool) string {
	return fmt.Sprintf(`{"id":"1","result":{"id":"t","artifact":{"parts":[{"text":%q}],"append":%t},"final":true}}`,
		s, adds)
}

func news(state string) string {
	return said(state, state != "working" && state != "submitted", "")
}

// said is a status, perhaps the last one, with words.
func said(state string, final bool, words string) string {
	message := ""
	if words != "" {
		message = fmt.Sprintf(`,"message":{"role":"agent","parts":[{"type":"text","text":%q}]}`, words)
	}
	return fmt.Sprintf(`{"id":"1","result":{"id":"t","status":{"state":%q%s},"final":%t}}`, state, message, final)
}

func fails(code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","error":{"code":%d,"message":%q}}`, code, message)
}

func turn(text string) *agent.Turn {
	return &agent.Turn{Ref: agent.Ref{Task: "t", Session: "s"},
		Message: task.Message{DataItems: []task.DataItem{task.Text(text)}}}
}

// carryOut carries a turn out as the life-cycle does: a turn without a stream is begun inline.
func carryOut(
	ctx context.Context, a *upstream.Agent, t *agent.Turn, stream bool,
) iter.Seq2[agent.Report, error] {
	if stream {
		return a.Run(ctx, t, true)
	}
	return func(yield func(agent.Report, error) bool) {
		in := a.Inline(t)
		stop := context.AfterFunc(ctx, in.Interrupt)
		rep, ended := in.Wait(ctx, time.Now().Add(time.Hour))
		stop()
		if ended {
			yield(rep, nil)
		} else {
			in.Rest()(yield)
		}
	}
}

// show lists the reports of a run, but for those of the delivery.
func show(seq iter.Seq2[agent.Report, error]) (all []string) {
	for rep, err := range seq {
		if rep.Delivery == agent.DeliveryUnknown {
			all = append(all, one(rep, err))
		}
	}
	return all
}

func one(rep agent.Report, err error) string {
	if err != nil {
		var e *task.Error
		if !errors.As(err, &e) {
			return "no task.Error: " + err.Error()
		}
		return e.Kind.String() + ": " + e.Detail
	}
	s := rep.NativeState
	for _, p := range rep.Products {
		s += " " + p.ID + "=" + p.DataItems[0].Text
	}
	for _, c := range chunksOf(&rep) {
		s += fmt.Sprintf("%s+=%s", c.Product.ID, c.Product.DataItems[0].Text)
	}
	return s
}

// chunksOf returns the new pieces of products of a report.
func chunksOf(rep *agent.Report) []task.Chunk {
	chunks := rep.Chunks
	for i := range rep.Pieces.Len() {
		chunks = append(chunks, rep.Pieces.Chunk(i))
	}
	return chunks
}
