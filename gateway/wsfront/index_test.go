// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

// slowLog is a store in which one log is slow.
type slowLog struct {
	replay.Store
	name string
	goOn chan struct{}
}

func (s *slowLog) Append(ctx context.Context, a replay.Append) error {
	if a.Log == s.name {
		<-s.goOn
	}
	return s.Store.Append(ctx, a)
}

// TestChangesOfEntries: a change of an entry waits for no change of another one.
func TestChangesOfEntries(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := replay.NewMemory(replay.Settings{})
		defer memory.Close()
		for _, id := range []string{"slow", "other"} {
			if err := (&Index{store: memory}).put(t.Context(), id, &entry{Log: "t" + id}, false); err != nil {
				t.Fatal(err)
			}
		}
		store := &slowLog{memory, logname.AUNTask("slow"), make(chan struct{})}
		x := OpenIndex(t.Context(), store, slog.New(slog.DiscardHandler))
		defer x.Close()
		done := make(chan error, 1)
		go func() {
			_, err := x.addChild(t.Context(), "slow", "one")
			done <- err
		}()
		synctest.Wait()
		if _, err := x.addChild(t.Context(), "other", "two"); err != nil {
			t.Error(err)
		}
		if len(done) != 0 {
			t.Error("the store was not slow")
		}
		close(store.goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if e, err := x.get(t.Context(), "slow"); err != nil || len(e.Children) != 1 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}
