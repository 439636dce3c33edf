// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// TestMoves: each gateway gets its share of the shards in each round, and each shard another gateway than before.
func TestMoves(t *testing.T) {
	const shards = 16
	m := &mover{cluster: &cluster{nodes: make([]*node, clusterSize)}}
	had := make(map[int]int)
	for round := range 6 {
		share := make(map[int]int)
		for range shards {
			m.tried++
			shard, to := m.next(shards)
			if before, ok := had[shard]; ok && before == to {
				t.Errorf("round %d: shard %d stays at gateway %d", round, shard, to)
			}
			had[shard] = to
			share[to]++
		}
		for to := range clusterSize {
			if n := share[to]; n < shards/clusterSize {
				t.Errorf("round %d: gateway %d gets %d shards", round, to, n)
			}
		}
		if len(had) != shards {
			t.Errorf("round %d: %d shards were moved", round, len(had))
		}
	}
}
