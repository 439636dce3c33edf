// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Store is the store of a shard for the node that has claimed it.
type Store struct {
	st    *stream
	owner Owner
	ctx   context.Context // of the goroutines
	stop  context.CancelFunc
	work  sync.WaitGroup
	kick  chan struct{} // has a value when there may be something to write
	purge chan struct{} // has a value when there may be something to purge
	last  uint64        // sequence of the last message at the subject of batches; run's own

	mu          sync.Mutex // guards all below
	index       *replay.Index[entry]
	queue       []*op
	pending     []*op // that are being written
	purges      []purge
	closed      bool
	isFenced    bool
	fenced      chan struct{}
	unavailable bool
	reopened    chan struct{}
}

// entry is what a Store has of a log beside its head.
type entry struct {
	begun    uint64
	seq      uint64 // of the head
	snapshot uint64 // its size + 1
}

type indexed = replay.Indexed[entry]

// purge says what is to be purged.
type purge struct {
	subject string
	before  uint64
}

// openStore reads the heads of all logs, and returns their store.
func openStore(ctx context.Context, st *stream, owner Owner) (*Store, error) {
	s := &Store{st: st, owner: owner, kick: make(chan struct{}, 1), purge: make(chan struct{}, 1),
		index: replay.NewIndex[entry](st.config.Settings), fenced: make(chan struct{}), reopened: make(chan struct{})}
	m, err := st.last(ctx, st.batchSubject)
	if err != nil && !errors.Is(err, errNoMessage) {
		return nil, err
	}
	s.last = m.seq
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("the logs of the shard %d cannot be read: %w", st.shard, err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.work.Add(3)
	go s.run()
	go s.clean()
	go s.expire()
	st.mu.Lock()
	st.local = s
	st.mu.Unlock()
	signal(s.purge)
	return s, nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// load reads all heads. The consumer may be at a replica that lags, so it has read all when it has read the owner's
// record, which is younger than they are.
func (s *Store) load(ctx context.Context) error {
	c, err := s.st.js.OrderedConsumer(ctx, s.st.name, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{s.st.prefix + "*.h", s.st.ownerSubject},
	})
	if err != nil {
		return unavailable(err)
	}
	// A pull that the server has lost is asked for again soon: by default, that takes 10 s and more.
	all, err := c.Messages(jetstream.PullExpiry(time.Second), jetstream.PullHeartbeat(500*time.Millisecond))
	if err != nil {
		return unavailable(err)
	}
	defer all.Stop()
	for {
		m, err := all.Next(jetstream.NextContext(ctx))
		if err != nil {
			return unavailable(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		seq := meta.Sequence.Stream
		if seq == s.owner.Epoch {
			return nil
		}
		if m.Subject() == s.st.ownerSubject {
			continue
		}
		name, _, err := logOf(s.st.prefix, m.Subject())
		if err != nil {
			return err
		}
		if len(m.Data()) == 0 { // a log that was dropped, whose purge may have been missed
			s.purges = append(s.purges, purge{s.st.prefix + token(name) + ".>", seq + 1})
			continue
		}
		data, err := s.st.whole(ctx, message{m.Subject(), seq, m.Data()})
		if err != nil {
			return fmt.Errorf("the log %.100q: %w", name, err)
		}
		h, err := parseHead(data)
		if err != nil {
			return fmt.Errorf("the log %.100q: %w", name, err)
		}
		l := &indexed{Name: name, Expires: h.expires, Value: entry{begun: h.begun, seq: seq, snapshot: h.snapshot}}
		s.index.Set(l, h.Head, sizeOf(name, &h))
	}
}

// unavailable returns an error of the client's as one of the store's.
func unavailable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", replay.ErrUnavailable, err)
}

// endErr returns the error of calls that come after the end. s.mu is not held.
func (s *Store) endErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isFenced {
		return replay.ErrFenced
	}
	return replay.ErrClosed
}

// enter locks s and drops what has expired. Where it returns an error, s is not locked.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return replay.ErrClosed
	}
	s.dropExpired()
	return nil
}

// dropExpired drops logs that have expired, or for which there is no room. s.mu is held.
func (s *Store) dropExpired() {
	now := time.Now()
	dropped := false
	for {
		l := s.index.Expired(now)
		if l == nil {
			l = s.index.Surplus(0, nil, now)
		}
		if l == nil {
			break
		}
		s.index.Remove(l)
		s.st.drop(l)
		s.queue = append(s.queue, &op{dropped: l.Name, done: make(chan struct{})})
		dropped = true
	}
	if dropped {
		signal(s.kick)
	}
}

