// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// writing is a change to AUN's additions to a task, made by the owner of the task's shard. It may be asked for twice.
type writing struct {
	Kind writingKind
	Log  string // of the task

	Task     string // of an entry
	Entry    *entry `json:",omitempty"`
	Revision uint64 // of the entry
	Durable  bool

	Name     string // of a cursor
	Position follow.Position
}

type writingKind string

const (
	putEntry     writingKind = "put"
	dropEntry    writingKind = "drop"
	putPosition  writingKind = "position"
	dropPosition writingKind = "end"
)

// writeFor writes for any process.
func (x *Index) writeFor(ctx context.Context, shard int, w writing) (none struct{}, err error) {
	h := x.homes.Of(shard)
	switch {
	case h == nil || x.shardOf(w.Log) != shard:
		return none, partner.Moved()
	case w.Kind == putEntry && w.Entry != nil:
		err = h.store.Append(ctx, replay.Append{Log: logname.AUNTask(w.Task), Expect: w.Revision,
			Metadata: mustJSON(w.Entry), DueAt: time.Now().Add(recheck), Durable: w.Durable})
		if err != nil {
			err = partner.StoreError(err, "the task cannot be stored")
		}
	case w.Kind == dropEntry:
		err = h.dropEntry(ctx, logname.AUNTask(w.Task), w.Revision)
	default:
		var c follow.Cursor
		if c, err = follow.Read(ctx, h.store, w.Name, nil); err != nil {
			return none, partner.StoreError(err, "the store cannot be read")
		}
		switch {
		case w.Kind == dropPosition && c.Stored():
			err = h.dropCursor(ctx, &c)
		case w.Kind == putPosition:
			if !c.Stored() || w.Position.Seq > c.Seq {
				c.Position = w.Position
			}
			c.Log = w.Log
			err = h.write(ctx, &c)
		}
	}
	return none, err
}

// dropEntry drops an entry.
func (h *home) dropEntry(ctx context.Context, log string, revision uint64) error {
	return replay.RetryConflict(func() error {
		err := h.store.Append(ctx, replay.Append{Log: log, Expect: revision, Drop: true})
		if errors.Is(err, replay.ErrConflict) {
			head, bad := h.store.Head(ctx, log)
			if bad != nil && !errors.Is(bad, replay.ErrNotFound) {
				return bad
			}
			revision = head.Revision
		}
		return err
	})
}
