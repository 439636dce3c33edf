// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/replay"
)

// followLog reads a log as Follow does, until it ends, and checks for each record once, in order.
func followLog(ctx context.Context, l replay.Logs, log string, after uint64, each func(seq uint64)) error {
	reader := l.Read(log, after)
	defer reader.Close()
	news := make(chan struct{}, 1)
	for at := after; ; {
		records, _, err := reader.Next(ctx, nil)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d: %w", at, err)
		}
		for _, r := range records {
			if want := fmt.Sprint(log, "/", at+1); r.Seq != at+1 || string(r.Data) != want {
				return fmt.Errorf("the record %d %.40q comes where %.40q should be", r.Seq, r.Data, want)
			}
			at++
			if each != nil {
				each(at)
			}
		}
		if len(records) > 0 {
			continue
		}
		reader.Wake(func() {
			select {
			case news <- struct{}{}:
			default:
			}
		})
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("after %d: %w", at, ctx.Err())
		}
	}
}

// stepDown has the leader of the stream of a shard leave its place to another server.
func stepDown(t testing.TB, s *Streams) {
	t.Helper()
	var answer struct{}
	if err := s.shards[0].ask(t.Context(), "STREAM.LEADER.STEPDOWN.", struct{}{}, &answer); err != nil {
		t.Error(err)
	}
}

// TestReadElsewhere follows a log on nodes without ownership of its shard: while it is written, while the leader of the
// stream changes, while the shard moves, when it has ended, and without republished messages.
func TestReadElsewhere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	const n = 600
	a := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	c := a.config
	c.CheckAfter = 200 * time.Millisecond
	b, elsewhere, deaf := openStreams(t, connect(t, servers.URL()), c), openStreams(t, connect(t, servers.URL()), c),
		openStreams(t, connect(t, servers.URL()), c)
	owner := claim(t, a, 0, "a")
	revision := uint64(0)
	write := func(i int) {
		err := owner.Append(ctx, replay.Append{Log: "log", Expect: revision,
			Records: [][]byte{fmt.Append(nil, "log/", 2*i+1), fmt.Append(nil, "log/", 2*i+2)}, End: i == n-1})
		if err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
		revision++
	}
	write(0)
	var readers sync.WaitGroup
	follow := func(name string, l replay.Logs, after uint64) {
		readers.Go(func() {
			if err := followLog(ctx, l, "log", after, nil); err != nil {
				t.Errorf("a reader %s: %v", name, err)
			}
		})
	}
	follow("on the first owner", a.Logs(0), 0)
	follow("on the next owner", b.Logs(0), 0)
	follow("elsewhere", elsewhere.Logs(0), 0)
	follow("elsewhere, from the middle", elsewhere.Logs(0), 2)
	follow("without notifications", deaf.Logs(0), 0)
	for i := 1; i < n; i++ {
		write(i)
		switch i {
		case n / 6: // by then they have begun to follow
			f := deaf.shards[0].follower("log")
			for ; f == nil; f = deaf.shards[0].follower("log") {
				_ = pause(ctx, time.Millisecond)
			}
			deafen(t, deaf.shards[0], "log")
		case n / 3:
			stepDown(t, elsewhere)
		case n / 2:
			if err := owner.Close(); err != nil {
				t.Error(err)
			}
			owner = claim(t, b, 0, "b")
			defer owner.Close()
		case n * 2 / 3:
			follow("that came late", elsewhere.Logs(0), 0)
		}
	}
	readers.Wait()
	if deaf.Counts().Missed == 0 {
		t.Error("no check has found anything, although one reader had no notifications")
	}
	for name, s := range map[string]*Streams{"the owner": b, "another node": elsewhere} {
		if err := followLog(ctx, s.Logs(0), "log", 0, nil); err != nil {
			t.Errorf("after the end, on %s: %v", name, err)
		}
		h, _, records, err := s.Logs(0).Load(ctx, "log")
		if err != nil || h.Last != 2*n || len(records) != 2*n || h.Revision != n {
			t.Errorf("on %s the log is %+v with %d records: %v", name, h, len(records), err)
		}
		if n := len(s.shards[0].followed); n != 0 {
			t.Errorf("on %s %d logs are followed without a reader", name, n)
		}
	}
}

