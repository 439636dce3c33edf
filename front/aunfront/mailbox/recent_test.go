// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"fmt"
	"testing"
	"time"
)

// TestRecallsOfOthersAreKept: the messages of a client can be recalled whatever others send meanwhile.
//
// Promise: a client of AUN closes the inbox of another one for others, or has their recalls forgotten
func TestRecallsOfOthersAreKept(t *testing.T) {
	var r recent
	now := time.Now()
	add := func(from, id string) { r.add(sentMessage{ID: id, From: from, To: bob, At: now}) }
	known := func(from, id string) bool {
		s, ok := r.find(from, id)
		return ok && s.From == from
	}
	add(carol, "c1")
	for i := range 2 * maxSent {
		add(eve, fmt.Sprint("e", i))
	}
	if !known(carol, "c1") || !known(eve, fmt.Sprint("e", 2*maxSent-1)) || known(eve, "e0") {
		t.Error("of a flood, the first messages of who floods are not what is forgotten")
	}
	for i := range 2 * maxSent {
		add(fmt.Sprint("eve", i%50), fmt.Sprint("f", i))
	}
	if !known(carol, "c1") {
		t.Error("a flood of many makes others' messages forgotten")
	}
	add(eve, "c1")
	if !known(carol, "c1") || !known(eve, "c1") {
		t.Error("one client has taken the id of another one")
	}
	if s, ok := r.find(alice, "c1"); !ok || s.From == alice {
		t.Error("a stranger's message is not known as such")
	}
	now = now.Add(time.Hour)
	add(alice, "a1")
	if n := len(r.by[carol]); known(carol, "c1") || n != 0 || len(r.byID) != 1 || r.n != 1 {
		t.Errorf("%d messages are remembered after an hour", r.n)
	}
}
