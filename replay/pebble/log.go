// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/replay"
)

// log is the store's memory of a log in use now or lately.
type log struct {
	name  string
	of    *logs
	entry *keylock.Entry[log]

	waiters   replay.Waiters   // of the readers having caught up
	positions replay.Positions // of all readers

	// resting is the head with its metadata, and with the entry inline in it, if that is known: if both are short, and the
	// last change was durable or the head was read since. A resting task is asked for again and again, or continued by its
	// caller's next command, and neither should wait for the backlog. Guarded by write.
	resting head
	rests   bool // resting is known

	storedMetadata []byte // of a stored head with head.followed; guarded by write

	// A goroutine changing the log holds write until the change is committed. So nothing a power loss may still take is
	// read or followed. Commits of different logs go together.
	write sync.Mutex

	mu    sync.Mutex // guards the fields below; they are written under write and mu both
	known bool       // head has been read
	head  head       // as committed, without Metadata
	drops uint64     // the number of drops of the log

	// The tail has the records still to be read by the readers that are behind. It is empty when there is none.
	tail    tail
	version uint64 // the number of times records were added, or the log was dropped
	readers int
	behind  int // readers with another version than the log: they may hold records of the tail, or will
}

// publish makes h the head of l. Its readers see it from then on, with the added records. The caller holds l.write, and
// calls l.waiters when it holds no lock any more.
func (l *log) publish(h head, added [][]byte) {
	switch {
	case !h.followed:
		l.storedMetadata = nil
	case !bytes.Equal(l.storedMetadata, h.Metadata):
		l.storedMetadata = bytes.Clone(h.Metadata)
	}
	h.Metadata, h.entry, l.resting, l.rests = nil, nil, head{}, false
	l.mu.Lock()
	defer l.mu.Unlock()
	if dropped := l.known && l.head.First > 0 && h.First == 0; dropped {
		l.drops++
		l.changed()
		l.tail.shrink(0, &l.of.tails)
	} else if len(added) > 0 && l.readers > 0 {
		l.changed()
		l.tail.add(added, h.Last, &l.of.tails)
	}
	l.known, l.head = true, h
}

// rest keeps the just published head of l for the next request, with its metadata and the results of setRecords. The
// caller holds l.write.
func (l *log) rest(h *head, metadata, inline []byte, records [][]byte) {
	size := 0
	if h.inline {
		size = entryLen(inline, records)
	}
	if len(metadata)+size > restingMost {
		return
	}
	b := append(make([]byte, 0, len(metadata)+size), metadata...)
	l.resting, l.rests = *h, true
	l.resting.Metadata = b[:len(b):len(b)]
	if h.inline {
		l.resting.entry = appendEntry(b, inline, records)[len(metadata):]
	}
	l.resting.DueAt = stampOf(h.DueAt).time() // as it is stored
}

// changed has all readers be behind. The caller holds l.mu.
func (l *log) changed() {
	l.version++
	l.behind = l.readers
}

// join adds a reader; it is behind.
func (l *log) join(r *reader) {
	l.positions.Join(&r.position, r.after)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version == 0 {
		l.version = 1
	}
	l.readers++
	l.behind++
	r.version = 0
}

// catchUp makes r a reader that has read all records, and holds none of the tail. The caller holds l.mu.
func (l *log) catchUp(r *reader) {
	if r.version == l.version {
		return
	}
	r.version = l.version
	if l.behind--; l.behind == 0 {
		l.tail.empty(&l.of.tails)
	}
}

// leave removes a reader; it holds no records of the tail any more.
func (l *log) leave(r *reader) {
	r.position.Leave()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catchUp(r)
	if l.readers--; l.readers == 0 {
		l.tail = tail{}
	}
}

// read makes l.head known. The caller holds l.write.
func (l *log) read(g *generation) error {
	if l.known {
		return nil
	}
	if _, err := l.stored(g, false); !errors.Is(err, replay.ErrNotFound) {
		return err
	}
	return nil
}

