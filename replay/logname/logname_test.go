// SPDX-License-Identifier: Apache-2.0

package logname

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	log := New("partner", "leader", "task")
	if want := "tpartner\x00leader\x00task"; log != want {
		t.Errorf("the name is %q, want %q as it is stored", log, want)
	}
	outbox := OutboxOf(log)
	if partner, leader, id := Split(outbox); partner != "partner" || leader != "leader" || id != "task" {
		t.Errorf("%q is split into %q, %q and %q", outbox, partner, leader, id)
	}
	if TaskOf(outbox) != log {
		t.Errorf("%q does not lead back to %q", outbox, log)
	}
	if !strings.HasPrefix(log, OfPartner("partner")) || strings.HasPrefix(log, OfPartner("part")) {
		t.Errorf("%q is found under the wrong Partner", log)
	}
	membership := MembershipsOf("partner", "leader", "group") + "life"
	if want := "mpartner\x00leader\x00group\x00life"; membership != want {
		t.Errorf("the name is %q, want %q as it is stored", membership, want)
	}
	if partner, leader, id := SplitMembership(membership); partner != "partner" || leader != "leader" || id != "group" {
		t.Errorf("%q is split into %q, %q and %q", membership, partner, leader, id)
	}
	published := GroupTasksOf("partner", "leader", "group") + "task" + Separator + "life"
	if want := "gpartner\x00leader\x00group\x00task\x00life"; published != want || TaskOfGroup(published) != "task" {
		t.Errorf("the name is %q, want %q as it is stored; it has the task %q", published, want, TaskOfGroup(published))
	}
	for want, list := range map[string]string{
		"lpartner\x00leader\x00working": ListOfState("partner", "leader", "working"),
		"spartner\x00leader\x00key":     ListOfSession("partner", "leader", "key"),
		"ipartner\x00task":              ListOfID("partner", "task"),
	} {
		if list != want {
			t.Errorf("the name of a list is %q, want %q as it is stored", list, want)
		}
	}
	for list, want := range map[string]string{
		ListOfState("partner", "leader", "working"): "working", ListOfSession("partner", "leader", "key"): "", "": "",
	} {
		if got, ok := StateOfList(list); got != want || ok != (want != "") {
			t.Errorf("the list %q has the state %q, %t; want %q", list, got, ok, want)
		}
	}
	if partner, leader, id := Split(""); partner+leader+id != "" {
		t.Errorf("an empty name has parts %q, %q and %q", partner, leader, id)
	}
}

// TestOwner: all unverified Leaders of a Partner share their limits, and no others do.
func TestOwner(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{New("p", "a", "1"), New("p", "a", "2"), true},
		{New("p", "unverified:a", "1"), New("p", "unverified:b", "2"), true},
		{New("p", "unverified:a", "1"), New("q", "unverified:a", "1"), false},
		{New("p", "unverified:a", "1"), New("p", "a", "1"), false},
		{New("p", "a", "1"), New("p", "b", "1"), false},
		{New("p", "a", "1"), OutboxOf(New("p", "a", "1")), false},
	} {
		if got := Owner(tc.a) == Owner(tc.b); got != tc.same {
			t.Errorf("%q and %q have the same owner: %v, want %v", tc.a, tc.b, got, tc.same)
		}
	}
}
