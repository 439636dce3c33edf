// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Store is the store of a shard for the node owning it.
type Store struct {
	st    *stream
	owner Owner
	ctx   context.Context // of the goroutines
	stop  context.CancelFunc
	work  sync.WaitGroup
	kick  chan struct{} // has a value when there may be something to write
	purge chan struct{} // has a value when there may be something to purge
	last  uint64        // sequence of the last message of the stream; run's own

	mu          sync.Mutex // guards all below
	index       *replay.Index[entry]
	recent      *simplelru.LRU[string, []byte] // the records in the heads of logs used last
	queue       []*op
	pending     []*op // being written
	purges      purges
	drops       []drop // oldest first
	marking     uint64 // the last sequence to be marked by this owner
	written     uint64 // the last one that is
	closed      bool
	isFenced    bool
	fenced      chan struct{}
	unavailable bool
	unread      time.Time // when a read was given up since; zero for none
	reopened    chan struct{}
}

// entry is the data of a log in a Store beside its head.
type entry struct {
	begun    uint64
	seq      uint64 // of the head
	snapshot uint64 // its size + 1
	inline   uint64 // number of the first record in the head; 0 for none
}

// awake is the number of logs of a shard whose heads are kept ready: more than those appended to within a moment.
const awake = 256

// entry returns what is of a head in an entry.
func (h *head) entry() entry { return entry{h.begun, h.seq, h.snapshot, h.inline.first} }

func newIndex(s replay.Settings) *replay.Index[entry] { return replay.NewIndex(s, awake, packing) }

// packing packs entries.
var packing = replay.Packing[entry]{
	Append: func(b []byte, e entry) []byte {
		b = binary.AppendUvarint(b, e.begun)
		b = binary.AppendUvarint(b, e.seq-e.begun)
		b = binary.AppendUvarint(b, e.snapshot)
		return binary.AppendUvarint(b, e.inline)
	},
	Parse: func(p *replay.Numbers) entry {
		begun := p.Next()
		return entry{begun, begun + p.Next(), p.Next(), p.Next()}
	},
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// enter locks s and drops the expired logs. If it returns an error, s is not locked.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		defer s.mu.Unlock()
		return s.endErr()
	}
	s.dropExpired()
	return nil
}

// enterToWrite is enter for calls that need the stream.
func (s *Store) enterToWrite(ctx context.Context) error {
	err := s.enter(ctx)
	if err != nil {
		return err
	}
	switch {
	case s.isFenced:
		err = replay.ErrFenced
	case s.unavailable:
		err = s.st.unavailable()
	default:
		return nil
	}
	s.mu.Unlock()
	return err
}

// endErr returns the error of calls after the end. s.mu is held.
func (s *Store) endErr() error {
	if s.isFenced {
		return replay.ErrFenced
	}
	return replay.ErrClosed
}

// dropExpired drops expired logs, and logs for which there is no room. s.mu is held.
func (s *Store) dropExpired() {
	now := time.Now()
	dropped := false
	for s.mayDrop() {
		log, ok := s.index.Expired(now)
		if !ok {
			log, ok = s.index.Surplus(0, "", now)
		}
		if !ok {
			break
		}
		s.remove(log)
		s.st.drop(log)
		s.queue = append(s.queue, &op{dropped: log, done: make(chan struct{})})
		dropped = true
	}
	if dropped {
		signal(s.kick)
	}
}

// expire drops logs expiring while no method is called, and has the dropped ones purged.
func (s *Store) expire() {
	defer s.work.Done()
	for pause(s.ctx, time.Second) == nil {
		if s.enter(s.ctx) == nil {
			s.markDropped()
			s.mu.Unlock()
		}
	}
}

// Append implements replay.Store. Every append is synced by a quorum before it returns.
func (s *Store) Append(ctx context.Context, a replay.Append) error {
	o := &op{ctx: ctx, a: &a, begun: time.Now(), done: make(chan struct{})}
	var err error
	if a.Trim > 0 && !a.Drop {
		if o.trim, err = s.trimmed(ctx, &a); err != nil {
			return err
		}
	}
	if a.Expect > 0 && !a.Drop {
		if o.base, err = s.base(ctx, a.Log); err != nil && !errors.Is(err, replay.ErrNotFound) {
			return err
		}
	}
	if err = s.enterToWrite(ctx); err != nil {
		return err
	}
	s.queue = append(s.queue, o)
	s.mu.Unlock()
	signal(s.kick)
	<-o.done
	if o.err == nil && o.awake != nil {
		o.awake.waiters.Appended()
	}
	return o.err
}

// Confirm returns nil if the owner could append after the call had begun: it writes a batch empty but for its fence. No
// deposed leader acknowledges it. The error is ErrFenced if another node has claimed the shard.
func (s *Store) Confirm(ctx context.Context) error {
	o := &op{ctx: ctx, done: make(chan struct{})}
	if err := s.enter(ctx); err != nil {
		return err
	}
	if s.isFenced {
		defer s.mu.Unlock()
		return replay.ErrFenced
	}
	s.queue = append(s.queue, o)
	s.mu.Unlock()
	signal(s.kick)
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.queue = slices.DeleteFunc(s.queue, func(other *op) bool { return other == o })
		return ctx.Err()
	}
}

