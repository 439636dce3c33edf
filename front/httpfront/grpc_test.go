// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// overGRPC makes a gateway serve A2A 1.0 over gRPC, at the root.
func overGRPC(h *setup) {
	h.Callers = []translate.Server{a2a.V1Server(false), a2a.V1RESTServer(false), a2a.V1GRPCServer(false)}
	h.Base = ""
	h.webhooks = notify.Config{Egress: &egress.Policy{}}
}

// grpcConn returns a connection of grpc-go to the gateway.
func (g *gate) grpcConn() *grpc.ClientConn {
	g.t.Helper()
	config := g.server.Client().Transport.(*http.Transport).TLSClientConfig
	conn, err := grpc.NewClient(g.server.Listener.Addr().String(), grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{RootCAs: config.RootCAs, ServerName: "example.com"})))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { conn.Close() })
	return conn
}

// grpcClient returns a client of grpc-go for the gateway.
func (g *gate) grpcClient() a2apb.A2AServiceClient {
	g.t.Helper()
	return a2apb.NewA2AServiceClient(g.grpcConn())
}

func says(text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: "m", Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}}
}

// grpcEvents reads a stream to its end.
func grpcEvents(stream grpc.ServerStreamingClient[a2apb.StreamResponse]) (events []*a2apb.StreamResponse, err error) {
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, event)
	}
}

// textOf returns the text of the artifacts of events.
func textOf(events []*a2apb.StreamResponse) (text string) {
	for _, e := range events {
		for _, a := range e.GetTask().GetArtifacts() {
			for _, p := range a.Parts {
				text += p.GetText()
			}
		}
		for _, p := range e.GetArtifactUpdate().GetArtifact().GetParts() {
			text += p.GetText()
		}
	}
	return text
}

// TestGRPC calls every method of the service with the client of grpc-go.
func TestGRPC(t *testing.T) {
	g := open(t, overGRPC)
	c := g.grpcClient()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0")

	sent, err := c.SendMessage(ctx, says("hello"))
	if err != nil {
		t.Fatal(err)
	}
	id := sent.GetTask().GetId()
	if sent.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED || id == "" ||
		len(sent.GetTask().GetArtifacts()) == 0 || !sent.GetTask().GetStatus().GetTimestamp().IsValid() {
		t.Errorf("sent: %v", sent)
	}
	got, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Id: id})
	if err != nil || got.GetId() != id || len(got.GetHistory()) != 1 {
		t.Errorf("got: %v, %v", got, err)
	}
	list, err := c.ListTasks(ctx, &a2apb.ListTasksRequest{Status: a2apb.TaskState_TASK_STATE_COMPLETED})
	if err != nil || len(list.GetTasks()) != 1 || list.GetTotalSize() != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	stream, err := c.SendStreamingMessage(ctx, says("stream 3 1"))
	if err != nil {
		t.Fatal(err)
	}
	events, err := grpcEvents(stream)
	if err != nil || len(events) < 3 || textOf(events) == "" {
		t.Errorf("stream: %v, %v", events, err)
	}
	if last := events[len(events)-1].GetStatusUpdate().GetStatus().GetState(); last !=
		a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("the stream ends with %v", last)
	}

	asked, err := c.SendMessage(ctx, says("ask"))
	if err != nil || asked.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_INPUT_REQUIRED {
		t.Fatalf("asked: %v, %v", asked, err)
	}
	id = asked.GetTask().GetId()
	config, err := c.CreateTaskPushNotificationConfig(ctx, &a2apb.TaskPushNotificationConfig{
		TaskId: id, Id: "hook", Url: "https://example.com/hook", Token: "secret",
	})
	if err != nil || config.GetUrl() != "https://example.com/hook" || config.GetTaskId() != id {
		t.Errorf("hook: %v, %v", config, err)
	}
	config, err = c.GetTaskPushNotificationConfig(ctx,
		&a2apb.GetTaskPushNotificationConfigRequest{TaskId: id, Id: "hook"})
	if err != nil || config.GetToken() != "secret" {
		t.Errorf("hook: %v, %v", config, err)
	}
	configs, err := c.ListTaskPushNotificationConfigs(ctx, &a2apb.ListTaskPushNotificationConfigsRequest{TaskId: id})
	if err != nil || len(configs.GetConfigs()) != 1 {
		t.Errorf("hooks: %v, %v", configs, err)
	}
	_, err = c.DeleteTaskPushNotificationConfig(ctx,
		&a2apb.DeleteTaskPushNotificationConfigRequest{TaskId: id, Id: "hook"})
	if err != nil {
		t.Errorf("delete: %v", err)
	}
	answer := says("blue")
	answer.Message.TaskId, answer.Message.MessageId = id, "m2"
	if done, err := c.SendMessage(ctx, answer); err != nil || done.GetTask().GetId() != id ||
		done.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("answered: %v, %v", done, err)
	}
}

