// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// The changes of tasks at several gateways are asked for: each keeps those that a stream has not taken yet, up to a
// bound, and counts the rest. So what a stream leaves out is known, also where answers are lost, or do not come for a
// time.

// maxTails is the greatest number of streams of changes at once: of operators, and of other gateways.
const maxTails = 64

// errTails refuses a stream beyond maxTails.
var errTails = task.Errorf(task.LimitExceeded, "%d streams of tasks are open, which is the most there may be", maxTails)

const (
	askChanges   = 500 * time.Millisecond // between two questions
	forgetTail   = 10 * time.Minute       // without a question, until a tail ends
	quietTail    = 30 * time.Second       // without a question, until a tail makes room for another one
	maxallTailed = 10_000                 // waiting changes of all gateways for one client
	maxTailed    = 1000                   // changes of one gateway for a stream of another one
)

// tailQuestion asks for the changes that the stream with an ID has not seen. The first one begins a tail, and one with
// End ends it.
type tailQuestion struct {
	ID     string
	Filter partner.TaskFilter
	End    bool
	Seen   map[string]uint64 // how many changes of each tail have come, by its name
}

// tailed are the changes at one gateway, and how many came after them that were not kept.
type tailed struct {
	Changes []partner.Change
	Lost    uint64
	Tail    string // the name of the tail, which is another one when it has begun again
	After   uint64 // how many changes of the tail came before
}

// tails are the tails for other gateways, and the way to theirs.
type tails struct {
	tasks   *partner.Process
	service *ask.Service[tailQuestion, tailed]

	mu   sync.Mutex
	open map[string]*askedTail // by the ID of the stream; nil after close
}

// openTails has the gateway answer others.
func openTails(shards *shard.Set, tasks *partner.Process) *tails {
	t := &tails{tasks: tasks, open: make(map[string]*askedTail)}
	t.service = ask.New(shards, "tail", func(_ context.Context, _ int, q tailQuestion) (tailed, error) {
		return t.answer(q)
	})
	return t
}

type askedTail struct {
	*partner.Tail
	unseen tailed // what may not have been seen yet
	forget *time.Timer
	asked  time.Time
}

// answer answers a question.
func (t *tails) answer(q tailQuestion) (tailed, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.End {
		t.end(q.ID)
		return tailed{}, nil
	}
	if t.open == nil {
		return tailed{}, replay.ErrClosed
	}
	one := t.open[q.ID]
	if one == nil {
		if len(t.open) >= maxTails && !t.makeRoom() {
			return tailed{}, errTails
		}
		one = &askedTail{Tail: t.tasks.Tail(q.Filter), forget: time.AfterFunc(forgetTail, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.end(q.ID)
		})}
		one.unseen.Tail = rand.Text()
		t.open[q.ID] = one
	}
	one.forget.Reset(forgetTail)
	one.asked = time.Now()
	one.unseen.see(q.Seen[one.unseen.Tail])
	one.unseen.add(one.Next())
	return one.unseen, nil
}

// makeRoom ends the tail that was asked for least recently, if that is long ago.
func (t *tails) makeRoom() bool {
	var oldest string
	for id, one := range t.open {
		if oldest == "" || one.asked.Before(t.open[oldest].asked) {
			oldest = id
		}
	}
	if time.Since(t.open[oldest].asked) < quietTail {
		return false
	}
	t.end(oldest)
	return true
}

// end ends a tail. t.mu is held.
func (t *tails) end(id string) {
	if one := t.open[id]; one != nil {
		one.forget.Stop()
		one.Close()
		delete(t.open, id)
	}
}

// close ends all tails. Other gateways get none any more.
func (t *tails) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.open {
		t.end(id)
	}
	t.open = nil
}

// last returns the number of all changes of the tail.
func (t *tailed) last() uint64 { return t.After + uint64(len(t.Changes)) + t.Lost }

// see leaves out the seen changes.
func (t *tailed) see(seen uint64) {
	if seen <= t.After {
		return
	}
	n := min(seen, t.last()) - t.After
	kept := min(n, uint64(len(t.Changes)))
	t.Changes, t.Lost, t.After = t.Changes[kept:], t.Lost-(n-kept), t.After+n
}

