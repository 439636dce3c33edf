// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"context"
	"net/http"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream/callerinfo"
)

// TestIntroduction: the caller's name is metadata of every call, also of a cancel.
func TestIntroduction(t *testing.T) {
	var said []metadata.MD
	a := &fakeAgent{stream: func(
		_ *a2apb.SendMessageRequest, s grpc.ServerStreamingServer[a2apb.StreamResponse],
	) error {
		return s.Send(update(a2apb.TaskState_TASK_STATE_COMPLETED))
	}}
	address := serve(t, a,
		grpc.UnaryInterceptor(func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			said = append(said, md)
			return h(ctx, r)
		}),
		grpc.StreamInterceptor(func(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			md, _ := metadata.FromIncomingContext(s.Context())
			said = append(said, md)
			return h(srv, s)
		}))
	driver := reach(t, Config{URL: "http://" + address, Header: http.Header{"X-Key": {"secret"}},
		Introducer: callerinfo.New(callerinfo.Config{Fields: true})})
	work := turn("hello")
	work.Caller = agent.Caller{Leader: "aid:alice.aid.pub", Proof: "token"}
	if o := run(t.Context(), driver, work); o.err != nil {
		t.Fatal(o.err)
	}
	stop := *work
	stop.From = task.Working
	if _, err := driver.Cancel(t.Context(), &stop); err != nil && task.KindOf(err) != task.TaskNotFound {
		t.Fatal(err)
	}
	if len(said) < 2 {
		t.Fatalf("%d calls", len(said))
	}
	for _, md := range said {
		for key, want := range map[string][]string{"aip-leader": {"aid:alice.aid.pub"}, "aip-proof": {"token"},
			"x-key": {"secret"}} {
			if diff := cmp.Diff(want, md.Get(key)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", key, diff)
			}
		}
	}
}
