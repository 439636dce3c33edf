// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/aip-gateway/aip-gateway/task"
)

// appendLegacyParts appends the parts of v0.1 that data items make.
func appendLegacyParts(dst []byte, items []task.DataItem) []byte {
	return appendParts(dst, "type", items)
}
