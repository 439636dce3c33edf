// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The form of a StreamResponse with a ProductChunkEvent with a piece of text.
var (
	textResponse = wire.InResponse(wire.NewForm(
		wire.Scalar("eventSeq"), wire.Inner("eventData", textChunk), wire.Scalar("type"), wire.Scalar("id"),
	))
	textChunk = wire.NewForm(
		wire.Scalar("type"), wire.Scalar("taskId"), wire.Inner("product", textProduct),
		wire.PieceAppend("append"), wire.PieceLast("lastChunk"), wire.Scalar("groupId"),
		wire.Scalar("sessionId"), wire.Scalar("id"), wire.Scalar("sentAt"), wire.Scalar("senderRole"),
		wire.Scalar("senderId"), wire.Null("metadata"),
	)
	textProduct = wire.NewForm(
		wire.PieceProduct("id"), wire.PieceName("name"), wire.Null("description"),
		wire.Single("dataItems", textItem), wire.Null("metadata"),
	)
	textItem = wire.NewForm(
		wire.Required("type", string(task.TextItem)), wire.PieceText("text"), wire.Null("metadata"),
	)
)

// Text implements translate.TextStream: it reads a piece of an existing product.
func (s *clientStream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	if s.query.ID != "" {
		return false // whether it belongs to the stream is for Event to find out
	}
	if s.last.Read(data, pieces) {
		return true
	}
	p, ok := wire.ReadPiece(data, textResponse)
	if !ok || len(p.Product) == 0 || len(p.Product) > wire.MaxID || !s.begun.Has(p.Product) {
		return false
	}
	s.last.Add(pieces, data, &p, p.Product)
	return true
}
