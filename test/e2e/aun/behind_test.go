// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestAUNBehind drives an agent of AUN by AIP, through each of its scripts.
func TestAUNBehind(t *testing.T) {
	t.Parallel()
	b := site.ServeBehind(t)
	for i, c := range []struct {
		script string
		state  task.State
		text   string
	}{
		{"hello", task.AwaitingCompletion, "echo: hello"}, {"fail", task.Failed, ""},
		{"slow 100", task.AwaitingCompletion, "slow done"}, {"reject", task.Rejected, ""},
		{"stream 3 10", task.AwaitingCompletion, "chunk-0 chunk-1 chunk-2 "}, {"ask", task.AwaitingInput, ""},
		{"delegate db.aid.test look", task.AwaitingCompletion, "echo: delegate db.aid.test look"},
	} {
		id := fmt.Sprintf("t%d", i)
		b.Patiently(id, c.script)
		got := b.Rests(id)
		if got.Status.State != c.state || productTexts(got) != c.text {
			t.Errorf("%s: it is %s with %q", c.script, got.Status.State, productTexts(got))
		}
	}
	b.GoOn("t5", "blue")
	if got := b.Rests("t5"); got.Status.State != task.AwaitingCompletion || productTexts(got) != "you said: blue" {
		t.Errorf("after the answer it is %s with %q", got.Status.State, productTexts(got))
	}
	b.Caller.Start("t9", "slow 60000")
	if got := b.Cancel("t9"); got.Status.State != task.Canceled {
		t.Errorf("canceled, it is %s", got.Status.State)
	}
	site.Eventually(t, "the agent has learned of the cancel", func() bool {
		return slices.ContainsFunc(b.Far.Tasks(), func(t aunpeer.Task) bool { return t.Status == "canceled" })
	})
	if n := b.Far.Connections(); n != 1 {
		t.Errorf("there are %d connections", n)
	}
	b.Reload(b.Config())
	b.Caller.Start("t10", "hello")
	b.Rests("t10")
	if n := b.Far.Connections(); n != 1 {
		t.Errorf("after a reload there are %d connections", n)
	}
}

// TestAUNBehindReloadedTrust: after a reload, turns use no connection that was made with other TLS settings.
func TestAUNBehindReloadedTrust(t *testing.T) {
	t.Parallel()
	b := site.ServeBehind(t)
	trusted := b.CA
	for i, ca := range []string{trusted, filepath.Join(b.Dir, "roots.pem"), trusted} {
		b.CA = ca
		b.Reload(b.Config())
		id := fmt.Sprint("r", i)
		b.Caller.Start(id, "hello")
		want := task.AwaitingCompletion
		if ca != trusted {
			want = task.Failed
		}
		if got := b.Rests(id); got.Status.State != want {
			t.Errorf("with %s it is %s: %+v", filepath.Base(ca), got.Status.State, got.Status.DataItems)
		}
	}
}

// TestAUNBehindByMessages drives an agent that has no task.*, and does not say that it has started.
func TestAUNBehindByMessages(t *testing.T) {
	t.Parallel()
	b := site.ServeBehind(t, func(g *aunpeer.Gateway) { g.Messages, g.Quiet = true, true })
	for i, c := range []struct {
		script string
		state  task.State
		text   string
	}{
		{"hello", task.AwaitingCompletion, "echo: hello"}, {"fail", task.Failed, ""},
		{"stream 3 10", task.AwaitingCompletion, "chunk-0 chunk-1 chunk-2 "},
		{"ask", task.AwaitingCompletion, "which colour?"}, // nothing says that it is a question
	} {
		id := fmt.Sprintf("m%d", i)
		b.Caller.Start(id, c.script)
		got := b.Rests(id)
		if got.Status.State != c.state || strings.ReplaceAll(productTexts(got), "\n", "") != c.text {
			t.Errorf("%s: it is %s with %q", c.script, got.Status.State, productTexts(got))
		}
	}
	b.GoOn("m3", "blue")
	if got := b.Rests("m3"); got.Status.State != task.AwaitingCompletion || productTexts(got) != "you said: blue" {
		t.Errorf("answered, it is %s with %q", got.Status.State, productTexts(got))
	}
	b.Caller.Start("m9", "slow 60000")
	if got := b.Cancel("m9"); got.Status.State != task.Canceled {
		t.Errorf("canceled, it is %s", got.Status.State)
	}
	if calls := b.Far.Calls(); slices.ContainsFunc(calls, func(m string) bool { return strings.HasPrefix(m, "task.") }) {
		t.Errorf("the agent was called by %v", calls)
	}
}

