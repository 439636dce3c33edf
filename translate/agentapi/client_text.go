// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// textContent is how agents write a content that is a piece of text.
var textContent = wire.NewForm(
	wire.Scalar("sequence_number"), wire.Required("object", objectContent), wire.Constant("status", statusInProgress),
	wire.Null("error"), wire.Required("type", typeText), wire.PieceIndex("index"), wire.PieceAppend("delta"),
	wire.PieceProduct("msg_id"), wire.PieceText("text"),
)

// Text implements translate.TextStream: it reads one more piece of the text that grows.
func (s *stream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	msg := s.growing
	if msg == nil || msg != s.last {
		return false
	}
	p, ok := wire.ReadPiece(data, textContent)
	last := len(msg.contents) - 1
	if !ok || !p.Append || p.Index != int64(last) || len(p.Text) == 0 || string(p.Product) != msg.id {
		return false
	}
	grown := &msg.contents[last]
	grown.raw = append(grown.raw, p.Text...)
	pieces.AddText(msg.id, msg.name(), p.Text, true, false)
	return true
}
