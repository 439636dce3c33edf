// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/shard/ask"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
)

// The changes of tasks at several gateways are asked for: each keeps those that a stream has not asked for yet, as it
// keeps them for streams of its own.

const (
	askChanges   = 500 * time.Millisecond // how often
	forgetTail   = 30 * time.Second       // without a question, after which a tail ends
	maxAllTailed = 10_000                 // changes of all gateways that wait for one client
)

// tailQuestion asks for the changes since the question before with the same ID. The first one begins a tail, and one
// with End ends it.
type tailQuestion struct {
	ID     string
	Filter partner.TaskFilter
	End    bool
}

// tailed are the changes at one gateway.
type tailed struct {
	Changes []partner.Change
	Lost    uint64
}

// tails are those that other gateways ask for. The zero value is ready for use.
type tails struct {
	mu   sync.Mutex
	open map[string]*askedTail
}

type askedTail struct {
	*partner.Tail
	forget *time.Timer
}

// answer answers a question.
func (t *tails) answer(p *partner.Process, q tailQuestion) (a tailed, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.open[q.ID]
	switch {
	case q.End:
		t.end(q.ID)
		return a, nil
	case one == nil && len(t.open) >= maxTails:
		return a, errTails
	case one == nil:
		one = &askedTail{Tail: p.Tail(q.Filter), forget: time.AfterFunc(forgetTail, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.end(q.ID)
		})}
		if t.open == nil {
			t.open = make(map[string]*askedTail)
		}
		t.open[q.ID] = one
	}
	one.forget.Reset(forgetTail)
	a.Changes, a.Lost = one.Next()
	return a, nil
}

// end ends a tail. t.mu is held.
func (t *tails) end(id string) {
	if one := t.open[id]; one != nil {
		one.forget.Stop()
		one.Close()
		delete(t.open, id)
	}
}

// openTails has the gateway answer others.
func (o *openStore) openTails() {
	o.tailing = ask.New(o.shards, "tail", func(_ context.Context, _ int, q tailQuestion) (tailed, error) {
		return o.tails.answer(o.tasks.Process(), q)
	})
}

// allFollower sends the changes of state of the tasks at all gateways.
type allFollower struct {
	o    *openStore
	q    tailQuestion
	stop context.CancelFunc
	done chan struct{}
	news chan struct{}

	mu    sync.Mutex
	found tailed
}

// followAll begins to follow the changes at all gateways. It fails if one of them has as many tails as it may.
func followAll(ctx context.Context, o *openStore, filter partner.TaskFilter) (follower, error) {
	f := &allFollower{o: o, q: tailQuestion{ID: rand.Text(), Filter: filter}, done: make(chan struct{}),
		news: make(chan struct{}, 1)}
	ctx, f.stop = context.WithCancel(ctx)
	if full := f.ask(ctx); full != nil {
		close(f.done)
		f.Close()
		return nil, full
	}
	go func() {
		defer close(f.done)
		ticker := time.NewTicker(askChanges)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = f.ask(ctx) // a gateway that has forgotten the tail may refuse to begin it again
			case <-ctx.Done():
				return
			}
		}
	}()
	return f, nil
}

// ask asks all gateways. One that does not answer keeps its changes, up to a bound. The error is that of one which has
// as many tails as it may.
func (f *allFollower) ask(ctx context.Context) (full error) {
	ctx, done := context.WithTimeout(ctx, nodesPatience)
	defer done()
	for answer, err := range f.o.tailing.All(ctx, f.q) {
		if err != nil {
			if task.KindOf(err) == task.LimitExceeded {
				full = err
			}
			continue
		}
		f.mu.Lock()
		f.found.Changes = append(f.found.Changes, answer.Value.Changes...)
		f.found.Lost += answer.Value.Lost
		if n := len(f.found.Changes) - maxAllTailed; n > 0 {
			f.found.Changes, f.found.Lost = f.found.Changes[:maxAllTailed], f.found.Lost+uint64(n)
		}
		some := len(f.found.Changes) > 0 || f.found.Lost > 0
		f.mu.Unlock()
		if some {
			select {
			case f.news <- struct{}{}:
			default:
			}
		}
	}
	return full
}

func (f *allFollower) gather(_ context.Context, s *sseproxy.Writer) (more bool, err error) {
	f.mu.Lock()
	found := f.found
	f.found = tailed{}
	f.mu.Unlock()
	return len(found.Changes) > 0, f.o.sendChanges(s, found.Changes, found.Lost)
}

func (f *allFollower) News() <-chan struct{} { return f.news }

func (f *allFollower) Close() {
	f.stop()
	<-f.done
	ctx, done := context.WithTimeout(context.Background(), nodesPatience)
	defer done()
	f.q.End = true
	f.o.tailing.Tell(ctx, f.q)
}
