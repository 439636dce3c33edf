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
	p := wire.NewPiece(data)
	ok := event != "close" && p.Response(updateNames, func(name string) bool {
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
	product, ok := s.artifacts.again(&p)
	if ok {
		pieces.AddText(product, s.artifacts.last.name, p.Text, p.Append, p.Last)
	}
	return ok
}

// lastPiece is the piece that was read last, and the id of its product.
type lastPiece struct {
	name    string
	index   int64
	append  bool
	product string
}

// again records a piece of an artifact that was seen before, and returns the id of its product. ok is false where the
// artifact was not seen.
func (a *artifacts) again(p *wire.Piece) (product string, ok bool) {
	last, n := &a.last, len(a.seen)
	if n > 0 && a.seen[n-1] == last.product &&
		p.Index == last.index && p.Append == last.append && string(p.Name) == last.name {
		return last.product, true // which id would find again
	}
	one := lastPiece{name: string(p.Name), index: p.Index, append: p.Append}
	one.product = a.id(one.index, one.name, one.append)
	i := slices.Index(a.seen, one.product)
	if i < 0 {
		return "", false
	}
	a.seen = append(append(a.seen[:i], a.seen[i+1:]...), one.product)
	*last = one
	return one.product, true
}
