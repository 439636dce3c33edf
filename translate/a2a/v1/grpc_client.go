// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// GRPCClient returns Client over gRPC. It is a translate.StatusReader.
func GRPCClient() translate.Client { return grpcClient{client{rest: true}} }

type grpcClient struct{ client }

// Name implements translate.Client.
func (grpcClient) Name() string { return version.Name10GRPC }

// For implements translate.Client.
func (c grpcClient) For(q translate.Query) translate.Client {
	c.query = q
	return c
}

// Bind implements translate.Binder.
func (grpcClient) Bind(op translate.Operation, _ agent.Ref) (method, path string) {
	switch op {
	case translate.Send:
		path = send
	case translate.SendStream:
		path = sendStream
	case translate.Get:
		path = getTask
	case translate.Cancel:
		path = cancelTask
	case translate.Resubscribe:
		path = subscribe
	case translate.Describe:
		path = extendedCard
	}
	return "POST", "/" + service + path
}

// AppendTurn implements translate.Client.
func (c grpcClient) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	object := c.client.AppendTurn(make([]byte, 0, 512+int(t.Message.Size())), t, stream)
	return appendProto(dst, new(a2apb.SendMessageRequest), object)
}

// AppendGet implements translate.Getter.
func (grpcClient) AppendGet(dst []byte, ref agent.Ref) []byte {
	return appendRequest(dst, &a2apb.GetTaskRequest{Id: ref.Task, HistoryLength: new(int32)})
}

// AppendCancel implements translate.Canceler.
func (grpcClient) AppendCancel(dst []byte, ref agent.Ref) []byte {
	return appendRequest(dst, &a2apb.CancelTaskRequest{Id: ref.Task})
}

// AppendResubscribe implements translate.Resubscriber.
func (grpcClient) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	return appendRequest(dst, &a2apb.SubscribeToTaskRequest{Id: ref.Task})
}

// AppendDescribe implements translate.Describer: the request is empty.
func (grpcClient) AppendDescribe(dst []byte) []byte { return dst }

// appendRequest appends a request with a name given by the agent as its only string.
func appendRequest(dst []byte, m proto.Message) []byte {
	if encoded, err := (proto.MarshalOptions{}).MarshalAppend(dst, m); err == nil {
		return encoded
	}
	return dst // cannot happen: names are read from JSON, and so are UTF-8
}

// Reply implements translate.Client. The answer to a message is a SendMessageResponse, and that to other requests is a
// Task. A Task has a status, and the other message has no such field.
func (c grpcClient) Reply(body []byte, known []task.Product) (agent.Report, error) {
	var m proto.Message = new(a2apb.SendMessageResponse)
	if hasField(body, new(a2apb.Task), "status") {
		m = new(a2apb.Task)
	}
	object, err := answerOf(m, body)
	if err != nil {
		return agent.Report{}, err
	}
	return c.client.Reply(object, known)
}

// hasField reports whether an encoded message has a field, by its name in a type of messages.
func hasField(encoded []byte, of proto.Message, name string) bool {
	number := of.ProtoReflect().Descriptor().Fields().ByTextName(name).Number()
	for len(encoded) > 0 {
		field, _, n := protowire.ConsumeField(encoded)
		if n < 0 || field == number {
			return n >= 0
		}
		encoded = encoded[n:]
	}
	return false
}

// answerOf returns the JSON of a message of the agent. m is an empty message of its type.
func answerOf(m proto.Message, body []byte) ([]byte, error) {
	object, err := toJSON(m, body)
	if err != nil {
		return nil, wire.Refuse("the agent's answer is no %s", m.ProtoReflect().Descriptor().FullName())
	}
	return object, nil
}

// Description implements translate.Describer.
func (grpcClient) Description(body []byte) ([]byte, error) {
	return answerOf(new(a2apb.AgentCard), body)
}

// NewStream implements translate.Client.
func (c grpcClient) NewStream(known []task.Product) translate.Stream {
	return &grpcStream{inner: c.client.newStream(known)}
}

// grpcStream reads the StreamResponses of one stream.
type grpcStream struct {
	inner  stream
	object []byte // of the event left to Event by Text; nil for none
	err    error  // likewise
}

// Text implements translate.TextStream.
func (s *grpcStream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	if s.object, s.err = answerOf(new(a2apb.StreamResponse), data); s.err != nil {
		return false
	}
	return s.inner.Text("", s.object, pieces)
}

// Event implements translate.Stream.
func (s *grpcStream) Event(_ string, data []byte) (agent.Report, error) {
	object, err := s.object, s.err
	if s.object, s.err = nil, nil; object == nil && err == nil {
		object, err = answerOf(new(a2apb.StreamResponse), data)
	}
	if err != nil {
		return agent.Report{}, err
	}
	return s.inner.Event("", object)
}

// Failure implements translate.StatusReader. An error is known by the reason of its ErrorInfo; otherwise by the status
// of HTTP for its code.
func (grpcClient) Failure(encoded []byte) error {
	st := new(status.Status)
	if err := proto.Unmarshal(encoded, st); err != nil {
		return wire.Refuse("the agent's status is no google.rpc.Status")
	}
	reason := ""
	for _, detail := range st.Details {
		info := new(errdetails.ErrorInfo)
		if detail.MessageIs(info) && detail.UnmarshalTo(info) == nil {
			reason = info.Reason
			break
		}
	}
	return failedFor(reason, &jsonrpc.Failure{Code: statusOfHTTP(code.Code(st.Code)), Message: st.Message})
}

// statusOfHTTP returns the status of HTTP for a code, as in google/rpc/code.proto.
func statusOfHTTP(c code.Code) int64 {
	switch c {
	case code.Code_INVALID_ARGUMENT, code.Code_OUT_OF_RANGE:
		return 400
	case code.Code_FAILED_PRECONDITION, code.Code_ABORTED, code.Code_ALREADY_EXISTS:
		return 409
	case code.Code_UNAUTHENTICATED:
		return 401
	case code.Code_PERMISSION_DENIED:
		return 403
	case code.Code_NOT_FOUND:
		return 404
	case code.Code_RESOURCE_EXHAUSTED:
		return 429
	case code.Code_CANCELLED:
		return 499
	case code.Code_UNIMPLEMENTED:
		return 501
	case code.Code_UNAVAILABLE:
		return 503
	case code.Code_DEADLINE_EXCEEDED:
		return 504
	}
	return 500
}

// Interface guards.
var (
	_ translate.Client       = grpcClient{}
	_ translate.Describer    = grpcClient{}
	_ translate.StatusReader = grpcClient{}
	_ translate.TextStream   = (*grpcStream)(nil)
)
