// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/aip-gateway/aip-gateway/replay"
)

// headSource returns the present head of a log.
type headSource func(ctx context.Context, log string) (head, error)

// holes is the number of times a head is read again because of missing records.
const holes = 20

// load is Load, with the heads of a source.
func (st *stream) load(
	ctx context.Context, log string, source headSource,
) (replay.Head, []byte, []replay.Record, error) {
	for try := 0; ; try++ {
		h, err := source(ctx, log)
		if err != nil {
			return replay.Head{}, nil, nil, err
		}
		snapshot, records, err := st.loadHead(ctx, log, &h)
		if err == nil {
			return h.Head, snapshot, records, nil
		}
		if !errors.Is(err, errHole) || try == holes {
			return replay.Head{}, nil, nil, err
		}
		if err := pause(ctx, time.Duration(try)*retryPause/10); err != nil {
			return replay.Head{}, nil, nil, err
		}
	}
}

func (st *stream) loadHead(ctx context.Context, log string, h *head) (snapshot []byte, all []replay.Record, err error) {
	at := cursor{}
	for after := h.First - 1; after < h.Last && h.After(after) <= h.Last; {
		page, err := st.page(ctx, log, h, after, &at, math.MaxInt64)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, page...)
		after = page[len(page)-1].Seq
	}
	if h.snapshot > 0 {
		m, err := st.last(ctx, st.snapshotSubject(log))
		if err == nil && m.seq > h.seq {
			err = errHole // of a later head
		}
		if err == nil {
			snapshot, err = st.whole(ctx, m)
		}
		if err != nil {
			return nil, nil, holeOr(err)
		}
		if uint64(len(snapshot)) != h.snapshot-1 {
			return nil, nil, errHole
		}
	}
	return snapshot, all, nil
}

// logs implements replay.Logs for a shard possibly owned by another node. It returns the state at the leader of the
// stream: so a caller coming from another node sees the results of its calls there.
type logs struct{ st *stream }

// Load implements replay.Logs.
func (r *logs) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	return r.st.load(ctx, log, r.st.readHead)
}

// Head implements replay.Logs.
func (r *logs) Head(ctx context.Context, log string) (replay.Head, error) {
	h, err := r.st.readHead(ctx, log)
	return h.Head, err
}

// Read implements replay.Logs.
func (r *logs) Read(log string, after uint64) replay.Reader {
	return &reader{st: r.st, log: log, after: after}
}

// Listed implements replay.Logs. Only the owner has the lists: elsewhere it fails with ErrUnavailable.
func (r *logs) Listed(ctx context.Context, list string, after replay.ListedLog) iter.Seq2[replay.ListedLog, error] {
	if s := r.st.opened(); s != nil {
		return s.Listed(ctx, list, after)
	}
	return func(yield func(replay.ListedLog, error) bool) { yield(replay.ListedLog{}, errNotOwner) }
}

// reader implements replay.Reader.
type reader struct {
	st    *stream
	store *Store // nil for a reader going on when the shard moves
	log   string
	after uint64

	f        *followed // nil before a Next has found the log
	life     uint64    // head.begun
	at       cursor
	page     []replay.Record // returned last; nil if nothing of it can be taken again
	taken    int             // bytes of a page that its caller has taken before Rewind; 0 if it has taken the whole
	waiter   replay.Waiter
	position replay.Position
	stalled  bool // the stream did not answer
}

// source returns the present head of the log.
func (r *reader) source(ctx context.Context) (head, error) {
	if r.store != nil {
		return r.store.headOf(ctx, r.log)
	}
	if s := r.st.opened(); s != nil {
		if h, err := s.headOf(ctx, r.log); !errors.Is(err, replay.ErrClosed) {
			return h, err
		}
	}
	return r.st.readHead(ctx, r.log)
}

