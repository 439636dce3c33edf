// SPDX-License-Identifier: Apache-2.0

package grpctransport

import (
	"errors"
	"mime"
	"net/http"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// failed returns the error for the end of a call. cause is nil for a clean end: then a message is missing, or a stream
// ends before its turn.
func (x *exchange) failed(cause error, when string) error {
	var dial dialError
	var failure *connect.Error
	errors.As(cause, &failure)
	switch {
	case x.ctx.Err() != nil:
		return upstream.Ended(x.ctx)
	case errors.As(cause, &dial) && !errors.Is(cause, errNoHTTP2):
		return httptransport.DialFailed(cause, "the agent cannot be reached")
	case errors.Is(cause, errNoALPN):
		return upstream.Failed(task.InvalidAgentResponse, upstream.NoHTTP2, cause,
			"the agent's server offers no h2 by ALPN, which gRPC over TLS needs")
	case errors.Is(cause, errNoHTTP2), x.status == 0 && x.route.transport.dialer.other.Load():
		return upstream.Failed(task.InvalidAgentResponse, upstream.NoHTTP2, cause,
			"the agent's server does not speak HTTP/2, which gRPC needs")
	case httptransport.IsTLSAlert(cause):
		return upstream.Failed(task.AgentUnavailable, upstream.CertificateRefused, cause,
			"the agent refuses the gateway's client certificate; the operator must check it")
	case connect.IsWireError(cause) && failure != nil:
		return x.route.transport.hides.HideIn(x.reported(failure))
	case x.status != 0 && (x.status != http.StatusOK || !isGRPC(x.media)):
		return httptransport.Status{Code: x.status, MediaType: x.mediaType(), RetryAfter: x.retryAfter}.Explain(
			task.Errorf(task.InvalidAgentResponse, "the agent's answer is not one of gRPC").WithCause(cause))
	case failure != nil && failure.Code() == connect.CodeResourceExhausted:
		return task.Errorf(task.InvalidAgentResponse, "a message of the agent is larger than %d bytes",
			x.route.transport.config.MaxMessage).WithCause(cause)
	case x.streams && x.status != 0:
		return upstream.Failed(task.InvalidAgentResponse, upstream.StreamCut, cause, "the agent's stream was cut")
	case cause == nil:
		return task.Errorf(task.InvalidAgentResponse, "the agent's answer has no message")
	}
	return upstream.Failed(task.InvalidAgentResponse, upstream.Disconnected, cause,
		"the connection to the agent broke %s", when)
}

// reported is the error reported by a status of the agent, or of a proxy in front of it.
func (x *exchange) reported(failure *connect.Error) error {
	st := &status.Status{Code: int32(failure.Code()), Message: failure.Message()}
	var wait time.Duration
	reasoned := false // it comes from the agent, and not from its server or a proxy
	for _, d := range failure.Details() {
		st.Details = append(st.Details, &anypb.Any{TypeUrl: "type.googleapis.com/" + d.Type(), Value: d.Bytes()})
		switch detail, _ := d.Value(); v := detail.(type) {
		case *errdetails.ErrorInfo:
			reasoned = true
		case *errdetails.RetryInfo:
			wait = max(wait, v.GetRetryDelay().AsDuration())
		}
	}
	encoded, err := proto.Marshal(st)
	if err != nil {
		return task.Errorf(task.InvalidAgentResponse, "the agent's status is invalid").WithCause(err)
	}
	err = x.route.transport.codec.Failure(encoded)
	e, ok := errors.AsType[*task.Error](err)
	if !ok || reasoned {
		return err
	}
	switch code := failure.Code(); {
	case code == connect.CodeResourceExhausted:
		return e.WithCause(&upstream.Error{Reason: upstream.Overloaded, RetryAfter: wait, Err: failure})
	case code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied:
		return e.WithCause(&upstream.Error{Reason: upstream.CredentialsRefused, Err: failure})
	case isPassing(code) && x.streams && x.received:
		return upstream.Failed(task.InvalidAgentResponse, upstream.StreamCut, failure, "the agent's stream was cut")
	case isPassing(code):
		// A proxy says so, too, when it has lost the connection to the agent.
		return e.WithCause(&upstream.Error{Reason: upstream.ProxyFailed, Err: failure})
	}
	return err
}

// isPassing reports whether a code is about the end of the call only, and not about its task.
func isPassing(code connect.Code) bool {
	return code == connect.CodeUnavailable || code == connect.CodeCanceled ||
		code == connect.CodeDeadlineExceeded || code == connect.CodeAborted
}

func isGRPC(media string) bool {
	return media == "application/grpc" || media == "application/grpc+proto"
}

// mediaType returns the answer's media type for people.
func (x *exchange) mediaType() string {
	t, _, err := mime.ParseMediaType(x.media)
	if err != nil || len(t) > 64 {
		return "no media type"
	}
	return t
}
