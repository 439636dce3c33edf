// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"errors"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/reply"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// answer returns the result in an agent's answer to a query: a Task, an event, a Message or less. Agents written by
// hand know little of JSON-RPC, so an answer other than a response to the letter is looked at again.
func answer(body []byte, q *translate.Query) (gjson.Result, error) {
	res, err := wire.ResponseInExchange(body, q)
	if errors.Is(err, translate.ErrOtherAnswer) {
		return gjson.Result{}, err
	}
	if err == nil {
		if res.Failure != nil {
			return gjson.Result{}, wire.Failed(reply.Failures, res.Failure)
		}
		return res.Result, nil
	}
	v, bad := wire.Value(body, "answer")
	if bad != nil || !v.IsObject() {
		return gjson.Result{}, err
	}
	return loose(v, q, err)
}

// loose is answer for an object other than a response of JSON-RPC; err has the reason.
func loose(v gjson.Result, q *translate.Query, err error) (gjson.Result, error) {
	var version, id, result, failure, params gjson.Result
	jsonrpc.Members(v, jsonrpc.Named{Name: "jsonrpc", To: &version}, jsonrpc.Named{Name: "id", To: &id},
		jsonrpc.Named{Name: "result", To: &result}, jsonrpc.Named{Name: "error", To: &failure},
		jsonrpc.Named{Name: "params", To: &params})
	m := resultOf(v)
	switch {
	case result.Exists() && saysNothing(failure):
		return result, wire.InExchange(jsonrpc.ID(id.Raw), q)
	case !saysNothing(failure) && !jsonrpc.Member(v, "status").IsObject():
		return result, failed(failure)
	case m.status.IsObject(), m.artifact.Exists(), m.artifacts.Exists(), m.said().Exists(): // the envelope is missing
		return v, nil
	case params.IsObject(): // a notification
		return params, nil
	case q.Turn && !version.Exists() && id.Type == gjson.String && id.Str != q.ID: // the name of a task
		return v, nil
	}
	if reason := wire.Reason(v); reason != "" {
		return result, failed(v)
	}
	return result, err
}

// saysNothing reports whether an error is none: some agents always have this member.
func saysNothing(failure gjson.Result) bool {
	return jsonrpc.IsEmpty(failure) || failure.Type == gjson.False || failure.Type == gjson.String && failure.Str == ""
}

// failed returns an agent's error in a form of its own. Without a code of JSON-RPC, the status of HTTP gives its
// meaning.
func failed(v gjson.Result) error {
	reason := wire.Reason(v)
	code := jsonrpc.Member(v, "code")
	if n, ok := intOf(code); ok && n < 0 {
		return wire.Failed(reply.Failures, &jsonrpc.Failure{Code: n, Message: reason, Data: jsonrpc.Member(v, "data")})
	}
	if code.Type == gjson.String {
		reason = strings.TrimSuffix(code.Str+": "+reason, ": ")
	}
	return wire.Uncoded(reason)
}

// acknowledged returns the meaning of an answer to a cancel other than a Task: mostly the agent has only received it.
// Then the gateway asks for the task.
func acknowledged(v gjson.Result) error {
	refused := v.Type == gjson.False
	for _, name := range [...]string{"success", "ok", "canceled", "cancelled"} {
		refused = refused || jsonrpc.Member(v, name).Type == gjson.False
	}
	if !refused {
		return nil
	}
	return wire.Failed(reply.Failures, &jsonrpc.Failure{Code: notCancelable, Message: wire.Reason(v)})
}

// notCancelable is the code of agents for refusing a cancel.
const notCancelable = -32002

// signs are agents' signs of life in a stream.
var signs = map[string]bool{
	"": true, "ping": true, "pong": true, "keepalive": true, "keep-alive": true, "heartbeat": true,
}

// isSign reports whether the data of an event is no more than a sign of life.
func isSign(data []byte) bool {
	v, err := wire.Value(data, "answer")
	switch {
	case err != nil:
		return len(data) < wire.MaxWord && signs[strings.ToLower(strings.TrimSpace(string(data)))]
	case v.IsObject():
		word := jsonrpc.Member(v, "type")
		if !word.Exists() {
			word = jsonrpc.Member(v, "event")
		}
		return jsonrpc.IsEmpty(v) || word.Exists() && signs[strings.ToLower(word.Str)]
	}
	return signs[strings.ToLower(v.Str)]
}
