// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// memory is what a Leader knows of one of its tasks.
type memory struct {
	id       string
	states   []task.Status // that it has seen
	products []string      // of the last answer
	sent     []string      // ids of the messages that were answered
	doubt    string        // id of the message that was not, if there is one
	begun    bool          // the start was answered
}

// say sends a command and notes what comes of it. It reports false when no answer came.
func (m *memory) say(c *caller, call *task.Call) (*task.Task, bool) {
	call.Message.ID = leader.NewID("msg")
	got, err := c.try(call)
	if err != nil {
		var refusal *leader.Error
		if errors.As(err, &refusal) {
			c.t.Errorf("%s: %s was refused: %s", m.id, call.Message.Command, refusal.Raw)
		}
		m.doubt = call.Message.ID
		return nil, false
	}
	m.begun = true
	m.sent = append(m.sent, call.Message.ID)
	m.states = append(m.states, got.Status)
	m.products = product(got)
	return got, true
}

// live leads one task through a part of its life, until that is over or the gateway is gone.
func (m *memory) live(c *caller, random *rand.Rand) bool {
	first := startCall(m.id, []string{"hello", "hello", "ask", "fail", "slow 1", "data"}[random.IntN(6)])
	if first.Message.DataItems[0].Text == "slow 1" {
		first.Terms.Response = time.Millisecond
	}
	got, ok := m.say(c, first)
	for turn := 0; ok; turn++ {
		switch next := random.IntN(8); {
		case got.Status.State.Terminal() || !got.Status.State.Settled() || next == 0:
			return true
		case next == 1 && got.Status.State == task.AwaitingCompletion:
			got, ok = m.say(c, commandCall(task.Complete, m.id))
		case next == 2:
			got, ok = m.say(c, commandCall(task.Cancel, m.id))
		default:
			got, ok = m.say(c, commandCall(task.Continue, m.id, fmt.Sprintf("again %d", turn)))
		}
	}
	return false
}

// check holds what the gateway says of a task against what it has said before.
func (m *memory) check(t *testing.T, c *caller) {
	got, err := c.settled(m.id)
	var refusal *leader.Error
	if !m.begun && errors.As(err, &refusal) && refusal.Code == -32001 {
		return // the start was lost, and the Leader saw nothing else
	}
	if err != nil {
		t.Errorf("%s, of which the Leader knows %+v: %v", m.id, m, explain(err))
		return
	}
	checkHistory(t, got)
	for _, seen := range m.states {
		if !slices.ContainsFunc(got.StatusHistory, func(s task.Status) bool {
			return s.State == seen.State && s.ChangedAt.Equal(seen.ChangedAt)
		}) {
			t.Errorf(
				"%s: the Leader saw %s since %v, but the history is %+v",
				m.id,
				seen.State,
				seen.ChangedAt,
				got.StatusHistory,
			)
		}
	}
	var heard []string
	turns := 0
	for _, message := range got.MessageHistory {
		if message.SenderRole != task.Leader {
			continue // what the agent said
		}
		heard = append(heard, message.ID)
		if message.Command == task.Continue || message.Command == task.Start {
			turns++
		}
	}
	doubtful := m.doubt != "" && len(heard) == len(m.sent)+1 && heard[len(m.sent)] == m.doubt
	if doubtful {
		heard = heard[:len(m.sent)]
	}
	if diff := cmp.Diff(m.sent, heard, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: the answered commands (-sent +stored):\n%s", m.id, diff)
	}
	products := product(got)
	if n := len(m.products); len(products) < n || !slices.Equal(m.products, products[:n]) {
		t.Errorf("%s: the Leader saw the products %q, but they are %q", m.id, m.products, products)
	}
	// Every turn of the sample agent has one product, but for the ones that ask.
	if text := got.MessageHistory[0].DataItems[0].Text; text == "ask" {
		turns--
	}
	switch s := got.Status.State; {
	case s == task.AwaitingCompletion && len(products) != turns, len(products) > turns:
		t.Errorf("%s is %s after %d turns, in doubt %t, but has the products %q", m.id, s, turns, doubtful, products)
	case !doubtful && m.states[len(m.states)-1].State.Settled() && s != m.states[len(m.states)-1].State:
		t.Errorf("%s: the last answer was %s, but now it is %s", m.id, m.states[len(m.states)-1].State, s)
	}
}

