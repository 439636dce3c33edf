// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"strconv"
	"testing"
)

// TestLoginsAreBounded: of too many logins between their steps, the oldest are given up.
func TestLoginsAreBounded(t *testing.T) {
	var l logins
	const more = 10
	for i := range maxLogins + more {
		l.begin(login{aid: "alice.aid.test", request: "r", nonce: strconv.Itoa(i)})
	}
	if len(l.open) != maxLogins || l.order.Len() != maxLogins {
		t.Errorf("there are %d logins, %d in order", len(l.open), l.order.Len())
	}
	for i, want := range map[int]bool{0: false, more - 1: false, more: true, maxLogins + more - 1: true} {
		if err := l.take(strconv.Itoa(i)).check("alice.aid.test", "r"); (err == nil) != want {
			t.Errorf("login %d: %v", i, err)
		}
	}
}
