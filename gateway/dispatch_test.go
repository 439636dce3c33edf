// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// asker is an agent with a second of work on every turn, and then a request for input.
type asker struct{ partner.Agent }

func (asker) Run(ctx context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if !yield(agent.Report{State: task.Working, Revision: "1"}, nil) {
			return
		}
		select {
		case <-time.After(time.Second):
			yield(agent.Report{State: task.AwaitingInput, Revision: "2"}, nil)
		case <-ctx.Done():
		}
	}
}

// subscribing is a dialect with the task in the answer to its re-stream as well.
type subscribing struct{ translate.Server }

func (s subscribing) Decode(r *translate.Request) (translate.Call, error) {
	c, err := s.Server.Decode(r)
	c.Reply = c.Message.Command == task.ReStream
	return c, err
}

// newGateway composes a gateway over a memory store.
func newGateway(t testing.TB, change func(*gateway.Config)) *gateway.Gateway {
	t.Helper()
	return newGatewayOver(t, replay.NewMemory(replay.Settings{}), change)
}

// newGatewayOver composes a gateway over a store.
func newGatewayOver(
	t testing.TB, store replay.Store, change func(*gateway.Config), acceptors ...partner.Acceptor,
) *gateway.Gateway {
	t.Helper()
	return newGatewayAt(t, shard.One(store), change, func(tasks *gateway.Tasks) {
		for _, a := range acceptors {
			tasks.Process().AddAcceptor(a)
		}
	})
}

var quiet = slog.New(slog.DiscardHandler)

// newGatewayAt composes a gateway over the shards of a process, after something is done with their tasks.
func newGatewayAt(
	t testing.TB, set *shard.Set, change func(*gateway.Config), prepare func(*gateway.Tasks),
) *gateway.Gateway {
	t.Helper()
	c := gateway.Config{
		Process: new(gateway.Process), Callers: []translate.Server{subscribing{aip.Server()}},
		Guard: new(identity.Guard),
		Partner: partner.Config{
			Name: "agent", Agent: asker{}, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 1000,
			Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour},
		},
		Limits:    jsonrpc.Limits{Bytes: 16 << 10, Depth: 16},
		Memory:    limit.Limits{Total: 1 << 20, PerLeader: 1 << 20},
		Streaming: gateway.Streaming{Max: 2, MaxPerLeader: 2, Drain: t.Context()},
		Log:       quiet,
	}
	if change != nil {
		change(&c)
	}
	tasks, err := gateway.OpenTasks(set, nil, quiet)
	if err != nil {
		t.Fatal(err)
	}
	prepare(tasks)
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	g.Register(tasks)
	t.Cleanup(func() {
		g.Unregister()
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		g.Close()
		if n := c.Process.Streams.Total() + c.Process.Memory.Total(); n != 0 {
			t.Errorf("%d streams and bytes of memory are still counted", n)
		}
	})
	return g
}

// front is a front without any transport. It keeps a caller's view, each message as the state it shows.
type front struct {
	t    testing.TB
	g    *gateway.Gateway
	peer identity.Peer
	kind string // the type of its commands; empty for the one of version 1
	seen []string
	line []string // gathered
}

func (f *front) Event(seq uint64, build func([]byte) ([]byte, string, bool)) {
	data, _, _ := build(nil)
	f.line = append(f.line, fmt.Sprintf("%d %s", seq, state(data)))
}
func (f *front) Data(build func([]byte) []byte) { f.line = append(f.line, state(build(nil))) }
func (f *front) Comment(text string)            { f.line = append(f.line, text) }

func (f *front) Buffered() int { return 0 }
func (f *front) Flush() error {
	f.seen, f.line = append(f.seen, f.line...), nil
	return nil
}

