// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// contentNames are the members of a content that is a piece of text, as AgentScope Runtime sends it. It has a null for
// each that it does not set.
var contentNames = jsonrpc.Names{"sequence_number", "object", "status", "error", "type", "index", "delta", "msg_id",
	"text"}

// Text implements translate.TextStream: it reads one more piece of the text that grows.
func (s *stream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	msg := s.growing
	if msg == nil || msg != s.last {
		return false
	}
	p := wire.NewPiece(data)
	var object, kind, adds bool
	p.Index = -1
	ok := p.Object(contentNames, func(name string) bool {
		switch name {
		case "sequence_number":
			return p.Scalar()
		case "object":
			object = p.Is(objectContent)
			return object
		case "status":
			return p.Is(statusInProgress)
		case "type":
			kind = p.Is(typeText)
			return kind
		case "index":
			return p.Number(&p.Index)
		case "delta":
			return p.Flag(&adds)
		case "msg_id":
			return p.Word(&p.Product)
		case "text":
			return p.ReadText()
		}
		return false // error
	}) && p.End()
	last := len(msg.contents) - 1
	if !ok || !object || !kind || !adds || p.Index != int64(last) || len(p.Text) == 0 || string(p.Product) != msg.id {
		return false
	}
	grown := &msg.contents[last]
	grown.raw = append(grown.raw, p.Text...)
	pieces.AddText(msg.id, msg.name(), p.Text, true, false)
	return true
}