// expire drops what expires while no method is called.
func (s *Store) expire() {
	defer s.work.Done()
	for pause(s.ctx, time.Second) == nil {
		if s.enter(s.ctx) == nil {
			s.mu.Unlock()
		}
	}
}

// Append implements replay.Store. Every append is synced by a quorum before it returns.
func (s *Store) Append(ctx context.Context, a replay.Append) error {
	o := &op{ctx: ctx, a: &a, done: make(chan struct{})}
	if a.Trim > 0 && !a.Drop {
		var err error
		if o.trim, err = s.trimmed(ctx, &a); err != nil {
			return err
		}
	}
	if err := s.enter(ctx); err != nil {
		return s.fencedErr(err)
	}
	if s.isFenced {
		s.mu.Unlock()
		return replay.ErrFenced
	}
	if s.unavailable {
		s.mu.Unlock()
		return fmt.Errorf("the stream %s: %w", s.st.name, replay.ErrUnavailable)
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

func (s *Store) fencedErr(err error) error {
	if errors.Is(err, replay.ErrClosed) {
		return s.endErr()
	}
	return err
}

// apply changes the index as an op says that has been written. seq is that of the op's last message. s.mu is held.
func (s *Store) apply(o *op, seq uint64) {
	if o.a == nil {
		s.later(purge{s.st.prefix + token(o.dropped) + ".>", seq + 1})
		return
	}
	s.st.appends.Add(1)
	l := o.log
	if o.a.Drop {
		if s.index.Get(l.Name) == l {
			s.index.Remove(l)
			o.awake = s.st.drop(l)
		}
		s.later(purge{s.st.prefix + token(l.Name) + ".>", seq + 1})
		return
	}
	trimmed := o.head.First > max(l.Head.First, 1)
	l.Value.seq, l.Value.snapshot = seq, o.head.snapshot
	s.index.Set(l, o.head.Head, o.size)
	if trimmed {
		s.later(purge{s.st.prefix + token(l.Name) + ".r.>", o.trim.before})
	}
	records := o.a.Records
	if o.answered.Load() {
		records = nil // they are the writer's again
	}
	if f := s.st.appended(l, &o.head, seq, records); f != nil && (len(o.a.Records) > 0 || o.a.End) {
		o.awake = f
	}
	s.dropExpired()
}

// trim is what an append drops.
type trim struct {
	revision uint64 // of the log when it was looked up
	kept     int64  // bytes of the records that are kept, without those of the append
	before   uint64 // sequence before which no message has records that are kept; 0 if those of the append alone are kept
}

// trimmed looks up what an append drops.
func (s *Store) trimmed(ctx context.Context, a *replay.Append) (t trim, err error) {
	if err := s.enter(ctx); err != nil {
		return t, s.fencedErr(err)
	}
	l := s.index.Get(a.Log)
	var h head
	if l != nil {
		h = head{Head: l.Head, begun: l.Value.begun}
	}
	s.mu.Unlock()
	if t.revision = h.Revision; l == nil || a.Expect != h.Revision || a.Trim < h.First || a.Trim >= h.Last {
		return t, nil
	}
	at := cursor{}
	for after := a.Trim; after < h.Last; {
		records, err := s.st.page(ctx, a.Log, &h, after, &at)
		if err != nil {
			if errors.Is(err, errHole) {
				return t, replay.ErrConflict
			}
			return t, s.failedRead(err)
		}
		if t.before == 0 {
			t.before = at.first
		}
		for _, r := range records {
			t.kept += int64(len(r.Data))
			after = r.Seq
		}
	}
	return t, nil
}

// later has something purged. s.mu is held.
func (s *Store) later(p purge) {
	s.purges = append(s.purges, p)
	signal(s.purge)
}

// clean purges what was dropped.
func (s *Store) clean() {
	defer s.work.Done()
	for {
		select {
		case <-s.purge:
		case <-s.ctx.Done():
			return
		}
		for s.ctx.Err() == nil {
			s.mu.Lock()
			if len(s.purges) == 0 {
				s.mu.Unlock()
				break
			}
			p := s.purges[0]
			s.purges = s.purges[1:]
			s.mu.Unlock()
			if err := s.st.purge(s.ctx, p.subject, p.before); err != nil && s.ctx.Err() == nil {
				if !errors.Is(err, replay.ErrUnavailable) {
					s.st.config.Log.Error("what was dropped cannot be purged", "stream", s.st.name, "error", err)
					continue
				}
				s.mu.Lock()
				s.later(p)
				s.mu.Unlock()
			}
		}
	}
}

// suspend answers what is being written, and all that is queued, with ErrUnavailable: it takes too long until it is
// known what becomes of it.
func (s *Store) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		return
	}
	s.st.config.Log.Warn("appends take too long; the store is unavailable until it is known what becomes of them",
		"stream", s.st.name)
	s.unavailable = true
	var left []*op
	for _, o := range s.queue {
		if o.a == nil {
			left = append(left, o)
		}
	}
	err := fmt.Errorf("the stream %s: %w", s.st.name, replay.ErrUnavailable)
	for _, o := range slices.Concat(s.pending, s.queue) {
		if o.a != nil {
			o.answer(err)
		}
	}
	s.queue = left
}

