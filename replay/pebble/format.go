// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// format is the value of the format key. A store with another one is not opened, and not changed.
const format = "aip-gateway store 1"

var formatKey = []byte{spaceFormat}

// hasFormat reports whether the tables mark the database as a store of this format. They may not yet, because the
// process died while it made the store. A store of another format is an error.
func (g *generation) hasFormat(dir string) (bool, error) {
	value, closer, err := g.db.Get(formatKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("replay/pebble: %s cannot be read: %w", dir, err)
	}
	got := string(value)
	if err := closer.Close(); err != nil {
		return false, err
	}
	if got != format {
		return false, fmt.Errorf("replay/pebble: %s has the format %.64q, and this version knows only %q; "+
			"use the version that made it, or set an empty directory", dir, got, format)
	}
	return true, nil
}

// claim makes an empty database a store. The error is one for a database of something else.
func (g *generation) claim(dir string, mode openMode) error {
	if ours, err := g.hasFormat(dir); ours || err != nil {
		return err
	}
	it, err := g.db.NewIter(nil)
	if err != nil {
		return err
	}
	foreign := it.First()
	if foreign && bytes.Equal(it.Key(), flushedKey) { // the journal's, from an opening interrupted before this point
		foreign = it.Next()
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if foreign {
		return fmt.Errorf("replay/pebble: %s is a database of something else", dir)
	}
	if !mode.writes() { // the process making it died before it had begun
		return nil
	}
	b := g.db.NewBatch()
	defer b.Close()
	m := mark{closed: true}
	err = errors.Join(b.Set(formatKey, []byte(format), nil), b.Set([]byte{spaceMark}, m.append(nil), nil))
	if err != nil {
		return err
	}
	if err := g.commit(b, true); err != nil {
		return err
	}
	return g.db.Flush() // a version with another journal has to see the format, too
}
