// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/cli/leader"
)

// trusted returns the root that all tests share.
func trusted(t testing.TB) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(keyPair(t, certificates(t).CA).Leaf)
	return roots
}

// grpcCaller returns a client of grpc-go for a site, with a certificate or without.
func grpcCaller(t *testing.T, s *site, pair ...tls.Certificate) a2apb.A2AServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("localhost:%d", s.port), grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{RootCAs: trusted(t), Certificates: pair})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return a2apb.NewA2AServiceClient(conn)
}

func grpcMessage(text string) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: leader.NewID("m"), Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}}
}

// shown is a task as the events of streams show it.
type shown struct {
	id, text string
	state    a2apb.TaskState
}

func (s *shown) add(event *a2apb.StreamResponse) {
	if tk := event.GetTask(); tk != nil {
		s.id, s.text, s.state = tk.GetId(), "", tk.GetStatus().GetState()
		for _, a := range tk.GetArtifacts() {
			for _, p := range a.GetParts() {
				s.text += p.GetText()
			}
		}
	}
	if u := event.GetStatusUpdate(); u != nil {
		s.id, s.state = u.GetTaskId(), u.GetStatus().GetState()
	}
	if u := event.GetArtifactUpdate(); u != nil {
		if !u.GetAppend() {
			s.text = ""
		}
		for _, p := range u.GetArtifact().GetParts() {
			s.text += p.GetText()
		}
	}
}

// TestGRPC: callers of gRPC are those of their certificates, and what is wrong with a call is a status.
func TestGRPC(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := serve(t, config{mode: "verify_if_given",
		handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers a2a\n\t}"})
	p := certificates(t)
	ctx := within(t, 3*patience)
	mine := grpcCaller(t, s, keyPair(t, p.Leader))
	sent, err := mine.SendMessage(ctx, grpcMessage("hello"))
	if err != nil || sent.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_COMPLETED {
		t.Fatalf("got %v, %v", sent, err)
	}
	id := &a2apb.GetTaskRequest{Id: sent.GetTask().GetId()}
	if got, err := mine.GetTask(ctx, id); err != nil || got.GetId() != id.GetId() {
		t.Errorf("got %v, %v", got, err)
	}
	for name, tt := range map[string]struct {
		call func() error
		code codes.Code
	}{
		"another Leader": {func() error {
			_, err := grpcCaller(t, s, keyPair(t, p.LeaderV1)).GetTask(ctx, id)
			return err
		}, codes.NotFound},
		"no certificate": {func() error { _, err := grpcCaller(t, s).GetTask(ctx, id); return err },
			codes.Unauthenticated},
		"no certificate, a stream": {func() error {
			stream, err := grpcCaller(t, s).SendStreamingMessage(ctx, grpcMessage("hello"))
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}, codes.Unauthenticated},
		"too large": {func() error {
			_, err := mine.SendMessage(ctx, grpcMessage(strings.Repeat("x", 21<<20)))
			return err
		}, codes.ResourceExhausted},
	} {
		if err := tt.call(); status.Code(err) != tt.code {
			t.Errorf("%s: got %v, want %v", name, err, tt.code)
		} else if details := status.Convert(err).Details(); name == "no certificate" {
			if info, ok := details[0].(*errdetails.ErrorInfo); !ok || info.Reason != "UNAUTHENTICATED" {
				t.Errorf("%s: got %v", name, details)
			}
		}
	}

	// What no client sends.
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: trusted(t), Certificates: []tls.Certificate{keyPair(t, p.Leader)},
	}}
	defer transport.CloseIdleConnections()
	for name, tt := range map[string]struct {
		method, media, body, want string
	}{
		"no message":      {"SendMessage", "application/grpc", "", "12"},
		"half a message":  {"SendMessage", "application/grpc", "\x00\x00\x00\x00\x09\x0a", "3 13"},
		"no protobuf":     {"SendMessage", "application/grpc", "\x00\x00\x00\x00\x02\x0a\x7f", "3"},
		"unknown method":  {"Unknown", "application/grpc", "\x00\x00\x00\x00\x00", "12"},
		"empty request":   {"SendMessage", "application/grpc+proto", "\x00\x00\x00\x00\x00", "3"},
		"another service": {"../a/B", "application/grpc", "\x00\x00\x00\x00\x00", "HTTP 404"},
		"JSON":            {"SendMessage", "application/json", "{}", "HTTP 404"},
		"JSON over gRPC":  {"SendMessage", "application/grpc+json", "\x00\x00\x00\x00\x02{}", "HTTP 404"},
		"encoding":        {"SendMessage", "application/grpc", "\x01\x00\x00\x00\x02{}", "13 3"},
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url()+"/lf.a2a.v1.A2AService/"+tt.method,
			bytes.NewReader([]byte(tt.body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", tt.media)
		req.Header.Set("Te", "trailers")
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		got := res.Trailer.Get("Grpc-Status")
		if res.StatusCode != http.StatusOK {
			got = fmt.Sprintf("HTTP %d", res.StatusCode)
		}
		if !strings.Contains(" "+tt.want+" ", " "+got+" ") {
			t.Errorf("%s: got %q %v, want %s", name, got, res.Trailer, tt.want)
		}
	}
	get := jsonRequest(http.MethodGet, s.url()+"/.well-known/agent-card.json", "")
	res, err := transport.RoundTrip(get.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	card := string(body)
	want := fmt.Sprintf(`{"url":"localhost:%d","protocolBinding":"GRPC","protocolVersion":"1.0"}`, s.port)
	if !strings.Contains(card, want) {
		t.Errorf("the card does not list %s: %s", want, card)
	}
}

// TestGRPCCrash: a stream that dies with the gateway is subscribed to again at the next one, and loses nothing. The
// agent stands still meanwhile: nobody can subscribe to a task that has ended.
func TestGRPCCrash(t *testing.T) {
	t.Parallel()
	agents, agent := sampleAgent(t)
	c := config{handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers a2a\n\t}"}
	s := serve(t, c)
	pair := keyPair(t, certificates(t).Leader)
	ctx, cancel := context.WithCancel(within(t, 3*patience))
	defer cancel()
	stream, err := grpcCaller(t, s, pair).SendStreamingMessage(ctx, grpcMessage("stream 80 50"))
	if err != nil {
		t.Fatal(err)
	}
	var seen shown
	for seen.text == "" || strings.Count(seen.text, "chunk") < 4 {
		event, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %+v: %v", seen, err)
		}
		seen.add(event)
	}
	goOn := agents.pause(t)
	s.kill()
	for {
		event, err := stream.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("the stream ends with %v", err)
			}
			break
		}
		seen.add(event)
	}
	s.start(c)
	again, err := grpcCaller(t, s, pair).SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Id: seen.id})
	if err != nil {
		t.Fatal(err)
	}
	event, err := again.Recv()
	if err != nil {
		t.Fatal(err)
	}
	goOn()
	var now shown
	if now.add(event); event.GetTask() == nil || !strings.HasPrefix(now.text, seen.text) {
		t.Errorf("the second stream begins with %v, after %+v", event, seen)
	}
	for {
		event, err := again.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		now.add(event)
	}
	if now.state != a2apb.TaskState_TASK_STATE_COMPLETED || strings.Count(now.text, "chunk") != 80 {
		t.Errorf("the streams show %+v", now)
	}
}
