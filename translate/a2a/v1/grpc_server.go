// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
)

// GRPCServer returns Server over gRPC. It is a translate.Transcoder. Webhooks are notified as in the other bindings.
func GRPCServer(confirm bool) translate.Server {
	return grpcServer{Base: NewBase(&ownSchema, confirm)}
}

type grpcServer struct{ Base }

// Name implements translate.Server.
func (grpcServer) Name() string { return version.Name10GRPC }

// Route implements translate.Server. A method not in the service is answered by Decode, as gRPC wants it.
func (grpcServer) Route(method, path string) (r translate.Route, ok bool) {
	name, ok := strings.CutPrefix(path, service)
	if !ok || name == "" || strings.Contains(name, "/") || method != "POST" {
		return r, false
	}
	return translate.Route{Unenveloped: true, Method: name}, true
}

// Params implements translate.Transcoder.
func (grpcServer) Params(method string, message []byte) ([]byte, error) {
	m := requestOf(method)
	if m == nil {
		return nil, nil // Decode says so
	}
	params, err := toJSON(m, message)
	if err != nil {
		return nil, task.Errorf(task.ParseError, "the message is no %s", m.ProtoReflect().Descriptor().FullName())
	}
	return params, nil
}

// Decode implements translate.Server.
func (s grpcServer) Decode(req *translate.Request) (translate.Call, error) {
	asJSON := *req
	asJSON.Content = "" // that of gRPC; the front has checked it
	return s.Base.Decode(&asJSON)
}

// CheckContent implements translate.ContentChecker: the front has checked the media type.
func (grpcServer) CheckContent(string) error { return nil }

// AppendTask implements translate.Server.
func (s grpcServer) AppendTask(dst []byte, _ jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	object := s.Base.AppendTask(make([]byte, 0, 512+int(t.Size())), nil, c, t)
	if cmd := c.Message.Command; cmd == task.Start || cmd == task.Continue {
		return appendProto(dst, new(a2apb.SendMessageResponse), object)
	}
	return appendProto(dst, new(a2apb.Task), object)
}

// AppendTasks implements translate.Lister.
func (s grpcServer) AppendTasks(dst []byte, _ jsonrpc.ID, c *translate.Call, page *task.Page) []byte {
	return appendProto(dst, new(a2apb.ListTasksResponse), s.Base.AppendTasks(nil, nil, c, page))
}

// AppendWebhooks implements translate.Server.
func (s grpcServer) AppendWebhooks(dst []byte, _ jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	var m proto.Message
	switch {
	case c.Op == translate.DeleteWebhooks:
		m = new(emptypb.Empty)
	case c.Op == translate.SetWebhook || c.Method == getConfig:
		m = new(a2apb.TaskPushNotificationConfig)
	default:
		m = new(a2apb.ListTaskPushNotificationConfigsResponse)
	}
	return appendProto(dst, m, s.Base.AppendWebhooks(nil, nil, c, hooks))
}

// AppendCard implements translate.CardServer.
func (s grpcServer) AppendCard(dst []byte, _ jsonrpc.ID, card []byte) []byte {
	return appendProto(dst, new(a2apb.AgentCard), card)
}

// AppendError implements translate.Server: it appends a google.rpc.Status. Its code is the one for the status of HTTP,
// and its details are those of the other bindings.
func (s grpcServer) AppendError(dst []byte, _ jsonrpc.ID, err error) []byte {
	e, w := publicErrorOf(err)
	st := &status.Status{Code: code.Code_value[w.status], Message: w.text}
	if e.Detail != "" {
		st.Message = e.Detail
	}
	info := &errdetails.ErrorInfo{Reason: w.reason, Domain: errorDomain}
	eachDetail(e, w, func(key, value string) {
		if info.Metadata == nil {
			info.Metadata = make(map[string]string)
		}
		info.Metadata[key] = strings.ToValidUTF8(value, "")
	})
	st.Message = strings.ToValidUTF8(st.Message, "")
	if detail, err := anypb.New(info); err == nil {
		st.Details = []*anypb.Any{detail}
	}
	if seconds := e.RetryAfter(); seconds > 0 {
		retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(seconds) * time.Second)}
		if detail, err := anypb.New(retry); err == nil {
			st.Details = append(st.Details, detail)
		}
	}
	encoded, _ := proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, st)
	return encoded
}

// NewStream implements translate.Server.
func (s grpcServer) NewStream(_ jsonrpc.ID, c *translate.Call, t *task.Task) translate.Encoder {
	return &grpcEncoder{inner: s.Base.NewStream(nil, c, t)}
}

// grpcEncoder transcodes the frames of an encoder with one frame for an event.
type grpcEncoder struct {
	inner  translate.Encoder
	object []byte // of the last frame, kept for its memory
}

// Snapshot implements translate.Encoder.
func (f *grpcEncoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	return f.transcode(dst, f.inner.Snapshot(f.object[:0], t))
}

// Event implements translate.Encoder.
func (f *grpcEncoder) Event(dst []byte, ev *task.Event) translate.Frame {
	return f.transcode(dst, f.inner.Event(f.object[:0], ev))
}

// largestObject is the size, in bytes, up to which the memory of a frame is kept: a stream may be open for days.
const largestObject = 4 << 10

func (f *grpcEncoder) transcode(dst []byte, frame translate.Frame) translate.Frame {
	if frame.Data == nil {
		return frame
	}
	if f.object = frame.Data; cap(f.object) > largestObject {
		f.object = nil
	}
	frame.Data = appendProto(dst, new(a2apb.StreamResponse), frame.Data)
	return frame
}

// Interface guards.
var (
	_ translate.Server      = grpcServer{}
	_ translate.Transcoder  = grpcServer{}
	_ translate.Lister      = grpcServer{}
	_ translate.StateFilter = grpcServer{}
	_ translate.CardServer  = grpcServer{}
)
