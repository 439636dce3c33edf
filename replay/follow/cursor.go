// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Cursor is a position outliving the process, under a name. It is a log with metadata and no records. It pins the log
// it follows: see replay.Pin. It is not safe for concurrent use.
type Cursor struct {
	Name     string // of the cursor's own log
	Log      string // the followed log
	Position        // as to be stored
	Data     any    // the follower's own data beside: stored as JSON
	DueAt    time.Time
	Durable  bool // a loss of power must not take the next write

	revision uint64 // of the log, as far as is known; 0 for none
}

// stored is the metadata of a cursor.
type stored struct {
	Log string `json:"follows"`
	Position
	Data json.RawMessage `json:"data,omitempty"`
}

// Read reads a cursor by its name. If there is none, it returns one not stored yet, without a Log. data gets the
// follower's own data; it may be nil.
func Read(ctx context.Context, logs replay.Logs, name string, data any) (Cursor, error) {
	head, err := logs.Head(ctx, name)
	if errors.Is(err, replay.ErrNotFound) {
		return Cursor{Name: name}, nil
	}
	if err != nil {
		return Cursor{}, err
	}
	return Parse(replay.Entry{Log: name, Head: head}, data)
}

// Parse reads a cursor as replay.Store.List yields it.
func Parse(e replay.Entry, data any) (Cursor, error) {
	var s stored
	err := json.Unmarshal(e.Head.Metadata, &s)
	if err == nil && data != nil {
		err = json.Unmarshal(s.Data, data)
	}
	if err != nil {
		return Cursor{}, fmt.Errorf("follow: a cursor is damaged: %w", err)
	}
	return Cursor{Name: e.Log, Log: s.Log, Position: s.Position, Data: data, DueAt: e.Head.DueAt,
		revision: e.Head.Revision}, nil
}

// Stored reports whether the cursor is in the store, as far as is known.
func (c *Cursor) Stored() bool { return c.revision > 0 }

// Write stores the cursor, and reports whether there was none of its name before. If another writer was faster, the
// later position counts.
func (c *Cursor) Write(ctx context.Context, store replay.Store) (created bool, err error) {
	err = c.retry(ctx, store, func() error {
		s := stored{Log: c.Log, Position: c.Position}
		var err error
		if c.Data != nil {
			s.Data, err = json.Marshal(c.Data)
		}
		a := replay.Append{Log: c.Name, Expect: c.revision, DueAt: c.DueAt, Durable: c.Durable,
			Lists: []replay.Listing{replay.Pin(c.Log, c.Seq)}}
		if err == nil {
			a.Metadata, err = json.Marshal(&s)
		}
		if err == nil {
			err = store.Append(ctx, a)
		}
		if err == nil {
			created = c.revision == 0
			c.revision++
		}
		return err
	})
	return created, err
}

// Drop removes the cursor from the store, and reports whether it was still there. The log is not pinned by it any more.
func (c *Cursor) Drop(ctx context.Context, store replay.Store) (dropped bool, err error) {
	err = c.retry(ctx, store, func() error {
		err := store.Append(ctx, replay.Append{Log: c.Name, Expect: c.revision, Drop: true})
		if err == nil {
			dropped, c.revision = c.revision > 0, 0
		}
		return err
	})
	return dropped, err
}

// retry calls f, and again if another writer was faster: with the revision and the later position.
func (c *Cursor) retry(ctx context.Context, store replay.Store, f func() error) error {
	return replay.RetryConflict(func() error {
		err := f()
		if !errors.Is(err, replay.ErrConflict) {
			return err
		}
		now, bad := Read(ctx, store, c.Name, nil)
		if bad != nil {
			return bad
		}
		if c.revision = now.revision; now.Seq > c.Seq {
			c.Position = now.Position
		}
		return err
	})
}