// stored returns the head as it is stored, with the metadata, and on request with the entry inline in it. It makes
// l.head known. The error is replay.ErrNotFound if there is none. It takes one look-up, or none if the head was read
// before, or the filter of names does not have the log. The caller holds l.write.
func (l *log) stored(g *generation, entry bool) (head, error) {
	if l.known && l.head.First == 0 {
		return head{}, replay.ErrNotFound
	}
	if l.rests && (!entry || !l.resting.inline || l.resting.entry != nil) {
		return l.resting, nil
	}
	if !l.known || l.head.pending {
		if h, ok := l.of.intents.get(l.name); ok {
			if !l.known {
				l.publish(h, nil)
			}
			return h, nil
		}
	}
	if !l.known && !l.of.filter.Load().mayHave(l.name) {
		l.publish(head{}, nil)
		return head{}, replay.ErrNotFound
	}
	db := g.committedOf(l.name)
	h, closer, err := storedHead(db, l.name, l.of.losses.Load())
	switch {
	case errors.Is(err, replay.ErrNotFound) && l.known:
		return head{}, errDamaged
	case errors.Is(err, replay.ErrNotFound):
		l.publish(head{}, nil)
		return head{}, err
	case err != nil:
		return head{}, err
	}
	h.Metadata = bytes.Clone(h.Metadata)
	if entry {
		h.entry = bytes.Clone(h.entry)
	} else {
		h.entry = nil
	}
	if err := closer.Close(); err != nil {
		return head{}, err
	}
	if l.known {
		h.Revision, h.Last, h.Bytes, h.entries = l.head.Revision, l.head.Last, l.head.Bytes, l.head.entries
	} else {
		if err := h.follow(db, l.name); err != nil {
			return head{}, err
		}
		l.publish(h, nil)
	}
	if len(h.Metadata)+len(h.entry) <= restingMost {
		l.resting, l.rests = h, true
	}
	return h, nil
}

// keyBuffers are for the keys of looked-up heads. A longer key has a buffer of its own.
var keyBuffers = sync.Pool{New: func() any { return new([nameKeyBuffer]byte) }}

const nameKeyBuffer = 256

// storedHead returns a head as it is stored, in a store with so many losses. Its Metadata and entry are valid until
// closer is closed. The error is replay.ErrNotFound if there is none.
func storedHead(db *pebble.DB, log string, losses uint64) (_ head, closer io.Closer, err error) {
	// Many looked-up logs do not exist (see nameFilter). DB.Get does not ask the filters of the last level for them, and
	// takes seven times as long in a store of a million logs.
	it, err := db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return head{}, nil, err
	}
	buf := keyBuffers.Get().(*[nameKeyBuffer]byte)
	found := it.SeekPrefixGE(appendNameKey(buf[:0], spaceHead, log)) // a prefix is a whole key
	keyBuffers.Put(buf)
	if !found {
		return head{}, nil, cmp.Or(it.Close(), replay.ErrNotFound)
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return head{}, nil, errors.Join(err, it.Close())
	}
	h, err := parseHead(value, log, losses)
	if err != nil {
		return head{}, nil, errors.Join(err, it.Close())
	}
	return h, it, nil
}

// hasHead reports whether a log is in the database.
func hasHead(db *pebble.DB, log string) (bool, error) {
	_, closer, err := storedHead(db, log, 0)
	if errors.Is(err, replay.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

// view is a committed state of a log as a reader sees it.
type view struct {
	head
	drops  uint64
	recent []replay.Record // the records not read by the reader, if all of them are in the tail
}

// viewCommitted returns the committed state of l, without the tail, and waits for the writer.
func (l *log) viewCommitted(g *generation) (view, error) {
	l.write.Lock()
	defer l.write.Unlock()
	if err := l.read(g); err != nil {
		return view{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return view{head: l.head, drops: l.drops}, nil
}

// logs are the logs in use, and a bounded number of the logs used last. Those may be used again soon: a task is written
// to several times while it runs, and only the first write has to look its head up.
type logs struct {
	losses atomic.Uint64 // mark.losses of the open database
	over   atomic.Bool   // the generation has ended, or is about to
	tails  atomic.Int64  // bytes of the tails of all logs
	byName *keylock.Map[log]

	intents *intents
	filter  atomic.Pointer[nameFilter] // nil if there is no filter
}

// idleLogs is the number of logs kept in memory though not in use. Each takes about 300 bytes. log.resting and
// log.storedMetadata take at most restingMost bytes more each.
const (
	idleLogs    = 1024
	restingMost = 4 << 10
)

func newLogs(in *intents) *logs {
	ls := &logs{intents: in}
	ls.byName = keylock.NewCached(idleLogs,
		func(e *keylock.Entry[log]) *log { return &log{name: e.Key, of: ls, entry: e} },
		// Only a log still open to appends is kept. It may be one that does not exist yet: as a rule, a log looked up and not
		// found is begun next. The fields are read without l.mu: the log has no user.
		func(l *log) bool { return l.known && l.head.Ended.IsZero() })
	return ls
}

// use returns the one log of a name. Each use ends with a call of leave.
func (ls *logs) use(name string) *log { return ls.byName.Acquire(name).Value }

// leave ends a use.
func (*logs) leave(l *log) { l.entry.Release() }

// begun has the filter know a log just committed for the first time.
func (ls *logs) begun(name string) {
	if n := ls.filter.Load(); n != nil {
		n.add(name)
	}
}

// end wakes all readers; they then find the end.
func (ls *logs) end() {
	ls.over.Store(true)
	for _, l := range ls.byName.Used() {
		l.waiters.Call()
	}
}
