// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"math"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// ReadTask reads the params of a method about one existing task: {id, historyLength}.
func ReadTask(r *wire.Reader, params gjson.Result, command task.Command, call *translate.Call) {
	m := &call.Message
	m.Command = command
	m.TaskID = r.RequiredID(jsonrpc.Member(params, "id"), "id")
	wire.Own(&m.TaskID)
	if history := jsonrpc.Member(params, "historyLength"); !wire.Absent(history) {
		call.History = ReadHistory(r, history, "historyLength")
	}
	switch command {
	case task.Cancel:
		call.Strict = true
	case task.ReStream:
		call.Stream, call.Snapshot = true, true
	}
}

// ReadHistory reads the number of messages of a task's history wanted by its caller.
func ReadHistory(r *wire.Reader, v gjson.Result, field string) int {
	return int(min(r.Count(v, field), math.MaxInt32))
}

// ReadParts reads the parts of a message. They are required. A caller's part, unlike an agent's, is refused unless it
// is a text, a file or data, and of the kind named in it.
func ReadParts(r *wire.Reader, v gjson.Result, field string) (items []task.DataItem) {
	r.Each(v, field, wire.MaxItems, func(v gjson.Result) {
		metadata := jsonrpc.Member(v, "metadata")
		it, ok := part.Content(v)
		switch {
		case !v.IsObject():
			r.Fail("", "a part must be an object")
		case !wire.Absent(metadata) && !metadata.IsObject():
			r.Fail(".metadata", "metadata must be an object")
		case !ok:
			r.Fail("", "a part must have a text, a file with either bytes or uri, or data, and say so")
		case !wire.IsBase64(it.Bytes):
			r.Fail(".file.bytes", "bytes must be standard base64 with padding")
		}
		part.Own(&it)
		items = append(items, it)
	})
	return items
}
