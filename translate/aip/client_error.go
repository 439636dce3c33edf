// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"errors"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// answer reads the envelope of an agent's answer to a query and returns a copy of its result.
func answer(body []byte, q *translate.Query) (gjson.Result, error) {
	res, err := wire.Response(body, q)
	switch {
	case err == nil && res.Failure == nil:
		return res.Result, nil
	case err == nil:
		return res.Result, wire.Failed(failures, res.Failure)
	case errors.Is(err, translate.ErrOtherAnswer):
		return res.Result, err
	}
	if v, invalid := wire.Value(body, "answer"); invalid == nil { // it is JSON, but no response
		if failure := unenvelopedError(v); failure != nil {
			return v, failure
		}
	}
	return res.Result, err
}

// unenvelopedError reads an error without an envelope. Partners on the reference SDK answer so, with an HTTP status of
// an error: {"detail":{"code":…,"message":…}}, or a list of the mistakes in the form of a request. It returns nil
// if v is neither.
func unenvelopedError(v gjson.Result) error {
	detail := jsonrpc.Member(v, "detail")
	switch {
	case detail.IsObject():
		if code, ok := jsonrpc.Int(jsonrpc.Member(detail, "code")); ok {
			return wire.Failed(failures, &jsonrpc.Failure{Code: code, Message: jsonrpc.Member(detail, "message").Str})
		}
	case detail.IsArray():
		return wire.Failed(failures, &jsonrpc.Failure{Code: -32700})
	}
	return nil
}

// failures are the errors of a Partner by their code (§5.2).
//
// Errors in the gateway's own request are not passed on as errors of the Leader, since it did not write the request.
// The reference SDK answers −32700 to an unknown method, and to commands of another version. So −32700 has this
// meaning here. Errors of identity are about the gateway's identity, not the Leader's: their kinds are not passed on.
var failures = []wire.Failure{
	{Code: -32700, Kind: task.MethodNotFound, Detail: "the agent does not take this method in this form"},
	{Code: -32600, Kind: task.Internal, Detail: "the agent does not accept the gateway's request"},
	{Code: -32601, Kind: task.MethodNotFound, Detail: "the agent does not have this method"},
	{Code: -32602, Kind: task.InvalidParams, Detail: "the agent does not accept the parameters"},
	{Code: -32603, Kind: task.Internal, Detail: "the agent failed"},
	{Code: -32001, Kind: task.TaskNotFound, Detail: "the agent does not know this task"},
	{Code: -32002, Kind: task.TaskNotCancelable, Detail: "the agent refuses to cancel this task"},
	{Code: -32003, Kind: task.NotificationNotSupported, Detail: "the agent sends no notifications"},
	{Code: -32004, Kind: task.UnsupportedOperation, Detail: "the agent does not support this"},
	{Code: -32005, Kind: task.ContentTypeNotSupported, Detail: "the agent does not take this kind of content"},
	{Code: -32006, Kind: task.InvalidAgentResponse, Detail: "the agent could not make an answer"},
	{Code: -32007, Kind: task.GroupNotSupported, Detail: "the agent does not join groups"},
	{Code: -32008, Kind: task.InvalidAgentResponse,
		Detail: "the agent asks who the gateway is; the operator must check its certificate and its AIC"},
	{Code: -32009, Kind: task.InvalidAgentResponse,
		Detail: "the agent does not let the gateway do this; the operator must check its certificate and its AIC"},
	{Code: -32010, Kind: task.InvalidAgentResponse,
		Detail: "the agent does not accept the gateway's access token; the operator must check it"},
	{Code: -32050, Kind: task.LimitExceeded, Detail: "a limit of the agent is reached"},
}
