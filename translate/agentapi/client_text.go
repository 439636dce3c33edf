// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// textContent is the form of a content with a piece of text.
var textContent = wire.NewForm(
	wire.Scalar("sequence_number"), wire.Required("object", objectContent), wire.Constant("status", statusInProgress),
	wire.Null("error"), wire.Required("type", typeText), wire.PieceIndex("index"), wire.PieceAppend("delta"),
	wire.PieceProduct("msg_id"), wire.PieceText("text"),
)

// Text implements translate.TextStream: it reads one more piece of a growing text.
func (s *stream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	p, ok := wire.ReadPiece(data, textContent)
	if !ok || !p.Append || len(p.Text) == 0 {
		return false
	}
	msg := s.messages[string(p.Product)]
	if msg == nil || !msg.grows || p.Index != int64(len(msg.contents)-1) {
		return false
	}
	s.last = msg
	last := len(msg.contents) - 1
	grown := &msg.contents[last]
	grown.raw = append(grown.raw, p.Text...)
	pieces.AddText(msg.id, msg.name(), p.Text, true, false)
	return true
}
