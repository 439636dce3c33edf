// SPDX-License-Identifier: Apache-2.0

package v03

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The members of a TaskArtifactUpdateEvent that is a piece of text, as agents send it.
var (
	updateNames = jsonrpc.Names{"append", "artifact", "contextId", "kind", "lastChunk", "taskId", "metadata", "id",
		"final", "type", "status", "artifacts"}
	artifactNames = jsonrpc.Names{"artifactId", "description", "extensions", "metadata", "name", "parts", "append",
		"kind", "type", "index", "lastChunk"}
)

// Text implements translate.TextStream: it reads a piece of an artifact that was seen before, after the agent's ids
// were reported.
func (s *stream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	if !s.named {
		return false
	}
	if s.last.Read(data, pieces) { // and so of the same artifact
		return true
	}
	p := wire.NewPiece(data)
	ok := p.Response(updateNames, func(name string) bool {
		switch name {
		case "artifact":
			return readText(&p)
		case "append":
			return p.Flag(&p.Append)
		case "lastChunk":
			return p.Flag(&p.Last)
		case "id", "taskId", "contextId":
			return p.Short(maxID)
		case "kind", "type", "final":
			return p.Scalar()
		}
		return false
	})
	if !ok || !p.HasText || !s.artifacts.seen[string(p.Product)] {
		return false
	}
	s.last.Add(pieces, data, &p, p.Product)
	return true
}

// readText reads an artifact that is one plain text.
func readText(p *wire.Piece) bool {
	return p.Object(artifactNames, func(name string) bool {
		switch name {
		case "artifactId":
			return p.Word(&p.Product) && len(p.Product) > 0
		case "name":
			return p.Word(&p.Name)
		case "parts":
			return part.ReadText(p)
		case "kind", "type", "index", "lastChunk":
			return p.Scalar()
		}
		return false
	})
}
