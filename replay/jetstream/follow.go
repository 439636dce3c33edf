// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/aip-gateway/aip-gateway/replay"
)

// tailRecords and tailBytes bound the tail of a followed log.
const (
	tailRecords = 256
	tailBytes   = 128 << 10
)

var errNotOwner = fmt.Errorf("another node owns the shard, and has its lists: %w", replay.ErrUnavailable)

// opened returns the store of the shard, if this process has it open; nil for none.
func (st *stream) opened() *Store {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.local
}

// follower returns a log with readers; nil for none.
func (st *stream) follower(log string) *followed {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.followed[log]
}

// join adds a reader of a log.
func (st *stream) join(log string) *followed {
	st.mu.Lock()
	defer st.mu.Unlock()
	f := st.followed[log]
	if f == nil {
		f = &followed{st: st, log: log}
		st.followed[log] = f
	}
	if f.refs++; st.local == nil {
		f.begin()
	}
	return f
}

// leave removes a reader of a log.
func (st *stream) leave(f *followed) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if f.refs--; f.refs == 0 {
		delete(st.followed, f.log)
		f.end()
	}
}

// entered is called when this process has opened a store. The readers go on with its data: they may have missed
// notifications, and no check looks for those any more.
func (st *stream) entered(s *Store) {
	st.mu.Lock()
	st.local = s
	all := slices.Collect(maps.Values(st.followed))
	st.mu.Unlock()
	for _, f := range all {
		s.mu.Lock()
		if h, found := s.known(f.log); found {
			f.update(&h, h.seq)
		} else {
			f.gone()
		}
		s.mu.Unlock()
		f.waiters.Call()
	}
}

// left is called when a store of this process is closed. The readers go on with the republished messages.
func (st *stream) left(s *Store) {
	st.mu.Lock()
	var all []*followed
	if st.local == s {
		st.local = nil
		for _, f := range st.followed {
			f.begin()
			all = append(all, f)
		}
	}
	st.mu.Unlock()
	for _, f := range all {
		f.waiters.Call() // those of the store end
	}
}

// drop has the readers of a log find it gone. It returns them; nil for none.
func (st *stream) drop(log string) *followed {
	f := st.follower(log)
	if f != nil {
		f.gone()
	}
	return f
}

// appended has the readers of a log see an append of this process. It returns them; nil for none.
func (st *stream) appended(log string, h *head, records [][]byte) *followed {
	f := st.follower(log)
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.seq > f.seq {
		first := h.Last + 1 - uint64(len(records))
		added := make([]replay.Record, len(records))
		for i, r := range records {
			added[i] = replay.Record{Seq: first + uint64(i), Data: append([]byte(nil), r...)}
		}
		f.extend(added)
		next := *h
		f.head, f.seq = &next, h.seq
	}
	return f
}

// extend adds records to the tail. f.mu is held.
func (f *followed) extend(records []replay.Record) {
	if len(records) == 0 {
		return
	}
	if n := len(f.tail); n > 0 && f.tail[n-1].Seq+1 != records[0].Seq {
		f.tail, f.bytes = nil, 0
	}
	for _, r := range records {
		f.tail = append(f.tail, r)
		f.bytes += len(r.Data)
	}
	drop := 0
	for drop < len(f.tail) && (len(f.tail)-drop > tailRecords || f.bytes > tailBytes) {
		f.bytes -= len(f.tail[drop].Data)
		drop++
	}
	f.tail = f.tail[drop:]
}

// state returns the head, not to be changed, and the records of the tail after a number; none if they must be read.
func (f *followed) state(after uint64) (*head, []replay.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.head == nil || len(f.tail) == 0 {
		return f.head, nil
	}
	want, first := f.head.After(after), f.tail[0].Seq
	if want < first || want-first >= uint64(len(f.tail)) {
		return f.head, nil
	}
	tail := f.tail[want-first:]
	for n := len(tail); n > 0 && tail[n-1].Seq > f.head.Last; n-- {
		tail = tail[:n-1]
	}
	return f.head, tail[:len(tail):len(tail)]
}

