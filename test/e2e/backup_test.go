// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

// storeCommand runs a command of caddy aip store, demands its exit status, and returns what it prints. It asks the
// gateway of the site, if live is set.
func (s *site) storeCommand(want int, live bool, args ...string) string {
	s.t.Helper()
	args = append([]string{"aip", "store"}, args...)
	if live {
		args = append(args, "--address", strings.TrimPrefix(s.adminURL(), "http://"))
	}
	status, stdout, stderr := s.caddy(args...)
	if status != want {
		s.t.Errorf("caddy %q ends with %d, want %d: %s%s", args, status, want, stdout, stderr)
	}
	return stdout + stderr
}

// askingAgent is an agent that asks for input first, and then finishes.
func askingAgent(t *testing.T) *fakeAgent {
	return newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		state := "completed"
		if strings.Contains(string(h.body), "ask me") {
			state = "input-required"
		}
		writeTask(w, h, state, "done")
	})
}

// TestBackup copies the store under load, kills the gateway, and restores the copy: every task that was answered before
// the backup is there, and continues.
func TestBackup(t *testing.T) {
	t.Parallel()
	agent := askingAgent(t)
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	s.awake()
	leader := leaderOf(t, s.url())
	var load sync.WaitGroup
	var answered, stop atomic.Int32
	for w := range 4 {
		load.Go(func() {
			for n := 0; stop.Load() == 0; n++ {
				if got, err := leader.try(startCall(fmt.Sprintf("load-%d-%d", w, n), "ask me")); err != nil ||
					got.Status.State != task.AwaitingInput {
					t.Errorf("a start is answered with %+v, %v", got, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	eventually(t, "some tasks are answered", func() bool { return answered.Load() >= 40 })
	leader.start("done", "hello")
	leader.complete("done")
	var before []string // answered before the backup
	for _, one := range s.listedTasks(map[string][]string{"state": {"awaiting-input"}, "limit": {"1000"}}) {
		before = append(before, strings.Fields(one)[0])
	}
	backup := filepath.Join(s.dir, "backup")
	if got := s.storeCommand(0, true, "backup", backup); got != "the store was copied to "+backup+"\n" {
		t.Errorf("backup prints %q", got)
	}
	if got := s.storeCommand(1, true, "backup", backup); !strings.Contains(got, "exists already") {
		t.Errorf("a second backup prints %q", got)
	}
	if got := s.storeCommand(1, false, "verify", "--store", filepath.Join(s.dir, "store")); !strings.Contains(got,
		"is in use") {
		t.Errorf("the store in use is verified: %q", got)
	}
	if got := s.storeCommand(0, true, "verify", "--json"); gjson.Get(got, "damaged").Int() != 0 ||
		gjson.Get(got, "kinds.task").Int() < int64(len(before)) || gjson.Get(got, "records").Int() == 0 {
		t.Errorf("verify of the running gateway prints %s", got)
	}
	stop.Store(1)
	load.Wait()
	s.kill()

	if got := s.storeCommand(0, false, "verify", "--store", backup); !strings.Contains(got, "0 logs are damaged") {
		t.Errorf("verify of the backup prints %q", got)
	}
	noError(t, os.Rename(filepath.Join(s.dir, "store"), filepath.Join(s.dir, "lost")))
	noError(t, os.Rename(backup, filepath.Join(s.dir, "store")))
	s.run(s.dir + "/Caddyfile")
	s.awake()
	if len(before) < 40 {
		t.Errorf("only %d tasks were there before the backup", len(before))
	}
	for _, id := range before {
		if got := leader.get(id); got.Status.State != task.AwaitingInput {
			t.Errorf("the task %s is %s after the restore", id, got.Status.State)
		}
	}
	last := leader.goOn(before[0], "an answer")
	if last.Status.State != task.AwaitingCompletion {
		t.Errorf("a continue after the restore is answered with %s", last.Status.State)
	}
	if got := leader.get("done"); got.Status.State != task.Completed {
		t.Errorf("the completed task is %s after the restore", got.Status.State)
	}
	leader.start("new", "hello")
}

// TestExport exports the store of a running and of a stopped gateway, and imports it into a new one.
func TestExport(t *testing.T) {
	t.Parallel()
	agent := askingAgent(t)
	s := serve(t, config{handle: "aip_gateway a2a/legacy " + agent.url})
	s.awake()
	leader := leaderOf(t, s.url())
	leader.start("asks", "ask me")
	leader.start("done", "hello")
	leader.complete("done")
	live, closed := filepath.Join(s.dir, "live.ndjson"), filepath.Join(s.dir, "closed.ndjson")
	s.storeCommand(0, true, "export", "--output", live)
	s.storeCommand(1, true, "export", "--output", live) // it exists
	s.stop(t)
	store, lost := filepath.Join(s.dir, "store"), filepath.Join(s.dir, "lost")
	s.storeCommand(0, false, "export", "--store", store, "-o", closed)
	one, err := os.ReadFile(live)
	noError(t, err)
	two, err := os.ReadFile(closed)
	noError(t, err)
	if !bytes.Equal(one, two) {
		t.Errorf("the running gateway exports\n%s\nand the stopped one\n%s", one, two)
	}
	if got := s.storeCommand(0, false, "inspect", "--store", store); !strings.Contains(got, "2 task\n") {
		t.Errorf("inspect prints\n%s", got)
	}

	cut := filepath.Join(s.dir, "cut.ndjson")
	noError(t, os.WriteFile(cut, one[:len(one)/2], 0o600))
	if got := s.storeCommand(1, false, "import", live, "--store", store); !strings.Contains(got, "is not empty") {
		t.Errorf("an import into a store says %q", got)
	}
	noError(t, os.Rename(store, lost))
	if got := s.storeCommand(1, false, "import", cut, "--store", store); !strings.Contains(got, "cut off") {
		t.Errorf("the import of half an export says %q", got)
	}
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("a failed import leaves a store: %v", err)
	}
	if got := s.storeCommand(0, false, "import", live, "--store", store); !strings.Contains(got, "3 logs with") {
		t.Errorf("import prints %q", got)
	}
	s.run(s.dir + "/Caddyfile")
	s.awake()
	if got := leader.goOn("asks", "an answer"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("a continue after the import is answered with %s", got.Status.State)
	}
	if got := leader.get("done"); got.Status.State != task.Completed || len(got.Products) != 1 {
		t.Errorf("the completed task is %+v", got)
	}

	// A store whose file is damaged is said to be.
	s.stop(t)
	tables, err := filepath.Glob(filepath.Join(lost, "*.sst"))
	noError(t, err)
	for _, name := range tables {
		data, err := os.ReadFile(name)
		noError(t, err)
		data[len(data)/3] ^= 0xff
		noError(t, os.WriteFile(name, data, 0o600))
	}
	if got := s.storeCommand(1, false, "verify", "--store", lost); len(tables) == 0 ||
		!strings.Contains(got, "checksum mismatch") {
		t.Errorf("%d damaged files are said to be %q", len(tables), got)
	}
}
