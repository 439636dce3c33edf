// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// listReads is a store with a count of its reads for lists.
type listReads struct {
	counting
	places, scanned atomic.Int64 // logs yielded by Listed and List
}

func (s *listReads) Listed(
	ctx context.Context, list string, after replay.ListedLog,
) iter.Seq2[replay.ListedLog, error] {
	return counted(&s.places, s.Store.Listed(ctx, list, after))
}

func (s *listReads) List(ctx context.Context, prefix, after string) iter.Seq2[replay.Entry, error] {
	return counted(&s.scanned, s.Store.List(ctx, prefix, after))
}

func counted[T any](n *atomic.Int64, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range all {
			if n.Add(1); !yield(v, err) {
				return
			}
		}
	}
}

// byText is an agent ending its turn in the state named by the message.
func byText() *script {
	return &script{run: func(ctx context.Context, t *agent.Turn, yield func(agent.Report, error) bool) {
		switch text := t.Message.DataItems[0].Text; text {
		case "ask":
			yield(agent.Report{State: task.AwaitingInput}, nil)
		case "ask and go on":
			if yield(agent.Report{State: task.AwaitingInput, SelfResuming: true}, nil) {
				<-ctx.Done()
			}
		case "fail":
			yield(agent.Report{State: task.Failed}, nil)
		default:
			yield(finished(text), nil)
		}
	}}
}

func anybody(string) bool { return true }

// TestListCost: a page reads as many places of lists as it has tasks for each possible state, and the logs of its
// tasks, whatever it is selected by and however many tasks there are. The Leader of a task is found by one place.
func TestListCost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &listReads{counting: counting{Store: memory(t)}}
		b := setUp(t, store, byText(), func(c *Config) { c.MaxTasks = 1000 })
		const tasks, size = 600, 5
		for i := range tasks {
			b.do(call(task.Start, fmt.Sprintf("t%03d", i), func(c *Request) {
				c.Message.SessionID = fmt.Sprint("session-", i%60)
				c.Message.DataItems = []task.DataItem{task.Text([]string{"answer", "ask", "fail"}[i%3])}
			}))
			bubble.Pass(time.Second)
		}
		store.scanned.Store(0) // by the engine, when it was opened
		middle := formatToken(replay.ListedLog{Log: b.LogOf(leader, "t300"), At: time.Now().Add(-300 * time.Second)}, 0)
		for name, c := range map[string]struct {
			list   task.List
			places int64 // the most allowed reads
			n      int
		}{
			"all":              {task.List{}, 3 * (size + 1), size},
			"the middle":       {task.List{Token: middle}, 3 * (size + 1), size},
			"a state":          {task.List{States: []task.State{task.Failed}}, size + 1, size},
			"a session":        {task.List{SessionID: "session-7"}, size + 1, size},
			"a state twice":    {task.List{States: []task.State{task.Failed, task.Failed}}, size + 1, size},
			"a session's rest": {task.List{SessionID: "session-7", States: []task.State{task.Failed}}, 10, 0},
			"a session's all": {task.List{SessionID: "session-9", States: []task.State{task.AwaitingCompletion}},
				size + 1, size},
			"none":         {task.List{States: []task.State{task.Working}}, 0, 0},
			"what changed": {task.List{After: time.Now().Add(-4500 * time.Millisecond)}, 9, 4},
			"counted":      {task.List{Count: true, SessionID: "session-7"}, 10 + size + 1, size},
		} {
			c.list.Size = size
			store.places.Store(0)
			var page task.Page
			n := store.during(func() {
				var err error
				if page, err = b.List(t.Context(), leader, &c.list, nil); err != nil {
					t.Fatal(err)
				}
			})
			if len(page.Tasks) != c.n || store.places.Load() > c.places || n.loads+n.heads > 3*size {
				t.Errorf("%s: %d tasks of %d, %d places of at most %d, %+v", name, len(page.Tasks), c.n, store.places.Load(),
					c.places, n)
			}
		}
		store.places.Store(0)
		of, err := LeaderOf(t.Context(), b.store, b.Name, "t300", anybody)
		if err != nil || of != leader || store.places.Load() != 1 {
			t.Errorf("the Leader is %q, %v; %d places were read", of, err, store.places.Load())
		}
		if n := store.scanned.Load(); n > 0 {
			t.Errorf("%d heads of tasks were gone through", n)
		}
	})
}

