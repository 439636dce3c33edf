// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// checkFormat returns an error if the database is not ours. An empty one becomes ours, and one of a format before
// becomes one of this format.
func (g *generation) checkFormat(dir string, mode openMode) error {
	value, closer, err := g.db.Get(formatKey)
	if err == nil {
		got := string(value)
		if err := closer.Close(); err != nil {
			return err
		}
		before := slices.Contains(formatsBefore, got)
		if got != format && !before {
			return fmt.Errorf("replay/pebble: %s has the format %.64q, but this version knows only %q", dir, got, format)
		}
		if before && mode.writes() {
			return g.setFormat(nil, true)
		}
		return nil
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("replay/pebble: %s cannot be read: %w", dir, err)
	}
	it, err := g.db.NewIter(nil)
	if err != nil {
		return err
	}
	foreign := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if foreign {
		return fmt.Errorf("replay/pebble: %s is a database of something else", dir)
	}
	if !mode.writes() { // the process that has made it died before it had begun
		return nil
	}
	return g.setFormat(&mark{closed: true}, false)
}

// setFormat makes the database one of this format, with a mark if there is none to be kept. It may have heads without
// lists that are to have some.
func (g *generation) setFormat(m *mark, unlisted bool) error {
	b := g.db.NewBatch()
	defer b.Close()
	if err := b.Set(formatKey, []byte(format), nil); err != nil {
		return err
	}
	if unlisted {
		if err := b.Set(unlistedKey, nil, nil); err != nil {
			return err
		}
	}
	if m != nil {
		if err := b.Set([]byte{spaceMark}, m.append(nil), nil); err != nil {
			return err
		}
	}
	if err := g.commit(b, 0, true); err != nil {
		return err
	}
	return g.db.Flush() // a version that knows no journal has to see the format, too
}
