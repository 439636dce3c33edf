// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// fakeAgent is an agent on grpc-go. Its functions are set before it is served.
type fakeAgent struct {
	a2apb.UnimplementedA2AServiceServer
	stream func(*a2apb.SendMessageRequest, grpc.ServerStreamingServer[a2apb.StreamResponse]) error
	send   func(context.Context, *a2apb.SendMessageRequest) (*a2apb.SendMessageResponse, error)

	mu    sync.Mutex
	task  *a2apb.Task // the result of GetTask; nil for NOT_FOUND
	calls []string
}

func (a *fakeAgent) called(method string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, method)
}

// all returns the calls so far. A call given up may still arrive.
func (a *fakeAgent) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.calls)
}

func (a *fakeAgent) SendMessage(
	ctx context.Context, r *a2apb.SendMessageRequest,
) (*a2apb.SendMessageResponse, error) {
	a.called("SendMessage")
	if a.send == nil {
		return nil, status.Error(codes.Unimplemented, "no such method")
	}
	return a.send(ctx, r)
}

func (a *fakeAgent) SendStreamingMessage(
	r *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse],
) error {
	a.called("SendStreamingMessage")
	if a.stream == nil {
		return status.Error(codes.Unimplemented, "no such method")
	}
	return a.stream(r, s)
}

func (a *fakeAgent) GetTask(context.Context, *a2apb.GetTaskRequest) (*a2apb.Task, error) {
	a.called("GetTask")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.task == nil {
		return nil, status.Error(codes.NotFound, "no such task")
	}
	return a.task, nil
}

func (a *fakeAgent) CancelTask(_ context.Context, r *a2apb.CancelTaskRequest) (*a2apb.Task, error) {
	a.called("CancelTask")
	return &a2apb.Task{Id: r.Id, Status: &a2apb.TaskStatus{State: a2apb.TaskState_TASK_STATE_CANCELED}}, nil
}

func (a *fakeAgent) GetExtendedAgentCard(
	context.Context, *a2apb.GetExtendedAgentCardRequest,
) (*a2apb.AgentCard, error) {
	return &a2apb.AgentCard{Name: "secret", Version: "1", SupportedInterfaces: []*a2apb.AgentInterface{
		{Url: "x:1", ProtocolBinding: "GRPC", ProtocolVersion: "1.0"},
	}}, nil
}

// serve serves an agent, and returns its address.
func serve(t *testing.T, a *fakeAgent, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	a2apb.RegisterA2AServiceServer(server, a)
	var serving sync.WaitGroup
	serving.Go(func() { server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return l.Addr().String()
}

// reach returns the driver of turns of the agent at a URL.
func reach(t *testing.T, config Config) *upstream.Agent {
	t.Helper()
	config.Codec = a2a.V1GRPC()
	transport, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	a := upstream.New(upstream.Config{
		Resolver: upstream.NewEndpoint(config.Codec, transport), Logger: slog.New(slog.DiscardHandler),
		RetryFor: 200 * time.Millisecond, StallTimeout: time.Second,
	})
	t.Cleanup(a.Close)
	return a
}

func turn(text string) *agent.Turn {
	return &agent.Turn{Message: task.Message{ID: "m", Command: task.Start,
		DataItems: []task.DataItem{{Kind: task.TextItem, Text: text}}}, Ref: agent.Ref{Task: "t"}}
}

// outcome is the outcome of a turn by its reports.
type outcome struct {
	text  string
	state task.State
	err   error
}

func run(ctx context.Context, a *upstream.Agent, t *agent.Turn) (o outcome) {
	for rep, err := range a.Run(ctx, t, true) {
		if err != nil {
			o.err = err
			return o
		}
		if rep.State != task.None {
			o.state = rep.State
		}
		fold := task.NewFold(task.Task{Products: rep.Products})
		for i := range rep.Chunks {
			fold.Apply(task.Event{Seq: fold.Seq + 1, Chunk: &rep.Chunks[i]})
		}
		for i := range rep.Pieces.Len() {
			o.text += rep.Pieces.Chunk(i).Product.DataItems[0].Text
		}
		for _, p := range fold.Task().Products {
			o.text += p.DataItems[0].Text
		}
	}
	return o
}

func update(state a2apb.TaskState) *a2apb.StreamResponse {
	return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{
		TaskId: "t1", ContextId: "c1", Status: &a2apb.TaskStatus{State: state},
	}}}
}

