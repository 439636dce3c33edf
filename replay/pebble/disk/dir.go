// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Lock locks a directory against other stores.
func Lock(system vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, system)
	if err == nil {
		return lock, nil
	}
	if _, isPath := errors.AsType[*fs.PathError](err); isPath {
		return nil, fmt.Errorf("replay/pebble: %w", err)
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, fmt.Errorf("replay/pebble: %s is in use: another process%s has opened the store there", dir,
			holder(system.PathJoin(dir, "LOCK")))
	}
	return nil, fmt.Errorf("replay/pebble: %s is in use: %w", dir, err)
}

// CheckDir returns an error for a directory with files, but without a database. The files of an interrupted first
// opening do not count, nor do those of a new volume.
func CheckDir(system vfs.FS, dir string) error {
	desc, err := pebble.Peek(dir, system)
	if err != nil {
		return fmt.Errorf("replay/pebble: %s cannot be read: %w", dir, err)
	}
	names, err := system.List(dir)
	if err != nil {
		return fmt.Errorf("replay/pebble: %w", err)
	}
	if desc.Exists {
		if isForeign(system, dir, desc.FormatMajorVersion, names) {
			return fmt.Errorf("replay/pebble: %s is a database of something else", dir)
		}
		return nil
	}
	if i := slices.IndexFunc(names, func(name string) bool {
		return name != "LOCK" && name != "lost+found" && !strings.HasPrefix(name, "MANIFEST-") &&
			!strings.HasPrefix(name, "marker.")
	}); i >= 0 {
		return fmt.Errorf("replay/pebble: %s is not a store, but holds files, such as %q", dir, names[i])
	}
	return nil
}

// BootIDFile has a name for the time since Linux was started. Other systems have no such file.
const BootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID returns the system's name for the time since it was started; empty if it has none.
func BootID(system vfs.FS) string {
	f, err := system.Open(BootIDFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	id, err := io.ReadAll(io.LimitReader(f, 64))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
