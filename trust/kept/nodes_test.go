// SPDX-License-Identifier: Apache-2.0

package kept

import (
	"crypto/x509"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// TestNodes: wherever a Leader calls, the owner of its shard keeps its certificate and judges it, and all processes
// learn what it says. The next owner has both.
func TestNodes(t *testing.T) {
	w := newWorld(t)
	shards := replaytest.NewShards(2)
	var nodes [3]*replaytest.Node
	var all [3]*Register
	for i := range all {
		nodes[i] = shards.Node()
		set := shard.Join(nodes[i], slog.New(slog.DiscardHandler))
		var err error
		all[i], err = Open(set, func() time.Time { return w.now }, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	own := func(s, node int) {
		shards.Assign(s, nodes[node], false)
		asynctest.Eventually(t, "the shard has an owner", func() bool { return all[node].homes.Of(s) != nil })
	}
	judge := func(want ...string) {
		t.Helper()
		for _, r := range all {
			r.Judge(t.Context(), func(p Proof, _ bool) bool { return !slices.ContainsFunc(w.revoked, p.Chain[0].Equal) })
		}
		for i, r := range all {
			r.Learn(t.Context())
			if diff := cmp.Diff(want, r.AllLost()); diff != "" {
				t.Errorf("process %d (-want +got):\n%s", i, diff)
			}
			for _, leader := range want {
				if !r.Lost(leader) {
					t.Errorf("process %d: %s has standing", i, leader)
				}
			}
		}
	}
	own(0, 0)
	own(1, 1)
	called := func(node int, leader string, chain []*x509.Certificate, lasts bool) {
		t.Helper()
		if err := all[node].Called(t.Context(), leader, Proof{chain, "test"}, lasts); err != nil {
			t.Error(err)
		}
	}
	alice, bob := w.certificate(time.Hour), w.certificate(time.Hour)
	called(2, "alice", alice, true)
	called(2, "bob", bob, true)
	called(2, "bob", bob, true)
	called(0, "carol", w.certificate(time.Hour), false)
	judge()
	w.revoked = []*x509.Certificate{alice[0], bob[0]}
	judge("alice", "bob")
	own(0, 2) // which has not judged it yet
	own(1, 0)
	for i, r := range all {
		if !r.Lost("alice") || !r.Lost("bob") {
			t.Errorf("process %d: after the shards have moved, the Leaders have standing", i)
		}
	}
	judge("alice", "bob")
	called(1, "alice", w.certificate(time.Hour), false) // is renewed
	judge("bob")
}