func piece(text string, more bool) *a2apb.StreamResponse {
	return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_ArtifactUpdate{
		ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{TaskId: "t1", ContextId: "c1", Append: more,
			Artifact: &a2apb.Artifact{ArtifactId: "a", Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}}}},
	}}
}

// TestStream: a turn is a call answered by a stream. It carries the configured metadata and the version.
func TestStream(t *testing.T) {
	for name, secure := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			var got metadata.MD
			a := &fakeAgent{stream: func(
				r *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse],
			) error {
				got, _ = metadata.FromIncomingContext(s.Context())
				for i, text := range []string{r.Message.Parts[0].GetText(), " and", " more"} {
					if err := s.Send(piece(text, i > 0)); err != nil {
						return err
					}
				}
				return s.Send(update(a2apb.TaskState_TASK_STATE_COMPLETED))
			}}
			config := Config{URL: "http://" + serve(t, a), Header: http.Header{
				"X-Key": {"secret"}, "Te": {"x"}, "Host": {"agent.example"},
			}}
			if secure {
				site := httptest.NewTLSServer(nil) // for its certificate
				defer site.Close()
				config.URL = "https://" + serve(t, a, grpc.Creds(credentials.NewTLS(&tls.Config{
					Certificates: site.TLS.Certificates, NextProtos: []string{"h2"},
				})))
				config.TLS = site.Client().Transport.(*http.Transport).TLSClientConfig
			}
			o := run(t.Context(), reach(t, config), turn("hello"))
			if o.err != nil || o.state != task.AwaitingCompletion || o.text != "hello and more" {
				t.Errorf("got %+v", o)
			}
			for key, want := range map[string]string{"x-key": "secret", "a2a-version": "1.0", ":authority": "agent.example"} {
				if v := got.Get(key); len(v) != 1 || v[0] != want {
					t.Errorf("%s is %q", key, v)
				}
			}
		})
	}
}

// TestWithoutStreams: an agent without streams is asked again without, and polled.
func TestWithoutStreams(t *testing.T) {
	a := &fakeAgent{send: func(context.Context, *a2apb.SendMessageRequest) (*a2apb.SendMessageResponse, error) {
		return &a2apb.SendMessageResponse{Payload: &a2apb.SendMessageResponse_Task{Task: &a2apb.Task{
			Id: "t1", Status: &a2apb.TaskStatus{State: a2apb.TaskState_TASK_STATE_WORKING},
		}}}, nil
	}}
	a.task = &a2apb.Task{Id: "t1", Status: &a2apb.TaskStatus{State: a2apb.TaskState_TASK_STATE_COMPLETED}}
	driver := reach(t, Config{URL: "http://" + serve(t, a)})
	if o := run(t.Context(), driver, turn("hello")); o.err != nil || o.state != task.AwaitingCompletion {
		t.Errorf("got %+v", o)
	}
	if got := strings.Join(a.all(), " "); got != "SendStreamingMessage SendMessage GetTask" {
		t.Errorf("the calls are %s", got)
	}
	// The next turn begins inline: its wait is interrupted, and continued.
	release := make(chan struct{})
	a.send = func(ctx context.Context, _ *a2apb.SendMessageRequest) (*a2apb.SendMessageResponse, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return &a2apb.SendMessageResponse{Payload: &a2apb.SendMessageResponse_Message{Message: &a2apb.Message{
			MessageId: "m2", Role: a2apb.Role_ROLE_AGENT, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hi"}}},
		}}}, nil
	}
	inline := driver.Inline(turn("again"))
	if _, ended := inline.Wait(t.Context(), time.Now().Add(20*time.Millisecond)); ended {
		t.Error("the wait was not interrupted")
	}
	close(release)
	var last agent.Report
	for rep, err := range inline.Rest() {
		if err != nil {
			t.Fatal(err)
		}
		last = rep
	}
	if last.State != task.AwaitingCompletion || len(last.Products) != 1 {
		t.Errorf("got %+v", last)
	}
}

