// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/wal"
)

// cutLog makes a database open again of an older version, whose write-ahead log is Pebble's, and has a file that ends
// within a record, and after it files without any. A full disk could leave that behind. Pebble takes a file that ends
// so for a corruption unless it is the last one. So the files without a record are put aside, and Pebble cuts off the
// end of what is the last one then. Nothing that was acknowledged is lost, since it would have to stand before the end,
// or in a later file.
//
// It returns the files that were put aside, which keep all that was in them; none if the log does not end so.
func (s *Store) cutLog() (aside []string, err error) {
	files, err := wal.Scan(wal.Dir{FS: s.system, Dirname: s.dir})
	if err != nil {
		return nil, err
	}
	last := len(files) - 1
	torn := false
	for ; last >= 0; last-- {
		records, clean, err := readLog(files[last])
		if err != nil {
			return nil, err
		}
		torn = torn || !clean && last < len(files)-1
		if records {
			break
		}
	}
	if !torn {
		return nil, nil
	}
	for _, file := range files[last+1:] {
		_, name := file.SegmentLocation(0)
		if err := s.system.Rename(name, name+".aside"); err != nil {
			return nil, err
		}
		aside = append(aside, name+".aside")
	}
	_, name := files[max(last, 0)].SegmentLocation(0)
	s.log.Warn("replay: the write-ahead log ended within a record, and has been cut there; nothing acknowledged is lost",
		slog.String("file", s.system.PathBase(name)), slog.Any("aside", aside))
	return aside, nil
}

// readLog returns whether a file of the write-ahead log has a complete record, and whether all of its records are.
func readLog(file wal.LogicalLog) (records, clean bool, err error) {
	r := file.OpenForRead()
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		_, _, err := r.NextRecord()
		switch {
		case err == nil:
			records = true
		case errors.Is(err, io.EOF):
			return records, true, nil
		case errors.Is(err, record.ErrUnexpectedEOF):
			return records, false, nil
		default:
			return records, false, fmt.Errorf("replay/pebble: the write-ahead log cannot be read: %w", err)
		}
	}
}
