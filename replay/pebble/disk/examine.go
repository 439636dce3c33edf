// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize"
)

// Examine returns the reason a store could not be opened in a directory, or would accept no new logs; nil if there is
// none. A store opened by another process is not a reason. Examine changes nothing, and opens nothing: damage within
// the files is not found.
func Examine(dir string) error {
	exists := true
	above := dir // the directory, or the one Open would make it in
	for {
		info, err := os.Stat(above)
		switch {
		case err == nil && !info.IsDir():
			return fmt.Errorf("%s is a file, but must be a directory; remove it, or set another directory", above)
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(above) != above:
			exists, above = false, filepath.Dir(above)
			continue
		default:
			return fmt.Errorf("%w; correct the path or its permissions", err)
		}
		break
	}
	if err := access(above); err != nil {
		return fmt.Errorf("%s cannot be written (%w); give it to the user who runs Caddy", above, err)
	}
	if exists {
		if err := CheckDir(vfs.Default, dir); err != nil {
			return fmt.Errorf("%w; set an empty directory, or that of a store", err)
		}
	}
	usage, err := vfs.Default.GetDiskUsage(above)
	if least := SizesFor(vfs.Default, above).Least; err == nil && usage.AvailBytes < least {
		return fmt.Errorf("the disk of %s has %s free, and new tasks need %s; free some space", dir,
			humanize.IBytes(usage.AvailBytes), humanize.IBytes(least))
	}
	return nil
}
