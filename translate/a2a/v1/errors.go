// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// failure is an error of A2A 1.0 as agents report it. It is known by the reason of its ErrorInfo, the same in both
// bindings, otherwise by its code. Without an envelope, the code is a status of HTTP.
type failure struct {
	reason string
	code   int64
	kind   task.Kind
	text   string // the detail if the agent sends no message
}

// failures are the errors of agents. An error blaming the gateway's own request is Internal, and one blaming its
// credentials is InvalidAgentResponse, so that no Leader looks for a mistake it did not make. An agent without support
// of 1.0 does not have the method.
var failures = []failure{
	{"PARSE_ERROR", -32700, task.Internal, "the agent could not read the gateway's request"},
	{"INVALID_REQUEST", -32600, task.Internal, "the agent does not accept the gateway's request"},
	{"METHOD_NOT_FOUND", -32601, task.MethodNotFound, "the agent does not have this method"},
	{"INVALID_PARAMS", -32602, task.InvalidParams, "the agent does not accept the parameters"},
	{"INTERNAL_ERROR", -32603, task.Internal, "the agent failed"},
	{"TASK_NOT_FOUND", -32001, task.TaskNotFound, "the agent does not know this task"},
	{"TASK_NOT_CANCELABLE", -32002, task.TaskNotCancelable, "the agent refuses to cancel this task"},
	{"PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, task.NotificationNotSupported, "the agent has no push notifications"},
	{"UNSUPPORTED_OPERATION", -32004, task.UnsupportedOperation, "the agent does not support this"},
	{"CONTENT_TYPE_NOT_SUPPORTED", -32005, task.ContentTypeNotSupported, "the agent does not take this kind of content"},
	{"INVALID_AGENT_RESPONSE", -32006, task.InvalidAgentResponse, "the agent got an invalid response itself"},
	{"EXTENDED_AGENT_CARD_NOT_CONFIGURED", -32007, task.UnsupportedOperation, "the agent has no extended card"},
	{"EXTENSION_SUPPORT_REQUIRED", -32008, task.UnsupportedOperation, "the agent requires an extension"},
	{"VERSION_NOT_SUPPORTED", -32009, task.MethodNotFound, "the agent does not support A2A 1.0"},
	{"UNAUTHENTICATED", -31401, task.InvalidAgentResponse, "the agent refuses the gateway's credentials"},
	{"ACCESS_TOKEN_INVALID", 401, task.InvalidAgentResponse, "the agent refuses the gateway's credentials"},
	{"PERMISSION_DENIED", 403, task.InvalidAgentResponse, "the agent does not allow the gateway to do this"},
	{"LIMIT_EXCEEDED", 413, task.LimitExceeded, "the agent has reached a limit"},
	{"AGENT_UNAVAILABLE", 502, task.AgentUnavailable, "the agent cannot reach what it needs"},
	{"AGENT_TIMEOUT", 504, task.AgentTimeout, "the agent waited for too long"},
	// Another gateway may have begun a turn before its store failed, so the task is looked up and the turn is not sent
	// again.
	{"STORE_UNAVAILABLE", -32603, task.Internal, "the agent cannot store tasks now"},
	{"", 400, task.InvalidParams, "the agent does not accept the parameters"},
	{"", 404, task.TaskNotFound, "the agent does not know this task"},
	{"", 405, task.MethodNotFound, "the agent does not have this method"},
	{"", 409, task.UnsupportedOperation, "the agent does not support this now"},
	{"", 415, task.ContentTypeNotSupported, "the agent does not take this kind of content"},
	{"", 429, task.AgentUnavailable, "the agent takes no requests now"},
	{"", 501, task.MethodNotFound, "the agent does not have this method"},
	{"", 503, task.AgentUnavailable, "the agent takes no requests now"},
}

// failed turns an error of the agent into one of its kind.
func failed(f *jsonrpc.Failure) *task.Error { return failedFor(reasonOf(f.Data), f) }

// failedFor is failed for an error with a reason, empty for none.
func failedFor(reason string, f *jsonrpc.Failure) *task.Error {
	i := slices.IndexFunc(failures, func(row failure) bool { return reason != "" && row.reason == reason })
	if i < 0 {
		i = slices.IndexFunc(failures, func(row failure) bool { return row.code == f.Code })
	}
	if i < 0 {
		return wire.Failed(nil, f)
	}
	row := failures[i]
	known := wire.Failure{Code: f.Code, Kind: row.kind, Detail: row.text}
	return wire.Failed([]wire.Failure{known}, f)
}

// reasonOf returns the reason in the details of an error, or nothing.
func reasonOf(details gjson.Result) (reason string) {
	if !details.IsArray() {
		return ""
	}
	jsonrpc.ForEach(details, func(_, detail gjson.Result) bool {
		var kind, why string
		wire.Members(detail, func(key string, v gjson.Result) {
			switch key {
			case "@type":
				kind = v.Str
			case "reason":
				why = v.Str
			}
		})
		if kind == "" || strings.HasSuffix(kind, "google.rpc.ErrorInfo") {
			reason = why
		}
		return reason == ""
	})
	return reason
}

// publicError is an error in the form for callers of A2A 1.0.
type publicError struct {
	code   int    // in JSON-RPC
	http   int    // in REST
	status string // the name of the status of HTTP
	reason string // of ErrorInfo
	text   string // the message if the error has no detail
}

// The names of the status of HTTP of most errors.
const (
	invalid      = "INVALID_ARGUMENT"
	precondition = "FAILED_PRECONDITION"
)

// publicErrors has every kind. Codes from −32001 to −32009 are A2A's. Kinds not in A2A use codes of the gateway's
// own, beyond those, from the range left to servers by JSON-RPC.
var publicErrors = [...]publicError{
	task.Internal:          {-32603, 500, "INTERNAL", "INTERNAL_ERROR", "Internal error"},
	task.ParseError:        {-32700, 400, invalid, "PARSE_ERROR", "Invalid JSON payload"},
	task.InvalidRequest:    {-32600, 400, invalid, "INVALID_REQUEST", "Request payload validation error"},
	task.MethodNotFound:    {-32601, 501, "UNIMPLEMENTED", "METHOD_NOT_FOUND", "Method not found"},
	task.InvalidParams:     {-32602, 400, invalid, "INVALID_PARAMS", "Invalid parameters"},
	task.TaskNotFound:      {-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND", "Task not found"},
	task.TaskNotCancelable: {-32002, 400, precondition, "TASK_NOT_CANCELABLE", "Task cannot be canceled"},
	task.NotificationNotSupported: {
		-32003, 400, precondition, "PUSH_NOTIFICATION_NOT_SUPPORTED", "Push notifications are not supported",
	},
	task.UnsupportedOperation:    {-32004, 400, precondition, "UNSUPPORTED_OPERATION", "This operation is not supported"},
	task.ContentTypeNotSupported: {-32005, 400, invalid, "CONTENT_TYPE_NOT_SUPPORTED", "Incompatible content types"},
	task.InvalidAgentResponse:    {-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE", "Invalid agent response"},
	task.GroupNotSupported:       {-32004, 400, precondition, "UNSUPPORTED_OPERATION", "This operation is not supported"},
	task.AuthenticationRequired:  {-32051, 401, "UNAUTHENTICATED", "UNAUTHENTICATED", "Authentication required"},
	task.AuthorizationFailed:     {-32052, 403, "PERMISSION_DENIED", "PERMISSION_DENIED", "Authorization failed"},
	task.AccessTokenInvalid:      {-32051, 401, "UNAUTHENTICATED", "ACCESS_TOKEN_INVALID", "Invalid access token"},
	task.LimitExceeded:           {-32050, 429, "RESOURCE_EXHAUSTED", "LIMIT_EXCEEDED", "Limit exceeded"},
	task.AgentUnavailable:        {-32603, 502, "UNAVAILABLE", "AGENT_UNAVAILABLE", "The agent cannot be reached"},
	task.AgentTimeout:            {-32603, 504, "DEADLINE_EXCEEDED", "AGENT_TIMEOUT", "The agent did not answer in time"},
	task.StoreUnavailable:        {-32603, 503, "UNAVAILABLE", "STORE_UNAVAILABLE", "The gateway cannot store tasks now"},
	task.InvitationRejected:      {-32004, 400, precondition, "UNSUPPORTED_OPERATION", "This operation is not supported"},
	task.ConnectionFailed:        {-32603, 500, "INTERNAL", "INTERNAL_ERROR", "Internal error"},
}

// errVersion is the cause of an error about a version. It is no kind, because no other dialect has an error for it.
var errVersion = errors.New("a2a: a version that is not spoken here")

var versionError = publicError{-32009, 400, precondition, "VERSION_NOT_SUPPORTED", "Version not supported"}

// publicErrorOf returns err as callers see it. An error without a kind is an internal error without a text.
func publicErrorOf(err error) (*task.Error, *publicError) {
	e, ok := errors.AsType[*task.Error](err)
	switch {
	case !ok || int(e.Kind) >= len(publicErrors):
		return new(task.Error), &publicErrors[task.Internal]
	case errors.Is(err, errVersion):
		return e, &versionError
	}
	return e, &publicErrors[e.Kind]
}

// AppendError implements translate.Server. The detail of the error is its message: 1.0 has no other place for it.
func (s Base) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e, w := publicErrorOf(err)
	text := w.text
	if e.Detail != "" {
		text = e.Detail
	}
	details := errorInfo(e, w)
	if !s.rest {
		return jsonrpc.AppendError(dst, id, w.code, text, details)
	}
	dst = append(dst, `{"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(w.http), 10)
	dst = append(append(append(dst, `,"status":"`...), w.status...), `","message":`...)
	dst = task.AppendString(dst, text)
	dst = append(append(dst, `,"details":`...), details...)
	return append(dst, '}', '}')
}

// errorDomain is the domain of the reasons of errors.
const errorDomain = "a2a-protocol.org"

// errorInfo returns the details of an error: one google.rpc.ErrorInfo, with strings as metadata.
func errorInfo(e *task.Error, w *publicError) []byte {
	dst := []byte(`[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"`)
	dst = append(append(dst, w.reason...), `","domain":"`+errorDomain+`"`...)
	begin := len(dst)
	eachDetail(e, w, func(key, value string) {
		if len(dst) == begin {
			dst = append(dst, `,"metadata":{`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(task.AppendString(dst, key), ':')
		dst = task.AppendString(dst, value)
	})
	if len(dst) > begin {
		dst = append(dst, '}')
	}
	return append(dst, '}', ']')
}

// eachDetail calls add for each detail of an error, as text.
func eachDetail(e *task.Error, w *publicError, add func(key, value string)) {
	if e.Field != "" {
		add("field", e.Field)
	}
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		if key == "field" || e.Data[key] == w.reason { // it is there already
			continue
		}
		if text, ok := e.Data[key].(string); ok {
			add(key, text)
		} else if value, err := json.Marshal(e.Data[key]); err == nil {
			add(key, string(value))
		}
	}
}
