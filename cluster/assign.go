// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
)

// candidate is a node that may own shards.
type candidate struct {
	name    string
	wants   []want
	refuses []int // shards
}

func (n candidate) is(other candidate) bool { return n.name == other.name }

// want is an operator's move of a shard to a node. The latest one counts.
type want struct {
	Shard int   `json:"shard"`
	At    int64 `json:"at"` // Unix time, ns
}

// assign returns the node to own each shard: first the one an operator has moved it to, then, of those without their
// full share, the one with the greatest hash of its name and the shard. A node refusing a shard is left out for it,
// unless all do. It does not depend on the order of the nodes. There is at least one node.
func assign(shards int, nodes []candidate) []string {
	owner, count := make([]string, shards), make(map[string]int, len(nodes))
	at := make([]int64, shards)
	for _, n := range nodes {
		for _, w := range n.wants {
			if w.Shard < 0 || w.Shard >= shards || !slices.ContainsFunc(willing(w.Shard, nodes), n.is) {
				continue
			}
			if w.At > at[w.Shard] || w.At == at[w.Shard] && n.name > owner[w.Shard] {
				at[w.Shard], owner[w.Shard] = w.At, n.name
			}
		}
	}
	for _, name := range owner {
		if name != "" {
			count[name]++
		}
	}
	share := (shards + len(nodes) - 1) / len(nodes)
	for i := range owner {
		if owner[i] != "" {
			continue
		}
		owner[i] = slices.MaxFunc(willing(i, nodes), func(a, b candidate) int {
			fullA, fullB := count[a.name] >= share, count[b.name] >= share
			if fullA != fullB {
				if fullA {
					return -1
				}
				return 1
			}
			return cmp.Or(cmp.Compare(weight(a.name, i), weight(b.name, i)), cmp.Compare(a.name, b.name))
		}).name
		count[owner[i]]++
	}
	return owner
}

// standbys returns the shards a node may have to claim soon: those it is to own, and those it would own if their owner
// died, but those it holds.
func standbys(shards int, nodes []candidate, name string, holds func(shard int) bool) (all []int) {
	if !slices.ContainsFunc(nodes, func(n candidate) bool { return n.name == name }) {
		return nil
	}
	owners := assign(shards, nodes)
	next := make(map[string][]string) // the owners, by the one that has died
	for i, owner := range owners {
		if holds(i) {
			continue
		}
		if owner != name && next[owner] == nil {
			others := slices.DeleteFunc(slices.Clone(nodes), func(n candidate) bool { return n.name == owner })
			next[owner] = assign(shards, others)
		}
		if owner == name || next[owner][i] == name {
			all = append(all, i)
		}
	}
	return all
}

// weight is the hash of a name and a shard. All nodes, of all versions, agree on it.
func weight(name string, shard int) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	h = (h ^ uint64(shard)) * prime
	h ^= h >> 33 // the end of MurmurHash3: the names of nodes are alike
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
