// SPDX-License-Identifier: Apache-2.0

package tasks

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

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
func (m *memory) say(c *site.Caller, call *task.Call) (*task.Task, bool) {
	call.Message.ID = leader.NewID("msg")
	got, err := c.Try(call)
	if err != nil {
		var refusal *leader.Error
		if errors.As(err, &refusal) {
			c.T.Errorf("%s: %s was refused: %s", m.id, call.Message.Command, refusal.Raw)
		}
		m.doubt = call.Message.ID
		return nil, false
	}
	m.begun = true
	m.sent = append(m.sent, call.Message.ID)
	m.states = append(m.states, got.Status)
	m.products = site.Product(got)
	return got, true
}

// live leads one task through a part of its life, until that is over or the gateway is gone.
func (m *memory) live(c *site.Caller, random *rand.Rand) bool {
	first := site.StartCall(m.id, []string{"hello", "hello", "ask", "fail", "slow 1", "data"}[random.IntN(6)])
	if first.Message.DataItems[0].Text == "slow 1" {
		first.Terms.Response = time.Millisecond
	}
	got, ok := m.say(c, first)
	for turn := 0; ok; turn++ {
		switch next := random.IntN(8); {
		case got.Status.State.Terminal() || !got.Status.State.Settled() || next == 0:
			return true
		case next == 1 && got.Status.State == task.AwaitingCompletion:
			got, ok = m.say(c, site.CommandCall(task.Complete, m.id))
		case next == 2:
			got, ok = m.say(c, site.CommandCall(task.Cancel, m.id))
		default:
			got, ok = m.say(c, site.CommandCall(task.Continue, m.id, fmt.Sprintf("again %d", turn)))
		}
	}
	return false
}

