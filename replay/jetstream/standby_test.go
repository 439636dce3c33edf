// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/replay"
)

// newStandby gives the first shard a standby that reads when the test has it read.
func newStandby(s *Streams) *standby {
	st := s.shards[0]
	b := &standby{catalog: newCatalog(st)}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.standby, st.wanted = b, true
	return b
}

// poll does what the goroutine does every second.
func (b *standby) poll(ctx context.Context) error {
	for {
		more, err := b.read(ctx)
		if err != nil {
			return err
		}
		if !more {
			return b.keepExact(ctx)
		}
	}
}

// standBy gives the first shard a standby that has read all.
func standBy(t *testing.T, s *Streams) *standby {
	t.Helper()
	b := newStandby(s)
	patiently(t, func(ctx context.Context) error {
		b.compared = time.Time{}
		if err := b.poll(ctx); err != nil || b.exact {
			return err
		}
		return errors.New("the standby is not exact yet")
	})
	return b
}

// randomAppends appends to, trims, ends and drops logs; one in so many appends is a drop.
func randomAppends(t *testing.T, owner *Store, random *rand.Rand, n, drops int) {
	t.Helper()
	for range n {
		log := fmt.Sprintf("l%d", random.IntN(40))
		h, err := owner.Head(t.Context(), log)
		if err == nil && !h.Ended.IsZero() {
			continue
		}
		a := replay.Append{Log: log, Expect: h.Revision, Metadata: bytes.Repeat([]byte{1}, random.IntN(50)),
			End: random.IntN(20) == 0, Drop: h.Revision > 0 && random.IntN(drops) == 0}
		for range random.IntN(4) {
			a.Records = append(a.Records, bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(100)))
		}
		if random.IntN(5) == 0 {
			a.Skip = random.Uint64N(5)
		}
		if random.IntN(3) == 0 {
			a.DueAt = time.Unix(random.Int64N(1000), random.Int64N(1e9))
		}
		if last := h.Last + uint64(len(a.Records)); last > 0 && random.IntN(4) == 0 {
			a.Trim, a.Snapshot = random.Uint64N(last+1), bytes.Repeat([]byte{2}, random.IntN(50))
		}
		for i := range random.IntN(3) {
			a.Lists = append(a.Lists, replay.Listing{List: fmt.Sprint("list", i), At: time.Unix(random.Int64N(100), 0),
				Label: fmt.Sprint(random.IntN(10))})
		}
		if err := owner.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClaimOverStandby: a claim over a standby has what a claim without one has, whether the standby has read the drop
// of each log or not.
func TestClaimOverStandby(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"read": time.Hour, "missed": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Log("seed", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			s := streams(t, connect(t, servers.URL()), Config{Replicas: 3, purgeAfter: after})
			owner := claim(t, s, 0, "a")
			randomAppends(t, owner, random, 100, 3)
			for round := range 4 {
				next := openStreams(t, connect(t, servers.URL()), s.config)
				b := newStandby(next)
				for range random.IntN(8) {
					randomAppends(t, owner, random, random.IntN(50), 3)
					if random.IntN(2) == 0 {
						patiently(t, b.poll)
					} else if _, err := b.read(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				randomAppends(t, owner, random, random.IntN(50), 3)
				want := read(t, owner)
				if err := owner.Close(); err != nil {
					t.Fatal(err)
				}
				owner = claim(t, next, 0, fmt.Sprint(round))
				if d := cmp.Diff(want, read(t, owner), cmpopts.EquateEmpty()); d != "" {
					t.Fatalf("round %d (-former owner +next owner):\n%s", round, d)
				}
			}
			want := read(t, owner)
			owner.Close()
			owner = claim(t, openStreams(t, connect(t, servers.URL()), s.config), 0, "cold")
			defer owner.Close()
			if d := cmp.Diff(want, read(t, owner), cmpopts.EquateEmpty()); d != "" {
				t.Fatalf("(-over a standby +without):\n%s", d)
			}
		})
	}
}

// begin begins logs.
func begin(t *testing.T, s *Store, logs ...string) {
	t.Helper()
	for _, log := range logs {
		if err := s.Append(t.Context(), replay.Append{Log: log, Records: [][]byte{{1}}}); err != nil {
			t.Fatal(err)
		}
	}
}

func drops(t *testing.T, s *Store, log string) {
	t.Helper()
	if err := s.Append(t.Context(), replay.Append{Log: log, Expect: 1, Drop: true}); err != nil {
		t.Fatal(err)
	}
}

// TestExactStandby: a standby needs no comparison after drops that it has read, and one after any that it may have
// missed, also by an owner without marks, or if a deposed leader has not shown the mark for a while.
func TestExactStandby(t *testing.T) {
	t.Parallel()
	type world struct {
		of    *Streams
		owner *Store
		b     *standby
	}
	purged := func(t *testing.T, w world, log string) {
		patiently(t, func(ctx context.Context) error {
			if _, err := w.owner.st.last(ctx, w.owner.st.headSubject(log)); !errors.Is(err, errNoMessage) {
				return fmt.Errorf("the log %s is not purged: %v", log, err)
			}
			return nil
		})
	}
	for name, test := range map[string]struct {
		after time.Duration
		miss  func(t *testing.T, w world)
		exact bool
	}{
		"nothing dropped": {time.Millisecond, func(t *testing.T, w world) {}, true},
		"read": {time.Hour, func(t *testing.T, w world) {
			drops(t, w.owner, "gone")
			patiently(t, w.b.poll)
		}, true},
		"read at the claim": {time.Hour, func(t *testing.T, w world) { drops(t, w.owner, "gone") }, true},
		"missed": {time.Millisecond, func(t *testing.T, w world) {
			drops(t, w.owner, "gone")
			purged(t, w, "gone")
		}, false},
		"missed, and a later head read": {time.Millisecond, func(t *testing.T, w world) {
			drops(t, w.owner, "gone")
			purged(t, w, "gone")
			begin(t, w.owner, "later")
			patiently(t, w.b.poll)
		}, false},
		"by an owner without marks": {time.Hour, func(t *testing.T, w world) {
			drops(t, w.owner, "gone")
			st := w.owner.st
			if err := st.purge(t.Context(), st.prefix+token("gone")+".>", w.owner.last+1); err != nil {
				t.Fatal(err)
			}
			data, _ := json.Marshal(ownerRecord{Node: "a", Claim: "old"})
			if _, err := st.js.Publish(t.Context(), st.ownerSubject, data); err != nil {
				t.Fatal(err)
			}
		}, false},
		"the mark shown late": {time.Hour, func(t *testing.T, w world) {
			drops(t, w.owner, "gone")
			st, seq := w.owner.st, w.owner.last
			if err := st.purge(t.Context(), st.prefix+token("gone")+".>", seq+1); err != nil {
				t.Fatal(err)
			}
			begin(t, w.owner, "later")
			patiently(t, w.b.poll)
			patiently(t, w.b.poll)
			mark := st.markValue(seq)
			if _, err := st.js.Publish(t.Context(), mark.subject, mark.parts[0]); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := streams(t, connect(t, servers.URL()), Config{Replicas: 1, purgeAfter: test.after})
			w := world{of: s, owner: claim(t, s, 0, "a")}
			defer w.owner.Close()
			begin(t, w.owner, "kept", "gone")
			next := openStreams(t, connect(t, servers.URL()), s.config)
			w.b = standBy(t, next)
			w.b.compared, w.b.wait = time.Now(), time.Hour // it compares no more
			test.miss(t, w)
			_, err := w.owner.Head(t.Context(), "gone")
			there := err == nil
			owner := claim(t, next, 0, "b")
			defer owner.Close()
			if w.b.exact != test.exact {
				t.Errorf("the standby is exact: %t, want %t", w.b.exact, test.exact)
			}
			if _, err := owner.Head(t.Context(), "kept"); err != nil {
				t.Errorf("the log that is kept: %v", err)
			}
			_, err = owner.Head(t.Context(), "gone")
			if there && err != nil || !there && !errors.Is(err, replay.ErrNotFound) {
				t.Errorf("the other log, there: %t: %v", there, err)
			}
			if err := w.owner.Append(t.Context(), replay.Append{Log: "kept", Expect: 1}); !errors.Is(err, replay.ErrFenced) {
				t.Errorf("an append of the former owner: %v, want ErrFenced", err)
			}
		})
	}
}

// TestStandbyLeftovers: the next owner purges the logs dropped by the former one, also those its standby knows nothing
// of.
func TestStandbyLeftovers(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1, purgeAfter: time.Hour})
	owner := claim(t, s, 0, "a")
	begin(t, owner, "before", "after", "kept")
	drops(t, owner, "before")
	c := s.config
	c.purgeAfter = 10 * time.Millisecond
	next := openStreams(t, connect(t, servers.URL()), c)
	b := standBy(t, next)
	drops(t, owner, "after")
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	delete(b.dropped, "before")
	owner = claim(t, next, 0, "b")
	defer owner.Close()
	patiently(t, func(ctx context.Context) error {
		subjects, _, err := owner.st.subjects(ctx, owner.st.prefix+"*.>", 0, 0)
		if err == nil && len(subjects) != 1 {
			err = fmt.Errorf("the stream has %v, want the head of one log", subjects)
		}
		return err
	})
}

