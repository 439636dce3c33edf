// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// errReadOnly is the reason a store opened by OpenReadOnly cannot be written.
var errReadOnly = errors.New("it was opened only to be read")

// OpenReadOnly opens the store in a directory to read it. It changes no file but the lock.
// Appends fail with replay.ErrUnavailable.
func OpenReadOnly(dir string, log *slog.Logger) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return openReadOnly(vfs.Default, dir, log)
}

func openReadOnly(system vfs.FS, dir string, log *slog.Logger) (*Store, error) {
	s, err := lockedStore(system, dir, log)
	if err != nil {
		return nil, err
	}
	if s.generation, err = s.openGeneration(openRead); err != nil {
		s.reserve.Close()
		return nil, errors.Join(err, s.lock.Close())
	}
	s.available.why.Store(&disk.Error{Cause: errReadOnly})
	close(s.supervised) // nothing changes
	close(s.sweeper.ended)
	close(s.filtersDone)
	return s, nil
}

// lockedStore returns a store that is not open, only for calls that read, in a directory no other process uses.
func lockedStore(system vfs.FS, dir string, log *slog.Logger) (_ *Store, err error) {
	if err := disk.CheckDir(system, dir); err != nil {
		return nil, err
	}
	switch desc, err := pebble.Peek(dir, system); {
	case err != nil:
		return nil, fmt.Errorf("replay/pebble: %s cannot be read: %w", dir, err)
	case !desc.Exists:
		return nil, fmt.Errorf("replay/pebble: there is no store in %s", dir)
	}
	s := newStore(system, dir, log)
	s.readOnly = true
	s.Configure(replay.Settings{})
	if s.lock, err = disk.Lock(system, dir); err != nil {
		return nil, err
	}
	s.reserve = disk.NewReserve(system, dir, 0)
	s.free = disk.NewSpace(system, dir, s.sizes.Least)
	s.intents = newIntents(system, dir, s.sizes.MemTable)
	return s, nil
}
