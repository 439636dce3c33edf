// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The members of a StreamResponse with a ProductChunkEvent that is a piece of text, as Partners send it.
var (
	streamMembers = jsonrpc.Names{"eventSeq", "eventData", "type", "id"}
	chunkMembers  = jsonrpc.Names{"type", "taskId", "product", "append", "lastChunk", "groupId", "sessionId", "id",
		"sentAt", "senderRole", "senderId", "metadata"}
	productMembers = jsonrpc.Names{"id", "name", "description", "dataItems", "metadata"}
	textMembers    = jsonrpc.Names{"type", "text", "metadata"}
)

// Text implements translate.TextStream.
func (s *clientStream) Text(_ string, data []byte, pieces *task.Pieces) bool {
	if s.last.Read(data, pieces) {
		return true
	}
	p := wire.NewPiece(data)
	ok := p.Response(streamMembers, func(name string) bool {
		if name == "eventData" {
			return readChunk(&p)
		}
		return p.Scalar()
	})
	if !ok || !p.HasText || len(p.Product) == 0 || len(p.Product) > wire.MaxID {
		return false
	}
	s.last.Add(pieces, data, &p, p.Product)
	return true
}

func readChunk(p *wire.Piece) bool {
	return p.Object(chunkMembers, func(name string) bool {
		switch name {
		case "product":
			return readTextProduct(p)
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

// readTextProduct reads a product that is one plain text.
func readTextProduct(p *wire.Piece) bool {
	return p.Object(productMembers, func(name string) bool {
		switch name {
		case "id":
			return p.Word(&p.Product)
		case "name":
			return p.Word(&p.Name)
		case "dataItems":
			return p.Only(func() bool { return readTextItem(p) })
		}
		return false
	})
}

func readTextItem(p *wire.Piece) bool {
	typed := false
	ok := p.Object(textMembers, func(name string) bool {
		switch name {
		case "type":
			typed = p.Is(string(task.TextItem))
			return typed
		case "text":
			return p.ReadText()
		}
		return false
	})
	return ok && typed
}
