// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// plain is a dialect without facets. A message is a state, "+" and a piece of the product, or "!" for an error.
type plain struct{}

func (plain) Name() string                           { return "plain" }
func (d plain) For(translate.Query) translate.Client { return d }
func (plain) Header() []translate.Field              { return nil }
func (plain) AppendTurn(dst []byte, t *agent.Turn, _ bool) []byte {
	return append(dst, t.Message.DataItems[0].Text...)
}

func (plain) Reply(body []byte, _ []task.Product) (agent.Report, error) {
	text := string(body)
	piece, isPiece := strings.CutPrefix(text, "+")
	switch {
	case text == "!":
		return agent.Report{}, task.Errorf(task.InvalidParams, "the agent refuses")
	case isPiece:
		p := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(piece)}}
		return agent.Report{Chunks: []task.Chunk{{Product: p, Append: true}}}, nil
	}
	return agent.Report{State: task.State(text), NativeState: text, Revision: text}, nil
}

func (d plain) Push(body []byte, known []task.Product) (agent.Report, error) {
	rep, err := d.Reply(body, known)
	rep.Full = true
	return rep, err
}

func (d plain) NewStream([]task.Product) translate.Stream { return d }
func (d plain) Event(_ string, data []byte) (agent.Report, error) {
	return d.Reply(data, nil)
}

// The possible facets of a dialect beside.
type (
	gets         struct{ plain }
	cancels      struct{ plain }
	getsCancels  struct{ gets }
	resubscribes struct{ plain }
)

func (d gets) For(translate.Query) translate.Client         { return d }
func (d cancels) For(translate.Query) translate.Client      { return d }
func (d getsCancels) For(translate.Query) translate.Client  { return d }
func (d resubscribes) For(translate.Query) translate.Client { return d }
func (d broken) For(translate.Query) translate.Client       { return d }

func (gets) AppendGet(dst []byte, _ agent.Ref) []byte                 { return append(dst, "get"...) }
func (cancels) AppendCancel(dst []byte, _ agent.Ref) []byte           { return append(dst, "cancel"...) }
func (getsCancels) AppendCancel(dst []byte, _ agent.Ref) []byte       { return append(dst, "cancel"...) }
func (resubscribes) AppendResubscribe(dst []byte, _ agent.Ref) []byte { return append(dst, "again"...) }

// wire is a transport without a network: each request is answered by the next of its messages.
type wire struct {
	mu      sync.Mutex
	answers answers
	asked   []string
	open    atomic.Int64 // exchanges
}

// answers lists the answers to each operation, in order. The last one is repeated.
type answers map[translate.Operation][]wireAnswer

type wireAnswer struct {
	err      error
	stream   bool
	messages []string
	hangs    bool // after the messages, until the request is given up
}

func answered(message string) wireAnswer     { return wireAnswer{messages: []string{message}} }
func streamed(messages ...string) wireAnswer { return wireAnswer{stream: true, messages: messages} }
func failing(r upstream.Reason) wireAnswer {
	return wireAnswer{err: upstream.Failed(task.AgentUnavailable, r, nil, "it fails")}
}
func (w *wire) Routes(translate.Operation) []upstream.Route { return []upstream.Route{w} }
func (w *wire) Confirm()                                    {}
func (w *wire) Close()                                      {}

func (w *wire) Open(ctx context.Context, r *upstream.Request) (upstream.Exchange, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, string(r.Payload()))
	next := w.answers[r.Operation]
	if len(next) == 0 {
		return nil, task.Errorf(task.Internal, "the test does not expect %q", r.Payload())
	}
	if len(next) > 1 { // the last one stays
		w.answers[r.Operation] = next[1:]
	}
	if next[0].err != nil {
		return nil, next[0].err
	}
	w.open.Add(1)
	return &wireExchange{wire: w, ctx: ctx, answer: next[0]}, nil
}

type wireExchange struct {
	wire   *wire
	ctx    context.Context
	answer wireAnswer
	closed bool
}

func (x *wireExchange) Begin() error                 { return nil }
func (x *wireExchange) Streams() bool                { return x.answer.stream }
func (x *wireExchange) Ready() bool                  { return false }
func (x *wireExchange) SetIdleTimeout(time.Duration) {}
func (x *wireExchange) Explain(err error) error      { return err }
func (x *wireExchange) Close(error)                  { x.closed = true; x.wire.open.Add(-1) }
func (x *wireExchange) Next() (upstream.Message, error) {
	switch {
	case x.closed:
		return upstream.Message{}, errors.New("the exchange is closed")
	case len(x.answer.messages) > 0:
		m := upstream.Message{Data: []byte(x.answer.messages[0])}
		x.answer.messages = x.answer.messages[1:]
		return m, nil
	case x.answer.hangs:
		<-x.ctx.Done()
		return upstream.Message{}, upstream.Ended(x.ctx)
	case x.answer.stream:
		return upstream.Message{}, upstream.Failed(task.InvalidAgentResponse, upstream.StreamCut, nil, "cut")
	}
	return upstream.Message{}, io.EOF
}

