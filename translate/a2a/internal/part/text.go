// SPDX-License-Identifier: Apache-2.0

package part

import "github.com/aip-gateway/aip-gateway/translate/internal/wire"

var textPart = wire.NewForm(wire.Constant("type", "text"), wire.Constant("kind", "text"), wire.PieceText("text"),
	wire.Null("metadata"), wire.Null("file"), wire.Null("data"))

// Text is a list of parts with one plain text only. Read reads the same of it.
func Text(name string) wire.FormMember { return wire.Single(name, textPart) }