// TestAUNBehindLostReply: a task.create whose reply was lost is not sent again before it was looked for.
func TestAUNBehindLostReply(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	b := site.ServeBehind(t, func(g *aunpeer.Gateway) {
		g.Fault = func(method string, _ json.RawMessage) aunpeer.Fault {
			if method == "task.create" && lost.Add(1) == 1 {
				return aunpeer.Cut
			}
			return aunpeer.None
		}
	})
	b.Caller.Start("t1", "slow 200")
	if got := b.Rests("t1"); got.Status.State != task.AwaitingCompletion || productTexts(got) != "slow done" {
		t.Errorf("it is %s with %q", got.Status.State, productTexts(got))
	}
	if got := b.Far.Tasks(); len(got) != 1 {
		t.Errorf("the agent has %d tasks, want 1; it was called by %v", len(got), b.Far.Calls())
	}
}

// TestAUNBehindLostStart: a start that the agent has not received is sent again after a crash, although its Leader has
// seen the task.
func TestAUNBehindLostStart(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	b := site.ServeBehind(t, func(g *aunpeer.Gateway) {
		g.Fault = func(method string, _ json.RawMessage) aunpeer.Fault {
			if method == "task.create" && lost.Add(1) == 1 {
				return aunpeer.Ignore
			}
			return aunpeer.None
		}
	})
	b.Caller.Start("t1", "hello") // it is answered before the agent has it
	b.Far.CutAll()
	b.Site.Process.Kill()
	b.Site.Start(b.Config())
	if got := b.Rests("t1"); got.Status.State != task.AwaitingCompletion || productTexts(got) != "echo: hello" {
		t.Errorf("it is %s with %q: %+v", got.Status.State, productTexts(got), got.Status.DataItems)
	}
	if got := b.Far.Tasks(); len(got) != 1 {
		t.Errorf("the agent has %d tasks, want 1; it was called by %v", len(got), b.Far.Calls())
	}
}

// TestAUNBehindCuts: connections to the agent that are cut, and a gateway that is killed, in the middle of 100 tasks:
// nothing is lost or repeated.
func TestAUNBehindCuts(t *testing.T) {
	t.Parallel()
	b := site.ServeBehind(t)
	const tasks, pieces = 100, 10
	var starts sync.WaitGroup
	slots := make(chan bool, 20)
	for i := range tasks {
		slots <- true
		starts.Go(func() {
			defer func() { <-slots }()
			id := fmt.Sprintf("c%d", i)
			again := time.NewTicker(50 * time.Millisecond)
			defer again.Stop()
			var err error
			for giveUp := time.Now().Add(2 * site.Patience); time.Now().Before(giveUp); { // the gateway is killed meanwhile
				if _, err = b.Try(site.StartCall(id, fmt.Sprintf("stream %d 50 of %s", pieces, id))); err == nil {
					return
				}
				<-again.C
			}
			t.Errorf("%s was not taken: %v", id, err)
		})
		switch i {
		case 30, 50:
			b.Far.CutAll()
		case 70:
			b.Process.Kill()
			b.Run(filepath.Join(b.Dir, "Caddyfile"))
		}
	}
	starts.Wait()
	var want strings.Builder
	for i := range pieces {
		fmt.Fprintf(&want, "chunk-%d ", i)
	}
	for i := range tasks {
		got := b.Rests(fmt.Sprintf("c%d", i))
		if got.Status.State != task.AwaitingCompletion || productTexts(got) != want.String() {
			t.Errorf("c%d is %s with %q: %+v", i, got.Status.State, productTexts(got), got.Status.DataItems)
		}
	}
	if got := len(b.Far.Tasks()); got != tasks {
		t.Errorf("the agent has %d tasks, want %d", got, tasks)
	}
}

