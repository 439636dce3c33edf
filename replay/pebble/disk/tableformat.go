// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/bits"
	"path"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// PebbleFormat is Pebble's version of the database of a store: large values have files of their own. A store made
// before has OldPebbleFormat, and the versions between one after the other when it is first opened to be written.
const (
	PebbleFormat    = pebble.FormatValueSeparation
	OldPebbleFormat = pebble.FormatColumnarBlocks
)

// valuesExt is the extension of files with large values of tables.
const valuesExt = ".blob"

// IsTable returns whether a file is a table of Pebble's, or has large values of tables.
func IsTable(name string) bool { return path.Ext(name) == ".sst" || path.Ext(name) == valuesExt }

// isForeign returns whether a database has another version of Pebble's than a store, and something in it. A database
// being made has the versions before, one after the other, a log, and no table.
func isForeign(system vfs.FS, dir string, version pebble.FormatMajorVersion, names []string) bool {
	ours := version >= OldPebbleFormat && version <= PebbleFormat
	return !ours && slices.ContainsFunc(names, func(name string) bool {
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

// A table ends with the version of its format, and the mark of all tables of Pebble. Those of OldPebbleFormat have
// version 5, and those of PebbleFormat version 7. No table of a store has ever had another one.
const tableMark = "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3"

var tableVersions = []string{"\x05\x00\x00\x00", "\x07\x00\x00\x00"}

// CheckedTables is a file system opening tables only if their format is this store's. No checksum covers the version in
// a table: Pebble believes it, reads the blocks as those of another format, and panics with its locks held. It panics
// so for a file of large values with a damaged end, too, if it knows the error as one of damage.
type CheckedTables struct{ vfs.FS }

// Unwrap implements vfs.FS.
func (c CheckedTables) Unwrap() vfs.FS { return c.FS }

// Open implements vfs.FS.
func (c CheckedTables) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil || !IsTable(name) {
		return f, err
	}
	if path.Ext(name) == valuesExt {
		if err = checkValues(f); err != nil {
			err = errors.New(err.Error())
		}
	} else {
		err = checkTable(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return f, nil
}

// CheckValues returns an error if a file of large values is not there, or is damaged at its end. Pebble looks at these
// files no sooner than it reads them.
func CheckValues(system vfs.FS, name string) error {
	f, err := system.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", pebble.ErrCorruption, name)
	}
	if err != nil {
		return err
	}
	if err = checkValues(f); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return errors.Join(err, f.Close())
}

// A file of large values ends with a checksum, 26 bytes of data and 8 bytes of a mark.
const valuesEnd = 4 + 26 + 8

// checkValues returns an error if the end of a file of large values is damaged.
func checkValues(f vfs.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := make([]byte, valuesEnd)
	if info.Size() < valuesEnd {
		return fmt.Errorf("%w: the file is cut off", pebble.ErrCorruption)
	}
	if _, err := f.ReadAt(end, info.Size()-valuesEnd); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	sum := crc32.Checksum(end[4:], crc32.MakeTable(crc32.Castagnoli))
	if sum = bits.RotateLeft32(sum, 17) + 0xa282ead8; sum != binary.LittleEndian.Uint32(end) { // as LevelDB masks it
		return fmt.Errorf("%w: the file ends with %x", pebble.ErrCorruption, end)
	}
	return nil
}

// checkTable returns an error if a table is not of the format of this store. A shorter file is no table at all, and
// Pebble notices that.
func checkTable(f vfs.File) error {
	info, err := f.Stat()
	end := make([]byte, len(tableVersions[0])+len(tableMark))
	if err != nil || info.Size() < int64(len(end)) {
		return err
	}
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	version, ours := strings.CutSuffix(string(end), tableMark)
	if !ours || !slices.Contains(tableVersions, version) {
		return fmt.Errorf("%w: the table ends with %x, want one of %x, and %x", pebble.ErrCorruption, end, tableVersions,
			tableMark)
	}
	return nil
}
