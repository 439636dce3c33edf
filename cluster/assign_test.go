// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAssign: all nodes have an equal share, whatever the order in which they are known, and a node that comes or goes
// moves few shards more than it must.
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
