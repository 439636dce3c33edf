// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The forms of a TaskArtifactUpdateEvent with a piece of text.
var (
	textResponse = wire.InResponse(wire.NewForm(
		wire.PieceTask("id"), wire.Scalar("sessionId"), wire.Inner("artifact", textArtifact),
		wire.Scalar("final"), wire.Null("metadata"), wire.Scalar("append"), wire.Scalar("lastChunk"),
		wire.Scalar("taskId"), wire.Scalar("contextId"), wire.Scalar("kind"), wire.Scalar("type"),
		wire.Scalar("eventType"), wire.Null("status"), wire.Null("artifacts"),
	))
	textArtifact = wire.NewForm(
		wire.PieceName("name"), wire.Null("description"), part.Text("parts"), wire.Null("metadata"),
		wire.PieceIndex("index"), wire.PieceAppend("append"), wire.PieceLast("lastChunk"),
		wire.Scalar("artifactId"), wire.Scalar("kind"), wire.Scalar("type"),
	)
)

// Text implements translate.TextStream: it reads a piece of an artifact seen before.
func (s *stream) Text(event string, data []byte, pieces *task.Pieces) bool {
	if event == "close" {
		return false
	}
	if n := len(s.artifacts.seen); n > 0 && s.artifacts.seen[n-1] == s.last.Product() && s.last.Read(data, pieces) {
		return true // and so of the same artifact, the last changed one
	}
	p, ok := wire.ReadPiece(data, textResponse)
	if !ok || len(p.Task) > 0 && string(p.Task) != s.naming.name {
		return false
	}
	if !p.Append && !p.Indexed && len(p.Name) == 0 { // it is a new artifact
		return false
	}
	name := string(p.Name)
	id := s.artifacts.id(idOf(p.Index, name), name, p.Append)
	if !s.artifacts.again(id) {
		return false
	}
	s.last.Add(pieces, data, &p, []byte(id))
	return true
}

// again makes an artifact the last changed one, if it was seen before.
func (a *artifacts) again(id string) bool {
	i := slices.Index(a.seen, id)
	if i >= 0 {
		a.seen = append(append(a.seen[:i], a.seen[i+1:]...), id)
	}
	return i >= 0
}
