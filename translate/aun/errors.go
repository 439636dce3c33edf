// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"errors"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Codes of errors (services specification, "task.*", and the appendix of errors). Their numbers have other meanings in
// AIP and A2A.
const (
	CodeAuthFailed       = -32001
	CodePermission       = -32004
	CodeTokenExpired     = -32005
	CodeAgentOffline     = -32010
	CodeTimeout          = -32011
	CodeTaskNotFound     = -32170
	CodeStateInvalid     = -32171
	CodeCanceled         = -32173
	CodeTooLarge         = -32174
	CodeAccessDenied     = -32175
	CodeAlreadyAccepted  = -32176
	CodeRejected         = -32177
	CodeDelegationDenied = -32178
	CodeChildLimit       = -32179
	CodeBlocked          = -32185
	CodeFailed           = -32186
	CodeLimitExceeded    = -32050 // the gateway's own
)

// fault is how an error is written to callers.
type fault struct {
	code      int
	message   string
	errorType string // a member of data, where the code does not say enough
}

// faults has every kind.
var faults = [...]fault{
	task.Internal:                 {-32603, "Internal error", ""},
	task.ParseError:               {-32700, "Parse error", ""},
	task.InvalidRequest:           {-32600, "Invalid request", ""},
	task.MethodNotFound:           {-32601, "Method not found", ""},
	task.InvalidParams:            {-32602, "Invalid params", ""},
	task.TaskNotFound:             {CodeTaskNotFound, "Task not found", ""},
	task.TaskNotCancelable:        {CodeStateInvalid, "Task state invalid", "TASK_NOT_CANCELABLE"},
	task.NotificationNotSupported: {-32601, "Method not found", "NOTIFICATION_NOT_SUPPORTED"},
	task.UnsupportedOperation:     {CodeStateInvalid, "Task state invalid", ""},
	task.ContentTypeNotSupported:  {-32602, "Invalid params", "CONTENT_TYPE_NOT_SUPPORTED"},
	task.InvalidAgentResponse:     {-32603, "Internal error", "INVALID_AGENT_RESPONSE"},
	task.GroupNotSupported:        {-32601, "Method not found", "GROUP_NOT_SUPPORTED"},
	task.AuthenticationRequired:   {CodeAuthFailed, "Authentication failed", ""},
	task.AuthorizationFailed:      {CodePermission, "Permission denied", ""},
	task.AccessTokenInvalid:       {CodeTokenExpired, "Token expired", ""},
	task.LimitExceeded:            {CodeLimitExceeded, "Limit exceeded", ""},
	task.AgentUnavailable:         {CodeAgentOffline, "Agent offline", ""},
	task.AgentTimeout:             {CodeTimeout, "Agent timeout", ""},
	task.StoreUnavailable:         {-32603, "Internal error", ""},
}

// ended are the errors of commands for tasks that have ended.
var ended = map[task.State]fault{
	task.Completed: {CodeStateInvalid, "Task state invalid", ""},
	task.Canceled:  {CodeCanceled, "Task canceled", ""},
	task.Rejected:  {CodeRejected, "Task rejected", ""},
	task.Failed:    {CodeFailed, "Task failure recorded", ""},
}

// refusal is the cause of an error that only AUN has a code for.
type refusal struct{ fault }

func (r *refusal) Error() string { return r.message }

func refuse(kind task.Kind, code int, message, format string, args ...any) *task.Error {
	return task.Errorf(kind, format, args...).WithCause(&refusal{fault{code, message, ""}})
}

// AccessDenied returns the error of a method that only another role may call.
func AccessDenied(format string, args ...any) *task.Error {
	return refuse(task.AuthorizationFailed, CodeAccessDenied, "Task access denied", format, args...)
}

// DelegationDenied returns the error of a task.delegate by a caller that may not delegate the task.
func DelegationDenied(format string, args ...any) *task.Error {
	return refuse(task.AuthorizationFailed, CodeDelegationDenied, "Task delegation denied", format, args...)
}

// ChildLimitExceeded returns the error of a task.delegate beyond the limit of a name.
func ChildLimitExceeded(limit string, max int) *task.Error {
	return refuse(task.LimitExceeded, CodeChildLimit, "Task child limit exceeded",
		"the task has reached its limit of delegation").WithData("limit", limit).WithData("max", max)
}

// CompletionBlocked returns the error of a task.complete of a task with children that have not ended.
func CompletionBlocked(children []string) *task.Error {
	return refuse(task.UnsupportedOperation, CodeBlocked, "Task completion blocked",
		"the task has children that have not ended").WithData("children", children)
}

// AlreadyAccepted returns the error of a task.accept of a task that was accepted before.
func AlreadyAccepted() *task.Error {
	return refuse(task.UnsupportedOperation, CodeAlreadyAccepted, "Task already accepted", "the task was accepted before")
}

// faultOf returns how an error is written. A command that a task does not take any more is answered by how that has
// ended.
func faultOf(err error) (fault, *task.Error) {
	e := wire.ErrorOf(err)
	f := faults[e.Kind]
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.fault, e
	}
	if s, ok := errors.AsType[*task.StateError](err); ok {
		if after, ok := ended[s.State]; ok {
			f = after
		}
	}
	return f, e
}

// AppendError appends the whole response that reports an error.
func AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	f, e := faultOf(err)
	return jsonrpc.AppendError(dst, id, f.code, f.message, wire.ErrorData(e, f.errorType))
}

// CodeOf returns the code of an error.
func CodeOf(err error) int {
	f, _ := faultOf(err)
	return f.code
}
