// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// PebbleFormat is Pebble's version of the database of a store. The additions of the newer ones are of no use here.
const PebbleFormat = pebble.FormatColumnarBlocks

// isForeign returns whether a database has another version of Pebble's than a store, and something in it. A database
// being made has the versions before, one after the other, a log, and no table.
func isForeign(system vfs.FS, dir string, version pebble.FormatMajorVersion, names []string) bool {
	return version != PebbleFormat && slices.ContainsFunc(names, func(name string) bool {
		switch path.Ext(name) {
		case ".sst":
			return true
		case ".log":
			info, err := system.Stat(system.PathJoin(dir, name))
			return err == nil && info.Size() > emptyLog
		}
		return false
	})
}

// emptyLog is the size of a closed log of Pebble's with nothing in it, in bytes.
const emptyLog = 8

// tableEnd is the end of a table of PebbleFormat: the version of its format, and the mark of all tables of Pebble. No
// table of a store has ever had another format.
const tableEnd = "\x05\x00\x00\x00" + "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"

// CheckedTables is a file system opening tables only if their format is this store's. No checksum covers the version in
// a table: Pebble believes it, reads the blocks as those of another format, and panics with its locks held.
type CheckedTables struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (c CheckedTables) Unwrap() vfs.FS { return c.FS }

// Open implements vfs.FS.
func (c CheckedTables) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil || path.Ext(name) != ".sst" {
		return f, err
	}
	if err := checkTable(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return f, nil
}

// checkTable returns an error if a table is not of the format of this store. A shorter file is no table at all, and
// Pebble notices that.
func checkTable(f vfs.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() < int64(len(tableEnd)) {
		return err
	}
	end := make([]byte, len(tableEnd))
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(end) != tableEnd {
		return fmt.Errorf("%w: the table ends with %x, want %x", pebble.ErrCorruption, end, tableEnd)
	}
	return nil
}
