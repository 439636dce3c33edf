// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
)

// changing is a log that is read, in one process and in another, while it grows, is trimmed, and gets other owners.
type changing struct {
	*testing.T
	owner atomic.Pointer[Store]
	ended chan struct{}
}

// over reports whether the log changes no more.
func (c *changing) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// data returns the record with a number: in heads there is room for some of them.
func (c *changing) data(seq uint64) []byte {
	sizes := []int{0, 30, 300, 700, inlineBytes}
	return append(binary.BigEndian.AppendUint64(nil, seq), make([]byte, sizes[seq*7919%31%uint64(len(sizes))])...)
}

// snapshot returns the snapshot of the log whose first record has a number.
func (c *changing) snapshot(first uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, first%5), first)
}

// change appends, and trims; the owner may have to read what is in the head, and there may be another one.
func (c *changing) change(s *Streams, appends uint64) {
	first, last := uint64(1), uint64(0)
	for i := range appends {
		a := replay.Append{Log: "log", Expect: i}
		for range 1 + rand.IntN(3) {
			last++
			a.Records = append(a.Records, c.data(last))
		}
		if rand.IntN(4) == 0 {
			a.Trim = first + rand.Uint64N(last+1-first)
			first = a.Trim + 1
			a.Snapshot = c.snapshot(first)
		}
		owner := c.owner.Load()
		if err := owner.Append(c.Context(), a); err != nil {
			c.Fatal(err)
		}
		if rand.IntN(3) == 0 {
			owner.mu.Lock()
			owner.recent.Purge()
			owner.mu.Unlock()
		}
		if rand.IntN(60) == 0 {
			if err := owner.Close(); err != nil {
				c.Fatal(err)
			}
			c.owner.Store(claim(c, s, 0, fmt.Sprint(i)))
		}
	}
}

// load loads the log, and checks that what it gets is of one time.
func (c *changing) load(name string, logs replay.Logs) {
	h, snapshot, records, err := logs.Load(c.Context(), "log")
	if errors.Is(err, replay.ErrNotFound) || errors.Is(err, replay.ErrClosed) {
		return
	}
	if err != nil || uint64(len(records)) != h.Last+1-h.First || (h.First > 1) != (snapshot != nil) ||
		snapshot != nil && !bytes.Equal(snapshot, c.snapshot(h.First)) {
		c.Errorf("%s: %d to %d: %d records and the snapshot %v are loaded, %v", name, h.First, h.Last, len(records), snapshot,
			err)
	}
	for i, r := range records {
		if r.Seq != h.First+uint64(i) || !bytes.Equal(r.Data, c.data(r.Seq)) {
			c.Errorf("%s: %d to %d: record %d has the number %d", name, h.First, h.Last, i, r.Seq)
		}
	}
}

// follow reads the log from somewhere on, for a while, with pages that are given back in part.
func (c *changing) follow(name string, logs replay.Logs) {
	h, err := logs.Head(c.Context(), "log")
	if err != nil {
		return
	}
	after := h.First - 1 + rand.Uint64N(h.Last+2-h.First)
	r := logs.Read("log", after)
	defer r.Close()
	begun := false
	for rand.IntN(20) > 0 && !c.over() {
		page, _, err := r.Next(c.Context(), nil)
		_, compacted := errors.AsType[*replay.CompactedError](err)
		_, future := errors.AsType[*replay.FutureError](err)
		switch {
		case compacted, errors.Is(err, replay.ErrClosed), err == io.EOF:
			return
		case !begun && (future || errors.Is(err, replay.ErrNotFound)):
			return // the leader has had the append already, and the owner not its acknowledgement
		case err != nil:
			c.Errorf("%s, after %d: %v", name, after, err)
			return
		}
		begun = true
		for _, one := range page {
			if after++; one.Seq != after || !bytes.Equal(one.Data, c.data(after)) {
				c.Errorf("%s: the record %d is read, want %d", name, one.Seq, after)
				return
			}
		}
		if len(page) > 0 && rand.IntN(2) == 0 {
			after -= rand.Uint64N(uint64(len(page)) + 1)
			r.Rewind(after)
		}
	}
}

// TestReadMeanwhile: what is loaded of a log is of one time, and what is followed has all records, whatever is appended
// and trimmed meanwhile.
func TestReadMeanwhile(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	elsewhere := openStreams(t, connect(t, servers.URL()), s.config)
	c := &changing{T: t, ended: make(chan struct{})}
	c.owner.Store(claim(t, s, 0, "a"))
	var readers sync.WaitGroup
	for name, logs := range map[string]func() replay.Logs{
		"the owner":    func() replay.Logs { return c.owner.Load() },
		"its process":  func() replay.Logs { return s.Logs(0) },
		"another node": func() replay.Logs { return elsewhere.Logs(0) },
	} {
		for _, read := range []func(string, replay.Logs){c.load, c.follow} {
			readers.Go(func() {
				for !c.over() {
					read(name, logs())
				}
			})
		}
	}
	func() {
		defer close(c.ended)
		c.change(s, 200)
	}()
	readers.Wait()
	if err := c.owner.Load().Close(); err != nil {
		t.Error(err)
	}
}
