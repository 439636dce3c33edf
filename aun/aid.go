// SPDX-License-Identifier: Apache-2.0

// Package aun is the connection of AUN, the Agent Union Network: agents' identities and their certificates, frames
// over WebSocket, and both sides of the logins. It knows nothing of tasks and messages.
package aun

import (
	"fmt"
	"strings"
)

// AID is the identity of an agent: a name in lower case, with the name of its issuer at the end, as in alice.aid.pub.
type AID string

// ParseAID returns the AID in a text. Upper case counts as lower case.
func ParseAID(text string) (AID, error) {
	if len(text) > 253 || !strings.Contains(text, ".") {
		return "", fmt.Errorf("%q is not an AID: it must have the form name.issuer, as in alice.aid.pub", cut(text))
	}
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, foreign) {
			return "", fmt.Errorf("%q is not an AID: each of its parts has 1 to 63 letters, digits, - and _", cut(text))
		}
	}
	return AID(strings.ToLower(text)), nil
}

// Issuer returns the name of the AID's issuer: all of it after the first dot.
func (a AID) Issuer() string {
	_, issuer, _ := strings.Cut(string(a), ".")
	return issuer
}

// foreign reports whether a character cannot be a part of an AID.
func foreign(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
}

// cut returns the beginning of a text for a message.
func cut(text string) string {
	const most = 64
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
