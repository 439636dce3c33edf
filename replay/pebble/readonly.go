// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
)

// errReadOnly is why a store that OpenReadOnly has opened cannot be written.
var errReadOnly = errors.New("it was opened only to be read")

// OpenReadOnly opens the store in a directory to read it, also one of an older format. It changes no file but the lock.
// Appends fail with replay.ErrUnavailable.
func OpenReadOnly(dir string, log *slog.Logger) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := checkDir(vfs.Default, dir); err != nil {
		return nil, err
	}
	s := newStore(vfs.Default, dir, log)
	s.readOnly = true
	s.Configure(replay.Settings{})
	if s.lock, err = lockDir(s.system, dir); err != nil {
		return nil, err
	}
	s.reserve = newReserve(s.system, dir, 0)
	s.room = newRoom(s.system, dir, s.sizes.least)
	s.intents = newIntents(s.system, dir, s.sizes.memTable)
	if s.generation, err = s.openGeneration(openRead); err != nil {
		s.reserve.close()
		return nil, errors.Join(err, s.lock.Close())
	}
	s.available.why.Store(&diskError{errReadOnly})
	close(s.supervised) // nothing changes
	close(s.sweeper.ended)
	close(s.named)
	return s, nil
}
