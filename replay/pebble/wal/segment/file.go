// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Ext is the extension of the files of segments. Pebble has no such files.
const Ext = ".journal"

// Name returns the name of the file of the segment with a number.
func Name(number uint64) string { return fmt.Sprintf("%012d%s", number, Ext) }

// Number returns the number of the segment in a file of a name; 0 if it is no name of such a file.
func Number(name string) uint64 {
	number, err := strconv.ParseUint(strings.TrimSuffix(name, Ext), 10, 64)
	if err != nil || name != Name(number) {
		return 0
	}
	return number
}

// ErrStop ends a scan.
var ErrStop = errors.New("enough")

// Read calls read for the contents of a file, and returns their size. ErrStop from read ends it without an error.
func Read(system vfs.FS, path string, read func(r io.Reader, size int64) error) (size int64, err error) {
	f, err := system.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if err := read(f, info.Size()); err != nil && !errors.Is(err, ErrStop) {
		return 0, err
	}
	return info.Size(), nil
}

// Contents returns the contents of a file.
func Contents(system vfs.FS, path string) (data []byte, err error) {
	_, err = Read(system, path, func(r io.Reader, size int64) error {
		data = make([]byte, size)
		_, err := io.ReadFull(r, data)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("replay/pebble: %s cannot be read: %w", path, err)
	}
	return data, nil
}
