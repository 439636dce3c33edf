// SPDX-License-Identifier: Apache-2.0

//go:build !race && !sparse

package pebble

// sparse is the part, 1 in so many, of the places and the random runs that a test tries: all.
const sparse = 1