// TestAUNBehindByMessagesCrash: the connection breaks and the process dies while an agent answers by messages. What it
// has said meanwhile is in its tasks, once.
func TestAUNBehindByMessagesCrash(t *testing.T) {
	t.Parallel()
	const tasks = 10
	b := site.ServeBehind(t, func(g *aunpeer.Gateway) { g.Messages = true })
	for i := range tasks {
		b.Caller.Start(fmt.Sprint("p", i), "stream 6 500")
	}
	check := func(want string) {
		t.Helper()
		for i := range tasks {
			got := b.Rests(fmt.Sprint("p", i))
			text := strings.ReplaceAll(productTexts(got), "\n", "")
			if got.Status.State != task.AwaitingCompletion || text != want {
				t.Errorf("%s is %s with %q", got.ID, got.Status.State, text)
			}
		}
	}
	b.Far.CutAll()
	b.Site.Process.Kill()
	b.Site.Start(b.Config())
	check("chunk-0 chunk-1 chunk-2 chunk-3 chunk-4 chunk-5 ")
	for i := range tasks {
		b.GoOn(fmt.Sprint("p", i), "slow 1500") // after what the inbox still holds of the first turn
	}
	b.Site.Process.Kill()
	b.Site.Start(b.Config())
	check("slow done")
	if calls := b.Far.Calls(); !slices.Contains(calls, "message.pull") {
		t.Errorf("the agent was called by %v", calls)
	}
}

// TestAUNBehindEncrypted: what an agent encrypts cannot be read here, which the task says.
func TestAUNBehindEncrypted(t *testing.T) {
	t.Parallel()
	b := site.ServeBehind(t, func(g *aunpeer.Gateway) { g.Messages, g.Encrypts = true, true })
	b.Caller.Start("t1", "hello")
	got := b.Rests("t1")
	if got.Status.State != task.Failed || len(got.Status.DataItems) == 0 ||
		!strings.Contains(got.Status.DataItems[0].Text, "plain text") {
		t.Errorf("it is %+v", got.Status)
	}
}

// TestAUNBehindTokens: the token is refreshed before it ends, so that the connection stays.
func TestAUNBehindTokens(t *testing.T) {
	t.Parallel()
	b := site.ServeBehind(t, func(g *aunpeer.Gateway) { g.TokenTime = 3 * time.Second })
	b.Caller.Start("t1", "hello")
	site.Eventually(t, "the token is refreshed", func() bool {
		return slices.Contains(b.Far.Calls(), "auth.refresh_token")
	})
	b.Caller.Start("t2", "hello")
	if got := b.Rests("t2"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("after the refresh it is %s", got.Status.State)
	}
}

// TestAUNBehindForeign: a gateway of AUN whose certificate chains to another root is not spoken to.
func TestAUNBehindForeign(t *testing.T) {
	t.Parallel()
	b := site.ServeBehind(t, func(g *aunpeer.Gateway) {
		g.ID = site.Must(site.Must(aunpeer.NewPKI(site.AUNIssuer))(t).Issue("auth.aid.test"))(t)
	})
	b.Caller.Start("t1", "hello")
	if got := b.Rests("t1"); got.Status.State != task.Failed {
		t.Errorf("it is %s", got.Status.State)
	}
	if calls := b.Far.Calls(); slices.Contains(calls, "auth.aid_login2") || slices.Contains(calls, "task.create") {
		t.Errorf("it was called by %v", calls)
	}
}

// TestAUNBehindCrash: the process dies while it begins a hundred tasks at an agent of AUN, and the connection breaks
// while they are carried out. Each is carried out once.
func TestAUNBehindCrash(t *testing.T) {
	const tasks = 100
	b := site.ServeBehind(t)
	begin := func() {
		var all sync.WaitGroup
		for i := range tasks {
			// An answer that the death of the process takes is no error here.
			all.Go(func() { _, _ = b.Caller.Try(site.StartCall(fmt.Sprint("c", i), fmt.Sprint("slow ", 2000+i))) })
		}
		all.Wait()
	}
	var begun sync.WaitGroup
	begun.Go(begin)
	site.Eventually(t, "the agent has some of the tasks", func() bool { return len(b.Far.Tasks()) > tasks/3 })
	b.Site.Process.Kill()
	begun.Wait()
	b.Site.Start(b.Config())
	begin()
	b.Far.CutAll()
	for i := range tasks {
		got := b.Rests(fmt.Sprint("c", i))
		if got.Status.State != task.AwaitingCompletion || productTexts(got) != "slow done" {
			t.Errorf("%s is %s with %q", got.ID, got.Status.State, productTexts(got))
		}
	}
	if n := len(b.Far.Tasks()); n != tasks {
		t.Errorf("the agent was given %d tasks", n)
	}
}
