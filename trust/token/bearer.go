// SPDX-License-Identifier: Apache-2.0

package token

import "strings"

// Bearer returns the last bearer token in the values of a header Authorization, and how many there are: of several,
// none is to be believed. Other schemes are for others.
func Bearer(authorization []string) (bearer string, n int) {
	for _, value := range authorization {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
		if strings.EqualFold(scheme, "Bearer") {
			bearer = strings.TrimSpace(rest)
			n++
		}
	}
	return bearer, n
}