// Next implements replay.Reader.
func (r *reader) Next(ctx context.Context, reserve replay.Reserve) ([]replay.Record, bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if reserve == nil {
		reserve = func(context.Context, int64) error { return nil }
	}
	if r.store != nil {
		if err := r.store.enter(ctx); err != nil {
			return nil, false, err
		}
		r.store.mu.Unlock()
	}
	if r.f == nil {
		f := r.st.join(r.log)
		h, err := r.source(ctx)
		if err != nil {
			r.st.leave(f)
			return nil, false, err
		}
		f.update(&h, h.seq)
		r.f, r.life = f, h.begun
		f.readers.Join(&r.position, r.after)
	}
	for try := 0; ; try++ {
		h, tail := r.f.state(r.after)
		if h == nil || h.begun != r.life {
			return nil, false, replay.ErrNotFound
		}
		if err := h.Reach(r.after); err != nil {
			return nil, false, err
		}
		if h.After(r.after) > h.Last {
			if !h.Ended.IsZero() {
				return nil, false, io.EOF
			}
			return nil, false, nil
		}
		page, err := tail, error(nil)
		if len(page) == 0 {
			var at cursor
			if page, at = r.st.rests.take(r, h, r.after); len(page) > 0 {
				r.at = at
			}
		}
		if len(page) == 0 {
			if r.at.seq > 0 && r.at.seq < h.begun {
				r.at.reset()
			}
			if err := reserve(ctx, int64(r.next())); err != nil {
				return nil, false, err
			}
			page, err = r.st.page(ctx, r.log, h, r.after, &r.at, pageBytes)
			if large, ok := errors.AsType[*largeError](err); ok {
				// Readers holding some memory and waiting for more could wait for each other.
				if err = reserve(ctx, 0); err == nil {
					err = reserve(ctx, large.size)
				}
				if err != nil {
					return nil, false, err
				}
				page, err = r.st.page(ctx, r.log, h, r.after, &r.at, large.size)
			}
		} else if len(tail) > 0 {
			r.at.reset()
		}
		if err == nil {
			r.stalled = false
			r.page, r.taken = page, 0
			r.after = page[len(page)-1].Seq
			r.position.Move(r.after)
			return page, r.after < h.Last, nil
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if errors.Is(err, errHole) && try < holes {
			r.at.reset()
			if err = pause(ctx, time.Duration(try)*retryPause/10); err != nil {
				return nil, false, err
			}
			h, err2 := r.source(ctx)
			switch {
			case err2 == nil:
				r.f.update(&h, h.seq)
				continue
			case errors.Is(err2, replay.ErrNotFound), errors.Is(err2, replay.ErrClosed):
				return nil, false, err2
			}
			err = err2
		}
		if errors.Is(err, replay.ErrUnavailable) {
			r.stalled = true
			return nil, false, nil
		}
		return nil, false, err
	}
}

// next returns the number of bytes to read next: twice as many as a caller takes who takes pages in parts.
func (r *reader) next() int {
	if r.taken > 0 {
		r.at.bytes = min(max(2*r.taken, leastBytes), pageBytes)
	} else if r.at.bytes > 0 {
		r.at.bytes = min(2*r.at.bytes, pageBytes)
	}
	return cmp.Or(r.at.bytes, pageBytes)
}

// size returns the number of bytes of records.
func size(records []replay.Record) (n int) {
	for i := range records {
		n += len(records[i].Data)
	}
	return n
}

// Wake implements replay.Reader.
func (r *reader) Wake(f func()) {
	r.page = nil // the caller has taken it
	r.waiter.Remove()
	switch {
	case f == nil:
	case r.f == nil:
		f()
	default:
		r.f.waiters.Add(&r.waiter, f)
		if r.stalled {
			time.AfterFunc(stalledPause, r.f.waiters.Call)
		} else if r.ready() && r.waiter.Remove() {
			f()
		}
	}
}

// stalledPause is the wait of a reader after a failed read.
const stalledPause = 500 * time.Millisecond

// ready reports whether Next has something to return.
func (r *reader) ready() bool {
	if r.store != nil {
		r.store.mu.Lock()
		closed := r.store.closed
		r.store.mu.Unlock()
		if closed {
			return true
		}
	}
	h, _ := r.f.state(r.after)
	return h == nil || h.begun != r.life || !h.Ended.IsZero() || h.Last != r.after
}

// Rewind implements replay.Reader.
func (r *reader) Rewind(after uint64) {
	for i := range r.page {
		if r.page[i].Seq > after {
			r.taken = size(r.page[:i])
			r.st.rests.keep(r, rest{r.page[i:], r.at})
			break
		}
	}
	r.after, r.page = after, nil
	r.at.rewind(after)
	r.position.Move(after)
}

// Alone implements replay.Reader.
func (r *reader) Alone() bool { return r.waiter.Alone() }

// Close implements replay.Reader.
func (r *reader) Close() {
	r.waiter.Remove()
	r.page = nil
	r.st.rests.drop(r)
	r.position.Leave()
	if r.f != nil {
		r.st.leave(r.f)
		r.f = nil
	}
}

// followed is a log with readers in this process.
type followed struct {
	st      *stream
	log     string
	refs    int // guarded by stream.mu
	waiters replay.Waiters
	readers replay.Positions

	mu    sync.Mutex // guards all below
	head  *head      // nil for a log that does not exist, or not known yet
	seq   uint64     // of the head
	tail  []replay.Record
	bytes int // of the tail

	watched bool               // while another node owns the shard
	sub     *nats.Subscription // to the republished messages; nil if that failed
}