// TestInterruptedClaim: what a claim has read before it was interrupted, the next one need not read, and has.
func TestInterruptedClaim(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	owner := claim(t, s, 0, "a")
	next := openStreams(t, connect(t, servers.URL()), s.config)
	newStandby(next)
	randomAppends(t, owner, random, 300, 3)
	want := read(t, owner)
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	st := next.shards[0]
	var opened *Store
	for limit := 100 * time.Microsecond; opened == nil; limit += limit / 2 {
		record, err := next.Owner(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if record, err = st.claim(t.Context(), record, "b", "1"); err == nil {
			opened, err = openStore(ctx, st, record)
		}
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	defer opened.Close()
	if d := cmp.Diff(want, read(t, opened), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-former owner +next owner):\n%s", d)
	}
}

// TestStandByRuns: the goroutines of standbys begin and end with StandBy, and with claims, while the owner writes.
func TestStandByRuns(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Log("seed", seed)
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3, Shards: 2})
	owner := claim(t, s, 0, "a")
	randomAppends(t, owner, rand.New(rand.NewPCG(seed, 0)), 50, 3)
	next := openStreams(t, connect(t, servers.URL()), s.config)
	defer next.StandBy(nil)
	next.StandBy([]int{0, 1})
	patiently(t, func(context.Context) error {
		if next.Counts().Standby == 0 {
			return errors.New("the standby has no logs")
		}
		return nil
	})
	next.StandBy([]int{1})
	if n := next.Counts().Standby; n != 0 {
		t.Errorf("%d logs are kept of a shard for which none stands by", n)
	}
	next.StandBy([]int{0})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			a := replay.Append{Log: fmt.Sprint("w", i), Records: [][]byte{{1}}}
			err := owner.Append(t.Context(), a)
			if err == nil && i%3 == 0 {
				err = owner.Append(t.Context(), replay.Append{Log: a.Log, Expect: 1, Drop: true})
			}
			if err != nil {
				if !errors.Is(err, replay.ErrFenced) {
					t.Errorf("an append of the former owner: %v", err)
				}
				return
			}
		}
	})
	opened := claim(t, next, 0, "b")
	next.StandBy([]int{0, 1}) // of the first one it is the owner
	writer.Wait()
	want := read(t, opened)
	if err := errors.Join(opened.Close(), owner.Close()); err != nil {
		t.Fatal(err)
	}
	opened = claim(t, s, 0, "cold")
	defer opened.Close()
	if d := cmp.Diff(want, read(t, opened), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-over a standby +without):\n%s", d)
	}
}

