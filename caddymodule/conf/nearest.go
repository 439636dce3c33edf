// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"maps"
	"slices"
	"strconv"
)

// Nearest returns the end of an error about an unknown name: the known name that was probably meant, if there is one.
func Nearest[T any](name string, known map[string]T) string {
	best, least := "", min(3, len(name)/2+1) // more changes than that make another name
	for _, candidate := range slices.Sorted(maps.Keys(known)) {
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + strconv.Quote(best) + "?"
}

// distance returns how many bytes must be inserted, deleted or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, corner+1)
		}
	}
	return row[len(b)]
}
