// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
	"github.com/aip-gateway/aip-gateway/replay/pebble/wal"
)

// Backup copies the store into a directory while the store is in use. The directory must not exist. Everything
// acknowledged before the call is in the copy, and so are the writes made meanwhile, up to some write. Tables are
// linked if the directory is on the same file system, so the copy takes little space at first. The directory is there
// when the copy is complete and synced, and not before.
//
// The copy is a closed store. Records appended after the backup may have been read: the copy records this for each log
// that has not ended (replay.Head.Lost), so no number is used twice.
//
// An error of the directory leaves the store as it is. ctx ends the backup between its steps.
func (s *Store) Backup(ctx context.Context, dir string) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("replay/pebble: %w", err)
	}
	if dir == s.dir || strings.HasPrefix(dir, s.dir+string(filepath.Separator)) {
		return fmt.Errorf("replay/pebble: %s is in the directory of the store; choose another one", dir)
	}
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("replay/pebble: %s exists already; choose another directory: %w", dir, fs.ErrExist)
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".partial-")
	if err != nil {
		return fmt.Errorf("replay/pebble: %w", err)
	}
	defer os.RemoveAll(partial)
	copied := filepath.Join(partial, "store")
	pending, err := s.checkpoint(ctx, copied)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := closeCopy(copied, pending); err != nil {
		return fmt.Errorf("replay/pebble: the copy in %s cannot be completed: %w", copied, err)
	}
	if err := publish(copied, dir); err != nil {
		return fmt.Errorf("replay/pebble: %w", err)
	}
	return nil
}

// checkpoint copies the database, and returns the intents there were at its beginning.
func (s *Store) checkpoint(ctx context.Context, dir string) (pending []slot, err error) {
	if err := s.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer s.exit(&err)
	pending = s.intents.copies() // one becoming a log meanwhile may not be in the tables
	if err := s.committed().Flush(); err != nil {
		return nil, err
	}
	return pending, s.db.Checkpoint(dir) // there is no log but the journal, and the tables have all of the journal now
}

// copies returns the slots with intents.
func (in *intents) copies() (slots []slot) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for s := range in.all {
		slots = append(slots, slot{log: s.log, head: s.clone()})
	}
	return slots
}

// closeCopy makes a checkpoint a closed store, with the intents it lacks.
func closeCopy(dir string, pending []slot) (err error) {
	db, err := pebble.Open(dir, &pebble.Options{FS: disk.CheckedTables{FS: vfs.Default},
		FormatMajorVersion: disk.PebbleFormat, DisableWAL: true, DisableAutomaticCompactions: true,
		ErrorIfNotExists: true, Logger: logger{slog.New(slog.DiscardHandler)}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m, err := markIn(db)
	if err != nil {
		return err
	}
	b := db.NewBatch()
	defer b.Close()
	for i := range pending {
		p := &pending[i]
		has, err := hasHead(db, p.log)
		if err != nil {
			return err
		}
		if !has {
			setIntent(b, p.log, &p.head)
		}
	}
	flushed, err := flushedIn(db)
	if err != nil {
		return err
	}
	return flushForGood(db, vfs.Default, dir, b, m.losses+1, flushed+1)
}

// flushForGood commits the last batch of a database without a journal, and flushes it. From then on, it is closed and
// has had so many losses, and the tables have all segments up to a number; a journal beginning behind them records
// this.
func flushForGood(db *pebble.DB, system vfs.FS, dir string, b *pebble.Batch, losses, number uint64) error {
	m := mark{losses: losses, closed: true}
	if err := b.Set([]byte{spaceMark}, m.append(nil), nil); err != nil {
		return err
	}
	if err := b.Set(flushedKey, binary.AppendUvarint(nil, number), nil); err != nil {
		return err
	}
	if err := errors.Join(b.Commit(pebble.NoSync), db.Flush()); err != nil {
		return err
	}
	return wal.Create(system, dir, number+1)
}

// publish gives a complete copy its name. Its files can be read by their owner only, since webhooks have tokens.
func publish(copied, dir string) error {
	names, err := os.ReadDir(copied)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Chmod(filepath.Join(copied, name.Name()), 0o600); err != nil {
			return err
		}
	}
	if err := os.Chmod(copied, 0o700); err != nil {
		return err
	}
	if err := syncPath(copied); err != nil {
		return err
	}
	if err := os.Rename(copied, dir); err != nil {
		return err
	}
	return syncPath(filepath.Dir(dir))
}

// syncPath makes the names in a directory survive a loss of power.
func syncPath(dir string) error {
	f, err := vfs.Default.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