// add adds changes, and the number of those lost after them.
func (t *tailed) add(changes []partner.Change, lost uint64) {
	n := 0
	if t.Lost == 0 {
		n = min(len(changes), maxTailed-len(t.Changes))
	}
	t.Changes = slices.Concat(t.Changes, changes[:n]) // the answer before may still be written
	t.Lost += uint64(len(changes)-n) + lost
}

// allTail follows the changes of state of the tasks at all gateways.
type allTail struct {
	of     *tails
	q      tailQuestion
	places map[string]*place // by the name of the gateway; used by one goroutine at a time
	stop   context.CancelFunc
	done   chan struct{}
	news   chan struct{}

	mu    sync.Mutex
	found found
}

// place is how far a stream has come with the changes at a gateway.
type place struct {
	tail string
	seen uint64
	gone bool // the gateway is not there any more
}

// found are the waiting changes.
type found struct {
	changes []partner.Change
	lost    uint64
	unknown []string // gateways with an unknown number of lost changes
}

// follow begins to follow the changes at all gateways. It fails if one of them has as many tails as it may.
func (t *tails) follow(ctx context.Context, filter partner.TaskFilter) (*allTail, error) {
	f := &allTail{of: t, q: tailQuestion{ID: rand.Text(), Filter: filter}, places: make(map[string]*place),
		done: make(chan struct{}), news: make(chan struct{}, 1)}
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
func (f *allTail) ask(ctx context.Context) (full error) {
	ctx, done := context.WithTimeout(ctx, node.Patience)
	defer done()
	f.q.Seen = make(map[string]uint64)
	for _, p := range f.places {
		f.q.Seen[p.tail] = p.seen
	}
	asked := make(map[string]bool)
	for answer, err := range f.of.service.All(ctx, f.q) {
		asked[answer.Node] = true
		if err == nil {
			f.take(answer.Node, &answer.Value)
		} else if task.KindOf(err) == task.LimitExceeded {
			full = err
		}
	}
	for name, p := range f.places {
		if !asked[name] && !p.gone {
			p.gone = true
			f.show(found{unknown: []string{name}})
		}
	}
	return full
}

// take takes the answer of a gateway.
func (f *allTail) take(name string, a *tailed) {
	p := f.places[name]
	var fresh found
	if p == nil || p.tail != a.Tail {
		if p != nil && !p.gone {
			fresh.unknown = []string{name} // it was started again, or has not been asked for long
		}
		p = &place{tail: a.Tail}
		f.places[name] = p
	}
	p.gone = false
	a.see(p.seen)
	fresh.changes, fresh.lost = a.Changes, a.Lost
	if a.After > p.seen {
		fresh.lost += a.After - p.seen
	}
	p.seen = a.last()
	f.show(fresh)
}

// show has the client see what is fresh. What it does not take is bounded.
func (f *allTail) show(fresh found) {
	if len(fresh.changes) == 0 && fresh.lost == 0 && len(fresh.unknown) == 0 {
		return
	}
	f.mu.Lock()
	n := min(len(fresh.changes), maxallTailed-len(f.found.changes))
	f.found.changes = append(f.found.changes, fresh.changes[:n]...)
	f.found.lost += uint64(len(fresh.changes)-n) + fresh.lost
	for _, name := range fresh.unknown {
		if !slices.Contains(f.found.unknown, name) {
			f.found.unknown = append(f.found.unknown, name)
		}
	}
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// Next returns what has come since the last time: changes, how many are left out, and the gateways of which that is not
// known.
func (f *allTail) Next() (changes []partner.Change, lost uint64, unknown []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.found
	f.found = found{}
	return now.changes, now.lost, now.unknown
}

// News returns a channel that has a value when there is something new.
func (f *allTail) News() <-chan struct{} { return f.news }

// Close ends the tail, at all gateways.
func (f *allTail) Close() {
	f.stop()
	<-f.done
	ctx, done := context.WithTimeout(context.Background(), node.Patience)
	defer done()
	f.q.End = true
	f.of.service.Tell(ctx, f.q)
}
