// SPDX-License-Identifier: Apache-2.0

package aac

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// TestClean: a used token is kept until an hour after it has expired, and is then dropped.
func TestClean(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		used := OpenUsed(shard.One(store), slog.New(slog.DiscardHandler))
		defer used.Close()
		kept := func() (n int) {
			synctest.Wait()
			for _, err := range store.List(t.Context(), string(logname.UsedToken), "") {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			return n
		}
		for _, d := range []time.Duration{time.Minute, time.Hour} {
			c := &identity.Claims{Issuer: "i", ID: d.String(), Expires: time.Now().Add(d)}
			for i, want := range []bool{true, false} {
				if fresh, err := used.add(t.Context(), "p", c); err != nil || fresh != want {
					t.Errorf("use %d: %t, %v", i+1, fresh, err)
				}
			}
		}
		begun := time.Now()
		for _, at := range []struct {
			after time.Duration
			want  int
		}{
			{time.Minute, 2}, {time.Hour, 2}, {time.Hour + 2*time.Minute, 1}, {2*time.Hour - time.Second, 1},
			{2*time.Hour + 2*time.Minute, 0},
		} {
			bubble.Pass(time.Until(begun.Add(at.after)))
			if n := kept(); n != at.want {
				t.Errorf("after %s: %d are kept, want %d", at.after, n, at.want)
			}
		}
	})
}
