// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// TestBackup copies the store under load, kills the gateway, and restores the copy: every task that was answered before
// the backup is there, and continues.
func TestBackup(t *testing.T) {
	t.Parallel()
	agent := site.AskingAgent(t)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	s.Awake()
	leader := site.LeaderOf(t, s.URL())
	var load sync.WaitGroup
	var answered, stop atomic.Int32
	for w := range 4 {
		load.Go(func() {
			for n := 0; stop.Load() == 0; n++ {
				if got, err := leader.Try(site.StartCall(fmt.Sprintf("load-%d-%d", w, n), "ask me")); err != nil ||
					got.Status.State != task.AwaitingInput {
					t.Errorf("a start is answered with %+v, %v", got, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	site.Eventually(t, "some tasks are answered", func() bool { return answered.Load() >= 40 })
	leader.Start("done", "hello")
	leader.Complete("done")
	var before []string // answered before the backup
	for _, one := range s.ListedTasks(map[string][]string{"state": {"awaiting-input"}, "limit": {"1000"}}) {
		before = append(before, strings.Fields(one)[0])
	}
	backup := filepath.Join(s.Dir, "backup")
	if got := s.StoreCommand(0, true, "backup", backup); got != "the store was copied to "+backup+"\n" {
		t.Errorf("backup prints %q", got)
	}
	if got := s.StoreCommand(1, true, "backup", backup); !strings.Contains(got, "exists already") {
		t.Errorf("a second backup prints %q", got)
	}
	if got := s.StoreCommand(1, false, "verify", "--store", filepath.Join(s.Dir, "store")); !strings.Contains(got,
		"is in use") {
		t.Errorf("the store in use is verified: %q", got)
	}
	if got := s.StoreCommand(0, true, "verify", "--json"); gjson.Get(got, "damaged").Int() != 0 ||
		gjson.Get(got, "kinds.task").Int() < int64(len(before)) || gjson.Get(got, "records").Int() == 0 {
		t.Errorf("verify of the running gateway prints %s", got)
	}
	stop.Store(1)
	load.Wait()
	s.Kill()

	if got := s.StoreCommand(0, false, "verify", "--store", backup); !strings.Contains(got, "0 logs are damaged") {
		t.Errorf("verify of the backup prints %q", got)
	}
	site.NoError(t, os.Rename(filepath.Join(s.Dir, "store"), filepath.Join(s.Dir, "lost")))
	site.NoError(t, os.Rename(backup, filepath.Join(s.Dir, "store")))
	s.Run(s.Dir + "/Caddyfile")
	s.Awake()
	if len(before) < 40 {
		t.Errorf("only %d tasks were there before the backup", len(before))
	}
	for _, id := range before {
		if got := leader.Get(id); got.Status.State != task.AwaitingInput {
			t.Errorf("the task %s is %s after the restore", id, got.Status.State)
		}
	}
	last := leader.GoOn(before[0], "an answer")
	if last.Status.State != task.AwaitingCompletion {
		t.Errorf("a continue after the restore is answered with %s", last.Status.State)
	}
	if got := leader.Get("done"); got.Status.State != task.Completed {
		t.Errorf("the completed task is %s after the restore", got.Status.State)
	}
	leader.Start("new", "hello")
}

// TestExport exports the store of a running and of a stopped gateway, and imports it into a new one.
func TestExport(t *testing.T) {
	t.Parallel()
	agent := site.AskingAgent(t)
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	s.Awake()
	leader := site.LeaderOf(t, s.URL())
	leader.Start("asks", "ask me")
	leader.Start("done", "hello")
	leader.Complete("done")
	live, closed := filepath.Join(s.Dir, "live.ndjson"), filepath.Join(s.Dir, "closed.ndjson")
	s.StoreCommand(0, true, "export", "--output", live)
	s.StoreCommand(1, true, "export", "--output", live) // it exists
	s.Stop(t)
	store, lost := filepath.Join(s.Dir, "store"), filepath.Join(s.Dir, "lost")
	s.StoreCommand(0, false, "export", "--store", store, "-o", closed)
	one, err := os.ReadFile(live)
	site.NoError(t, err)
	two, err := os.ReadFile(closed)
	site.NoError(t, err)
	if !bytes.Equal(one, two) {
		t.Errorf("the running gateway exports\n%s\nand the stopped one\n%s", one, two)
	}
	if got := s.StoreCommand(0, false, "inspect", "--store", store); !strings.Contains(got, "2 task\n") {
		t.Errorf("inspect prints\n%s", got)
	}

	cut := filepath.Join(s.Dir, "cut.ndjson")
	site.NoError(t, os.WriteFile(cut, one[:len(one)/2], 0o600))
	if got := s.StoreCommand(1, false, "import", live, "--store", store); !strings.Contains(got, "is not empty") {
		t.Errorf("an import into a store says %q", got)
	}
	site.NoError(t, os.Rename(store, lost))
	if got := s.StoreCommand(1, false, "import", cut, "--store", store); !strings.Contains(got, "cut off") {
		t.Errorf("the import of half an export says %q", got)
	}
	if _, err := os.Stat(store); !os.IsNotExist(err) {
		t.Errorf("a failed import leaves a store: %v", err)
	}
	if got := s.StoreCommand(0, false, "import", live, "--store", store); !strings.Contains(got, "3 logs with") {
		t.Errorf("import prints %q", got)
	}
	s.Run(s.Dir + "/Caddyfile")
	s.Awake()
	if got := leader.GoOn("asks", "an answer"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("a continue after the import is answered with %s", got.Status.State)
	}
	if got := leader.Get("done"); got.Status.State != task.Completed || len(got.Products) != 1 {
		t.Errorf("the completed task is %+v", got)
	}

	// A store whose file is damaged is said to be.
	s.Stop(t)
	tables, err := filepath.Glob(filepath.Join(lost, "*.sst"))
	site.NoError(t, err)
	for _, name := range tables {
		data, err := os.ReadFile(name)
		site.NoError(t, err)
		data[len(data)/3] ^= 0xff
		site.NoError(t, os.WriteFile(name, data, 0o600))
	}
	if got := s.StoreCommand(1, false, "verify", "--store", lost); len(tables) == 0 ||
		!strings.Contains(got, "checksum mismatch") {
		t.Errorf("%d damaged files are said to be %q", len(tables), got)
	}
}