// TestListModel holds pages of random lists, while tasks change and are dropped, to the tasks as they are.
func TestListModel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		store := replay.NewMemory(replay.Settings{Retention: time.Hour})
		defer store.Close()
		b := setUp(t, store, byText(), func(c *Config) {
			c.Terms.AwaitingInput, c.Terms.AwaitingCompletion = 1000*time.Hour, 1000*time.Hour
		})
		live := make(map[string]task.Task)
		sessions := []string{"one", "two", "three"}
		for step := range 400 {
			id := fmt.Sprint("t", rnd.IntN(40))
			was, ok := live[id]
			switch {
			case !ok:
				live[id] = b.do(call(task.Start, id, func(c *Request) {
					c.Message.SessionID = sessions[rnd.IntN(3)]
					c.Message.DataItems = []task.DataItem{task.Text([]string{"answer", "ask", "ask and go on", "fail"}[rnd.IntN(4)])}
				}))
			case was.Status.State.Terminal():
			case was.Status.State == task.AwaitingCompletion && rnd.IntN(2) == 0:
				live[id] = b.do(call(task.Complete, id))
			case rnd.IntN(3) == 0:
				live[id] = b.do(call(task.Cancel, id))
			}
			bubble.Pass(time.Duration(rnd.IntN(3)) * time.Minute)
			for id, t := range live { // they are dropped an hour after their end
				if t.Status.State.Terminal() && time.Since(t.Status.ChangedAt) > time.Hour-time.Second {
					delete(live, id)
				}
			}
			if step%4 > 0 {
				continue
			}
			l := task.List{Size: 1 + rnd.IntN(20), Count: true}
			if rnd.IntN(2) == 0 {
				l.SessionID = sessions[rnd.IntN(3)]
			}
			if rnd.IntN(2) == 0 {
				l.States = []task.State{task.States()[rnd.IntN(len(task.States()))], task.AwaitingInput}
			}
			if rnd.IntN(3) == 0 {
				l.After = time.Now().Add(-time.Duration(rnd.IntN(60)) * time.Minute)
			}
			var want []task.Task
			for _, t := range live {
				if (l.SessionID == "" || t.SessionID == l.SessionID) && (l.After.IsZero() || t.Status.ChangedAt.After(l.After)) &&
					(l.States == nil || slices.Contains(l.States, t.Status.State)) {
					want = append(want, t)
				}
			}
			place := func(t task.Task) replay.ListedLog { return replay.ListedLog{Log: t.ID, At: t.Status.ChangedAt} }
			slices.SortFunc(want, func(a, b task.Task) int { return place(a).Compare(place(b)) })
			var ids, got []string
			for _, t := range want {
				ids = append(ids, t.ID)
			}
			for {
				page, err := b.List(t.Context(), leader, &l, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, t := range page.Tasks {
					got = append(got, t.ID)
				}
				if page.Total != len(want) {
					t.Errorf("%d tasks in all, want %d", page.Total, len(want))
				}
				if l.Token = page.Next; l.Token == "" {
					break
				}
			}
			if d := cmp.Diff(ids, got); d != "" {
				t.Fatalf("%+v (-want +got):\n%s", l, d)
			}
			l.Token = ""
			resuming := l
			resuming.SelfResuming = true
			rest := l
			rest.NotSelfResuming = true
			n := 0
			for _, l := range []*task.List{&resuming, &rest} {
				page, err := b.List(t.Context(), leader, l, nil)
				if err != nil {
					t.Fatal(err)
				}
				n += page.Total
			}
			if n != len(want) {
				t.Errorf("%d that may resume by themselves and others, want %d", n, len(want))
			}
		}
	})
}

// TestStableTokens: a task changing between two pages is on none of the following pages, and moves no other one.
func TestStableTokens(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), byText())
		for i := range 9 {
			b.do(call(task.Start, fmt.Sprint("t", i)))
			bubble.Pass(time.Second)
		}
		l := task.List{Size: 3, Count: true}
		var got []string
		for _, changes := range []string{"t1", "t8", ""} {
			page, err := b.List(t.Context(), leader, &l, nil)
			if err != nil || page.Total != 9 {
				t.Fatalf("%d in all, %v", page.Total, err)
			}
			for _, t := range page.Tasks {
				got = append(got, t.ID)
			}
			if l.Token = page.Next; changes != "" {
				b.do(call(task.Complete, changes))
			}
		}
		if d := cmp.Diff([]string{"t8", "t7", "t6", "t5", "t4", "t3", "t2", "t0"}, got); d != "" || l.Token != "" {
			t.Errorf("more: %q (-want +got):\n%s", l.Token, d)
		}
	})
}

// slowLists is a store with a wait before it reads lists.
type slowLists struct {
	replay.Store
	begun chan string // the list
	goOn  chan struct{}
}

func (s *slowLists) Listed(
	ctx context.Context, list string, after replay.ListedLog,
) iter.Seq2[replay.ListedLog, error] {
	s.begun <- list
	<-s.goOn
	return s.Store.Listed(ctx, list, after)
}

// TestListsInTurn: the lists of one Leader wait for one another, and no other Leader's waits for them. All unverified
// callers are one. A leaving one does not wait any longer.
func TestListsInTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &slowLists{memory(t), make(chan string, 9), make(chan struct{})}
		b := setUp(t, store, byText())
		list := func(ctx context.Context, leader string) chan error {
			done := make(chan error, 1)
			go func() {
				_, err := b.List(ctx, leader, &task.List{States: []task.State{task.Working}}, nil)
				done <- err
			}()
			synctest.Wait()
			return done
		}
		leaving, leave := context.WithCancel(t.Context())
		first, second := list(t.Context(), "unverified:a"), list(t.Context(), "unverified:b")
		third, other := list(leaving, "unverified:a"), list(t.Context(), leader)
		if n := len(store.begun); n != 2 {
			t.Errorf("%d lists are read at once, want one of each caller", n)
		}
		leave()
		if err := <-third; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that has left: %v", err)
		}
		close(store.goOn)
		for _, done := range []chan error{first, second, other} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