// TestGRPCSubscribe: a stream left by its caller is subscribed to again, and shows the task before its events.
func TestGRPCSubscribe(t *testing.T) {
	speaks := spoken{pieces: make(chan string)}
	g := open(t, overGRPC, func(h *setup) { h.Partner.Agent = speaks })
	say := func(n int) {
		for range n {
			speaks.pieces <- "chunk"
		}
	}
	c := g.grpcClient()
	leaving, leave := context.WithCancel(t.Context())
	stream, err := c.SendStreamingMessage(leaving, says("hello"))
	if err != nil {
		t.Fatal(err)
	}
	say(3)
	var id string
	for range 3 {
		event, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		id = event.GetTask().GetId() + event.GetStatusUpdate().GetTaskId() + event.GetArtifactUpdate().GetTaskId()
	}
	leave()
	again, err := c.SubscribeToTask(t.Context(), &a2apb.SubscribeToTaskRequest{Id: id})
	if err != nil {
		t.Fatal(err)
	}
	first, err := again.Recv()
	if err != nil || first.GetTask().GetId() != id {
		t.Fatalf("got %v, %v", first, err)
	}
	say(17)
	events := []*a2apb.StreamResponse{first}
	for strings.Count(textOf(events), "chunk") < 20 {
		event, err := again.Recv()
		if err != nil {
			t.Fatalf("after %v: %v", events, err)
		}
		events = append(events, event)
	}
	if _, err := c.CancelTask(t.Context(), &a2apb.CancelTaskRequest{Id: id}); err != nil {
		t.Fatal(err)
	}
	rest, err := grpcEvents(again)
	if text := textOf(append(events, rest...)); err != nil || strings.Count(text, "chunk") != 20 {
		t.Errorf("the streams show %q, %v", text, err)
	}
	asynctest.Eventually(t, "no stream is open any more", func() bool { return g.streams() == 0 })
}

