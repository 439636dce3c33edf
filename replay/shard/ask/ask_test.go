// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

type question struct{ Text string }

type answer struct{ From, Text string }

// world is two processes with a service.
type world struct {
	*testing.T
	shards *replaytest.Shards
	nodes  [2]*replaytest.Node
	sets   [2]*shard.Set
	ask    [2]*ask.Service[question, answer]
	err    error // of the service
	asked  int
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, shards: replaytest.NewShards(2)}
	for i := range w.nodes {
		node := w.shards.Node()
		set := shard.Join(node, slog.New(slog.DiscardHandler))
		w.nodes[i], w.sets[i] = node, set
		w.ask[i] = ask.New(set, "echo", func(_ context.Context, s int, q question) (answer, error) {
			w.asked++
			return answer{node.Name(), fmt.Sprint(q.Text, s)}, w.err
		})
		t.Cleanup(func() {
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
		w.shards.Assign(i, node, false)
	}
	synctest.Wait()
	return w
}

// TestOwner: a question is answered by the owner of its shard, wherever it is asked, and one to all by each process.
func TestOwner(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range w.ask {
			for s := range w.nodes {
				got, err := w.ask[i].Of(t.Context(), s, question{"shard "})
				if want := (answer{w.nodes[s].Name(), fmt.Sprint("shard ", s)}); err != nil || got != want {
					t.Errorf("process %d has the answer %+v, %v, want %+v", i, got, err, want)
				}
			}
		}
		got := make(map[string]answer)
		for a, err := range w.ask[0].All(t.Context(), question{"all "}) {
			if got[a.Node] = a.Value; err != nil {
				t.Error(err)
			}
		}
		want := map[string]answer{"node-1": {"node-1", "all -1"}, "node-2": {"node-2", "all -1"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestMoved: a question waits for an owner, for the Patience at most, and never longer than the caller.
func TestMoved(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.shards.Assign(1, nil, false)
		synctest.Wait()
		time.AfterFunc(4*time.Second, func() { w.shards.Assign(1, w.nodes[0], false) })
		begun := time.Now()
		if a, err := w.ask[0].Of(t.Context(), 1, question{}); err != nil || a.From != "node-1" {
			t.Errorf("the answer is %+v, %v", a, err)
		}
		if waited := time.Since(begun); waited < 4*time.Second || waited > 5*time.Second {
			t.Errorf("it has waited for %v", waited)
		}
		w.nodes[1].Kill()
		w.shards.Assign(1, nil, false)
		synctest.Wait()
		for patience, want := range map[time.Duration]error{
			time.Second: context.DeadlineExceeded, time.Hour: replay.ErrFenced,
		} {
			ctx, done := context.WithTimeout(t.Context(), patience)
			begun = time.Now()
			_, err := w.ask[0].Of(ctx, 1, question{})
			least := min(patience, ask.Patience)
			if waited := time.Since(begun); waited < least || waited > least+time.Second {
				t.Errorf("it has waited for %v", waited)
			}
			if !errors.Is(err, want) {
				t.Errorf("the error is %v, want %v", err, want)
			}
			done()
		}
	})
}

// TestOnce: a question that must not be asked twice is asked once, though the owner may have moved before it has
// answered.
func TestOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ask[0].Once, w.err = true, replay.ErrFenced
		if _, err := w.ask[0].Of(t.Context(), 1, question{}); task.KindOf(err) != task.StoreUnavailable || w.asked != 1 {
			t.Errorf("it was asked %d times: %v", w.asked, err)
		}
	})
}

// TestErrors: an error keeps its kind, and its text for the caller, on its way.
func TestErrors(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for _, err := range []error{
			task.Errorf(task.LimitExceeded, "The quota is used up.").WithField("params").WithData("limit", "a").
				WithData(task.RetryAfter, int64(7)).WithData("ratio", 0.5),
			task.Errorf(task.UnsupportedOperation, "the task is over").WithCause(&task.StateError{State: task.Canceled}),
			task.Errorf(task.StoreUnavailable, "not now").WithCause(replay.ErrUnavailable),
			io.EOF,
		} {
			w.err = err
			_, got := w.ask[0].Of(t.Context(), 1, question{})
			if task.KindOf(got) != task.KindOf(err) ||
				errors.Is(got, replay.ErrUnavailable) != errors.Is(err, replay.ErrUnavailable) {
				t.Errorf("%v has become %v", err, got)
			}
			want, _ := errors.AsType[*task.Error](err)
			if e, ok := errors.AsType[*task.Error](got); ok {
				if diff := cmp.Diff([]any{want.Detail, want.Field, want.Data, want.RetryAfter()},
					[]any{e.Detail, e.Field, e.Data, e.RetryAfter()}); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			} else if want != nil || got.Error() != err.Error() {
				t.Errorf("%v has become %v", err, got)
			}
			state, _ := errors.AsType[*task.StateError](err)
			if s, ok := errors.AsType[*task.StateError](got); ok != (state != nil) || ok && *s != *state {
				t.Errorf("%v has become %v", err, got)
			}
		}
	})
}

// TestNewer: a process of a newer version, with members added to a question and its answer, is asked, and asks.
func TestNewer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		type (
			newQuestion struct{ Mood, Text string }
			newAnswer   struct {
				From, Text string
				Moods      []string
			}
		)
		w := newWorld(t)
		newer := ask.New(w.sets[1], "echo", func(_ context.Context, _ int, q newQuestion) (newAnswer, error) {
			return newAnswer{"newer", q.Text + q.Mood, []string{"good"}}, nil
		})
		if a, err := w.ask[0].Of(t.Context(), 1, question{"old"}); err != nil || a != (answer{"newer", "old"}) {
			t.Errorf("the newer one answers %+v, %v", a, err)
		}
		a, err := newer.Of(t.Context(), 0, newQuestion{"good", "new "})
		if err != nil || a.Text != "new 0" || a.Moods != nil {
			t.Errorf("the older one answers %+v, %v", a, err)
		}
	})
}