// TestCut: a cut stream is resumed by polling, and a turn is sent again if nothing of it was sent.
func TestCut(t *testing.T) {
	for name, end := range map[string]error{
		"unavailable": status.Error(codes.Unavailable, "restarting"), "clean": nil,
	} {
		t.Run(name, func(t *testing.T) {
			a := &fakeAgent{stream: func(
				_ *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse],
			) error {
				s.Send(update(a2apb.TaskState_TASK_STATE_WORKING))
				s.Send(piece("half", false))
				return end
			}}
			a.task = &a2apb.Task{Id: "t1", Status: &a2apb.TaskStatus{State: a2apb.TaskState_TASK_STATE_COMPLETED}}
			o := run(t.Context(), reach(t, Config{URL: "http://" + serve(t, a)}), turn("hello"))
			if o.err != nil || o.state != task.AwaitingCompletion {
				t.Errorf("got %+v", o)
			}
			if got := strings.Join(a.all(), " "); got != "SendStreamingMessage GetTask" {
				t.Errorf("the calls are %s", got)
			}
		})
	}
}

// TestFailures: the meaning of a failure, and whether the turn may be sent again.
func TestFailures(t *testing.T) {
	answering := func(err error) *fakeAgent {
		return &fakeAgent{stream: func(
			*a2apb.SendMessageRequest, grpc.ServerStreamingServer[a2apb.StreamResponse],
		) error {
			return err
		}}
	}
	withDetail := func(c codes.Code, detail interface {
		Reset()
		String() string
		ProtoMessage()
	}) error {
		st, err := status.New(c, "says the agent").WithDetails(detail)
		if err != nil {
			t.Fatal(err)
		}
		return st.Err()
	}
	closed := "http://127.0.0.1:1"
	page := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>", http.StatusNotFound)
	}))
	page.EnableHTTP2 = true
	page.StartTLS()
	defer page.Close()
	pageTLS := page.Client().Transport.(*http.Transport).TLSClientConfig
	old, oldTLS := httptest.NewServer(http.NotFoundHandler()), httptest.NewTLSServer(http.NotFoundHandler())
	defer old.Close()
	defer oldTLS.Close()
	oldConfig := oldTLS.Client().Transport.(*http.Transport).TLSClientConfig
	for name, tt := range map[string]struct {
		agent  *fakeAgent
		url    string
		tls    *tls.Config
		kind   task.Kind
		reason upstream.Reason
		sends  int // the number of times the turn is sent
	}{
		"refused":       {url: closed, kind: task.AgentUnavailable, reason: upstream.Unreachable},
		"not trusted":   {url: page.URL, kind: task.AgentUnavailable, reason: upstream.CertificateUntrusted},
		"HTTP/1":        {url: old.URL, kind: task.InvalidAgentResponse, reason: upstream.NoHTTP2},
		"HTTP/1 in TLS": {url: oldTLS.URL, tls: oldConfig, kind: task.InvalidAgentResponse, reason: upstream.NoHTTP2},
		"no TLS": {url: "https" + strings.TrimPrefix(old.URL, "http"), kind: task.AgentUnavailable,
			reason: upstream.NoTLS},
		"another server": {url: page.URL, tls: pageTLS, kind: task.InvalidAgentResponse, reason: upstream.NoAgent},
		"unavailable": {agent: answering(status.Error(codes.Unavailable, "x")), kind: task.AgentUnavailable,
			reason: upstream.ProxyFailed, sends: 1},
		"overloaded": {agent: answering(withDetail(codes.ResourceExhausted,
			&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Hour)})), kind: task.AgentUnavailable, sends: 1},
		"credentials": {agent: answering(status.Error(codes.Unauthenticated, "x")),
			kind: task.InvalidAgentResponse, reason: upstream.CredentialsRefused, sends: 1},
		"invalid": {agent: answering(withDetail(codes.InvalidArgument, &errdetails.ErrorInfo{
			Reason: "CONTENT_TYPE_NOT_SUPPORTED", Domain: "a2a-protocol.org",
		})), kind: task.ContentTypeNotSupported, reason: upstream.Refused, sends: 1},
		"too large": {agent: &fakeAgent{stream: func(
			_ *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse],
		) error {
			return s.Send(piece(strings.Repeat("x", 1<<20), false))
		}}, kind: task.InvalidAgentResponse, sends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			url := tt.url
			if tt.agent != nil {
				url = "http://" + serve(t, tt.agent)
			}
			o := run(t.Context(), reach(t, Config{URL: url, TLS: tt.tls, MaxMessage: 64 << 10}), turn("hello"))
			if strings.Contains(fmt.Sprint(o.err), "ALPN") != (name == "HTTP/1 in TLS") {
				t.Errorf("ended with %v: what is missing is h2 in ALPN, over TLS alone", o.err)
			}
			if task.KindOf(o.err) != tt.kind || upstream.ReasonOf(o.err) != tt.reason {
				t.Errorf("got %v (%v, %v)", o.err, task.KindOf(o.err), upstream.ReasonOf(o.err))
			}
			if tt.agent != nil {
				n := 0
				calls := tt.agent.all()
				for _, call := range calls {
					if strings.HasPrefix(call, "Send") {
						n++
					}
				}
				if n != tt.sends {
					t.Errorf("the calls are %v", calls)
				}
			}
		})
	}
}