// TestKill kills the gateway at random moments under load, and demands that nothing is lost that a Leader has seen.
func TestKill(t *testing.T) {
	t.Parallel()
	const rounds, workers = 4, 32
	seed := anySeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	_, agent := sampleAgent(t)
	s := newSite(t)
	c := config{
		store:  "store pebble " + s.dir + "/store {\nsync state\n}",
		handle: "aip_gateway a2a/legacy http://" + agent + " {\nagent {\nresend always\n}\n}",
	}
	total := 0
	for round := range rounds {
		s.start(c)
		known := make([][]*memory, workers)
		var all sync.WaitGroup
		load := new(course)
		kill := load.after(300 + random.IntN(1200))
		for w := range workers {
			leader := leaderOf(t, s.url())
			leader.course = load
			random := rand.New(rand.NewPCG(seed, uint64(round*workers+w+1)))
			all.Go(func() {
				defer leader.Close()
				for ok := true; ok; {
					m := &memory{id: fmt.Sprintf("%d-%d-%d", round, w, len(known[w]))}
					known[w] = append(known[w], m)
					ok = m.live(leader, random)
				}
			})
		}
		<-kill
		s.kill()
		all.Wait()
		s.start(c)
		for w := range workers {
			leader := leaderOf(t, s.url())
			all.Go(func() {
				defer leader.Close()
				for _, m := range known[w] {
					m.check(t, leader)
				}
			})
			total += len(known[w])
		}
		all.Wait()
		s.kill()
	}
	t.Logf("%d tasks in %d rounds", total, rounds)
	if strings.Contains(s.out.String(), `"level":"error"`) {
		t.Errorf("the log has errors")
	}
}

