// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

func TestTrim(t *testing.T) {
	const pieces = 250
	fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		for i := range pieces {
			p := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(fmt.Sprintf("%d ", i))}}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{{Product: p, Append: i > 0}}}, nil) {
				return
			}
		}
		yield(agent.Report{State: task.AwaitingCompletion}, nil)
	}}
	store := memory(t)
	b := setUp(t, store, fake, func(c *Config) { c.MaxEvents = 100 })
	got := b.do(call(task.Start, "t1"))
	head, snapshot, records, err := store.Load(t.Context(), logname.New("agent", leader, "t1"))
	if err != nil {
		t.Fatal(err)
	}
	if head.Last != pieces+3 || len(records) > 100 || snapshot == nil || head.First != head.Last-uint64(len(records))+1 {
		t.Errorf("kept %d of %d events from %d on, snapshot %d bytes", len(records), head.Last, head.First, len(snapshot))
	}
	b.engine.Close()
	b = setUp(t, store, hangs())
	again := b.do(call(task.Get, "t1"))
	if diff := cmp.Diff(got.Products, again.Products); diff != "" {
		t.Errorf("products after a restart (-before +after):\n%s", diff)
	}
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)

	// An operator sees the whole task, too: the states lost from the events, and the products.
	o, whole, err := b.engine.Contents(t.Context(), "agent", leader, "t1")
	if err != nil || o.Last != head.Last || len(whole.StatusHistory) != 3 || len(whole.MessageHistory) != 1 {
		t.Errorf("an operator sees %+v, %d states and %d messages: %v", o, len(whole.StatusHistory),
			len(whole.MessageHistory), err)
	}
	if diff := cmp.Diff(got.Products, whole.Products); diff != "" {
		t.Errorf("products for an operator (-Leader +operator):\n%s", diff)
	}
}

// TestTrimWaitsForReaders: an agent sending faster than a stream is sent on does not cost the stream its events. A
// stream not sent on any more loses them, and delays the agent only once.
func TestTrimWaitsForReaders(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const events, batch = 2000, 20
		followed := make(chan struct{})
		fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			if !yield(agent.Report{State: task.Working}, nil) {
				return
			}
			<-followed
			for range events / batch {
				var p task.Pieces
				for range batch {
					p.AddText("p", "", []byte("text"), true, false)
				}
				if !yield(agent.Report{Pieces: &p}, nil) {
					return
				}
			}
			yield(agent.Report{State: task.AwaitingCompletion}, nil)
		}}
		b := setUp(t, memory(t), fake, func(c *Config) { c.MaxEvents = 100 })
		stopped, slow := b.store.Read(b.LogOf(leader, "t1"), 0), b.store.Read(b.LogOf(leader, "t1"), 0)
		defer stopped.Close()
		defer slow.Close()
		if _, err := b.Stream(t.Context(), leader, call(task.Start, "t1")); err != nil {
			t.Fatal(err)
		}
		for _, r := range []replay.Reader{stopped, slow} {
			if records, _, err := r.Next(t.Context(), nil); len(records) == 0 || err != nil {
				t.Fatal(records, err)
			}
		}
		began, read := time.Now(), uint64(0)
		close(followed)
		for more := make(chan struct{}, 1); ; {
			records, _, err := slow.Next(t.Context(), nil)
			if err != nil {
				t.Fatalf("after %d events: %v", read, err)
			}
			if len(records) == 0 {
				if got := b.do(call(task.Get, "t1")); got.Status.State.Settled() {
					break
				}
				slow.Wake(func() { more <- struct{}{} })
				<-more
				continue
			}
			bubble.Pass(10 * time.Millisecond) // the time to send them
			read = records[len(records)-1].Seq
		}
		if read != events+3 { // accepted, working, awaiting-completion
			t.Errorf("the slow reader has read %d events", read)
		}
		if _, _, err := stopped.Next(t.Context(), nil); !errors.As(err, new(*replay.CompactedError)) {
			t.Errorf("the reader that has stopped: %v", err)
		}
		if took := time.Since(began); took < readersWait || took > readersWait+events/batch*20*time.Millisecond {
			t.Errorf("the turn took %v", took)
		}
	})
}

// TestTrimLeavesWhatIsPinned: while a cursor of a follower stands behind, up to twice as much of a log is kept, and no
// more. A moving cursor has the log trimmed.
func TestTrimLeavesWhatIsPinned(t *testing.T) {
	next := make(chan int)
	fake := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		yielded := yield(agent.Report{State: task.Working}, nil)
		for i := 0; yielded; {
			select {
			case n := <-next:
				for range n {
					p := task.Product{ID: "p", DataItems: []task.DataItem{task.Text("piece ")}}
					yielded = yield(agent.Report{Chunks: []task.Chunk{{Product: p, Append: i > 0}}}, nil)
					i++
				}
				next <- 0
			case <-ctx.Done():
				return
			}
		}
	}}
	store := memory(t)
	b := setUp(t, store, fake, func(c *Config) { c.MaxEvents = 80 })
	if _, err := b.Stream(t.Context(), leader, call(task.Start, "t1")); err != nil {
		t.Fatal(err)
	}
	log := logname.New("agent", leader, "t1")
	cursor := follow.Cursor{Name: "cursor", Log: log}
	pieces := func(n int) replay.Head {
		next <- n
		<-next
		head, err := store.Head(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	move := func(to uint64) {
		cursor.Seq = to
		if _, err := cursor.Write(t.Context(), store); err != nil {
			t.Fatal(err)
		}
	}
	move(10)
	for _, tc := range []struct {
		name       string
		move       uint64 // the cursor, before
		events     int
		first, max uint64 // the oldest kept event, or the number of kept ones
	}{
		{"below the limit", 0, 70, 1, 0},
		{"beyond the limit", 0, 50, 11, 0},
		{"the cursor moves", 100, 30, 0, 80},
		{"it stands behind", 0, 60, 0, 120},
		{"for too long", 0, 100, 0, 160},
	} {
		if tc.move > 0 {
			move(tc.move)
		}
		head := pieces(tc.events)
		if tc.first > 0 && head.First != tc.first || tc.max > 0 && head.Kept() > tc.max {
			t.Errorf("%s, the log has %d to %d", tc.name, head.First, head.Last)
		}
		if late := tc.name == "for too long"; late != (head.First > cursor.Seq+1) {
			t.Errorf("%s, the cursor is at %d, and the log begins at %d", tc.name, cursor.Seq, head.First)
		}
	}
}
