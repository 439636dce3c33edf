// SPDX-License-Identifier: Apache-2.0

//go:build race || sparse

package pebble

// sparse is the part, 1 in so many, of the places and the random runs that a test tries. With the race detector they
// take ten times as long: it sees each kind of them, and a run without it tries all. make check tries few, too.
const sparse = 20