// TestLargeElsewhere: a reader on another node has memory for a record larger than a page before it reads it, and gives
// back its old memory before it waits for more; when it gets none, it reads the record later.
func TestLargeElsewhere(t *testing.T) {
	t.Parallel()
	const large = 3 << 20
	a := streams(t, connect(t, servers.URL()), Config{Replicas: 1})
	owner := claim(t, a, 0, "a")
	defer owner.Close()
	for i, record := range [][]byte{[]byte("small"), make([]byte, large), []byte("small")} {
		a := replay.Append{Log: "log", Expect: uint64(i), Records: [][]byte{record}}
		if err := owner.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	b := openStreams(t, connect(t, servers.URL()), a.config)
	r := b.Logs(0).Read("log", 0)
	defer r.Close()
	var held []int64
	full := errors.New("no memory")
	refuses := true
	reserve := func(_ context.Context, n int64) error {
		if held = append(held, n); n > pageBytes && refuses {
			return full
		}
		return nil
	}
	var sizes []int
	for len(sizes) < 3 {
		records, _, err := r.Next(t.Context(), reserve)
		if refuses && err == full {
			refuses = false
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range records {
			sizes = append(sizes, len(one.Data))
		}
		n := len(held)
		last, before := held[n-1], held[max(n-2, 0)]
		if len(records[0].Data) == large && (last < large || last > large*3/2 || before != 0) {
			t.Errorf("before the large record, %d bytes were reserved", held)
		}
	}
	if diff := cmp.Diff([]int{5, large, 5}, sizes); diff != "" || refuses {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOwnWrites: everything acknowledged by an owner is found on every node at once.
func TestOwnWrites(t *testing.T) {
	t.Parallel()
	a := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	nodes := []*Streams{a}
	for range 3 {
		nodes = append(nodes, openStreams(t, connect(t, servers.URL()), a.config))
	}
	owner := claim(t, a, 0, "a")
	defer owner.Close()
	for i := range uint64(60) {
		data := fmt.Append(nil, i)
		err := owner.Append(t.Context(), replay.Append{Log: "log", Expect: i, Records: [][]byte{data}, Metadata: data})
		if err != nil {
			t.Fatal(err)
		}
		l := nodes[i%4].Logs(0)
		if h, err := l.Head(t.Context(), "log"); err != nil || string(h.Metadata) != string(data) {
			t.Fatalf("node %d has the head %+v, %v; want that of append %d", i%4, h, err, i)
		}
		h, _, records, err := l.Load(t.Context(), "log")
		if err != nil || h.Revision != i+1 || uint64(len(records)) != i+1 {
			t.Fatalf("node %d has %d records, %v; want %d", i%4, len(records), err, i+1)
		}
	}
}

// TestDroppedElsewhere: a reader on another node finds its log dropped, and one begun later reads the next log with the
// name.
func TestDroppedElsewhere(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	a := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	b := openStreams(t, connect(t, servers.URL()), a.config)
	owner := claim(t, a, 0, "a")
	defer owner.Close()
	for round := range 5 {
		if err := owner.Append(ctx, replay.Append{Log: "log", Records: [][]byte{[]byte("log/1")}}); err != nil {
			t.Fatal(err)
		}
		caught, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- followLog(ctx, b.Logs(0), "log", 0, func(uint64) { close(caught) })
		}()
		<-caught
		if err := owner.Append(ctx, replay.Append{Log: "log", Expect: 1, Drop: true}); err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			if err := owner.Append(ctx, replay.Append{Log: "log", Records: [][]byte{[]byte("another")}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-ended; !errors.Is(err, replay.ErrNotFound) {
			t.Errorf("round %d: the reader ends with %v, want ErrNotFound", round, err)
		}
		if round%2 == 0 {
			if err := owner.Append(ctx, replay.Append{Log: "log", Expect: 1, Drop: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTakenInParts: a reader whose caller takes pages in parts reads no more of the stream than it needs for them, and
// one that begins in the middle finds its place among messages with many records. What is read is the same.
func TestTakenInParts(t *testing.T) {
	t.Parallel()
	own := cluster(t, 1, natstest.Config{})
	s := streams(t, connect(t, own.URL()), Config{Replicas: 1})
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	const appends, each = 60, 100
	data := func(seq uint64) []byte { return bytes.Repeat([]byte{byte(seq), byte(seq >> 8)}, 100) }
	for i := range uint64(appends) {
		for _, log := range []string{"long", fmt.Sprint("other", i)} {
			a := replay.Append{Log: log}
			if log == "long" {
				a.Expect = i
			}
			for n := range uint64(each) {
				a.Records = append(a.Records, data(i*each+n+1))
			}
			if err := owner.Append(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole := 0.0 // bytes from the server for the whole log
	for _, c := range []struct {
		after, part uint64
		others      bool    // are read, too, so that no rest of a page is kept
		most        float64 // of whole
	}{
		{0, appends * each, false, 1},
		{0, 250, false, 1.05},
		{0, 7, false, 1.05},
		{0, 250, true, 3},
		{0, 7, true, 60},
		{5_555, 100, false, 0.15},
		{5_555, 100, true, 0.4},
		{5_999, 1, false, 0.15},
	} {
		nc := connect(t, own.URL())
		from := openStreams(t, nc, s.config)
		r := from.Logs(0).Read("long", c.after)
		before := nc.Stats().InBytes
		at := c.after
		for at < appends*each {
			page, _, err := r.Next(t.Context(), nil)
			if err != nil || len(page) == 0 {
				t.Fatalf("after %d: %d records, %v", at, len(page), err)
			}
			for i, record := range page[:min(uint64(len(page)), c.part)] {
				if at++; record.Seq != at || !bytes.Equal(record.Data, data(at)) {
					t.Fatalf("record %d of a page is %d, want %d", i, record.Seq, at)
				}
			}
			if uint64(len(page)) > c.part {
				r.Rewind(at)
				for range mostRests {
					if c.others {
						from.rests.keep(new(reader), rest{})
					}
				}
			}
		}
		r.Close()
		got := float64(nc.Stats().InBytes - before)
		if whole == 0 {
			whole = got
		}
		if got > c.most*whole {
			t.Errorf("after %d, %d records at a time: %.2f of the bytes of the whole log were read, want at most %.2f", c.after,
				c.part, got/whole, c.most)
		}
	}
}