// TestGRPCErrors: an error has the code of its kind, and a reason.
func TestGRPCErrors(t *testing.T) {
	g := open(t, overGRPC)
	c := g.grpcClient()
	done, err := c.SendMessage(t.Context(), says("hello"))
	if err != nil {
		t.Fatal(err)
	}
	large := says(strings.Repeat("x", 16<<10))
	for name, call := range map[string]struct {
		call   func(context.Context) error
		code   codes.Code
		reason string
	}{
		"no such task": {func(ctx context.Context) error {
			_, err := c.GetTask(ctx, &a2apb.GetTaskRequest{Id: "gw-aaaaaaaaaaaaaaaaaaaaaaaaaa"})
			return err
		}, codes.NotFound, "TASK_NOT_FOUND"},
		"no id": {func(ctx context.Context) error {
			_, err := c.GetTask(ctx, &a2apb.GetTaskRequest{})
			return err
		}, codes.InvalidArgument, "INVALID_PARAMS"},
		"cancel what has ended": {func(ctx context.Context) error {
			_, err := c.CancelTask(ctx, &a2apb.CancelTaskRequest{Id: done.GetTask().GetId()})
			return err
		}, codes.FailedPrecondition, "TASK_NOT_CANCELABLE"},
		"subscribe to what has ended": {func(ctx context.Context) error {
			stream, err := c.SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Id: done.GetTask().GetId()})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}, codes.FailedPrecondition, "UNSUPPORTED_OPERATION"},
		"another version": {func(ctx context.Context) error {
			_, err := c.GetTask(metadata.AppendToOutgoingContext(ctx, "a2a-version", "7.0"),
				&a2apb.GetTaskRequest{Id: "t"})
			return err
		}, codes.FailedPrecondition, "VERSION_NOT_SUPPORTED"},
		"no such method": {func(ctx context.Context) error {
			return g.grpcConn().Invoke(ctx, "/lf.a2a.v1.A2AService/NoSuchMethod", says("x"), new(a2apb.Task))
		}, codes.Unimplemented, "METHOD_NOT_FOUND"},
		"no such service": {func(ctx context.Context) error {
			return g.grpcConn().Invoke(ctx, "/acme.Service/Method", says("x"), new(a2apb.Task))
		}, codes.Unimplemented, ""},
		"another message": {func(ctx context.Context) error {
			// A string in place of the method's message.
			return g.grpcConn().Invoke(ctx, "/lf.a2a.v1.A2AService/SendMessage",
				&a2apb.GetTaskRequest{Id: "not a message"}, new(a2apb.SendMessageResponse))
		}, codes.InvalidArgument, "PARSE_ERROR"},
		"too large": {func(ctx context.Context) error {
			_, err := c.SendMessage(ctx, large)
			return err
		}, codes.ResourceExhausted, ""},
		"too large when it is decompressed": {func(ctx context.Context) error {
			_, err := c.SendMessage(ctx, large, grpc.UseCompressor(gzip.Name))
			return err
		}, codes.ResourceExhausted, ""},
		"a deadline": {func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			_, err := c.SendMessage(ctx, says("slow 30"))
			return err
		}, codes.DeadlineExceeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := call.call(t.Context())
			if status.Code(err) != call.code {
				t.Fatalf("got %v, want %v", err, call.code)
			}
			reason := ""
			for _, d := range status.Convert(err).Details() {
				if info, ok := d.(*errdetails.ErrorInfo); ok && info.Domain == "a2a-protocol.org" {
					reason = info.Reason
				}
			}
			if reason != call.reason {
				t.Errorf("got the reason %q of %v, want %q", reason, err, call.reason)
			}
		})
	}
}

// TestGRPCBomb: of a compressed message, no more is inflated than shows that it is too large.
func TestGRPCBomb(t *testing.T) {
	g := open(t, overGRPC)
	_, err := g.grpcClient().SendMessage(t.Context(), says(strings.Repeat("x", 4<<20)), grpc.UseCompressor(gzip.Name))
	max := g.Front.gateway.MaxBody()
	want := fmt.Sprintf("message size %d is larger than configured max %d", max+1, max)
	if status.Code(err) != codes.ResourceExhausted || status.Convert(err).Message() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestGRPCAfterAReload: a stream goes on when the configuration is replaced. At the exit of the process it does not
// look as if it had ended.
func TestGRPCAfterAReload(t *testing.T) {
	works := held{until: agent.Report{State: task.Working, Revision: "1"}, release: make(chan struct{})}
	exiting, exit := context.WithCancel(t.Context())
	defer exit()
	g := open(t, overGRPC, func(h *setup) {
		h.Partner.Agent, h.Streaming.Exit, h.Streaming.DrainFor = works, exiting, 0
	})
	begin := func() grpc.ServerStreamingClient[a2apb.StreamResponse] {
		t.Helper()
		stream, err := g.grpcClient().SendStreamingMessage(t.Context(), says("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		return stream
	}
	stream := begin()
	g.drain()
	works.release <- struct{}{}
	events, err := grpcEvents(stream)
	if err != nil || len(events) == 0 ||
		events[len(events)-1].GetStatusUpdate().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Errorf("the stream ends with %v after %v", err, events)
	}
	stream = begin()
	exit()
	if _, err := grpcEvents(stream); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ends with %v", err)
	}
}

// TestOnlyGRPC: the paths of gRPC are for gRPC, and other paths are not.
func TestOnlyGRPC(t *testing.T) {
	g := open(t, overGRPC)
	const path = "/lf.a2a.v1.A2AService/SendMessage"
	if res, body := g.post(path, `{"message":{}}`); res.StatusCode != http.StatusNotFound {
		t.Errorf("JSON is answered by %s %s", res.Status, body)
	}
	res, body := g.request(http.MethodPost, "/message:send", "Content-Type", "application/grpc", "")
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("a path of HTTP+JSON is answered by %s %s", res.Status, body)
	}
}
