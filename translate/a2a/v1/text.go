// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The forms of a StreamResponse with a piece of text.
var (
	textResponse = wire.InResponse(textEvent)
	textEvent    = wire.NewForm(wire.Inner("artifactUpdate", textUpdate))
	textUpdate   = wire.NewForm(
		wire.Scalar("taskId"), wire.Scalar("contextId"), wire.Inner("artifact", textArtifact),
		wire.PieceAppend("append"), wire.PieceLast("lastChunk"), wire.Null("metadata"),
		wire.Scalar("id"), wire.Scalar("kind"), wire.Scalar("type"), wire.Scalar("final"),
	)
	textArtifact = wire.NewForm(
		wire.PieceProduct("artifactId"), wire.PieceName("name"), wire.Null("description"),
		wire.Single("parts", textPart), wire.Null("metadata"), wire.Null("extensions"),
		wire.Scalar("kind"), wire.Scalar("type"), wire.Scalar("index"), wire.Scalar("append"),
		wire.Scalar("lastChunk"),
	)
	textPart = wire.NewForm(
		wire.PieceText("text"), wire.Null("metadata"), wire.Null("filename"),
		wire.Constant("mediaType", "text/plain"), wire.Scalar("kind"), wire.Scalar("type"),
	)
)

// Text implements translate.TextStream: it reads a piece of an artifact seen before, after the agent's ids were
// reported.
func (s *stream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	if !s.reader.named {
		return false
	}
	if s.last.Read(data, pieces) { // and so of the same artifact
		return true
	}
	form := textResponse
	if s.client.rest {
		form = textEvent
	}
	p, ok := wire.ReadPiece(data, form)
	if !ok || len(p.Product) == 0 {
		return false
	}
	appended, seen := s.reader.seen[string(p.Product)]
	if !seen {
		return false
	}
	s.last.Add(pieces, data, &p, p.Product)
	if p.Append && !appended {
		s.reader.seen[string(p.Product)] = true
	}
	return true
}
