// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
)

// appendParts appends data items as parts of v0.1.
func appendParts(dst []byte, items []task.DataItem) []byte {
	return part.Append(dst, "type", items)
}