// TestStandbyBegunAgain: a log that has ended, and was dropped and begun again before a standby read that, has not
// ended for the next owner.
func TestStandbyBegunAgain(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1, Settings: replay.Settings{Retention: time.Hour}})
	owner := claim(t, s, 0, "a")
	if err := owner.Append(t.Context(), replay.Append{Log: "again", Records: [][]byte{{1}}, End: true}); err != nil {
		t.Fatal(err)
	}
	next := openStreams(t, connect(t, servers.URL()), s.config)
	b := standBy(t, next)
	owner.Configure(replay.Settings{MaxSize: 1}) // it is dropped
	begin(t, owner, "again")
	patiently(t, b.poll)
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	owner = claim(t, next, 0, "b")
	defer owner.Close()
	owner.mu.Lock()
	defer owner.mu.Unlock()
	l, found := owner.index.Get("again")
	if !found || !l.Expires.IsZero() {
		t.Fatalf("the log, or none, is to be dropped: %+v", l)
	}
	if open := owner.index.Open(); open != l.Size {
		t.Errorf("the open logs have %d bytes, want %d", open, l.Size)
	}
}

// TestStandbyForgets: a standby keeps no dropped logs in memory while their owner writes no marks, and that owner's
// successor purges them all the same.
func TestStandbyForgets(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1, purgeAfter: time.Hour})
	owner := claim(t, s, 0, "a")
	begin(t, owner, "gone", "kept")
	c := s.config
	c.purgeAfter = 10 * time.Millisecond
	next := openStreams(t, connect(t, servers.URL()), c)
	b := standBy(t, next)
	drops(t, owner, "gone")
	data, _ := json.Marshal(ownerRecord{Node: "a", Claim: "old"})
	if _, err := owner.st.js.Publish(t.Context(), owner.st.ownerSubject, data); err != nil {
		t.Fatal(err)
	}
	patiently(t, b.poll)
	if len(b.dropped) > 0 || b.exact {
		t.Errorf("it keeps %v, and is exact: %t", b.dropped, b.exact)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	owner = claim(t, next, 0, "b")
	defer owner.Close()
	patiently(t, func(ctx context.Context) error {
		_, err := owner.st.last(ctx, owner.st.headSubject("gone"))
		if err == nil {
			err = errors.New("it is not purged yet")
		} else if errors.Is(err, errNoMessage) {
			err = nil
		}
		return err
	})
}

// TestMissingPart: a log with a head of several parts is not taken for gone because a leader does not have one of them
// yet, and it is when the head was replaced.
func TestMissingPart(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1})
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	if err := owner.Append(t.Context(), replay.Append{Log: "log", Metadata: make([]byte, 2<<20)}); err != nil {
		t.Fatal(err)
	}
	m, err := owner.st.last(t.Context(), owner.st.headSubject("log"))
	if err != nil {
		t.Fatal(err)
	}
	c := newCatalog(s.shards[0])
	if err := c.take(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if _, found := c.index.Value("log"); !found {
		t.Fatal("the log is not in the index")
	}
	stream, err := s.js.Stream(t.Context(), owner.st.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), m.seq-1); err != nil {
		t.Fatal(err)
	}
	c = newCatalog(s.shards[0])
	if err := c.take(t.Context(), m); !errors.Is(err, replay.ErrUnavailable) {
		t.Errorf("with a part missing: %v, want ErrUnavailable", err)
	}
	if err := owner.Append(t.Context(), replay.Append{Log: "log", Expect: 1}); err != nil {
		t.Fatal(err)
	}
	if err := c.take(t.Context(), m); err != nil || c.index.Len() > 0 {
		t.Errorf("when it was replaced: %v", err)
	}
}
