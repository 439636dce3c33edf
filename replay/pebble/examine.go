// SPDX-License-Identifier: Apache-2.0

package pebble

import "github.com/aip-gateway/aip-gateway/replay/pebble/disk"

// Examine returns why no store could be opened in a directory, or why it would accept no new logs; nil if there is no
// reason. That another process has opened the store is not a reason. Examine changes nothing, and opens nothing: damage
// within the files is not found.
func Examine(dir string) error { return disk.Examine(dir) }
