// SPDX-License-Identifier: Apache-2.0

//go:build unix

package disk

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// holder names the process with a lock on a file, for a sentence. It returns nothing if the system does not know, as
// with a process of another container.
func holder(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close() // this would release a lock of this process: it has none
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}
	err = syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock)
	if err != nil || lock.Type == syscall.F_UNLCK || lock.Pid <= 0 {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", lock.Pid)
}
