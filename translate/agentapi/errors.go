// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/dialect"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// publicError is the form of a kind of error for callers.
type publicError struct {
	status int    // of HTTP
	text   string // if the error has no detail
}

// publicErrors has every kind. The server of the Agent API answers its own errors with status 200, and those of its
// framework with 422. The other statuses are those of any server of HTTP.
var publicErrors = [...]publicError{
	task.Internal:                 {200, "Internal server error"},
	task.ParseError:               {422, "JSON decode error"},
	task.InvalidRequest:           {422, "Input should be a valid dictionary"},
	task.MethodNotFound:           {200, "Not found"},
	task.InvalidParams:            {200, "Input is not valid"},
	task.TaskNotFound:             {200, "Not found"},
	task.TaskNotCancelable:        {200, "The task cannot be canceled"},
	task.NotificationNotSupported: {200, "There are no notifications"},
	task.UnsupportedOperation:     {200, "The operation is not supported"},
	task.ContentTypeNotSupported:  {200, "The type of a content is not supported"},
	task.InvalidAgentResponse:     {200, "The agent's answer is not valid"},
	task.GroupNotSupported:        {200, "There are no groups"},
	task.AuthenticationRequired:   {401, "Not authenticated"},
	task.AuthorizationFailed:      {403, "Forbidden"},
	task.AccessTokenInvalid:       {401, "Not authenticated"},
	task.LimitExceeded:            {429, "Too many requests"},
	task.AgentUnavailable:         {503, "The agent cannot be reached"},
	task.AgentTimeout:             {504, "The agent has not answered in time"},
	task.StoreUnavailable:         {503, "Service unavailable"},
	task.InvitationRejected:       {403, "Forbidden"},
	task.ConnectionFailed:         {502, "The message broker cannot be used"},
}

// Status implements translate.Statuser.
func (server) Status(err error) int { return publicErrors[wire.ErrorOf(err).Kind].status }

// AppendError implements translate.Server: {"error":"Task u:s is already in RUNNING state."}, or, for a body other than
// a JSON object, or with members of other types, the form of the framework, {"detail":[…]}.
func (server) AppendError(dst []byte, _ jsonrpc.ID, err error) []byte {
	e := wire.ErrorOf(err)
	public := publicErrors[e.Kind]
	text := e.Detail
	if text == "" {
		text = public.text
	}
	if public.status != 422 {
		dst = append(dst, `{"error":`...)
		return append(task.AppendString(dst, sentence(e, text)), '}')
	}
	kind := "json_invalid"
	if e.Kind == task.InvalidRequest {
		kind = string(noObject)
	}
	if is, ok := e.Data[typeKey].(mismatch); ok {
		kind, public.text = string(is), typeSentences[is]
	}
	dst = append(append(append(dst, `{"detail":[{"type":"`...), kind...), `","loc":["body"`...)
	for part := range strings.FieldsFuncSeq(e.Field, func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
		dst = append(dst, ',')
		if _, err := strconv.ParseUint(part, 10, 32); err == nil {
			dst = append(dst, part...)
		} else {
			dst = task.AppendString(dst, part)
		}
	}
	dst = task.AppendString(append(dst, `],"msg":`...), public.text)
	dst = task.AppendString(append(dst, `,"ctx":{"error":`...), text)
	return append(dst, `}}]}`...)
}

// sentence returns the sentence of the Agent API's server for an error: of a session with a working agent, and of an
// invalid request.
func sentence(e *task.Error, text string) string {
	switch {
	case e.Data["reason"] == dialect.SessionBusy:
		name, _ := e.Data["sessionId"].(string)
		user, session := userAndSession(name)
		return "Task " + user + ":" + session + " is already in RUNNING state."
	case e.Kind == task.InvalidParams && e.Field != "":
		field := strings.NewReplacer("[", ".", "]", "").Replace(e.Field)
		return "1 validation error for AgentRequest\n" + field + "\n  " + text
	}
	return text
}