// TestRestart kills the gateway while tasks are at work and while they wait.
func TestRestart(t *testing.T) {
	t.Parallel()
	agents, address := sampleAgent(t)
	between := newFakeAgent(t, forward(address))
	s := newSite(t)
	c := config{handle: "aip_gateway a2a/legacy " + between.url}
	s.start(c)
	leader := leaderOf(t, s.url())
	const deadline = 5 * time.Second // longer than a task that is settled takes to be answered
	// begin starts a task with terms and demands a state.
	begin := func(id, text string, terms task.Terms, want task.State) {
		t.Helper()
		call := startCall(id, text)
		call.Terms = terms
		if got := leader.do(call); got.Status.State != want {
			t.Errorf("%s is %+v, want %s", id, of(got), want)
		}
	}
	begin("continues", "slow 3", task.Terms{Response: time.Millisecond}, task.Working)
	begin("asks", "ask", task.Terms{AwaitingInput: deadline}, task.AwaitingInput)
	begin("asks long", "ask", task.Terms{}, task.AwaitingInput)
	begin("is done", "hello", task.Terms{AwaitingCompletion: deadline}, task.AwaitingCompletion)
	before := len(between.requests("tasks/send"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got, err := leader.try(startCall("untold", "slow 2")); err == nil {
			t.Errorf("the start was answered %+v by a gateway that is dead", of(got))
		}
	}()
	eventually(t, "the agent has been asked", func() bool { return len(between.requests("tasks/send")) > before })
	s.kill()
	<-done
	s.start(c)

	got := leader.rests("continues")
	checkHistory(t, got)
	if diff := cmp.Diff(answered{task.AwaitingCompletion, "", []string{"slow done"}}, of(got)); diff != "" {
		t.Errorf("a run that was picked up (-want +got):\n%s", diff)
	}
	got = leader.rests("untold")
	checkHistory(t, got)
	if diff := cmp.Diff(answered{task.AwaitingCompletion, "", []string{"slow done"}}, of(got)); diff != "" {
		t.Errorf("a start that no Leader has seen (-want +got):\n%s", diff)
	}
	for id, want := range map[string]struct {
		state task.State
		word  string
	}{
		"asks": {task.Canceled, "awaitingInputTimeout"}, "is done": {task.Completed, "awaitingCompletionTimeout"},
	} {
		eventually(t, "the deadline of "+id+" is kept", func() bool { return leader.get(id).Status.State == want.state })
		got := leader.get(id)
		checkHistory(t, got)
		last := got.StatusHistory[len(got.StatusHistory)-2:]
		if d := last[1].ChangedAt.Sub(last[0].ChangedAt); d < deadline ||
			!strings.Contains(says(got.Status.DataItems), want.word) {
			t.Errorf("%s ended after %v: %q", id, d, says(got.Status.DataItems))
		}
	}
	if got := leader.goOn("asks long", "blue"); got.Status.State != task.AwaitingCompletion ||
		product(got)[0] != "you said: blue" {
		t.Errorf("a task that waits for input becomes %+v", of(got))
	}

	// Now the agent forgets what it was at. It has reported nothing of it, so it is given it again, if it may be.
	for _, tc := range []struct {
		id, resend string
		want       task.State
		says       string
	}{
		{"forgotten", "resend after 200ms", task.AwaitingCompletion, "slow done"},
		{"forgotten for good", "resend never", task.Failed, "does not have the message"},
	} {
		begin(tc.id, "slow 3", task.Terms{Response: time.Millisecond}, task.Working)
		s.kill()
		agents.kill()
		agents = runSampleAgent(t, address)
		s.start(config{handle: "aip_gateway {\nagent a2a/legacy " + between.url + " {\n" + tc.resend + "\n}\n}"})
		got = leader.rests(tc.id)
		checkHistory(t, got)
		said := says(got.Status.DataItems) + strings.Join(product(got), "")
		if got.Status.State != tc.want || !strings.Contains(said, tc.says) {
			t.Errorf("with %q, a task that the agent has forgotten is %+v", tc.resend, of(got))
		}
	}
	if got := leader.start("another", "hello"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("another task is %+v", of(got))
	}
}

// TestContinueThatIsNotReceived proves that what the agent did in an earlier turn is not taken for the answer to a
// later one, which it never carried out.
func TestContinueThatIsNotReceived(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request, heard){
		"an error": func(w http.ResponseWriter, _ *http.Request,
			h heard) {
			writeError(w, h, -32603, "the model is out")
		},
		"wrong parameters":    func(w http.ResponseWriter, _ *http.Request, h heard) { writeError(w, h, -32602, "no text") },
		"HTTP 502":            func(w http.ResponseWriter, _ *http.Request, _ heard) { w.WriteHeader(502) },
		"HTTP 401":            func(w http.ResponseWriter, _ *http.Request, _ heard) { w.WriteHeader(401) },
		"a broken connection": func(http.ResponseWriter, *http.Request, heard) { panic(http.ErrAbortHandler) },
	} {
		var mu sync.Mutex
		turns := 0
		agent := newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
			mu.Lock()
			if h.Method == "tasks/send" {
				turns++
			}
			n := turns
			mu.Unlock()
			switch {
			case h.Method == "tasks/send" && n >= 2: // as often as it is sent
				answer(w, r, h)
			case h.Method == "tasks/resubscribe":
				writeError(w, h, -32601, "Method not found")
			default:
				writeTask(w, h, "completed", "of the first turn")
			}
		})
		s := serve(t, config{store: "store memory", handle: "aip_gateway a2a/legacy " + agent.url})
		leader := leaderOf(t, s.url())
		leader.start("one", "hello")
		if got := leader.goOn("one", "and more"); got.Status.State == task.AwaitingCompletion {
			t.Errorf("%s: the continue was answered %+v, as if the agent had carried it out", name, of(got))
		}
	}
}