// check holds what the gateway says of a task against what it has said before.
func (m *memory) check(t *testing.T, c *site.Caller) {
	got, err := c.Settled(m.id)
	var refusal *leader.Error
	if !m.begun && errors.As(err, &refusal) && refusal.Code == -32001 {
		return // the start was lost, and the Leader saw nothing else
	}
	if err != nil {
		t.Errorf("%s, of which the Leader knows %+v: %v", m.id, m, site.Explain(err))
		return
	}
	site.CheckHistory(t, got)
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
	products := site.Product(got)
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
	seed := site.AnySeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	c := site.Config{
		Store:  "store pebble " + s.Dir + "/store {\nsync state\n}",
		Handle: "aip_gateway a2a/legacy http://" + agent + " {\nagent {\nresend always\n}\n}",
	}
	total := 0
	for round := range rounds {
		s.Start(c)
		known := make([][]*memory, workers)
		var all sync.WaitGroup
		load := new(site.Course)
		kill := load.After(300 + random.IntN(1200))
		for w := range workers {
			leader := site.LeaderOf(t, s.URL())
			leader.Course = load
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
		s.Kill()
		all.Wait()
		s.Start(c)
		for w := range workers {
			leader := site.LeaderOf(t, s.URL())
			all.Go(func() {
				defer leader.Close()
				for _, m := range known[w] {
					m.check(t, leader)
				}
			})
			total += len(known[w])
		}
		all.Wait()
		s.Kill()
	}
	t.Logf("%d tasks in %d rounds", total, rounds)
	if strings.Contains(s.Out.String(), `"level":"error"`) {
		t.Errorf("the log has errors")
	}
}

// TestRestart kills the gateway while tasks are at work and while they wait.
func TestRestart(t *testing.T) {
	t.Parallel()
	agents, address := site.SampleAgent(t)
	between := site.NewFakeAgent(t, site.Forward(address))
	s := site.New(t)
	c := site.Config{Handle: "aip_gateway a2a/legacy " + between.URL}
	s.Start(c)
	leader := site.LeaderOf(t, s.URL())
	const deadline = 5 * time.Second // longer than a task that is settled takes to be answered
	// begin starts a task with terms and demands a state.
	begin := func(id, text string, terms task.Terms, want task.State) {
		t.Helper()
		call := site.StartCall(id, text)
		call.Terms = terms
		if got := leader.Send(call); got.Status.State != want {
			t.Errorf("%s is %+v, want %s", id, site.AnswerOf(got), want)
		}
	}
	begin("continues", "slow 3", task.Terms{Response: time.Millisecond}, task.Working)
	begin("asks", "ask", task.Terms{AwaitingInput: deadline}, task.AwaitingInput)
	begin("asks long", "ask", task.Terms{}, task.AwaitingInput)
	begin("is done", "hello", task.Terms{AwaitingCompletion: deadline}, task.AwaitingCompletion)
	before := len(between.Requests("tasks/send"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if got, err := leader.Try(site.StartCall("untold", "slow 4")); err == nil {
			t.Errorf("the start was answered %+v by a gateway that is dead", site.AnswerOf(got))
		}
	}()
	site.Eventually(t, "the agent has been asked", func() bool { return len(between.Requests("tasks/send")) > before })
	s.Kill()
	<-done
	s.Start(c)

	got := leader.Rests("continues")
	site.CheckHistory(t, got)
	if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"slow done"}},
		site.AnswerOf(got)); diff != "" {
		t.Errorf("a run that was picked up (-want +got):\n%s", diff)
	}
	got = leader.Rests("untold")
	site.CheckHistory(t, got)
	if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"slow done"}},
		site.AnswerOf(got)); diff != "" {
		t.Errorf("a start that no Leader has seen (-want +got):\n%s", diff)
	}
	for id, want := range map[string]struct {
		state task.State
		word  string
	}{
		"asks": {task.Canceled, "awaitingInputTimeout"}, "is done": {task.Completed, "awaitingCompletionTimeout"},
	} {
		site.Eventually(t, "the deadline of "+id+" is kept", func() bool { return leader.Get(id).Status.State == want.state })
		got := leader.Get(id)
		site.CheckHistory(t, got)
		last := got.StatusHistory[len(got.StatusHistory)-2:]
		if d := last[1].ChangedAt.Sub(last[0].ChangedAt); d < deadline ||
			!strings.Contains(site.Says(got.Status.DataItems), want.word) {
			t.Errorf("%s ended after %v: %q", id, d, site.Says(got.Status.DataItems))
		}
	}
	if got := leader.GoOn("asks long", "blue"); got.Status.State != task.AwaitingCompletion ||
		site.Product(got)[0] != "you said: blue" {
		t.Errorf("a task that waits for input becomes %+v", site.AnswerOf(got))
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
		s.Kill()
		agents.Kill()
		agents = site.RunSampleAgent(t, address)
		s.Start(site.Config{Handle: "aip_gateway {\nagent a2a/legacy " + between.URL + " {\n" + tc.resend + "\n}\n}"})
		got = leader.Rests(tc.id)
		site.CheckHistory(t, got)
		said := site.Says(got.Status.DataItems) + strings.Join(site.Product(got), "")
		if got.Status.State != tc.want || !strings.Contains(said, tc.says) {
			t.Errorf("with %q, a task that the agent has forgotten is %+v", tc.resend, site.AnswerOf(got))
		}
	}
	if got := leader.Start("another", "hello"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("another task is %+v", site.AnswerOf(got))
	}
}

// TestContinueThatIsNotReceived proves that what the agent did in an earlier turn is not taken for the answer to a
// later one, which it never carried out.
func TestContinueThatIsNotReceived(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request, site.Heard){
		"an error": func(w http.ResponseWriter, _ *http.Request,
			h site.Heard) {
			site.WriteError(w, h, -32603, "the model is out")
		},
		"wrong parameters": func(w http.ResponseWriter, _ *http.Request,
			h site.Heard) {
			site.WriteError(w, h, -32602, "no text")
		},
		"HTTP 502":            func(w http.ResponseWriter, _ *http.Request, _ site.Heard) { w.WriteHeader(502) },
		"HTTP 401":            func(w http.ResponseWriter, _ *http.Request, _ site.Heard) { w.WriteHeader(401) },
		"a broken connection": func(http.ResponseWriter, *http.Request, site.Heard) { panic(http.ErrAbortHandler) },
	} {
		var mu sync.Mutex
		turns := 0
		agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
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
				site.WriteError(w, h, -32601, "Method not found")
			default:
				site.WriteTask(w, h, "completed", "of the first turn")
			}
		})
		s := site.Serve(t, site.Config{Store: "store memory", Handle: "aip_gateway a2a/legacy " + agent.URL})
		leader := site.LeaderOf(t, s.URL())
		leader.Start("one", "hello")
		if got := leader.GoOn("one", "and more"); got.Status.State == task.AwaitingCompletion {
			t.Errorf("%s: the continue was answered %+v, as if the agent had carried it out", name, site.AnswerOf(got))
		}
	}
}
