// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// ending is the end of a response. Without an error it has no code.
type ending struct{ status, code, message string }

// isFailure reports whether a state ends a response without completing it.
func isFailure(s task.State) bool {
	return s == task.Failed || s == task.Rejected || s == task.Canceled
}

// endOf returns the end of the response of a turn ended with a status: in the agent's words, if it speaks the Agent
// API. So a response rejected by a working agent is rejected, though its task has failed.
func endOf(st *task.Status) (e ending) {
	if !isFailure(st.State) {
		return ending{status: statusCompleted}
	}
	own := gjson.ParseBytes(family.Of(st.Extensions))
	switch e.status = jsonrpc.Member(own, "status").Str; e.status {
	case statusFailed, statusIncomplete, statusRejected, statusCanceled:
	default:
		e.status = statusOf(st.State)
	}
	failure := jsonrpc.Member(own, "error")
	e.code, e.message = jsonrpc.Member(failure, "code").Str, jsonrpc.Member(failure, "message").Str
	if e.code == "" {
		e.code = codeOf(e.status)
	}
	if e.message == "" {
		e.message = reasonOf(st)
	}
	return e
}

// statusOf returns the status of a response for a task ended by a failure.
func statusOf(s task.State) string {
	switch s {
	case task.Rejected:
		return statusRejected
	case task.Canceled:
		return statusCanceled
	}
	return statusFailed
}

// codeOf returns the code of an error without one from the agent. An incomplete response need be no error.
func codeOf(status string) string {
	switch status {
	case statusIncomplete:
		return ""
	case statusRejected:
		return "REQUEST_REJECTED"
	case statusCanceled:
		return "TASK_CANCELED"
	}
	return "AGENT_UNKNOWN_ERROR"
}

// reasonOf returns the words of the agent, or the gateway, about the end of a task.
func reasonOf(st *task.Status) (text string) {
	for i := range st.DataItems {
		if it := &st.DataItems[i]; it.Kind == task.TextItem && it.Text != "" {
			if text != "" {
				text += "\n"
			}
			text += it.Text
		}
	}
	if text == "" {
		text = "The task is " + string(st.State) + "."
	}
	return text
}

// usageOf returns the agent's use of tokens in extensions.
func usageOf(extensions json.RawMessage) json.RawMessage {
	if v := wire.MemberOf(family.Of(extensions), "usage"); len(v) > 0 && v[0] == '{' {
		return v
	}
	return nil
}
