// SPDX-License-Identifier: Apache-2.0

package pebble

import "github.com/aip-gateway/aip-gateway/replay/pebble/disk"

// Examine returns the reason a store could not be opened in a directory, or would accept no new logs; nil if there is
// none. A store opened by another process is not a reason. Examine changes nothing, and opens nothing: damage within
// the files is not found.
func Examine(dir string) error { return disk.Examine(dir) }
