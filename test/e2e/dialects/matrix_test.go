// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// job is one test of the matrix.
type job struct {
	name string
	run  func(t *testing.T)
}

// together is how many tests of the matrix run at the same time: most of their time they wait for an agent.
const together = 10

// runTogether runs tests at the same time, but no more than together. The limit of go test itself is the number of
// cores, which would leave them idle.
func runTogether(t *testing.T, jobs []job) {
	t.Helper()
	slots := make(chan struct{}, together)
	var group sync.WaitGroup
	for _, j := range jobs {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			t.Run(j.name, j.run)
		})
	}
	group.Wait()
}

// operations are what every dialect can ask of every agent.
var operations = []struct {
	name string
	slow bool // for fronts that are slow to start, too
	run  func(*testing.T, *world, front, *back)
}{
	{"send", true, bySend},
	{"stream", true, byStream},
	{"cancel", false, byCancel},
	{"ask", false, byAsking},
	{"fail", false, byFailing},
	{"cut", false, byCutting},
	{"push", false, byPush},
}

// TestEveryDialect lets every dialect of callers drive every dialect of agents, through one gateway.
func TestEveryDialect(t *testing.T) {
	w := newWorld(t)
	var jobs []job
	for _, f := range fronts() {
		for _, b := range w.backs {
			for _, op := range operations {
				if f.slow && !op.slow || slices.Contains(f.lacks, op.name) {
					continue
				}
				jobs = append(
					jobs,
					job{fmt.Sprintf("%s from %s to %s", op.name, f.name, b.name), func(t *testing.T) { op.run(t, w, f, b) }},
				)
			}
		}
	}
	for _, b := range w.backs {
		jobs = append(jobs, job{"cut from agentapi to " + b.name, func(t *testing.T) { cutting(t, w, b) }})
	}
	// Long jobs come first.
	jobs = slices.Concat(sdkJobs(w), jobs, leaderJobs(w), findJobs(w), cardJobs(w), wireJobs(w))
	runTogether(t, jobs)
}

// bySend sends, and gets what came of it.
func bySend(t *testing.T, w *world, f front, b *back) {
	d := f.driver(t, w.mountFor(f, b))
	sent := d.send("echo hi", "")
	if sent.State != f.done || sent.Holds != b.echo || sent.ID == "" {
		t.Errorf("it is answered as %+v", sent)
	}
	if f.slow {
		return // byStream gets
	}
	if got := d.get(sent.ID); got.ID != sent.ID || got.State != f.done || got.Holds != b.echo {
		t.Errorf("it is got as %+v", got)
	}
	if end := d.finish(sent.ID); end.State != "completed" {
		t.Errorf("it ends as %+v", end)
	}
}

// byStream follows a stream to its end, and gets the same.
func byStream(t *testing.T, w *world, f front, b *back) {
	d := f.driver(t, w.mountFor(f, b))
	s := story{apart: b.apart}
	for _, e := range d.stream("stream 5 20") {
		s.add(e)
	}
	if s.State != "completed" || s.Holds != site.Chunks(5) && !f.mute || s.pieces == 0 {
		t.Errorf("the stream shows %+v", s)
	}
	if got := d.get(s.ID); got.State != "completed" || got.Holds != site.Chunks(5) {
		t.Errorf("it is got as %+v", got)
	}
}

// byCancel cancels a running task: the agent gets the cancel, and is not polled any more.
func byCancel(t *testing.T, w *world, f front, b *back) {
	d := f.driver(t, w.mountFor(f, b))
	word := leader.NewID("word")
	id, wait := d.start(b.slow + " " + word)
	if got := d.cancel(id); got.State != "canceled" || got.ID != id {
		t.Errorf("cancel is answered as %+v", got)
	}
	if state := wait(); state != "canceled" {
		t.Errorf("the stream ends with %s", state)
	}
	var requests, cancels, open int
	site.Eventually(t, "the agent has the cancel, and is asked nothing any more", func() bool {
		requests, cancels, open = b.asked(word)
		return open == 0 && (cancels > 0 || b.uncancelable)
	})
	if got := d.get(id); got.State != "canceled" {
		t.Errorf("it is got as %+v", got)
	}
	if now, _, _ := b.asked(word); now != requests {
		t.Errorf("the agent is asked about a canceled task: %d requests, then %d", requests, now)
	}
}

// byAsking answers a question.
func byAsking(t *testing.T, w *world, f front, b *back) {
	d := f.driver(t, w.mountFor(f, b))
	asks := d.send("ask", "")
	want := f.asks
	if want == "" {
		want = map[bool]string{true: "awaiting-input", false: "input-required"}[f.done == "awaiting-completion"]
	}
	if asks.State != want || asks.Says != b.asks {
		t.Errorf("the question is %+v", asks)
	}
	if got := d.send("blue", asks.ID); got.State != f.done || got.Holds != "you said: blue" || got.ID != asks.ID {
		t.Errorf("the answer is %+v", got)
	}
	if end := d.finish(asks.ID); end.State != "completed" {
		t.Errorf("it ends as %+v", end)
	}
}

// byFailing gets the reason of the agent's failure.
func byFailing(t *testing.T, w *world, f front, b *back) {
	d := f.driver(t, w.mountFor(f, b))
	failed := d.send("fail", "")
	if failed.State != "failed" || !strings.Contains(failed.Says, "agent broke") {
		t.Errorf("the failure is %+v", failed)
	}
	if got := d.get(failed.ID); got.State != "failed" || !strings.Contains(got.Says, "agent broke") {
		t.Errorf("it is got as %+v", got)
	}
}

// byCutting cuts the caller's connection in the middle of a stream and comes back: every event after the last one that
// arrived comes once.
func byCutting(t *testing.T, w *world, f front, b *back) {
	mount := w.mountFor(f, b)
	first := openStream(t, f.begin(mount, leader.NewID("task"), "stream 20 50"))
	s := story{apart: b.apart}
	ids := make(map[string]bool)
	last := ""
	take := func(from *wireStream) bool {
		t.Helper()
		id, e, ok := from.next(t)
		if !ok {
			return false
		}
		if id == "" || ids[id] {
			t.Fatalf("an event has the id %q, after %q: %+v", id, last, e)
		}
		ids[id], last = true, id
		if e.all && s.pieces > 0 && !(f.results && site.RestsIn(e.State)) {
			t.Errorf("the task is sent again after its events: %+v", e)
		}
		s.add(e)
		return true
	}
	for s.pieces < 4 {
		if !take(first) {
			t.Fatalf("the stream ended after %+v", s)
		}
	}
	first.close()

	second := openStream(t, f.again(mount, s.ID, last))
	for s.State != f.done {
		if !take(second) {
			t.Fatalf("the second stream ended after %+v", s)
		}
	}
	if s.Holds != site.Chunks(20) {
		t.Errorf("the two streams show %+v", s)
	}
	if f.done == "completed" {
		if id, e, ok := second.next(t); ok {
			t.Errorf("after the end, the stream has %q %+v", id, e)
		}
	}

	// And again, when all is over.
	third := openStream(t, f.again(mount, s.ID, last))
	if f.done == "completed" {
		if id, e, ok := third.next(t); ok {
			t.Errorf("behind the last event, there is %q %+v", id, e)
		}
	}
	third.close()
}
