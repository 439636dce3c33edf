// SPDX-License-Identifier: Apache-2.0

// Package version distinguishes the versions of A2A, and names their dialects.
package version

import (
	"strconv"
	"strings"
)

// The dialects by their names in a configuration.
const (
	NameLegacy = "a2a/legacy"
	Name03     = "a2a/0.3" // and 0.2, with the same messages
	Name03REST = "a2a/0.3-rest"
	Name10     = "a2a/1.0"
	Name10REST = "a2a/1.0-rest"
	Name10GRPC = "a2a/1.0-grpc"
)

// Generation is a group of versions with the same messages.
type Generation uint8

// The generations.
const (
	Unknown Generation = iota // no version, or an unknown one
	Legacy                    // 0.1
	V03                       // 0.2 and above
	V1                        // 1.x
)

// Parse returns the generation of a version, such as 0.3, 0.3.0 or v1.0.
func Parse(version string) Generation {
	major, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(version), "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	switch major {
	case "1":
		return V1
	case "0":
		n, err := strconv.Atoi(minor)
		switch {
		case err != nil || n < 0:
			return Unknown
		case n < 2:
			return Legacy
		}
		return V03
	}
	return Unknown
}
