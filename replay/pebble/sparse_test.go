// SPDX-License-Identifier: Apache-2.0

//go:build !race

package pebble

import "testing"

// sparse is the part, 1 in so many, of the places and the random runs a test tries: all, but for a short run.
func sparse() int {
	if testing.Short() {
		return 20
	}
	return 1
}
