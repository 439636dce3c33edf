// SPDX-License-Identifier: Apache-2.0

package site

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A small disk has 128 MiB, of which an eighth must be free for new tasks.
const (
	diskSize    = 128 << 20
	DiskMinFree = diskSize / 8
)

// mountDisk mounts a disk of that size over a directory, and then runs a command. Only that command sees the disk.
const mountDisk = `mount -t tmpfs -o size=%d none %q && exec "$0" "$@"`

// MountsDisks reports whether this machine lets a test have a disk of its own, which needs user namespaces.
func MountsDisks(t testing.TB) bool {
	t.Helper()
	script := fmt.Sprintf(mountDisk, diskSize, t.TempDir())
	out, err := exec.Command("unshare", "--map-root-user", "--mount", "sh", "-c", script, "true").CombinedOutput()
	if err != nil {
		t.Logf("this machine lets no test mount a disk: %v %s", err, out)
	}
	return err == nil
}

// OnSmallDisk lets the store of a site that has not started yet be on a disk of its own.
func (s *Site) OnSmallDisk() {
	s.T.Helper()
	dir := filepath.Join(s.Dir, "store")
	NoError(s.T, os.Mkdir(dir, 0o700))
	s.wrap = []string{"unshare", "--map-root-user", "--mount", "sh", "-c", fmt.Sprintf(mountDisk, diskSize, dir)}
}

// Fill fills the small disk until so many bytes are free.
func (s *Site) Fill(free uint64) {
	s.T.Helper()
	dir := fmt.Sprintf("/proc/%d/root%s", s.Cmd.Process.Pid, filepath.Join(s.Dir, "store"))
	var now unix.Statfs_t
	NoError(s.T, unix.Statfs(dir, &now))
	filler, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	NoError(s.T, err)
	defer filler.Close()
	have := now.Bavail * uint64(now.Bsize)
	if _, err = io.CopyN(filler, zeros{}, int64(have-min(have, free))); !errors.Is(err, syscall.ENOSPC) {
		NoError(s.T, err)
	}
}

// Empty makes room on the small disk again.
func (s *Site) Empty() {
	s.T.Helper()
	NoError(s.T, os.Remove(fmt.Sprintf("/proc/%d/root%s/filler", s.Cmd.Process.Pid, filepath.Join(s.Dir, "store"))))
}

type zeros struct{}

// Read fills p with zeros.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// GrowFiles lets the gateway write to files, or lets each such write fail with EFBIG.
func (s *Site) GrowFiles(may bool) {
	s.T.Helper()
	var limit unix.Rlimit
	NoError(s.T, unix.Prlimit(s.Cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &limit))
	if limit.Cur = 0; may {
		limit.Cur = limit.Max
	}
	NoError(s.T, unix.Prlimit(s.Cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil))
}