// available says that the stream can be written.
func (s *Store) available() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unavailable {
		s.unavailable = false
		close(s.reopened)
		s.reopened = make(chan struct{})
	}
}

// failedRead takes note of a read that has failed.
func (s *Store) failedRead(err error) error {
	if errors.Is(err, replay.ErrUnavailable) {
		s.mu.Lock()
		s.unavailable = true
		s.mu.Unlock()
		signal(s.kick)
	}
	return err
}

// fence ends the store because another node has claimed the shard.
func (s *Store) fence() {
	s.mu.Lock()
	first := !s.isFenced
	if first {
		s.isFenced = true
		close(s.fenced)
		s.st.fences.Add(1)
		s.stop()
	}
	s.mu.Unlock()
	if first {
		s.st.left(s)
	}
}

// Fenced returns a channel that is closed when an append was refused because another node has claimed the shard.
func (s *Store) Fenced() <-chan struct{} { return s.fenced }

// Release writes an owner's record that names no node, and closes the store. The error is ErrFenced if another node has
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

// Owner returns the owner's record with which the shard was claimed.
func (s *Store) Owner() Owner { return s.owner }

// Head implements replay.Store.
func (s *Store) Head(ctx context.Context, log string) (replay.Head, error) {
	if err := s.enter(ctx); err != nil {
		return replay.Head{}, err
	}
	defer s.mu.Unlock()
	l := s.index.Get(log)
	if l == nil {
		return replay.Head{}, replay.ErrNotFound
	}
	s.index.Touch(l)
	return l.Head, nil
}

// headOf returns the head of a log with what the driver has beside it.
func (s *Store) headOf(ctx context.Context, log string) (head, uint64, error) {
	if err := s.enter(ctx); err != nil {
		return head{}, 0, err
	}
	defer s.mu.Unlock()
	l := s.index.Get(log)
	if l == nil {
		return head{}, 0, replay.ErrNotFound
	}
	s.index.Touch(l)
	return head{Head: l.Head, begun: l.Value.begun, snapshot: l.Value.snapshot}, l.Value.seq, nil
}

// Load implements replay.Store.
func (s *Store) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	h, snapshot, records, err := s.st.load(ctx, log, s.headOf)
	return h, snapshot, records, s.failedRead(err)
}

// Read implements replay.Store.
func (s *Store) Read(log string, after uint64) replay.Reader {
	return &reader{st: s.st, store: s, log: log, after: after}
}

// Unread implements replay.Store.
func (s *Store) Unread(log string, seq uint64) bool {
	s.mu.Lock()
	l := s.index.Get(log)
	first := uint64(0)
	if l != nil {
		first = l.Head.First
	}
	s.mu.Unlock()
	f := s.st.follower(log)
	return l != nil && f != nil && f.readers.Unread(first, seq)
}

// Due implements replay.Store. It goes through all logs that have a DueAt.
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

// Reopened implements replay.Store.
func (s *Store) Reopened() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reopened
}

// Writable implements replay.Store.
func (s *Store) Writable() error {
	if err := s.enter(context.Background()); err != nil {
		return s.fencedErr(err)
	}
	defer s.mu.Unlock()
	switch {
	case s.isFenced:
		return replay.ErrFenced
	case s.unavailable:
		return fmt.Errorf("the stream %s: %w", s.st.name, replay.ErrUnavailable)
	}
	return nil
}

// Configure implements replay.Store. A log that has ended keeps the retention that it ended with.
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
	queue := s.queue
	s.queue = nil
	s.index.Clear()
	s.mu.Unlock()
	for _, o := range queue {
		o.answer(s.endErr())
	}
	s.st.left(s)
	return nil
}
