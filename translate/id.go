// SPDX-License-Identifier: Apache-2.0

package translate

import "strings"

// idPrefix begins the ids of tasks that the gateway names, for callers whose dialect leaves that to the agent.
// No two random ids of idRandom characters meet.
const (
	idPrefix = "gw-"
	idRandom = 26
)

// TaskID returns the id that random bytes make, at least 17 of them.
func TaskID(random []byte) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
	id := []byte(idPrefix)
	var bits, n uint
	for _, b := range random {
		bits, n = bits<<8|uint(b), n+8
		for ; n >= 5 && len(id) < len(idPrefix)+idRandom; n -= 5 {
			id = append(id, alphabet[bits>>(n-5)&31])
		}
	}
	return string(id)
}

// MadeHere reports whether a task's id is one that TaskID made. It distinguishes versions of A2A that
// share a method: in some the caller names the task, in others the agent does.
func MadeHere(id string) bool {
	rest, ok := strings.CutPrefix(id, idPrefix)
	return ok && len(rest) == idRandom && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
