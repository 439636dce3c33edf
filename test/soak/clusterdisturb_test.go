// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestUpgrade: with another binary an upgrade is the first disturbance of gateways, each other one follows once before
// one comes again, and a gateway that is upgraded twice is back.
func TestUpgrade(t *testing.T) {
	c := &cluster{findings: newFindings()}
	without := newDisturber(c, clusterSettings{seed: 1}).gateways
	d := newDisturber(c, clusterSettings{seed: 1, upgrade: "new"})
	upgrade := d.gateways.take(d.chance).name
	seen := make(map[string]int)
	for range 2 * len(d.gateways.all) {
		seen[d.gateways.take(d.chance).name]++
	}
	for _, one := range append(without.all, disturbance{name: upgrade}) {
		if seen[one.name] != 2 {
			t.Errorf("%q comes %d times, want 2", one.name, seen[one.name])
		}
		delete(seen, one.name)
	}
	if len(seen) != 0 {
		t.Errorf("there are others: %v", seen)
	}
	n := &node{command: []string{"old", "run"}, other: "new"}
	for _, want := range []string{"new", "old"} {
		if n.swap(); n.command[0] != want || n.command[1] != "run" {
			t.Errorf("it runs %v, want %s", n.command, want)
		}
	}
}
