// SPDX-License-Identifier: Apache-2.0

package v03

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The forms of a TaskArtifactUpdateEvent with a piece of text.
var (
	textResponse = wire.InResponse(wire.NewForm(
		wire.PieceAppend("append"), wire.Inner("artifact", textArtifact), wire.Short("contextId", maxID),
		wire.Scalar("kind"), wire.PieceLast("lastChunk"), wire.Short("taskId", maxID),
		wire.Null("metadata"), wire.Short("id", maxID), wire.Scalar("final"), wire.Scalar("type"),
		wire.Null("status"), wire.Null("artifacts"),
	))
	textArtifact = wire.NewForm(
		wire.PieceProduct("artifactId"), wire.Null("description"), wire.Null("extensions"),
		wire.Null("metadata"), wire.PieceName("name"), part.Text("parts"), wire.Null("append"),
		wire.Scalar("kind"), wire.Scalar("type"), wire.Scalar("index"), wire.Scalar("lastChunk"),
	)
)

// Text implements translate.TextStream: it reads a piece of an artifact seen before, after the agent's ids were
// reported.
func (s *stream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	if !s.named {
		return false
	}
	if s.last.Read(data, pieces) { // and so of the same artifact
		return true
	}
	p, ok := wire.ReadPiece(data, textResponse)
	if !ok || len(p.Product) == 0 || !s.artifacts.seen[string(p.Product)] {
		return false
	}
	s.last.Add(pieces, data, &p, p.Product)
	return true
}
