// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// ready fails the test unless each shard is kept ready by one node that does not own it, or by none if there is one
// node only.
func (w *world) ready(nodes ...*node) {
	w.Helper()
	synctest.Wait()
	want := min(1, len(nodes)-1)
	for i := range shardCount {
		by := slices.Clone(nodes)
		by = slices.DeleteFunc(by, func(n *node) bool { return !slices.Contains(n.link.Ready(), i) })
		if len(by) != want {
			w.Errorf("at %v: the shard %d is kept ready by %d nodes, want %d", w.at(), i, len(by), want)
		}
		for _, n := range by {
			if w.Owner(i).Node == n.name {
				w.Errorf("at %v: %s keeps its own shard %d ready", w.at(), n.name, i)
			}
		}
	}
}

// takenReady fails the test if a node has claimed a shard that this one of the owners had, and had not kept it ready.
func (w *world) takenReady(left string, owners []cluster.Owner, nodes ...*node) {
	w.Helper()
	for _, n := range nodes {
		others := func(shard int) bool { return owners[shard].Node != left }
		if shards := slices.DeleteFunc(n.link.Unready(), others); len(shards) > 0 {
			w.Errorf("at %v: %s has claimed the shards %v, and they were not ready", w.at(), n.name, shards)
		}
	}
}

// TestStandby: each shard is kept ready by the node that owns it next, after nodes join, are moved shards, refuse them,
// die, and leave.
func TestStandby(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(w *world) {
				var nodes []*node
				settled := func() {
					w.Helper()
					bubble.Pass(time.Minute)
					w.ready(nodes...)
				}
				for i := range n {
					nodes = append(nodes, w.start(fmt.Sprint("node-", i)))
					settled()
				}
				if n == 1 {
					w.end(nodes...)
					return
				}
				moved := w.ownedBy(nodes[1].name)
				w.move(nodes[1], moved, nodes[0].name)
				settled()
				nodes[0].link.SetBroken(true)
				w.move(nodes[1], w.ownedBy(nodes[1].name), nodes[0].name)
				settled()
				nodes[0].link.SetBroken(false)
				bubble.Pass(30 * lease)
				settled()
				// Where the shards of one node go to others, some of the others' move, too, as soon as that is known.
				for _, n := range nodes {
					n.link.Unready()
				}
				died, left, owners := w.at(), nodes[n-1].name, w.owners()
				nodes[n-1].die()
				nodes = nodes[:n-1]
				bubble.Pass(2 * lease)
				w.takenReady(left, owners, nodes...)
				if gap := w.gap(died); gap > 2*lease {
					w.Errorf("a shard had no owner for %v", gap)
				}
				settled()
				nodes = append(nodes, w.start("new"))
				settled()
				for _, n := range nodes {
					n.link.Unready()
				}
				left, owners = nodes[0].name, w.owners()
				nodes[0].Drain(w.Context())
				nodes[0].end()
				nodes = nodes[1:]
				w.takenReady(left, owners, nodes...)
				settled()
				w.end(nodes...)
				for _, n := range nodes {
					if shards := n.link.Ready(); len(shards) > 0 {
						w.Errorf("%s keeps the shards %v ready after its end", n.name, shards)
					}
				}
			})
		})
	}
}
