// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	// flushEvery is the time between two writes of all counts not written at once. A crash loses no more than it.
	flushEvery = 30 * time.Second
	// idleAfter is the time after which an unused entry leaves memory. It is in the store by then, and its bucket is full,
	// or in the store, too.
	idleAfter = 2 * flushEvery
	// staleAfter is the number of days for which the store keeps an unchanged entry.
	staleAfter = 35
	// maxEntries is the most entries of one quota in use within idleAfter.
	maxEntries = 1 << 18
)

// Book has the counts of quotas. It may be used by any number of goroutines at once.
type Book struct {
	set    *shard.Set
	homes  *shard.Each[home]
	owners *ask.Service[question, []counted]
	log    *slog.Logger
	now    func() time.Time

	debts []debts // by shard; nil if this process owns all

	early chan *entry // to be written before the others
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu       sync.Mutex
	accounts map[string]*account // by the names of quotas; few, and kept
}

// account has the counts of the quotas of one name.
type account struct {
	book    *Book
	name    string
	streams limit.Counter

	mu      sync.RWMutex
	entries map[string]*entry // by Quota.key
}

// OpenBook opens the book over the shards owned by this process now and later. now is the clock, such as time.Now. The
// book must be closed before the set is.
func OpenBook(set *shard.Set, now func() time.Time, log *slog.Logger) *Book {
	ctx, stop := context.WithCancel(context.Background())
	b := &Book{set: set, log: log, now: now, stop: stop, early: make(chan *entry, 64),
		accounts: make(map[string]*account)}
	b.homes, _ = shard.Open(set, b.openHome, (*home).close) // never fails
	b.owners = ask.New(set, "quota", b.answer)
	b.done.Go(func() { b.keep(ctx) })
	if set.Peers() != nil {
		b.openDebts(ctx)
	}
	return b
}

// Close writes the unwritten counts.
func (b *Book) Close() {
	b.stop()
	b.done.Wait()
	b.homes.Close()
}

// keep writes the counts until the book is closed.
func (b *Book) keep(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	cleaned := int64(0)
	for {
		if day := dayOf(b.now()); day > cleaned {
			for h := range b.homes.All() {
				h.dropStale(ctx, day)
			}
			cleaned = day
		}
		select {
		case <-ticker.C:
			b.flush(ctx)
		case e := <-b.early:
			if dirty, _ := e.unwritten(b.now()); dirty {
				_ = e.write(ctx, started{}) // after an error, it is written with the others
			}
		case <-ctx.Done():
			return
		}
	}
}

// entries returns all entries in memory.
func (b *Book) entries() (all []*entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.accounts {
		a.mu.RLock()
		all = slices.AppendSeq(all, maps.Values(a.entries))
		a.mu.RUnlock()
	}
	return all
}

// flush writes all changed entries, and forgets unused ones.
func (b *Book) flush(ctx context.Context) {
	now := b.now()
	var failed []*home
	for _, e := range b.entries() {
		dirty, idle := e.unwritten(now)
		switch {
		case idle:
			e.account.forget(e)
		case !dirty, slices.Contains(failed, e.home.Load()): // the other entries have the same store
		default:
			if err := e.write(ctx, started{}); err != nil {
				failed = append(failed, e.home.Load())
				if ctx.Err() == nil && !errors.Is(err, replay.ErrClosed) {
					b.log.WarnContext(ctx, "what a quota has counted could not be written; it is tried again", "quota", e.account.name,
						"error", err)
				}
			}
		}
	}
}

// dropStale drops old entries of the store, without a count for long. An entry in use is not as old.
func (h *home) dropStale(ctx context.Context, day int64) {
	for one, err := range h.store.List(ctx, string(logname.Quota), "") {
		if err != nil {
			return // there is another day
		}
		if s, err := decodeState(one.Head.Metadata); err == nil && s.day > day-staleAfter {
			continue
		}
		err := h.store.Append(ctx, replay.Append{Log: one.Log, Expect: one.Head.Revision, Drop: true})
		if err != nil && !errors.Is(err, replay.ErrConflict) {
			return
		}
	}
}

// account returns the account of the quotas of a name.
func (b *Book) account(name string) *account {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts[name] == nil {
		b.accounts[name] = &account{book: b, name: name, entries: make(map[string]*entry)}
	}
	return b.accounts[name]
}

// entry returns the entry of a key, as the store has it if this process owns its shard. It must be released.
func (a *account) entry(ctx context.Context, key string) (*entry, error) {
	a.mu.RLock()
	e := a.entries[key]
	if e != nil {
		e.users.Add(1)
	}
	a.mu.RUnlock()
	if e == nil {
		var err error
		if e, err = a.newEntry(key); err != nil {
			return nil, err
		}
	}
	if h := a.book.homes.Of(e.shard); h != nil && e.home.Load() != h {
		if err := e.load(ctx, h); err != nil {
			e.release()
			return nil, err
		}
	}
	return e, nil
}

func (a *account) newEntry(key string) (*entry, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.entries[key]
	if e == nil {
		if len(a.entries) >= maxEntries {
			return nil, task.Errorf(task.LimitExceeded, "The gateway counts the calls of as many callers as it can.").
				WithData("limit", a.name+".callers").WithData("max", maxEntries).
				WithData(task.RetryAfter, int64(idleAfter/time.Second))
		}
		e = &entry{account: a, key: key, log: logname.QuotaOf(a.name, key),
			shard: replay.ShardOf(a.book.set.Count(), a.name, key)}
		a.entries[key] = e
	}
	e.users.Add(1)
	return e, nil
}

// forget forgets a stored entry, unless it is used again.
func (a *account) forget(e *entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.users.Load() == 0 {
		if dirty, _ := e.unwritten(a.book.now()); !dirty {
			delete(a.entries, e.key)
		}
	}
}
