// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"errors"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// fault is an error in the form for callers.
type fault struct {
	code      int
	message   string
	errorType string // a member of data, if the code does not say enough
}

// faults has every kind.
var faults = [...]fault{
	task.Internal:                 {codes.Internal, "Internal error", ""},
	task.ParseError:               {codes.ParseError, "Parse error", ""},
	task.InvalidRequest:           {codes.InvalidRequest, "Invalid request", ""},
	task.MethodNotFound:           {codes.MethodNotFound, "Method not found", ""},
	task.InvalidParams:            {codes.InvalidParams, "Invalid params", ""},
	task.TaskNotFound:             {codes.TaskNotFound, "Task not found", ""},
	task.TaskNotCancelable:        {codes.TaskStateInvalid, "Task state invalid", "TASK_NOT_CANCELABLE"},
	task.NotificationNotSupported: {codes.MethodNotFound, "Method not found", "NOTIFICATION_NOT_SUPPORTED"},
	task.UnsupportedOperation:     {codes.TaskStateInvalid, "Task state invalid", ""},
	task.ContentTypeNotSupported:  {codes.InvalidParams, "Invalid params", "CONTENT_TYPE_NOT_SUPPORTED"},
	task.InvalidAgentResponse:     {codes.Internal, "Internal error", "INVALID_AGENT_RESPONSE"},
	task.GroupNotSupported:        {codes.MethodNotFound, "Method not found", "GROUP_NOT_SUPPORTED"},
	task.AuthenticationRequired:   {codes.AuthFailed, "Authentication failed", ""},
	task.AuthorizationFailed:      {codes.PermissionDenied, "Permission denied", ""},
	task.AccessTokenInvalid:       {codes.TokenExpired, "Token expired", ""},
	task.LimitExceeded:            {codes.LimitExceeded, "Limit exceeded", ""},
	task.AgentUnavailable:         {codes.AgentOffline, "Agent offline", ""},
	task.AgentTimeout:             {codes.AgentTimeout, "Agent timeout", ""},
	task.StoreUnavailable:         {codes.Internal, "Internal error", ""},
	task.InvitationRejected:       {codes.PermissionDenied, "Permission denied", "INVITATION_REJECTED"},
	task.ConnectionFailed:         {codes.Internal, "Internal error", "CONNECTION_FAILED"},
}

// ended are the errors of commands for ended tasks.
var ended = map[task.State]fault{
	task.Completed: {codes.TaskStateInvalid, "Task state invalid", ""},
	task.Canceled:  {codes.TaskCanceled, "Task canceled", ""},
	task.Rejected:  {codes.TaskRejected, "Task rejected", ""},
	task.Failed:    {codes.TaskFailed, "Task failure recorded", ""},
}

// refusal is the cause of an error with a code in AUN only.
type refusal struct{ fault }

func (r *refusal) Error() string { return r.message }

func refuse(kind task.Kind, code int, message, format string, args ...any) *task.Error {
	return task.Errorf(kind, format, args...).WithCause(&refusal{fault{code, message, ""}})
}

// AccessDenied returns the error of a method that only another role may call.
func AccessDenied(format string, args ...any) *task.Error {
	return refuse(task.AuthorizationFailed, codes.TaskAccessDenied, "Task access denied", format, args...)
}

// DelegationDenied returns the error of a task.delegate by a caller without the right to delegate the task.
func DelegationDenied(format string, args ...any) *task.Error {
	return refuse(task.AuthorizationFailed, codes.DelegationDenied, "Task delegation denied", format, args...)
}

// ChildLimitExceeded returns the error of a task.delegate beyond the limit of a name.
func ChildLimitExceeded(limit string, max int) *task.Error {
	return refuse(task.LimitExceeded, codes.ChildLimitExceeded, "Task child limit exceeded",
		"the task has reached its limit of delegation").WithData("limit", limit).WithData("max", max)
}

// CompletionBlocked returns the error of a task.complete of a task with open children.
func CompletionBlocked(children []string) *task.Error {
	return refuse(task.UnsupportedOperation, codes.CompletionBlocked, "Task completion blocked",
		"the task has children that have not ended").WithData("children", children)
}

// AlreadyAccepted returns the error of a second task.accept of a task.
func AlreadyAccepted() *task.Error {
	return refuse(task.UnsupportedOperation, codes.TaskAlreadyAccepted, "Task already accepted",
		"the task was accepted before")
}

// faultOf returns the form of an error. A command that comes too late for its task is answered by the task's end.
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

// AppendError appends the whole response with an error.
func AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	f, e := faultOf(err)
	return jsonrpc.AppendError(dst, id, f.code, f.message, wire.ErrorData(e, f.errorType))
}

// Fault returns an error in the form for callers, to hand it on: a code, a message, and data in JSON, nil for none.
func Fault(err error) (code int64, message string, data []byte) {
	v := gjson.GetBytes(AppendError(nil, jsonrpc.ID("0"), err), "error")
	if d := v.Get("data"); d.Exists() {
		data = []byte(d.Raw)
	}
	return v.Get("code").Int(), v.Get("message").String(), data
}
