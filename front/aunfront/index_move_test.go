// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// TestIndexMoves: the owner of a shard continues with the entries and the positions in it. The process owning it before
// finds them, too, and has the owner change them; things begun by it as the owner change nothing.
func TestIndexMoves(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx := t.Context()
		shards := replaytest.NewShards(1)
		var nodes [2]*replaytest.Node
		var indexes [2]*Index
		for i := range indexes {
			nodes[i] = shards.Node()
			set := shard.Join(nodes[i], slog.New(slog.DiscardHandler))
			defer set.Close()
			indexes[i] = OpenIndex(set, slog.New(slog.DiscardHandler))
		}
		const id, log = "parent", "tparent"
		device := follower{"alice.aid.test", "d1", ""}
		shards.Assign(0, nodes[0], false)
		synctest.Wait()
		if _, err := indexes[0].begin(ctx, id, &entry{Log: log, Creator: device.creator()}); err != nil {
			t.Fatal(err)
		}
		var children []string
		for i, seize := range []bool{false, false, true, true} {
			before, now := indexes[i%2], indexes[1-i%2]
			position, err := before.cursor(ctx, id, log, device)
			if err != nil || position.Seq != uint64(i) {
				t.Fatalf("move %d: the position is %+v, %v", i, position, err)
			}
			late := before.homes.Of(0) // found before the shard is lost, and used afterwards
			shards.Assign(0, nodes[1-i%2], seize)
			synctest.Wait()

			position.Seq = 100
			if err := late.write(ctx, &position); !errors.Is(err, replay.ErrFenced) {
				t.Errorf("move %d: the process that does not own the index any more stores a position: %v", i, err)
			}
			child := fmt.Sprint("child", i)
			children = append(children, child)
			writer := indexes[i/2%2]
			if _, err := writer.addChild(ctx, id, child); err != nil {
				t.Error(err)
			}
			for _, x := range indexes {
				if e, err := x.get(ctx, id); err != nil || e == nil || !slices.Equal(e.Children, children) {
					t.Errorf("move %d: the entry is %+v, %v", i, e, err)
				}
			}
			if position, err = now.cursor(ctx, id, log, device); err != nil || position.Seq != uint64(i) {
				t.Fatalf("move %d: the position is %+v, %v", i, position, err)
			}
			position.Seq++
			if err := writer.write(ctx, &position); err != nil || !position.Stored() {
				t.Error(err)
			}
			if n := now.homes.Of(0).positions.Total(); n != 1 {
				t.Errorf("move %d: %d positions are counted", i, n)
			}
		}
		// The owner drops the entries of a removed task.
		time.Sleep(recheck + time.Minute)
		synctest.Wait()
		for e, err := range shards.Logs(0).List(ctx, string(logname.AUN), "") {
			if err != nil || e.Head.Ended.IsZero() {
				t.Errorf("there is %q still, %v", e.Log, err)
			}
		}
		if n := indexes[0].homes.Of(0).positions.Total(); n != 0 {
			t.Errorf("%d positions are counted when the task is gone", n)
		}
	})
}
