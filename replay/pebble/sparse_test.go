// SPDX-License-Identifier: Apache-2.0

package pebble

import "testing"

// sparse returns the part, 1 in so many, of the places and the random runs that a test tries. With -short they are
// fewer: so the race detector, with which they take ten times as long, sees each kind of them, and a run without it
// tries all.
func sparse() int {
	if testing.Short() {
		return 5
	}
	return 1
}
