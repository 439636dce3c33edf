// SPDX-License-Identifier: Apache-2.0

package part

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

var textNames = jsonrpc.Names{"type", "kind", "text", "metadata", "file", "data"}

// ReadText reads a list of parts that is one plain text, as Read does.
func ReadText(p *wire.Piece) bool {
	return p.Only(func() bool {
		return p.Object(textNames, func(name string) bool {
			switch name {
			case "type", "kind":
				return p.Is("text")
			case "text":
				return p.ReadText()
			}
			return false
		})
	})
}
