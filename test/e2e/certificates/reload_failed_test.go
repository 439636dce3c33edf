// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestFailedReloads loads a configuration that would drop tasks, trust a revoked Leader, and refuse another one, but
// whose port is taken. Caddy starts its apps in any order, so it is loaded several times.
func TestFailedReloads(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	site.NoError(t, err)
	defer taken.Close()
	root := newRoot(t, "root")
	alice, bob := root.leader(aliceAIC), root.leader(bobAIC)
	up := site.NewSink(t)
	s := site.New(t)
	file, list := s.InDir("root.pem"), s.InDir("list.crl")
	writeRoots(t, file, root)
	root.writeCRL(list, time.Hour)
	handle := "aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers aip a2a\n"
	memory := "store memory {\n\t\t\tmax_bytes 64KiB\n\t\t\tmax_size %s\n\t\t}\n"
	good := site.Config{Store: fmt.Sprintf(memory, "64MiB") + "\t\trevocation {\n\t\t\tcrl " + list + "\n\t\t}",
		Notify: site.AllowHere, Trust: "trust_pool aip_file " + file, Handle: handle + "\t}"}
	bad := site.Config{Store: fmt.Sprintf(memory, "64KiB"), Notify: site.AllowHere, Trust: good.Trust,
		Handle:     handle + "\t\tallow " + carolAIC + "\n\t}",
		OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\n\trespond hi\n}", taken.Addr().(*net.TCPAddr).Port)}
	s.Start(good)

	one, other := site.CallerWith(t, s.URL(), aliceAIC, alice), site.CallerWith(t, s.URL(), bobAIC, bob)
	tasks := []string{"one", "two", "three", "four"}
	for _, id := range tasks {
		one.Start(id, strings.Repeat(".", 24<<10))
		one.Complete(id)
	}
	for _, leader := range []*site.Caller{one, other} {
		id := "of-" + leader.Sender
		leader.SetHook(site.Hook{URL: up.Origin() + "/" + leader.Sender, Token: "t", TaskID: id})
		leader.Start(id, "ask")
		up.WaitForChanges("/"+leader.Sender, leader.Rests(id).StatusHistory)
	}
	streams, calls := openEach(t, s, alice)
	root.revoke(bob.Leaf)
	root.writeCRL(list, time.Hour)
	s.WaitFor(t, `its webhooks stop, and its groups are left.*"leader":"`+bobAIC+`"`)
	before := len(up.Arrived("/" + bobAIC))
	s.TasksCommand(0, "cancel", "of-"+bobAIC)

	for range 8 {
		if trouble := s.Reload(bad); !strings.Contains(trouble, "address already in use") {
			t.Fatalf("Caddy says %q", trouble)
		}
	}
	goesOn(t, s, alice, streams, calls)
	for _, id := range tasks {
		if got, err := one.Again(site.CommandCall(task.Get, id)); err != nil {
			t.Errorf("a task that has ended: %v", site.Explain(err))
		} else if diff := cmp.Diff(task.Completed, got.Status.State); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	one.Cancel("of-" + aliceAIC)
	site.Eventually(t, "the webhook of the other Leader is notified", func() bool {
		return slices.ContainsFunc(up.Arrived("/"+aliceAIC), func(n site.Notice) bool {
			return n.Task.Status.State == task.Canceled
		})
	})
	if n := len(up.Arrived("/" + bobAIC)); n != before {
		t.Errorf("the webhook of the revoked Leader was notified %d times, and before %d times", n, before)
	}
	if again := regexp.MustCompile(`the certificates of a Leader count again.*`).FindString(s.Out.String()); again != "" {
		t.Errorf("the log says: %s", again)
	}
	bad.Handle, bad.OtherSites = good.Handle, ""
	if trouble := s.Reload(bad); trouble != "" {
		t.Fatal(trouble)
	}
	s.WaitFor(t, `the certificates of a Leader count again.*"leader":"`+bobAIC+`"`)
	site.Eventually(t, "the smaller store has dropped tasks", func() bool {
		return !slices.Contains(s.ListedTasksSorted(), "one completed")
	})
}
