// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAssign: all nodes have an equal share, known in any order, and a node coming or going moves few shards more than
// it must.
func TestAssign(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, shards := range []int{1, 16, 64, 128} {
		for n := 1; n <= 12; n++ {
			nodes := make([]candidate, n)
			for i := range nodes {
				nodes[i].name = fmt.Sprint("gateway-", r.IntN(1e6))
			}
			before := assign(shards, nodes)
			share, count := (shards+n-1)/n, make(map[string]int)
			for _, name := range before {
				count[name]++
			}
			for name, c := range count {
				if c > share {
					t.Errorf("%d shards, %d nodes: %s has %d", shards, n, name, c)
				}
			}
			r.Shuffle(n, func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
			if !slices.Equal(before, assign(shards, nodes)) {
				t.Errorf("%d shards, %d nodes: the order counts", shards, n)
			}
			moved := 0
			after := assign(shards, append(nodes, candidate{name: "gateway-new"}))
			for i := range after {
				if after[i] != before[i] {
					moved++
				}
			}
			if most := 3*(shards+n)/(n+1) + 2; moved > most {
				t.Errorf("%d shards, %d nodes: one more moves %d, want %d at most", shards, n, moved, most)
			}
		}
	}
}

// TestAssignWilling: a node gets no shard it refuses, unless all refuse it, even if an operator has moved the shard to
// it; the others keep about their share.
func TestAssignWilling(t *testing.T) {
	const shards = 16
	nodes := []candidate{{name: "a", wants: []want{{3, 1}}, refuses: []int{3, 4, 5, 99}}, {name: "b", refuses: []int{4}},
		{name: "c", refuses: []int{3, 4}}}
	owner := assign(shards, nodes)
	for _, n := range nodes {
		for _, i := range n.refuses {
			if i < shards && i != 4 && owner[i] == n.name {
				t.Errorf("%s has the shard %d, which it refuses", n.name, i)
			}
		}
	}
	if owner[4] == "" || owner[3] != "b" {
		t.Errorf("the owners are %q", owner)
	}
}
