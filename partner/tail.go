// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Change is a change of a task's state, as an operator sees it.
type Change struct {
	Partner, Leader, ID string

	Session string
	State   task.State // task.None if the start is now pending
	Since   time.Time  // of State
	Last    uint64     // number of the event of the change; 0 for a pending start
}

// maxTailed is the most changes waiting for the reader of a Tail; later ones are lost.
const maxTailed = 1000

// tails are the open Tails. A task changing its state looks at them without a lock.
type tails struct {
	mu   sync.Mutex // for opening and closing
	list atomic.Pointer[[]*Tail]
}

func (t *tails) replace(change func([]*Tail) []*Tail) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var now []*Tail
	if list := t.list.Load(); list != nil {
		now = slices.Clone(*list)
	}
	now = change(now)
	if len(now) == 0 {
		t.list.Store(nil)
		return
	}
	t.list.Store(&now)
}

// Tail follows the changes of state of the tasks selected by a filter, from its beginning on. The changes wait in
// memory, up to a bound. One goroutine at a time calls Next.
type Tail struct {
	of     *tails
	filter TaskFilter
	news   chan struct{}

	mu   sync.Mutex
	kept []Change
	lost uint64 // changes after those kept
}

// Tail begins to follow the changes of state of the tasks of all engines. The ages and the page of the filter have no
// effect. The caller must call Close.
func (p *Process) Tail(f TaskFilter) *Tail {
	t := &Tail{of: &p.tails, filter: f, news: make(chan struct{}, 1)}
	p.tails.replace(func(list []*Tail) []*Tail { return append(list, t) })
	return t
}

// Next returns the changes since the call before, and the number of later ones, not kept for lack of room.
func (t *Tail) Next() (changes []Change, lost uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changes, lost = t.kept, t.lost
	t.kept, t.lost = nil, 0
	return changes, lost
}

// News returns a channel. It has a value when Next has something to return.
func (t *Tail) News() <-chan struct{} { return t.news }

// Close ends the use of the Tail.
func (t *Tail) Close() {
	t.of.replace(func(list []*Tail) []*Tail {
		return slices.DeleteFunc(list, func(other *Tail) bool { return other == t })
	})
}

func (t *Tail) add(c *Change) {
	if !t.filter.selects(c.Partner, c.Leader, c.ID, c.State) {
		return
	}
	t.mu.Lock()
	if len(t.kept) < maxTailed && t.lost == 0 {
		t.kept = append(t.kept, *c)
	} else {
		t.lost++
	}
	t.mu.Unlock()
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// publish gives a change of the task's state to the Tails. tk.mu is held.
func (tk *activeTask) publish(s task.State, since time.Time) {
	list := tk.engine.process.tails.list.Load()
	if list == nil {
		return
	}
	c := Change{Session: tk.meta.Session, State: s, Since: since, Last: tk.logState.last}
	c.Partner, c.Leader, c.ID = logname.Split(tk.log)
	if tk.meta.Pending != nil {
		c.Session = tk.meta.Pending.SessionID
	}
	for _, t := range *list {
		t.add(&c)
	}
}

// EventTail follows the events of one task. One goroutine at a time uses it.
type EventTail struct {
	logs   replay.Logs
	log    string
	after  uint64
	reader replay.Reader
	news   chan struct{}
}

// TailEvents begins to follow the events of a task, in the logs of its shard, after the one in the filter; the filter's
// Limit has no effect. An error is of kind TaskNotFound if there is no such task. The caller must call Close.
func TailEvents(ctx context.Context, logs replay.Logs, f EventFilter) (*EventTail, error) {
	log := logname.New(f.Partner, f.Leader, f.Task)
	o, err := overviewIn(ctx, logs, log)
	if err != nil {
		return nil, err
	}
	if f.After > o.Last {
		return nil, noSuchEvent(f.After, o.Last)
	}
	return &EventTail{logs: logs, log: log, after: f.After, reader: logs.Read(log, f.After),
		news: make(chan struct{}, 1)}, nil
}

// Next returns the next events, all available at once, up to a page. Without any, News has a value as soon as there are
// some. If events are no longer kept, skipped is the number of the last one left out, and the next call continues after
// it. The error is io.EOF if the task has ended and all its events were returned.
func (t *EventTail) Next(ctx context.Context) (events []StoredEvent, skipped uint64, err error) {
	records, _, err := t.reader.Next(ctx, nil)
	if gone, ok := errors.AsType[*replay.CompactedError](err); ok && gone.First > t.after+1 {
		t.after = gone.First - 1
		t.reader.Close()
		t.reader = t.logs.Read(t.log, t.after)
		return nil, t.after, nil
	}
	for _, r := range records {
		ev, err := storedEvent(r)
		if err != nil {
			return nil, 0, err
		}
		events, t.after = append(events, ev), r.Seq
	}
	if err == nil && len(records) == 0 {
		t.reader.Wake(func() {
			select {
			case t.news <- struct{}{}:
			default:
			}
		})
	}
	return events, 0, err
}

// News returns a channel. After Next has returned nothing, the channel has a value when Next has something to return.
func (t *EventTail) News() <-chan struct{} { return t.news }

// Overview returns the task as it is now.
func (t *EventTail) Overview(ctx context.Context) (Overview, error) {
	return overviewIn(ctx, t.logs, t.log)
}

// Close ends the use of the EventTail.
func (t *EventTail) Close() { t.reader.Close() }
