// SPDX-License-Identifier: Apache-2.0

package part

import (
	"github.com/aip-gateway/aip-gateway/task"
)

// maxArtifacts is how many artifacts one task may have. Chunks of one artifact count as one.
const MaxArtifacts = 1000

// plainText reports whether an item is text and nothing else, so that it can be joined with its neighbour.
func PlainText(it *task.DataItem) bool { return it.Kind == task.TextItem && len(it.Metadata) == 0 }
