// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// inlineBytes bounds the records in a head: they are written again by each append. With more, all of them become
	// messages of their own.
	inlineBytes = 2 << 10
	// recentLogs is the number of logs whose records in heads an owner has in memory. The head of another one is read
	// before the next append.
	recentLogs = 1024
)

// inlined are the last records of a log, as its head has them: for each the difference of its number to the one before,
// 0 for the first, and its data with their length before them.
type inlined struct {
	first uint64 // number of the first record; 0 for none
	data  []byte // nil if not known
}

// with returns i with further records, the first of which has the number seq. last is the number of the last one in i.
// i stays as it is.
func (i inlined) with(last, seq uint64, records [][]byte) inlined {
	size := len(i.data)
	for _, r := range records {
		size += 2*binary.MaxVarintLen32 + len(r)
	}
	next := inlined{i.first, append(make([]byte, 0, size), i.data...)}
	for _, r := range records {
		if next.first == 0 {
			next.first, last = seq, seq
		}
		next.data = binary.AppendUvarint(next.data, seq-last)
		next.data = binary.AppendUvarint(next.data, uint64(len(r)))
		next.data = append(next.data, r...)
		last, seq = seq, seq+1
	}
	return next
}

// records returns the records. Their data are parts of i's.
func (i inlined) records() (all []replay.Record, err error) {
	p := replay.Numbers{Rest: i.data}
	for seq := i.first; len(p.Rest) > 0 && !p.Failed; {
		seq += p.Next()
		all = append(all, replay.Record{Seq: seq, Data: p.Bytes()})
	}
	if p.Failed {
		return nil, fmt.Errorf("the records in the head of a log: %w", errDamaged)
	}
	return all, nil
}

// from returns i without the records before a number.
func (i inlined) from(first uint64) inlined {
	if i.first >= first {
		return i
	}
	p := replay.Numbers{Rest: i.data}
	for seq := i.first; len(p.Rest) > 0 && !p.Failed; {
		if seq += p.Next(); seq >= first { // its number is the first one now
			return inlined{seq, append([]byte{0}, p.Rest...)}
		}
		p.Bytes()
	}
	return inlined{}
}

// base is what an append adds to: the records in the head of its log.
type base struct {
	revision uint64 // of the log
	inline   inlined
}

// base returns what an append to a log adds to. A leader without the last append of this owner is a deposed one.
func (s *Store) base(ctx context.Context, log string) (base, error) {
	known, err := s.headOf(ctx, log)
	if err != nil || known.inline.first == 0 || known.inline.data != nil {
		return base{known.Revision, known.inline}, err
	}
	limited, done, err := s.reading(ctx)
	if err != nil {
		return base{}, err
	}
	defer done()
	limited, cancel := context.WithTimeout(limited, s.st.config.GiveUp)
	defer cancel()
	for {
		h, err := s.st.readHead(limited, log)
		if err == nil && h.seq >= known.seq {
			return base{h.Revision, h.inline}, nil
		}
		if err == nil || errors.Is(err, replay.ErrNotFound) {
			err = pause(limited, retryPause)
		}
		if err != nil {
			return base{}, s.failedRead(ctx, err)
		}
		if known, err = s.headOf(ctx, log); err != nil {
			return base{}, err
		}
	}
}
