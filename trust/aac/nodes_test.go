// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// TestNodes: a token is used once, at whichever of several processes it comes, also when their shards move.
func TestNodes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(4)
		var nodes [3]*replaytest.Node
		var all [3]*Used
		for i := range all {
			nodes[i] = shards.Node()
			set := shard.Join(nodes[i], slog.New(slog.DiscardHandler))
			all[i] = OpenUsed(set, slog.New(slog.DiscardHandler))
			t.Cleanup(func() {
				if err := set.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		for s := range 4 {
			shards.Assign(s, nodes[s%3], false)
		}
		synctest.Wait()
		for n := range 20 {
			var fresh atomic.Int32
			var calls sync.WaitGroup
			for i := range 9 {
				calls.Go(func() {
					is, err := all[i%3].add(t.Context(), "partner", &identity.Claims{Issuer: "i", ID: fmt.Sprint(n),
						Expires: time.Now().Add(time.Minute)})
					if err != nil {
						t.Error(err)
					} else if is {
						fresh.Add(1)
					}
				})
			}
			if n%2 == 1 {
				shards.Assign(n%4, nodes[n%3], true)
			}
			if calls.Wait(); fresh.Load() != 1 {
				t.Errorf("a token was used %d times", fresh.Load())
			}
		}
	})
}

// TestTheSameUse: an owner that has stored a use and died before it has said so did not use up the token for it.
func TestTheSameUse(t *testing.T) {
	set := shard.One(replay.NewMemory(replay.Settings{}))
	defer set.Close()
	u := OpenUsed(set, slog.New(slog.DiscardHandler))
	for _, one := range []struct {
		id   string
		want bool
	}{{"first", true}, {"first", true}, {"second", false}, {"", false}} {
		got, err := u.use(t.Context(), 0, using{Log: "jpartner\x00key", Keep: time.Now(), ID: one.id})
		if err != nil || got != one.want {
			t.Errorf("the use %q: %t, %v, want %t", one.id, got, err, one.want)
		}
	}
}