// over runs f in a bubble, with an agent speaking a dialect over a wire.
func over(t *testing.T, codec translate.Client, w upstream.Transport, f func(t *testing.T, a *upstream.Agent)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		a := upstream.New(upstream.Config{
			Resolver: upstream.NewEndpoint(codec, w), RetryFor: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		a.NumberAll("1")
		a.SteadyJitter()
		f(t, a)
		a.Close()
	})
}

// TestFacets: the driver does without a missing facet of a dialect if possible, and returns a proper error if not.
func TestFacets(t *testing.T) {
	const done = string(task.AwaitingCompletion)
	for _, c := range []struct {
		name    string
		codec   translate.Client
		stream  bool
		resume  bool
		answers answers
		want    []string
		asked   []string
	}{
		{"one answer", plain{}, false, false, answers{translate.Send: {answered(done)}},
			[]string{done}, []string{"x"}},
		{"a stream", plain{}, true, false, answers{translate.SendStream: {streamed("working", "+a", done)}},
			[]string{"working", "p+=a", done}, []string{"x"}},
		{"a call is answered by a stream", plain{}, false, false,
			answers{translate.Send: {streamed("working", "+a", "+b", done)}},
			[]string{"working", "p+=a", "p+=b", done}, []string{"x"}},
		{"a stream is answered once", plain{}, true, false, answers{translate.SendStream: {answered(done)}},
			[]string{done}, []string{"x"}},
		{"an early answer cannot be polled", plain{}, false, false, answers{translate.Send: {answered("working")}},
			[]string{"working", "invalid-agent-response: the agent answered before the turn ended, and plain cannot " +
				"ask how a task stands"},
			[]string{"x"}},
		{"an early answer is polled", gets{}, false, false,
			answers{translate.Send: {answered("working")}, translate.Get: {answered("working"), answered(done)}},
			[]string{"working", done}, []string{"x", "get", "get"}},
		{"a question is answered by a stream", gets{}, false, false,
			answers{translate.Send: {answered("working")}, translate.Get: {streamed("+a", "+b", done)}},
			[]string{"working", done + " p=ab"}, []string{"x", "get"}},
		{"a question is answered by a stream that ends", gets{}, false, false,
			answers{translate.Send: {answered("working")}, translate.Get: {streamed("accepted", "+a"), answered(done)}},
			[]string{"working", "accepted p=a", done}, []string{"x", "get", "get"}},
		{"a cut stream cannot be resumed", plain{}, true, false,
			answers{translate.SendStream: {streamed("working")}},
			[]string{"working", "unsupported-operation: the connection to the agent is gone, and plain cannot ask " +
				"how a task stands" + notAgain},
			[]string{"x"}},
		{"a cut stream is continued by another one", resubscribes{}, true, false,
			answers{translate.SendStream: {streamed("working")},
				translate.Resubscribe: {streamed("+a"), failing(upstream.Unreachable), streamed("+b", done)}},
			[]string{"working", "p+=a", "p+=b", done}, []string{"x", "again", "again", "again"}},
		{"a turn of another process, without a question", plain{}, false, true, nil,
			[]string{"unsupported-operation: the connection to the agent is gone, and plain cannot ask how a " +
				"task stands" + notAgain}, nil},
		{"a turn of another process, by a new stream", resubscribes{}, false, true,
			answers{translate.Resubscribe: {streamed("working", done)}},
			[]string{"working", done}, []string{"again"}},
		{"a turn of another process, polled", gets{}, false, true,
			answers{translate.Get: {answered("working"), answered(done)}},
			[]string{"working", done}, []string{"get", "get"}},
		{"nothing was sent", plain{}, false, false,
			answers{translate.Send: {failing(upstream.Unreachable), failing(upstream.OutOfFiles), answered(done)}},
			[]string{done}, []string{"x", "x", "x"}},
		{"the agent is overloaded", gets{}, false, false,
			answers{translate.Send: {failing(upstream.Overloaded), answered(done)}},
			[]string{done}, []string{"x", "x"}},
		{"the agent is overloaded, and cannot be asked", plain{}, false, false,
			answers{translate.Send: {failing(upstream.Overloaded), answered(done)}},
			[]string{"agent-unavailable: it fails"}, []string{"x"}},
		{"the connection broke, and the agent cannot be asked", plain{}, false, false,
			answers{translate.Send: {failing(upstream.Disconnected), answered(done)}},
			[]string{"agent-unavailable: it fails"}, []string{"x"}},
		{"the agent refuses", plain{}, false, false, answers{translate.Send: {answered("!")}},
			[]string{"invalid-params: the agent refuses"}, []string{"x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &wire{answers: c.answers}
			over(t, c.codec, w, func(t *testing.T, a *upstream.Agent) {
				reports := carryOut(t.Context(), a, turn("x"), c.stream)
				if c.resume {
					reports = a.Resume(t.Context(), turn("x"))
				}
				if diff := cmp.Diff(c.want, show(reports)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
			if diff := cmp.Diff(c.asked, w.asked); diff != "" {
				t.Errorf("the agent is asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCancelFacet: an agent without a cancel is not asked, and its connection is closed with its run; one without a get
// is believed.
func TestCancelFacet(t *testing.T) {
	canceled := wireAnswer{messages: []string{string(task.Canceled)}}
	for _, c := range []struct {
		name    string
		codec   translate.Client
		answers answers
		want    task.State
		asked   []string
	}{
		{"no cancel", plain{}, nil, task.Canceled, nil},
		{"a cancel", cancels{}, answers{translate.Cancel: {canceled}}, task.Canceled, []string{"cancel"}},
		{"a cancel, and no question", cancels{}, answers{translate.Cancel: {answered("working")}}, task.Working,
			[]string{"cancel"}},
		{"a cancel, and a question", getsCancels{},
			answers{translate.Cancel: {answered("working")}, translate.Get: {canceled}},
			task.Canceled, []string{"cancel", "get"}},
		{"a cancel that is answered by a stream", cancels{},
			answers{translate.Cancel: {streamed("working", string(task.Canceled))}},
			task.Canceled, []string{"cancel"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &wire{answers: c.answers}
			over(t, c.codec, w, func(t *testing.T, a *upstream.Agent) {
				rep, err := a.Cancel(t.Context(), turn("x"))
				if err != nil || rep.State != c.want {
					t.Errorf("the task is %q, %v", rep.State, err)
				}
			})
			if diff := cmp.Diff(c.asked, w.asked); diff != "" {
				t.Errorf("the agent is asked (-want +got):\n%s", diff)
			}
		})
	}
	w := &wire{answers: answers{translate.Send: {{stream: true, messages: []string{"working"}, hangs: true}}}}
	over(t, plain{}, w, func(t *testing.T, a *upstream.Agent) { // as the life-cycle cancels
		ctx, end := context.WithCancel(t.Context())
		defer end()
		var last error
		for rep, err := range carryOut(ctx, a, turn("x"), false) {
			if last = err; rep.State == task.Working {
				if rep, err := a.Cancel(t.Context(), turn("x")); err != nil || rep.State != task.Canceled {
					t.Errorf("canceled: %q, %v", rep.State, err)
				}
				end()
			}
		}
		if task.KindOf(last) != task.Internal {
			t.Errorf("the run ends with %v", last)
		}
	})
}

// socket is a transport with a connection for unasked messages.
type socket struct {
	wire
	unasked chan []byte
	closed  bool
}

func (s *socket) Listen(_ context.Context, ref agent.Ref) *upstream.Inbox {
	return &upstream.Inbox{Messages: s.unasked, Close: func() { s.closed = true }}
}

// TestUnaskedMessages: a transport as a Listener brings the agent's unasked messages, and a dialect without get needs
// no more.
func TestUnaskedMessages(t *testing.T) {
	for _, c := range []struct {
		name string
		sent []string
		want []string
	}{
		{"until it is done", []string{"working", string(task.AwaitingCompletion)},
			[]string{"accepted", "working", string(task.AwaitingCompletion)}},
		{"and then nothing", []string{"working"},
			[]string{"accepted", "working",
				"agent-timeout: the agent has not reported on the task for 5m0s: it does not answer"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &socket{wire: wire{answers: answers{translate.Send: {answered("accepted")}}}}
			over(t, plain{}, s, func(t *testing.T, a *upstream.Agent) {
				s.unasked = make(chan []byte)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				var agent sync.WaitGroup
				agent.Go(func() {
					for _, m := range c.sent {
						bubble.Pass(time.Second)
						select {
						case s.unasked <- []byte(m):
						case <-ctx.Done():
						}
					}
				})
				if diff := cmp.Diff(c.want, show(a.Run(t.Context(), turn("x"), true))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				end()
				agent.Wait()
			})
			if !s.closed {
				t.Error("the inbox was not closed")
			}
			if diff := cmp.Diff([]string{"x"}, s.asked); diff != "" {
				t.Errorf("the agent is asked (-want +got):\n%s", diff)
			}
		})
	}
}

// broken is a dialect with a bug in its readers of answers.
type broken struct{ plain }

func (broken) Reply([]byte, []task.Product) (agent.Report, error) { panic("a reply") }
func (broken) NewStream([]task.Product) translate.Stream          { panic("a stream") }

// TestBugsKeepNoSlots: a bug of a codec costs neither a slot nor a connection.
func TestBugsKeepNoSlots(t *testing.T) {
	for _, stream := range []bool{false, true} {
		w := &wire{answers: answers{translate.Send: {answered("x")}, translate.SendStream: {streamed("x")}}}
		slots := upstream.NewSlots(2, 0)
		a := upstream.New(upstream.Config{Resolver: upstream.NewEndpoint(broken{}, w), Slots: slots})
		a.NumberAll("1")
		for range 3 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				show(carryOut(t.Context(), a, turn("x"), stream))
			}()
		}
		if used, waiting := slots.Taken(); used != 0 || waiting != 0 {
			t.Errorf("stream %v: %d slots are taken, %d turns wait", stream, used, waiting)
		}
		if n := w.open.Load(); n != 0 {
			t.Errorf("stream %v: %d exchanges are open", stream, n)
		}
	}
}
