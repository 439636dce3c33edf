// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"cmp"
	"strconv"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Fault is an error in the form for callers of the versions before 1.0.
type Fault struct {
	code      int
	message   string
	errorType string // a member of data, if the code does not say enough
}

// Codes of the gateway's own. A2A leaves authentication to HTTP, and has no codes for it: these lie outside the range
// reserved by JSON-RPC, as those of other servers of A2A do. −32050 is also that of AIP's callers.
const (
	unauthenticated = -31401
	forbidden       = -31403
	limitExceeded   = -32050
)

// Faults has every kind with its code in v0.1. −32007 to −32009 are never used: they mean something else in AIP
// than in later versions of A2A.
var Faults = [...]Fault{
	task.Internal:                 {-32603, "Internal error", ""},
	task.ParseError:               {-32700, "Invalid JSON payload", ""},
	task.InvalidRequest:           {-32600, "Request payload validation error", ""},
	task.MethodNotFound:           {-32601, "Method not found", ""},
	task.InvalidParams:            {-32602, "Invalid parameters", ""},
	task.TaskNotFound:             {-32001, "Task not found", ""},
	task.TaskNotCancelable:        {-32002, "Task cannot be canceled", ""},
	task.NotificationNotSupported: {-32003, "Push Notification is not supported", ""},
	task.UnsupportedOperation:     {-32004, "This operation is not supported", ""},
	task.ContentTypeNotSupported:  {-32005, "Incompatible content types", ""},
	task.InvalidAgentResponse:     {-32603, "Internal error", "INVALID_AGENT_RESPONSE"},
	task.GroupNotSupported:        {-32004, "This operation is not supported", "GROUP_NOT_SUPPORTED"},
	task.AuthenticationRequired:   {unauthenticated, "Authentication required", ""},
	task.AuthorizationFailed:      {forbidden, "Authorization failed", ""},
	task.AccessTokenInvalid:       {unauthenticated, "Invalid access token", "ACCESS_TOKEN_INVALID"},
	task.LimitExceeded:            {limitExceeded, "Limit exceeded", ""},
	task.AgentUnavailable:         {-32603, "Internal error", "AGENT_UNAVAILABLE"},
	task.AgentTimeout:             {-32603, "Internal error", "AGENT_TIMEOUT"},
	task.StoreUnavailable:         {-32603, "Internal error", ""},
	task.InvitationRejected:       {-32004, "This operation is not supported", "INVITATION_REJECTED"},
	task.ConnectionFailed:         {-32603, "Internal error", "CONNECTION_FAILED"},
}

// FaultsV03 are Faults with the codes added by 0.2.
var FaultsV03 = func() [len(Faults)]Fault {
	all := Faults
	all[task.InvalidAgentResponse] = Fault{-32006, "Invalid agent response type", ""}
	return all
}()

// Append appends an error response.
func (f *Fault) Append(dst []byte, id jsonrpc.ID, e *task.Error) []byte {
	return jsonrpc.AppendError(dst, id, f.code, f.message, wire.ErrorData(e, f.errorType))
}

// AppendPlain is Append without data: the error's detail is its message.
func (f *Fault) AppendPlain(dst []byte, id jsonrpc.ID, e *task.Error) []byte {
	return jsonrpc.AppendError(dst, id, f.code, cmp.Or(e.Detail, f.message), nil)
}

// AppendObject appends the members of an error object without the braces.
func AppendObject(dst []byte, f *Fault, e *task.Error) []byte {
	dst = strconv.AppendInt(append(dst, `"code":`...), int64(f.code), 10)
	dst = task.AppendString(append(dst, `,"message":`...), f.message)
	if data := wire.ErrorData(e, f.errorType); data != nil {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return dst
}

// HTTPStatus returns the status of HTTP of an error response. A2A uses it for authentication alone; all other errors
// are known by the code of JSON-RPC. But the error of an unparsed request has no id, and under 200 some SDKs show
// nothing of it.
func HTTPStatus(err error) int {
	if task.IsBodyTooLarge(err) {
		return 413
	}
	switch task.KindOf(err) {
	case task.AuthenticationRequired, task.AccessTokenInvalid:
		return 401
	case task.AuthorizationFailed:
		return 403
	}
	return 200
}
