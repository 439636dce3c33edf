// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Owner is the record of the owner of a shard. Epoch is the sequence of the record in the stream, so it grows with each
// record.
type Owner struct {
	Node        string // empty for none
	Incarnation string
	Epoch       uint64
}

// ownerRecord is an owner's record as it is stored.
type ownerRecord struct {
	Node        string `json:"node,omitempty"`
	Incarnation string `json:"incarnation,omitempty"`
	// Claim is different for each record: so a claim is known again after its acknowledgement was lost.
	Claim string `json:"claim"`
	// Marked is a sequence after which no owner has purged an empty head before it was marked: that of the record before,
	// or ownMark for the sequence of this record. It is 0 in a record of a version without marks. See Store.markDropped.
	Marked uint64 `json:"marked,omitempty"`
}

// ownMark stands for the sequence of its record.
const ownMark = uint64(math.MaxUint64)

// owner returns the present record.
func (st *stream) owner(ctx context.Context) (Owner, error) {
	o, _, err := st.readOwner(ctx)
	return o, err
}

func (st *stream) readOwner(ctx context.Context) (Owner, ownerRecord, error) {
	var r ownerRecord
	m, err := st.last(ctx, st.ownerSubject)
	if errors.Is(err, errNoMessage) {
		return Owner{}, r, nil
	}
	if err != nil {
		return Owner{}, r, err
	}
	if err := json.Unmarshal(m.data, &r); err != nil {
		return Owner{}, r, fmt.Errorf("the owner's record of the stream %s: %w", st.name, err)
	}
	if r.Marked == ownMark {
		r.Marked = m.seq
	}
	o := Owner{Node: r.Node, Incarnation: r.Incarnation, Epoch: m.seq}
	st.mu.Lock()
	st.record, st.marked = o, r.Marked
	st.mu.Unlock()
	return o, r, nil
}

// markedAt returns the mark of an owner's record.
func (st *stream) markedAt(ctx context.Context, o Owner) (uint64, error) {
	if o == (Owner{}) {
		return 0, nil
	}
	st.mu.Lock()
	known, marked := st.record, st.marked
	st.mu.Unlock()
	if known == o {
		return marked, nil
	}
	present, r, err := st.readOwner(ctx)
	if err == nil && present != o {
		err = ErrClaimed
	}
	return r.Marked, err
}

// claim writes the next record.
func (st *stream) claim(ctx context.Context, after Owner, node, incarnation string) (Owner, error) {
	marked, err := st.markedAt(ctx, after)
	if err != nil {
		return Owner{}, err
	}
	record := ownerRecord{Node: node, Incarnation: incarnation, Claim: nuid.Next(), Marked: cmp.Or(marked, ownMark)}
	data, err := json.Marshal(record)
	if err != nil {
		return Owner{}, err
	}
	next := Owner{Node: node, Incarnation: incarnation}
	for try := 0; ; try++ {
		once, stop := context.WithTimeout(ctx, requestLimit)
		ack, err := st.js.Publish(once, st.ownerSubject, data, jetstream.WithExpectLastSequencePerSubject(after.Epoch),
			jetstream.WithRetryAttempts(0))
		stop()
		if err == nil {
			next.Epoch = ack.Sequence
			st.mu.Lock()
			st.record, st.marked = next, cmp.Or(marked, next.Epoch)
			st.mu.Unlock()
			return next, nil
		}
		if ctx.Err() != nil {
			return Owner{}, ctx.Err()
		}
		// It may be written all the same. A refusal may come from the very server that has written it.
		present, found, readErr := st.readOwner(ctx)
		switch {
		case readErr == nil && found.Claim == record.Claim:
			return present, nil
		case readErr == nil && present.Epoch != after.Epoch:
			return Owner{}, ErrClaimed
		case try == claimTries:
			return Owner{}, fmt.Errorf("the shard %d cannot be claimed: %w: %w", st.shard, replay.ErrUnavailable, err)
		}
		if err := pause(ctx, retryPause); err != nil {
			return Owner{}, err
		}
	}
}

// claimTries is the number of times a claim with an unknown outcome is tried again.
const claimTries = 20