// apply changes the index by a written op. seq is the sequence of the op's last message. s.mu is held.
func (s *Store) apply(o *op, seq uint64) {
	if o.confirms() {
		return
	}
	if o.marks > 0 {
		s.marked(o.marks)
		return
	}
	if o.a == nil {
		s.dropped(o.dropped, seq)
		return
	}
	s.st.appends.Add(time.Since(o.begun))
	log := o.a.Log
	if o.a.Drop {
		if _, found := s.index.Value(log); found {
			s.remove(log)
			o.awake = s.st.drop(log)
		}
		s.dropped(log, seq)
		return
	}
	first := max(o.first, 1)
	within := o.entry.inline > 0 && o.entry.inline <= first // all records were in the head
	trimmed := o.head.First > first && !within
	o.head.seq = seq
	if o.head.inline.first > 0 && !o.a.End {
		s.recent.Add(log, o.head.inline.data)
	} else {
		s.recent.Remove(log)
	}
	s.index.Set(log, o.head.entry(), o.head.Head, o.size, o.head.expires)
	if trimmed {
		s.later(purge{s.st.prefix + token(log) + ".r.>", o.trim.before})
	}
	records := o.a.Records
	if o.answered.Load() {
		records = nil // they are the writer's again
	}
	if f := s.st.appended(log, &o.head, records); f != nil && (len(o.a.Records) > 0 || o.a.End) {
		o.awake = f
	}
	s.dropExpired()
}

// remove takes a log out of what the store knows. s.mu is held.
func (s *Store) remove(log string) {
	s.index.Remove(log)
	s.recent.Remove(log)
}

// fence ends the store because another node has claimed the shard.
func (s *Store) fence() {
	s.mu.Lock()
	first := !s.isFenced
	if first {
		s.isFenced = true
		close(s.fenced)
		s.stop()
	}
	s.mu.Unlock()
	if first {
		s.st.left(s)
	}
}

// Fenced returns a channel that is closed when an append was refused because another node has claimed the shard.
func (s *Store) Fenced() <-chan struct{} { return s.fenced }

// Release writes an owner's record without a node, and closes the store. The error is ErrFenced if another node has
// claimed the shard.
func (s *Store) Release(ctx context.Context) error {
	if err := s.Close(); err != nil {
		return err
	}
	_, err := s.st.claim(ctx, s.owner, "", "")
	if errors.Is(err, ErrClaimed) {
		err = replay.ErrFenced
	}
	return err
}

// Owner returns the owner's record written at the claim of the shard.
func (s *Store) Owner() Owner { return s.owner }

// Head implements replay.Store.
func (s *Store) Head(ctx context.Context, log string) (replay.Head, error) {
	h, err := s.headOf(ctx, log)
	return h.Head, err
}

// headOf returns the head of a log with the driver's data beside it.
func (s *Store) headOf(ctx context.Context, log string) (head, error) {
	if err := s.enter(ctx); err != nil {
		return head{}, err
	}
	defer s.mu.Unlock()
	h, found := s.known(log)
	if !found {
		return head{}, replay.ErrNotFound
	}
	return h, nil
}

// known returns the head of a log, if there is one. s.mu is held.
func (s *Store) known(log string) (_ head, found bool) {
	l, found := s.index.Use(log)
	if !found {
		return head{}, false
	}
	data, _ := s.recent.Get(log)
	return head{Head: l.Head, seq: l.Value.seq, begun: l.Value.begun, snapshot: l.Value.snapshot,
		inline: inlined{l.Value.inline, data}}, true
}

// Load implements replay.Store.
func (s *Store) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	limited, done, err := s.reading(ctx)
	if err != nil {
		return replay.Head{}, nil, nil, err
	}
	defer done()
	h, snapshot, records, err := s.st.load(limited, log, s.headOf)
	return h, snapshot, records, s.failedRead(ctx, err)
}

// Read implements replay.Store.
func (s *Store) Read(log string, after uint64) replay.Reader {
	return &reader{st: s.st, store: s, log: log, after: after}
}

// Unread implements replay.Store.
func (s *Store) Unread(log string, seq uint64) bool {
	s.mu.Lock()
	l, found := s.index.Get(log)
	s.mu.Unlock()
	f := s.st.follower(log)
	return found && f != nil && f.readers.Unread(l.Head.First, seq)
}

// Due implements replay.Store.
func (s *Store) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[replay.DueLog, error] {
	return s.index.Due(ctx, s.enter, s.mu.Unlock, class, from, until)
}

// List implements replay.Store.
func (s *Store) List(ctx context.Context, prefix, after string) iter.Seq2[replay.Entry, error] {
	return s.index.Entries(ctx, s.enter, s.mu.Unlock, prefix, after)
}

// Listed implements replay.Store.
func (s *Store) Listed(
	ctx context.Context, list string, after replay.ListedLog,
) iter.Seq2[replay.ListedLog, error] {
	return s.index.Listed(ctx, s.enter, s.mu.Unlock, list, after)
}

// Configure implements replay.Store. An ended log keeps the retention it ended with.
func (s *Store) Configure(settings replay.Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.Configure(settings)
	if !s.closed {
		s.dropExpired()
	}
}

// Close implements replay.Store. The owner's record stays as it is.
func (s *Store) Close() error {
	s.mu.Lock()
	closing := !s.closed
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	if !closing {
		return nil
	}
	s.mu.Lock()
	s.queue = nil // has drops alone: run has answered the appends
	s.index.Clear()
	s.recent.Purge()
	s.mu.Unlock()
	s.st.left(s)
	return nil
}
