// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// FuzzInlined: whatever a head has for its records, they are read or refused, and read again as they were written.
func FuzzInlined(f *testing.F) {
	i := inlined{}.with(0, 3, [][]byte{[]byte("a"), {}, []byte("ccc")}).with(5, 9, [][]byte{[]byte("d")})
	f.Add(i.first, i.data, uint64(9))
	f.Add(uint64(1), []byte{0, 200}, uint64(1))
	f.Fuzz(func(t *testing.T, first uint64, data []byte, from uint64) {
		i := inlined{first, data}
		all, err := i.records()
		if err != nil {
			return
		}
		var again inlined
		var want []replay.Record
		last := uint64(0)
		for n, r := range all {
			if r.Seq == 0 || n > 0 && r.Seq <= last || n == 0 && r.Seq != first {
				return // not written by with
			}
			again = again.with(last, r.Seq, [][]byte{r.Data})
			last = r.Seq
			if r.Seq >= from {
				want = append(want, r)
			}
		}
		if got, err := again.records(); err != nil || cmp.Diff(all, got) != "" {
			t.Errorf("%v is read again as %v, %v", all, got, err)
		}
		if got, err := again.from(from).records(); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("of %v the records from %d on are %v, %v", all, from, got, err)
		}
	})
}

// TestInline: a log whose records are in its head at first, and then in messages of their own, is the same for its
// owner, for the next one, and for other nodes, whatever they may read of it; also where gateways live that read no
// records in heads.
func TestInline(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 3})
	elsewhere := openStreams(t, connect(t, servers.URL()), s.config)
	owner := claim(t, s, 0, "a")
	var want []replay.Record
	reader := elsewhere.Logs(0).Read("log", 0)
	defer reader.Close()
	var followed []replay.Record
	for i := range 40 {
		seq := uint64(i + 1)
		data := bytes.Repeat([]byte{byte(i)}, 150)
		switch {
		case i == 20:
			s.Plain(true)
		case i == 25:
			s.Plain(false)
		case i == 31:
			data = make([]byte, 2*inlineBytes)
		case i%7 == 3: // the next owner has to read what is in the head
			if err := owner.Close(); err != nil {
				t.Fatal(err)
			}
			owner = claim(t, s, 0, fmt.Sprint(i))
		}
		if err := owner.Append(t.Context(), replay.Append{Log: "log", Expect: seq - 1, Records: [][]byte{data}}); err != nil {
			t.Fatal(err)
		}
		want = append(want, replay.Record{Seq: seq, Data: data})
		h, err := owner.headOf(t.Context(), "log")
		if inline := h.inline.first > 0; err != nil || inline && i >= 20 && i < 25 {
			t.Errorf("after %d records, there are some in the head: %t; %v", seq, inline, err)
		}
		for name, logs := range map[string]replay.Logs{"the owner": owner, "another node": elsewhere.Logs(0)} {
			_, _, got, err := logs.Load(t.Context(), "log")
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Fatalf("%s has read, %v (-want +got):\n%s", name, err, d)
			}
			after := seq / 2
			some := logs.Read("log", after)
			page, more, err := some.Next(t.Context(), nil)
			some.Close()
			if err != nil || len(page) == 0 || cmp.Diff(want[after:int(after)+len(page)], page) != "" ||
				more != (int(after)+len(page) < len(want)) {
				t.Fatalf("%s has read after %d of %d: %v, %t, %v", name, after, seq, page, more, err)
			}
		}
		patiently(t, func(ctx context.Context) error {
			page, _, err := reader.Next(ctx, nil)
			followed = append(followed, page...)
			if err == nil && len(followed) < len(want) {
				err = errors.New("the follower has not read everything")
			}
			return err
		})
	}
	if d := cmp.Diff(want, followed); d != "" {
		t.Errorf("the follower has read (-want +got):\n%s", d)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestInlineForgotten: an owner that has not the records of a head in memory any more reads them before it appends, and
// one that cannot read them answers that the store is unavailable.
func TestInlineForgotten(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1})
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	for i := range recentLogs + 2 {
		err := owner.Append(t.Context(), replay.Append{Log: fmt.Sprint(i), Records: [][]byte{[]byte("one")}})
		if err != nil {
			t.Fatal(err)
		}
	}
	owner.mu.Lock()
	if kept := owner.recent.Len(); kept != recentLogs || owner.recent.Contains("0") {
		t.Errorf("the records of %d heads are in memory", kept)
	}
	owner.mu.Unlock()
	if err := owner.Append(t.Context(), replay.Append{Log: "0", Expect: 1, Records: [][]byte{[]byte("two")}}); err != nil {
		t.Fatal(err)
	}
	_, _, got, err := owner.Load(t.Context(), "0")
	want := []replay.Record{{Seq: 1, Data: []byte("one")}, {Seq: 2, Data: []byte("two")}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if err := owner.Append(t.Context(), replay.Append{Log: "1", Expect: 7}); !errors.Is(err, replay.ErrConflict) {
		t.Errorf("an append that expects another revision: %v", err)
	}
	if err := owner.Append(t.Context(), replay.Append{Log: "none", Expect: 7}); !errors.Is(err, replay.ErrConflict) {
		t.Errorf("an append to a log that is not there: %v", err)
	}
}

