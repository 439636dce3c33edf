// SPDX-License-Identifier: Apache-2.0

package translate

import "strings"

// idPrefix begins the ids of tasks named by the gateway, for callers of dialects that leave this to the agent. No two
// random ids of idRandom characters meet.
const (
	idPrefix = "gw-"
	idRandom = 26
)

// TaskID returns an id of a task, made of random bytes, at least 17 of them.
func TaskID(random []byte) string {
	var buf [len(idPrefix) + idRandom]byte
	return string(appendRandom(append(buf[:0], idPrefix...), random))
}

// ID returns a text made of random bytes, at least 17 of them: letters and digits.
func ID(random []byte) string {
	var buf [idRandom]byte
	return string(appendRandom(buf[:0], random))
}

func appendRandom(dst, random []byte) []byte {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	most := len(dst) + idRandom
	var bits, n uint
	for _, b := range random {
		bits, n = bits<<8|uint(b), n+8
		for ; n >= 5 && len(dst) < most; n -= 5 {
			dst = append(dst, alphabet[bits>>(n-5)&31])
		}
	}
	return dst
}

// MadeHere reports whether a task's id was made by TaskID. It distinguishes versions of A2A sharing a method: in some
// the caller names the task, in others the agent does.
func MadeHere(id string) bool {
	rest, ok := strings.CutPrefix(id, idPrefix)
	return ok && len(rest) == idRandom && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
