// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The members of a TaskArtifactUpdateEvent that is a piece of text, as agents send it.
var (
	updateNames = jsonrpc.Names{"id", "sessionId", "artifact", "final", "metadata", "append", "lastChunk", "taskId",
		"contextId", "kind", "type", "eventType", "status", "artifacts"}
	artifactNames = jsonrpc.Names{"name", "description", "parts", "metadata", "index", "append", "lastChunk",
		"artifactId", "kind", "type"}
)

// Text implements translate.TextStream: it reads a piece of an artifact that was seen before.
func (s *stream) Text(event string, data []byte, pieces *task.Pieces) bool {
	if event == "close" {
		return false
	}
	if n := len(s.artifacts.seen); n > 0 && s.artifacts.seen[n-1] == s.last.Product() && s.last.Read(data, pieces) {
		return true // and so of the same artifact, which has changed last
	}
	p := wire.NewPiece(data)
	ok := p.Response(updateNames, func(name string) bool {
		switch name {
		case "artifact":
			return p.Object(artifactNames, func(name string) bool {
				switch name {
				case "name":
					return p.Word(&p.Name)
				case "parts":
					return part.ReadText(&p)
				case "index":
					return p.Number(&p.Index)
				case "append":
					return p.Flag(&p.Append)
				case "lastChunk":
					return p.Flag(&p.Last)
				case "artifactId", "kind", "type":
					return p.Scalar()
				}
				return false
			})
		case "metadata", "status", "artifacts":
			return false
		}
		return p.Scalar()
	})
	if !ok || !p.HasText {
		return false
	}
	id := s.artifacts.id(p.Index, string(p.Name), p.Append)
	if !s.artifacts.again(id) {
		return false
	}
	s.last.Add(pieces, data, &p, []byte(id))
	return true
}

// again makes an artifact the one that has changed last, if it was seen before.
func (a *artifacts) again(id string) bool {
	i := slices.Index(a.seen, id)
	if i >= 0 {
		a.seen = append(append(a.seen[:i], a.seen[i+1:]...), id)
	}
	return i >= 0
}
