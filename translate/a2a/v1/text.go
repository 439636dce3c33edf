// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The members of a StreamResponse that is a piece of text, as agents send it.
var (
	responseNames = jsonrpc.Names{"artifactUpdate"}
	updateNames   = jsonrpc.Names{"taskId", "contextId", "artifact", "append", "lastChunk", "metadata", "id", "kind",
		"type", "final"}
	artifactNames = jsonrpc.Names{"artifactId", "name", "description", "parts", "metadata", "extensions", "kind", "type",
		"index", "append", "lastChunk"}
	partNames = jsonrpc.Names{"text", "metadata", "filename", "mediaType", "kind", "type"}
)

// Text implements translate.TextStream: it reads a piece of an artifact that was seen before, after the agent's ids
// were reported.
func (s *stream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	if !s.reader.named {
		return false
	}
	if s.last.Read(data, pieces) { // and so of the same artifact
		return true
	}
	p := wire.NewPiece(data)
	update := func(string) bool { return readUpdate(&p) }
	var ok bool
	if s.client.rest {
		ok = p.Object(responseNames, update) && p.End()
	} else {
		ok = p.Response(responseNames, update)
	}
	if !ok || !p.HasText || len(p.Product) == 0 {
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

func readUpdate(p *wire.Piece) bool {
	return p.Object(updateNames, func(name string) bool {
		switch name {
		case "artifact":
			return readText(p)
		case "append":
			return p.Flag(&p.Append)
		case "lastChunk":
			return p.Flag(&p.Last)
		case "metadata":
			return false
		}
		return p.Scalar()
	})
}

// readText reads an artifact that is one plain text.
func readText(p *wire.Piece) bool {
	return p.Object(artifactNames, func(name string) bool {
		switch name {
		case "artifactId":
			return p.Word(&p.Product)
		case "name":
			return p.Word(&p.Name)
		case "parts":
			return p.Only(func() bool { return readTextPart(p) })
		case "description", "metadata", "extensions":
			return false
		}
		return p.Scalar()
	})
}

func readTextPart(p *wire.Piece) bool {
	return p.Object(partNames, func(name string) bool {
		switch name {
		case "text":
			return p.ReadText()
		case "mediaType":
			return p.Is("text/plain")
		case "kind", "type":
			return p.Scalar()
		}
		return false
	})
}
