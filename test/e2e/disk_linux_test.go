// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// A small disk has 128 MiB, of which an eighth must be free for new tasks.
const (
	diskSize    = 128 << 20
	diskMinFree = diskSize / 8
)

// mountDisk mounts a disk of that size over a directory, and then runs a command. Only that command sees the disk.
const mountDisk = `mount -t tmpfs -o size=%d none %q && exec "$0" "$@"`

// mountsDisks reports whether this machine lets a test have a disk of its own, which needs user namespaces.
func mountsDisks(t testing.TB) bool {
	t.Helper()
	script := fmt.Sprintf(mountDisk, diskSize, t.TempDir())
	out, err := exec.Command("unshare", "--map-root-user", "--mount", "sh", "-c", script, "true").CombinedOutput()
	if err != nil {
		t.Logf("this machine lets no test mount a disk: %v %s", err, out)
	}
	return err == nil
}

// onSmallDisk lets the store of a site that has not started yet be on a disk of its own.
func (s *site) onSmallDisk() {
	s.t.Helper()
	dir := filepath.Join(s.dir, "store")
	noError(s.t, os.Mkdir(dir, 0o700))
	s.wrap = []string{"unshare", "--map-root-user", "--mount", "sh", "-c", fmt.Sprintf(mountDisk, diskSize, dir)}
}

// fill fills the small disk until so many bytes are free.
func (s *site) fill(free uint64) {
	s.t.Helper()
	dir := fmt.Sprintf("/proc/%d/root%s", s.cmd.Process.Pid, filepath.Join(s.dir, "store"))
	var now unix.Statfs_t
	noError(s.t, unix.Statfs(dir, &now))
	filler, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	noError(s.t, err)
	defer filler.Close()
	have := now.Bavail * uint64(now.Bsize)
	if _, err = io.CopyN(filler, zeros{}, int64(have-min(have, free))); !errors.Is(err, syscall.ENOSPC) {
		noError(s.t, err)
	}
}

// empty makes room on the small disk again.
func (s *site) empty() {
	s.t.Helper()
	noError(s.t, os.Remove(fmt.Sprintf("/proc/%d/root%s/filler", s.cmd.Process.Pid, filepath.Join(s.dir, "store"))))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// growFiles lets the gateway write to files, or lets each such write fail with EFBIG.
func (s *site) growFiles(may bool) {
	s.t.Helper()
	var limit unix.Rlimit
	noError(s.t, unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &limit))
	if limit.Cur = 0; may {
		limit.Cur = limit.Max
	}
	noError(s.t, unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_FSIZE, &limit, nil))
}

// TestStoreFull fills the disk of a store, and makes room again. Meanwhile the gateway is not ready and says so, it
// accepts no task, and shows those that it has. Afterwards nothing is lost, and nothing needs a restart.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	faults := map[string]fault{
		// A limit of the process: each write to a file fails. This is tested on every machine.
		"limit": {
			prepare: func(*site) {},
			begin:   func(s *site) { s.growFiles(false) }, end: func(s *site) { s.growFiles(true) },
		},
	}
	if mountsDisks(t) {
		faults["disk"] = fault{
			prepare: (*site).onSmallDisk,
			begin:   func(s *site) { s.fill(0) }, end: (*site).empty,
		}
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStoreFull(t, f)
		})
	}
}

// fault is a way to fill the disk of a store.
type fault struct{ prepare, begin, end func(*site) }

func testStoreFull(t *testing.T, f fault) {
	_, agent := sampleAgent(t)
	s := newSite(t)
	f.prepare(s)
	s.start(config{handle: "aip_gateway a2a/legacy http://" + agent})
	caller := leaderOf(t, s.url())
	caller.start("before", "hello")
	caller.start("grows", "hello")
	runs := startCall("runs", "slow 5")
	runs.Terms.Response = time.Millisecond
	caller.do(runs)
	s.waitForReadiness(http.StatusOK)

	f.begin(s)
	n := 0
	for what, call := range map[string]func() *task.Call{
		"a start": func() *task.Call { n++; return startCall(fmt.Sprint("full-", n), "hello") },
		// This one can be stored as long as there is any room.
		"a continue": func() *task.Call { return commandCall(task.Continue, "grows", strings.Repeat("big ", 100_000)) },
	} {
		var refusal *leader.Error
		eventually(t, what+" is refused", func() bool {
			_, err := caller.try(call())
			if err != nil && !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			return err != nil
		})
		if refusal.Code != -32603 || data(t, refusal.Data)["reason"] != "STORE_UNAVAILABLE" {
			t.Errorf("%s on a full disk: %+v, want -32603 with the reason STORE_UNAVAILABLE", what, refusal)
		}
	}
	body := s.waitForReadiness(http.StatusServiceUnavailable)
	if !strings.Contains(body, "the store accepts no new tasks") {
		t.Errorf("the reason is missing: %s", body)
	}
	if status, _ := s.asked("GET", "/aip/health/live", ""); status != http.StatusOK {
		t.Errorf("the gateway is not live: %d", status)
	}
	if _, metrics := s.asked("GET", "/metrics", ""); !strings.Contains(string(metrics), "\naip_store_writable 0\n") {
		t.Errorf("the metrics do not say that the store is full")
	}
	eventually(t, "a task can be read", func() bool { // not while the database is opened again
		got, err := caller.try(commandCall(task.Get, "before"))
		return err == nil && got.Status.State == task.AwaitingCompletion
	})
	if got := s.listedTasks(make(url.Values)); len(got) < 2 {
		t.Errorf("on a full disk, the tasks are %v", got)
	}

	f.end(s)
	s.waitForReadiness(http.StatusOK)
	caller.start("after", "hello")
	caller.complete("before")
	for _, id := range []string{"before", "grows", "after"} {
		checkHistory(t, caller.rests(id))
	}
	got := caller.rests("runs")
	checkHistory(t, got)
	if diff := cmp.Diff(answered{task.AwaitingCompletion, "", []string{"slow done"}}, of(got)); diff != "" {
		t.Errorf("the task that ran (-want +got):\n%s", diff)
	}
	if _, metrics := s.asked("GET", "/metrics", ""); !strings.Contains(string(metrics), "\naip_store_writable 1\n") {
		t.Errorf("the metrics do not say that the store can be written")
	}
}

// waitForReadiness waits until the health route answers a status, and returns the answer.
func (s *site) waitForReadiness(want int) (body string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("GET %s answers %d", "/aip/health/ready", want), func() bool {
		status, answer := s.asked("GET", "/aip/health/ready", "")
		body = string(answer)
		return status == want
	})
	return body
}