// state returns the state of the task, or the code of the error, in a message.
func state(message []byte) string {
	var m struct {
		Error  struct{ Code int }
		Result struct {
			Status    struct{ State string }
			EventData struct{ Status struct{ State string } }
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return err.Error()
	}
	if m.Error.Code != 0 {
		return fmt.Sprint(m.Error.Code)
	}
	return m.Result.Status.State + m.Result.EventData.Status.State
}

// send sends a command, and returns the stream after it, not yet run.
func (f *front) send(ctx context.Context, method, command string) *gateway.Stream {
	f.t.Helper()
	return f.sendMessage(ctx, method, command, "t", "")
}

// sendTask sends a command for a task, with a reply as the answer. members are more members of the message.
func (f *front) sendTask(method, command, taskID, members string) {
	f.t.Helper()
	f.sendMessage(f.t.Context(), method, command, taskID, members)
}

func (f *front) sendMessage(ctx context.Context, method, command, taskID, members string) *gateway.Stream {
	f.t.Helper()
	var r gateway.Request
	defer r.Release()
	if !f.g.Match(&r, "POST", "") {
		f.t.Fatal("no dialect has the request")
	}
	kind := f.kind
	if kind == "" {
		kind = "message"
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"message":{"type":%q,"id":%q,`+
		`"senderRole":"leader","senderId":%q,"command":%q,"taskId":%q,"dataItems":[{"type":"text","text":"hello"}]%s}}}`,
		method, kind, command, f.peer.ID, command, taskID, members)
	r.Body = gateway.NewBody()
	*r.Body = append(*r.Body, body...)
	a := f.g.Dispatch(ctx, f.peer, &r)
	if a.Reply != nil {
		f.seen = append(f.seen, "reply "+state(a.Reply))
	}
	return a.Stream
}

// TestDispatch: a front of any transport has requests answered by a reply, by a stream, or by both, the reply first.
func TestDispatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		peer := identity.Peer{Proof: identity.ByBroker, Kind: "test", ID: "leader"}
		f := &front{t: t, g: newGateway(t, nil), peer: peer}
		check := func(what string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, f.seen); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			f.seen = nil
		}
		if s := f.send(t.Context(), "rpc", "start"); s != nil {
			t.Error("a start by rpc has a stream")
		}
		check("a reply alone", "reply awaiting-input")

		ctx, leave := context.WithCancel(t.Context())
		s := f.send(ctx, "stream", "continue")
		time.AfterFunc(time.Minute, leave)
		s.Run(f)
		s.Close()
		check("a stream alone", "4 working", "5 awaiting-input")

		s = f.send(t.Context(), "stream", "re-stream")
		other := &front{t: t, g: f.g, peer: peer}
		time.AfterFunc(time.Minute, func() { other.send(t.Context(), "rpc", "cancel") })
		s.Run(f)
		s.Close()
		check("a reply and a stream", "reply awaiting-input", "6 canceled")

		other = &front{t: t, g: f.g}
		if s := other.send(t.Context(), "rpc", "get"); s != nil || !strings.HasPrefix(other.seen[0], "reply -32008") {
			t.Errorf("a peer that has proven nothing got %q", other.seen)
		}
	})
}

// TestStreamsEndBelowTheFront: whatever its transport, a front's streams end when the proof of identity expires and
// when the gateway is drained, are limited, and are given back if they are never run.
func TestStreamsEndBelowTheFront(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		drain, drained := context.WithCancel(t.Context())
		g := newGateway(t, func(c *gateway.Config) { c.Streaming.Drain, c.Streaming.DrainFor = drain, time.Second })
		began := time.Now()
		peer := identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader", Expires: began.Add(90 * time.Second)}
		f := &front{t: t, g: g, peer: peer}
		f.send(t.Context(), "rpc", "start")
		f.seen = nil

		s, second := f.send(t.Context(), "stream", "re-stream"), f.send(t.Context(), "stream", "re-stream")
		if third := f.send(t.Context(), "stream", "re-stream"); third != nil {
			t.Error("a third stream is open")
		}
		second.Close()
		s.Run(f)
		s.Close()
		want := []string{"reply awaiting-input", "reply awaiting-input", "reply -32050", "-32008"}
		if diff := cmp.Diff(want, f.seen); diff != "" || time.Since(began) != 90*time.Second {
			t.Errorf("after %s (-want +got):\n%s", time.Since(began), diff)
		}

		began = time.Now() // a token beside a certificate counts, too
		f.peer.Expires, f.peer.Claims = began.Add(time.Hour), &identity.Claims{Expires: began.Add(time.Minute)}
		f.seen = nil
		s = f.send(t.Context(), "stream", "re-stream")
		s.Run(f)
		s.Close()
		want = []string{"reply awaiting-input", "-32008"}
		if diff := cmp.Diff(want, f.seen); diff != "" || time.Since(began) != time.Minute {
			t.Errorf("after %s (-want +got):\n%s", time.Since(began), diff)
		}

		f.peer.Expires, f.peer.Claims, f.seen = time.Time{}, nil, nil
		s = f.send(t.Context(), "stream", "re-stream")
		drained()
		s.Run(f)
		s.Close()
		want = []string{"reply awaiting-input", "the configuration was replaced; re-stream from the last event"}
		if diff := cmp.Diff(want, f.seen); diff != "" {
			t.Errorf("drained (-want +got):\n%s", diff)
		}
	})
}

// routed counts matches of paths.
type routed struct {
	translate.Server
	times *int
}

func (r routed) Route(method, path string) (translate.Route, bool) {
	*r.times++
	return r.Server.Route(method, path)
}

// TestPathsAreMatchedOnce: a request's path is matched once by each dialect, also if several have it.
func TestPathsAreMatchedOnce(t *testing.T) {
	var times [3]int
	g := newGateway(t, func(c *gateway.Config) {
		c.Guard.Mode = identity.Off
		c.Callers = []translate.Server{
			routed{aip.Server(), &times[0]},
			routed{a2a.V1Server(false), &times[1]},
			routed{a2a.V1RESTServer(false), &times[2]},
		}
	})
	f := &front{t: t, g: g, peer: identity.Peer{ID: "leader"}}
	f.send(t.Context(), "rpc", "get")
	if diff := cmp.Diff([3]int{1, 1, 1}, times); diff != "" || !slices.Equal(f.seen, []string{"reply -32001"}) {
		t.Errorf("answered %q; matches (-want +got):\n%s", f.seen, diff)
	}
}

// TestSpans: a call is a span. Only the span of a request with an envelope is one of JSON-RPC.
func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	g := newGateway(t, func(c *gateway.Config) {
		c.Guard.Mode = identity.Off
		c.Callers = []translate.Server{aip.Server(), a2a.V1RESTServer(false)}
		c.Tracing = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	})
	f := &front{t: t, g: g, peer: identity.Peer{ID: "leader"}}
	f.send(t.Context(), "rpc", "get")
	var r gateway.Request
	defer r.Release()
	if !g.Match(&r, "GET", "tasks/t") {
		t.Fatal("no dialect has the request")
	}
	g.Dispatch(t.Context(), identity.Peer{}, &r)
	var got []string
	for _, span := range recorder.Ended() {
		set := attribute.NewSet(span.Attributes()...)
		system, _ := set.Value("rpc.system")
		dialect, _ := set.Value("aip.dialect")
		got = append(got, span.Name()+" "+dialect.AsString()+" "+system.AsString())
	}
	if diff := cmp.Diff([]string{"aip.call aip jsonrpc", "aip.call a2a/1.0-rest "}, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}