// TestBomb: an agent's compressed message is inflated only until it is too large.
func TestBomb(t *testing.T) {
	agent := &fakeAgent{stream: func(
		_ *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse],
	) error {
		if err := grpc.SetSendCompressor(s.Context(), gzip.Name); err != nil {
			return err
		}
		return s.Send(piece(strings.Repeat("x", 1<<20), false))
	}}
	const max = 64 << 10
	o := run(t.Context(), reach(t, Config{URL: "http://" + serve(t, agent), MaxMessage: max}), turn("hello"))
	failure, ok := errors.AsType[*connect.Error](o.err)
	want := fmt.Sprintf("message size %d is larger than configured max %d", max+1, max)
	if !ok || failure.Message() != want {
		t.Errorf("got %v (%v), want %s", o.err, failure, want)
	}
}

// TestAsk: requests beside those of a turn.
func TestAsk(t *testing.T) {
	a := &fakeAgent{}
	driver := reach(t, Config{URL: "http://" + serve(t, a)})
	asked := turn("x")
	asked.From, asked.Ref = task.Working, agent.Ref{Task: "t1"}
	rep, err := driver.Cancel(t.Context(), asked)
	if err != nil || rep.State != task.Canceled {
		t.Errorf("canceled: %+v, %v", rep, err)
	}
	card, err := driver.Describe(t.Context())
	if err != nil || !strings.Contains(string(card), "secret") {
		t.Errorf("card: %s, %v", card, err)
	}
	if c, err := a2a.ParseCard(card); err != nil || c.Name != "secret" {
		t.Errorf("card: %+v, %v", c, err)
	}
}

// TestLeave: a leaving caller ends the call.
func TestLeave(t *testing.T) {
	ended := make(chan struct{})
	a := &fakeAgent{stream: func(_ *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse]) error {
		s.Send(update(a2apb.TaskState_TASK_STATE_WORKING))
		<-s.Context().Done()
		close(ended)
		return s.Context().Err()
	}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	driver := reach(t, Config{URL: "http://" + serve(t, a)})
	for range driver.Run(ctx, turn("hello"), true) {
		cancel()
	}
	<-ended
}

// TestIdle: an agent silent for too long has failed.
func TestIdle(t *testing.T) {
	a := &fakeAgent{stream: func(_ *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse]) error {
		<-s.Context().Done()
		return s.Context().Err()
	}}
	transport, err := New(Config{URL: "http://" + serve(t, a), Codec: a2a.V1GRPC()})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	x, err := transport.Routes(translate.SendStream)[0].Open(t.Context(), &upstream.Request{
		Operation: translate.SendStream, Body: a2a.V1GRPC().AppendTurn(nil, turn("x"), true),
		IdleTimeout: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = x.Begin()
	x.Close(err)
	if task.KindOf(err) != task.AgentTimeout {
		t.Errorf("got %v", err)
	}
}

// TestConfig: an error for an operator has a reason.
func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		config Config
		reason upstream.Reason
	}{
		"URL":    {Config{URL: "grpc://agent:1"}, upstream.InvalidURL},
		"header": {Config{URL: "http://agent:1", Header: http.Header{"A b": {"c"}}}, upstream.InvalidHeader},
	} {
		tt.config.Codec = a2a.V1GRPC()
		_, err := New(tt.config)
		if e, ok := errors.AsType[*upstream.Error](err); !ok || e.Reason != tt.reason {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
