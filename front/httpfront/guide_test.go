// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/aip-gateway/aip-gateway/internal/guidetest"
)

var update = flag.Bool("update", false, "write the answers into the transcript")

// TestGuide replays the calls of the transcript over gRPC.
func TestGuide(t *testing.T) {
	guidetest.Replay(t, "testdata/grpc.md", "grpc", *update, func(script string) string {
		return call(t, open(t, overGRPC).grpcConn(), script)
	})
}

// differing are the values different in each run: the gateway's own ids, and times.
var differing = regexp.MustCompile(
	`("(?:id|taskId|contextId|messageId|timestamp)":)"(?:gw-|[0-9a-f]{8}-|status-|2)[^"]*"`)

// call makes the calls of a script, and returns it with the answers. The id of the first task is written as ID.
func call(t *testing.T, conn *grpc.ClientConn, script string) string {
	t.Helper()
	service := a2apb.File_a2av1_proto.Services().ByName("A2AService")
	id := ""
	var out strings.Builder
	for line := range strings.Lines(script) {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "> ")
		if !ok {
			continue
		}
		name, params, _ := strings.Cut(rest, " ")
		method := service.Methods().ByName(protoreflect.Name(name))
		if method == nil {
			t.Fatalf("there is no method %s", name)
		}
		request, answer := newMessage(t, method.Input()), newMessage(t, method.Output())
		if err := protojson.Unmarshal([]byte(strings.ReplaceAll(params, `"ID"`, `"`+id+`"`)), request); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true},
			fmt.Sprintf("/%s/%s", service.FullName(), name))
		if err == nil {
			err = errors.Join(stream.SendMsg(request), stream.CloseSend())
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out.WriteString(line)
		for {
			err := stream.RecvMsg(answer)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				st, reason := status.Convert(err), ""
				for _, d := range st.Details() {
					if info, ok := d.(*errdetails.ErrorInfo); ok {
						reason = info.Reason
					}
				}
				fmt.Fprintf(&out, "! %s %s %q\n", code.Code(st.Code()), reason, st.Message())
				break
			}
			if sent, ok := answer.(*a2apb.SendMessageResponse); ok && id == "" {
				id = sent.GetTask().GetId()
			}
			text := bytes.ReplaceAll(compact(t, answer), []byte(`"`+id+`"`), []byte(`"ID"`))
			out.WriteString("< " + string(differing.ReplaceAll(text, []byte(`$1"*"`))) + "\n")
		}
	}
	return out.String()
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

// compact returns a message as JSON without the spaces added by protojson at random.
func compact(t *testing.T, m proto.Message) []byte {
	t.Helper()
	var b bytes.Buffer
	text, err := protojson.Marshal(m)
	if err == nil {
		err = json.Compact(&b, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
