// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// An agent may have a second card, which only those see whom it knows: the extended one. The gateway, which the agent
// knows, asks for it, and tells it to its own callers as it does with the first.

// describeID is the id of the request for a card, which is about no task.
const describeID = "card"

// AppendDescribe implements translate.Describer.
func (v03) AppendDescribe(dst []byte) []byte {
	// The params are an object though there are none: some agents refuse a request without.
	return append(jsonrpc.BeginRequest(dst, task.AppendString(nil, describeID), v03ExtendedCard), '{', '}', '}')
}

// Description implements translate.Describer.
func (v03) Description(body []byte) ([]byte, error) {
	return description(body, func(f *jsonrpc.Failure) error { return failed(v03Failures, f) })
}

// AppendDescribe implements translate.Describer.
func (c v1Client) AppendDescribe(dst []byte) []byte {
	if c.rest {
		return dst
	}
	return c.end(append(c.begin(dst, describeID, v1ExtendedCard), '{', '}'))
}

// Description implements translate.Describer.
func (c v1Client) Description(body []byte) ([]byte, error) {
	if !c.rest {
		return description(body, func(f *jsonrpc.Failure) error { return v1Failed(f) })
	}
	if !gjson.ValidBytes(body) {
		return nil, refuse("the agent's answer is no card")
	}
	if f := v1Failure(gjson.ParseBytes(body)); f != nil {
		return nil, v1Failed(f)
	}
	return body, nil
}

// description returns the card in an answer. failed gives the agent's errors a kind.
func description(body []byte, failed func(*jsonrpc.Failure) error) ([]byte, error) {
	res, err := response(body)
	switch {
	case err != nil:
		return nil, err
	case res.Failure != nil:
		return nil, failed(res.Failure)
	case !res.Result.IsObject():
		return nil, refuse("the agent's answer has a result that is no card")
	}
	return []byte(res.Result.Raw), nil
}

// AppendCard implements translate.Describing.
func (v03Server) AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte {
	return jsonrpc.End(append(jsonrpc.BeginResult(dst, id), card...))
}

// AppendCard implements translate.Describing.
func (s v1Server) AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte {
	return s.end(append(s.begin(dst, id), card...))
}

// Interface guards.
var (
	_ translate.Describer  = v03{}
	_ translate.Describer  = v1Client{}
	_ translate.Describer  = v1RESTClient{}
	_ translate.Describing = v03Server{}
	_ translate.Describing = v1Server{}
	_ translate.Describing = v1RESTServer{}
)