// headSeq returns the sequence of the head; 0 if none is known.
func (f *followed) headSeq() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// update sets the head. It reports whether readers have something new to read.
func (f *followed) update(h *head, seq uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq <= f.seq {
		return false
	}
	was := f.head
	if f.seq = seq; h == nil {
		f.clear()
		return was != nil
	}
	next := *h
	f.head = &next
	again := was == nil || was.begun != h.begun
	if again {
		f.tail, f.bytes = nil, 0
	} else if h.inline.first > 0 {
		f.cut(was.Last)
	}
	f.inline(h.inline)
	return again || was.Last != h.Last || !h.Ended.IsZero()
}

// cut takes the records after a number out of the tail: no head counted them. With the next head, they may be others.
// f.mu is held.
func (f *followed) cut(last uint64) {
	n := len(f.tail)
	for n > 0 && f.tail[n-1].Seq > last {
		n--
		f.bytes -= len(f.tail[n].Data)
	}
	f.tail = f.tail[:n:n]
}

// inline adds the records of a head to the tail. f.mu is held.
func (f *followed) inline(i inlined) {
	all, err := i.records()
	if err != nil {
		return // a reader finds them damaged
	}
	for n, r := range all {
		if len(f.tail) == 0 || r.Seq > f.tail[len(f.tail)-1].Seq {
			all[n].Data = bytes.Clone(r.Data) // without the whole head
			f.extend(all[n : n+1])
		}
	}
}

// gone has readers find the log gone.
func (f *followed) gone() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clear()
}

// clear is gone while f.mu is held.
func (f *followed) clear() { f.head, f.tail, f.bytes = nil, nil, 0 }

// begin follows the republished messages. stream.mu is held.
func (f *followed) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watched {
		return
	}
	f.watched = true
	f.st.watch()
	sub, err := f.st.nc.Subscribe(f.st.live+token(f.log)+".>", f.receive)
	if err != nil { // the checks find new messages
		f.st.config.Log.Error("a log cannot be followed by notifications", "stream", f.st.name, "error", err)
		return
	}
	f.sub = sub
}

// end ends the effect of begin. stream.mu is held.
func (f *followed) end() {
	f.mu.Lock()
	watched, sub := f.watched, f.sub
	f.watched, f.sub = false, nil
	f.mu.Unlock()
	if watched {
		f.st.unwatch()
	}
	if sub != nil {
		_ = sub.Unsubscribe() // fails if the connection is closed
	}
}

// receive takes a republished message.
func (f *followed) receive(m *nats.Msg) {
	seq, err := strconv.ParseUint(m.Header.Get(natsjs.SequenceHeader), 10, 64)
	if err != nil {
		return
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(m.Subject, f.st.live), ".")
	kind, number, _ := strings.Cut(rest, ".")
	switch {
	case kind == "r" && isWhole(m.Data) && !strings.Contains(number, "."):
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return
		}
		if records, err := decodeRecords(nil, m.Data[1:], n); err == nil {
			f.mu.Lock()
			if seq > f.seq {
				f.extend(records)
			}
			f.mu.Unlock()
		}
	case kind == "h" && number == "":
		if f.receiveHead(m.Data, seq) {
			f.waiters.Call()
		}
	}
}

// isWhole reports whether the message with the first part of a value has all of it.
func isWhole(data []byte) bool { return len(data) > 0 && data[0] == 0 }

// receiveHead takes a republished head, or the first part of one. It reports whether readers have something new to
// read.
func (f *followed) receiveHead(data []byte, seq uint64) bool {
	var next *head
	if len(data) > 0 {
		var h head
		var err error
		if isWhole(data) {
			_, n := binary.Uvarint(data)
			h, err = parseHead(data[n:])
			h.seq = seq
		} else { // it has more parts
			ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
			defer cancel()
			h, err = f.st.readHead(ctx, f.log)
			seq = h.seq
		}
		if err != nil {
			return false // a check finds it
		}
		next = &h
	}
	return f.update(next, seq)
}
