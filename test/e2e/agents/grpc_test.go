// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestGRPC: callers of gRPC are those of their certificates, and what is wrong with a call is a status.
func TestGRPC(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Mode: "verify_if_given",
		Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers a2a\n\t}"})
	p := site.Certificates(t)
	ctx := site.Within(t, 3*site.Patience)
	mine := site.GRPCCaller(t, s, devpkitest.KeyPair(t, p.Leader))
	sent, err := mine.SendMessage(ctx, site.GRPCMessage("hello"))
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
			_, err := site.GRPCCaller(t, s, devpkitest.KeyPair(t, p.LeaderV1)).GetTask(ctx, id)
			return err
		}, codes.NotFound},
		"no certificate": {func() error { _, err := site.GRPCCaller(t, s).GetTask(ctx, id); return err },
			codes.Unauthenticated},
		"no certificate, a stream": {func() error {
			stream, err := site.GRPCCaller(t, s).SendStreamingMessage(ctx, site.GRPCMessage("hello"))
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}, codes.Unauthenticated},
		"too large": {func() error {
			_, err := mine.SendMessage(ctx, site.GRPCMessage(strings.Repeat("x", 21<<20)))
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
		RootCAs: site.Trusted(t), Certificates: []tls.Certificate{devpkitest.KeyPair(t, p.Leader)},
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
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/lf.a2a.v1.A2AService/"+tt.method,
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
	get := site.JSONRequest(http.MethodGet, s.URL()+"/.well-known/agent-card.json", "")
	res, err := transport.RoundTrip(get.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	card := string(body)
	want := fmt.Sprintf(`{"url":"localhost:%d","protocolBinding":"GRPC","protocolVersion":"1.0"}`, s.Port)
	if !strings.Contains(card, want) {
		t.Errorf("the card does not list %s: %s", want, card)
	}
}

// TestGRPCCrash: a stream that dies with the gateway is subscribed to again at the next one, and loses nothing. The
// agent stands still meanwhile: nobody can subscribe to a task that has ended.
func TestGRPCCrash(t *testing.T) {
	t.Parallel()
	agents, agent := site.SampleAgent(t)
	c := site.Config{Handle: "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers a2a\n\t}"}
	s := site.Serve(t, c)
	pair := devpkitest.KeyPair(t, site.Certificates(t).Leader)
	ctx, cancel := context.WithCancel(site.Within(t, 3*site.Patience))
	defer cancel()
	stream, err := site.GRPCCaller(t, s, pair).SendStreamingMessage(ctx, site.GRPCMessage("stream 80 50"))
	if err != nil {
		t.Fatal(err)
	}
	var seen site.Shown
	for seen.Text == "" || strings.Count(seen.Text, "chunk") < 4 {
		event, err := stream.Recv()
		if err != nil {
			t.Fatalf("after %+v: %v", seen, err)
		}
		seen.Add(event)
	}
	goOn := agents.Pause(t)
	s.Kill()
	for {
		event, err := stream.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("the stream ends with %v", err)
			}
			break
		}
		seen.Add(event)
	}
	s.Start(c)
	again, err := site.GRPCCaller(t, s, pair).SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Id: seen.ID})
	if err != nil {
		t.Fatal(err)
	}
	event, err := again.Recv()
	if err != nil {
		t.Fatal(err)
	}
	goOn()
	var now site.Shown
	if now.Add(event); event.GetTask() == nil || !strings.HasPrefix(now.Text, seen.Text) {
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
		now.Add(event)
	}
	if now.State != a2apb.TaskState_TASK_STATE_COMPLETED || strings.Count(now.Text, "chunk") != 80 {
		t.Errorf("the streams show %+v", now)
	}
}
