// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// ending is how a response ends. It has no code where there is no error.
type ending struct{ status, code, message string }

// isFailure reports whether a response that ends in a state has not been completed.
func isFailure(s task.State) bool {
	return s == task.Failed || s == task.Rejected || s == task.Canceled
}

// endOf returns how the response ends of a turn that has ended with a status: as the agent has said it, if it speaks
// the Agent API. So a response that the agent rejects while it works is rejected, though its task has failed.
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

// statusOf returns the status of a response whose task has ended in a state that is a failure.
func statusOf(s task.State) string {
	switch s {
	case task.Rejected:
		return statusRejected
	case task.Canceled:
		return statusCanceled
	}
	return statusFailed
}

// codeOf returns the code of an error where the agent has said none. What is incomplete need be no error.
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

// reasonOf returns what the agent, or the gateway, says about the end of a task.
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

// usageOf returns what extensions say about the tokens that the agent has used.
func usageOf(extensions json.RawMessage) json.RawMessage {
	if v := wire.MemberOf(family.Of(extensions), "usage"); len(v) > 0 && v[0] == '{' {
		return v
	}
	return nil
}
