// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// TestNode opens what works on a store that is not shared, and closes it with the store.
func TestNode(t *testing.T) {
	n, store := new(Node), replay.NewMemory(replay.Settings{})
	if why := n.Busy(0); why != "" {
		t.Errorf("before it is open, another process may not take over: %s", why)
	}
	err := n.Open(Config{Process: NewProcess(Host{}), Shards: shard.One(store),
		Log: func(string) *slog.Logger { return slog.New(slog.DiscardHandler) }})
	if err != nil {
		t.Fatal(err)
	}
	if why := n.Busy(0); why != "" {
		t.Errorf("without tasks, another process may not take over: %s", why)
	}
	if index := n.Index(); index != n.Index() {
		t.Error("there are two indexes of AUN")
	}
	one, err := n.Mailbox()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := n.Mailbox(); two != one || err != nil {
		t.Errorf("there are two mailboxes: %v", err)
	}
	if owned := Owned(n.Shards); !slices.Equal(owned, []int{0}) {
		t.Errorf("the shards %v are owned", owned)
	}
	for i, want := range map[int]bool{-1: false, 0: true, 1: false} {
		if HasShard(n.Shards, i) != want {
			t.Errorf("whether there is a shard %d: not %t", i, want)
		}
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if _, err := store.Head(t.Context(), "t"); !errors.Is(err, replay.ErrClosed) {
		t.Errorf("the store is not closed: %v", err)
	}
}