// TestInlineTrimmed: a reader whose head is older than a trim, and that has not the records of its head, finds that
// they are not the present ones, and does not go on after them.
func TestInlineTrimmed(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"in the head": 1, "of their own": inlineBytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := streams(t, connect(t, servers.URL()), Config{Replicas: 1})
			owner := claim(t, s, 0, "a")
			defer owner.Close()
			if err := owner.Append(t.Context(), replay.Append{Log: "log", Records: [][]byte{{1}, {2}, {3}}}); err != nil {
				t.Fatal(err)
			}
			before, err := owner.headOf(t.Context(), "log")
			if err != nil {
				t.Fatal(err)
			}
			before.inline.data = nil
			err = owner.Append(t.Context(), replay.Append{Log: "log", Expect: 1, Records: [][]byte{make([]byte, size)}, Trim: 2,
				Snapshot: []byte("1, 2")})
			if err != nil {
				t.Fatal(err)
			}
			if page, err := owner.st.page(t.Context(), "log", &before, 0, &cursor{}, 0); !errors.Is(err, errHole) {
				t.Errorf("after 0 it reads %v, %v", page, err)
			}
			page, err := owner.st.page(t.Context(), "log", &before, 2, &cursor{}, 0)
			if d := cmp.Diff([]replay.Record{{Seq: 3, Data: []byte{3}}}, page); d != "" || err != nil {
				t.Errorf("after 2 it reads, %v (-want +got):\n%s", err, d)
			}
			heads := []head{before}
			h, snapshot, records, err := owner.st.load(t.Context(), "log", func(ctx context.Context, log string) (head, error) {
				if len(heads) > 0 {
					h := heads[0]
					heads = nil
					return h, nil
				}
				return owner.headOf(ctx, log)
			})
			if err != nil || h.First != 3 || string(snapshot) != "1, 2" || len(records) != 2 {
				t.Errorf("the log is loaded as %+v, %q, %v, %v", h, snapshot, records, err)
			}
		})
	}
}

// TestInlineOverAbandoned: records written ahead of a head that was never written are not taken for those that the next
// append puts into the head.
func TestInlineOverAbandoned(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1})
	elsewhere := openStreams(t, connect(t, servers.URL()), s.config)
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	begin(t, owner, "log")
	r := elsewhere.Logs(0).Read("log", 1)
	defer r.Close()
	if _, _, err := r.Next(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	abandoned, err := recordValues(owner.st, "log", inlined{}.with(0, 2, [][]byte{{9}, {9}, {9}}), owner.st.room())
	if err != nil {
		t.Fatal(err)
	}
	f := elsewhere.shards[0].follower("log")
	// The subscription may not be there yet, so that the message is not received.
	patiently(t, func(ctx context.Context) error {
		if _, err := owner.commit(ctx, abandoned); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := len(f.tail); n == 0 || f.tail[n-1].Seq != 4 {
			return errors.New("what was abandoned is not received yet")
		}
		return nil
	})
	var got []replay.Record
	for seq := uint64(2); seq <= 5; seq++ {
		err := owner.Append(t.Context(), replay.Append{Log: "log", Expect: seq - 1, Records: [][]byte{{byte(seq)}}})
		if err != nil {
			t.Fatal(err)
		}
		patiently(t, func(ctx context.Context) error {
			page, _, err := r.Next(ctx, nil)
			if got = append(got, page...); err == nil && uint64(len(got)) < seq-1 {
				err = errors.New("the record is not read yet")
			}
			return err
		})
	}
	want := []replay.Record{{Seq: 2, Data: []byte{2}}, {Seq: 3, Data: []byte{3}}, {Seq: 4, Data: []byte{4}},
		{Seq: 5, Data: []byte{5}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestInlineMoved: a reader whose head is older than the message with its records reads no more than its head counts.
func TestInlineMoved(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1})
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	var before head
	for i, record := range [][]byte{{1}, {2}, make([]byte, inlineBytes), {4}} {
		err := owner.Append(t.Context(), replay.Append{Log: "log", Expect: uint64(i), Records: [][]byte{record}})
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if before, err = owner.headOf(t.Context(), "log"); err != nil {
				t.Fatal(err)
			}
			before.inline.data = nil
		}
	}
	page, err := owner.st.page(t.Context(), "log", &before, 0, &cursor{}, 0)
	want := []replay.Record{{Seq: 1, Data: []byte{1}}, {Seq: 2, Data: []byte{2}}}
	if d := cmp.Diff(want, page); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// TestInlineBehind: an owner that must read what is in a head, and gets an older one or none from a deposed leader,
// answers that the store is unavailable, and not that another writer was faster or that records are missing.
func TestInlineBehind(t *testing.T) {
	t.Parallel()
	s := streams(t, connect(t, servers.URL()), Config{Replicas: 1, GiveUp: 300 * time.Millisecond})
	owner := claim(t, s, 0, "a")
	defer owner.Close()
	begin(t, owner, "log")
	owner.mu.Lock()
	owner.recent.Purge()
	owner.mu.Unlock()
	later, err := owner.headOf(t.Context(), "log")
	if err != nil {
		t.Fatal(err)
	}
	later.seq++
	if _, err := owner.st.page(t.Context(), "log", &later, 0, &cursor{}, 0); !errors.Is(err, replay.ErrUnavailable) {
		t.Errorf("a read with an older head: %v, want ErrUnavailable", err)
	}
	stream, err := s.js.Stream(t.Context(), owner.st.name)
	if err != nil {
		t.Fatal(err)
	}
	owner.mu.Lock()
	l, _ := owner.index.Value("log")
	owner.mu.Unlock()
	if err := stream.DeleteMsg(t.Context(), l.seq); err != nil {
		t.Fatal(err)
	}
	err = owner.Append(t.Context(), replay.Append{Log: "log", Expect: 1, Records: [][]byte{{2}}})
	if !errors.Is(err, replay.ErrUnavailable) {
		t.Errorf("an append without the head before it: %v, want ErrUnavailable", err)
	}
	patiently(t, func(context.Context) error { return owner.Writable() })
}
