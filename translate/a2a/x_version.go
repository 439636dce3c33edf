// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"strconv"
	"strings"
)

// The dialects by their names in a configuration.
const (
	nameLegacy = "a2a/legacy"
	name03     = "a2a/0.3" // and 0.2, whose messages are the same
	name03REST = "a2a/0.3-rest"
	name10     = "a2a/1.0"
	name10REST = "a2a/1.0-rest"
)

// verGeneration is a group of versions whose messages are the same.
type verGeneration uint8

// The generations.
const (
	verUnknown verGeneration = iota // no version, or one that is not known
	verLegacy                       // 0.1
	verV03                          // 0.2 and above
	verV1                           // 1.x
)

// generationOf returns the generation that a version is of: 0.3, 0.3.0, v1.0.
func generationOf(version string) verGeneration {
	major, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	switch major {
	case "1":
		return verV1
	case "0":
		n, err := strconv.Atoi(minor)
		switch {
		case err != nil || n < 0:
			return verUnknown
		case n < 2:
			return verLegacy
		}
		return verV03
	}
	return verUnknown
}
