// SPDX-License-Identifier: Apache-2.0

package assignee

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
	"github.com/aip-gateway/aip-gateway/upstream"
)

const aid = "worker.aid.pub"

// world is an agent behind a Hub, and the events sent to it.
type world struct {
	t     *testing.T
	hub   Hub
	agent *upstream.Agent

	storing func(*agent.Report) bool // of the turns

	mu     sync.Mutex
	events []string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t}
	w.hub.NotifyBy(func(to string, event []byte) {
		if to == aid {
			w.receive(event)
		}
	})
	dialect := codec.Assignee(aid, func(leader string) string { return leader + ".aid.pub" })
	w.agent = upstream.New(upstream.Config{
		Resolver: upstream.NewEndpoint(dialect, w.hub.Transport(aid)), IdleTimeout: time.Minute,
	})
	return w
}

func (w *world) receive(event []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !json.Valid(event) {
		w.t.Errorf("an event is no JSON: %s", event)
	}
	params, ok := strings.CutPrefix(string(event), `{"jsonrpc":"2.0","method":"event/task.updated","params":`)
	if !ok {
		w.t.Errorf("an event is %s", event)
	}
	w.events = append(w.events, strings.TrimSuffix(params, "}"))
}

// sent returns the events to the agent since the last call.
func (w *world) sent() []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.events
	w.events = nil
	return list
}

// turn is a running turn.
type turn struct {
	mu      sync.Mutex
	reports []string
	err     error
	cancel  context.CancelFunc
	storing func(*agent.Report) bool // stores a report; nil for at once. False is for one not stored
	done    chan struct{}
}

// run carries out a turn; again resumes it, as after a restart.
func (w *world) run(id string, from task.State, text string, again bool) *turn {
	ctx, cancel := context.WithCancel(w.t.Context())
	t := &turn{cancel: cancel, done: make(chan struct{}), storing: w.storing}
	m := task.Message{ID: "m", SenderID: "alice", Command: task.Start, DataItems: []task.DataItem{task.Text(text)}}
	if from != task.None {
		m.Command = task.Continue
	}
	given := &agent.Turn{Ref: agent.Ref{Task: id}, Message: m, From: from}
	if from != task.None {
		given.History = []task.Message{{DataItems: []task.DataItem{task.Text("Review")}}, m}
	}
	reports := w.agent.Run(ctx, given, false)
	if again {
		reports = w.agent.Resume(ctx, given)
	}
	go func() {
		defer close(t.done)
		for rep, err := range reports {
			t.add(&rep, err)
			if t.storing != nil && !t.storing(&rep) {
				return
			}
			if rep.Stored != nil {
				rep.Stored()
			}
		}
	}()
	return t
}

func (t *turn) add(rep *agent.Report, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err = err; err != nil {
		return
	}
	said := []string{string(rep.State)}
	for i := range rep.Pieces.Len() {
		c := rep.Pieces.Chunk(i)
		text := c.Product.DataItems[0].Text
		said = append(said, fmt.Sprintf("%s=%s append=%v last=%v", c.Product.ID, text, c.Append, c.Last))
	}
	for _, it := range rep.Items {
		said = append(said, it.Text)
	}
	t.reports = append(t.reports, strings.TrimSpace(strings.Join(said, " ")))
}

// said returns the reports until now.
func (t *turn) said() []string {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.reports)
}

// say has the agent say something, and returns the status, or the code of the error.
func (w *world) say(id, method, params string) string {
	w.t.Helper()
	synctest.Wait() // for the turn
	return w.call(id, method, params)
}

// call is say for a turn already begun.
func (w *world) call(id, method, params string) string {
	status, err := w.hub.Say(w.t.Context(), aid, id, method, gjson.Parse(params))
	if err != nil {
		return code(err)
	}
	return status
}

// code returns the code of an error in an answer.
func code(err error) string {
	return gjson.GetBytes(codec.AppendError(nil, nil, err), "error.code").Raw
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const submitted = `{"status":"submitted","task_id":"t1","owner":"alice.aid.pub","assignee":"worker.aid.pub",` +
	`"input":{"type":"text","content":"Review"},"messages":[],"artifacts":[]}`

// TestWork: an agent accepts a task, delivers and completes it.
func TestWork(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		turn := w.run("t1", task.None, "Review", false)
		check(t, "the new task", w.sent(), []string{submitted})
		check(t, "accept", w.say("t1", codec.Accept, `{"task_id":"t1"}`), "working")
		check(t, "accept again", w.say("t1", codec.Accept, `{"task_id":"t1"}`), "-32176")
		check(t, "reject after that", w.say("t1", codec.Reject, `{"task_id":"t1"}`), "-32171")
		check(t, "an artifact", w.say("t1", codec.ArtifactEvent,
			`{"task_id":"t1","artifact":{"id":"a","type":"text","content":"One"}}`), "working")
		check(t, "a piece", w.say("t1", codec.ArtifactEvent,
			`{"task_id":"t1","append":true,"artifact":{"id":"a","type":"text","content":" two"}}`), "working")
		got, err := w.hub.Task(aid, "t1")
		if err != nil {
			t.Fatal(err)
		}
		check(t, "the task", string(got), strings.Replace(submitted, "submitted", "working", 1))
		check(t, "complete", w.say("t1", codec.Complete,
			`{"task_id":"t1","artifacts":[{"id":"b","type":"text","content":"Done"}]}`), "completed")
		check(t, "the reports", turn.said(), []string{
			"working", "a=One append=false last=true", "a= two append=true last=false",
			"awaiting-completion b=Done append=false last=true",
		})
		check(t, "complete again", w.say("t1", codec.Complete, `{"task_id":"t1"}`), "-32171")
		check(t, "events after the end", w.sent(), []string(nil))
		check(t, "the end of one that never was", w.say("t2", codec.Complete, `{"task_id":"t2"}`), "-32170")
		_, err = w.hub.Say(t.Context(), "other.aid.pub", "t1", codec.Complete, gjson.Parse(`{}`))
		if code(err) != "-32170" {
			t.Errorf("another agent gets %v", err)
		}
	})
}

// TestEnds: every way of an agent to end a turn, and the error of its next call.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		method, params string
		status, report string
		after          string // the code of a later call
	}{
		"reject":          {codec.Reject, `{"reason":"out of scope"}`, "rejected", "rejected out of scope", "-32177"},
		"fail":            {codec.Fail, `{"reason":"no"}`, "failed", "failed no", "-32186"},
		"complete":        {codec.Complete, `{}`, "completed", "awaiting-completion", "-32171"},
		"event completed": {codec.UpdatedEvent, `{"status":"completed"}`, "completed", "awaiting-completion", "-32171"},
		"event canceled":  {codec.UpdatedEvent, `{"status":"canceled"}`, "canceled", "canceled", "-32173"},
		"message ends": {codec.MessageSend, `{"payload":{"type":"event","event":"task.completed"}}`, "completed",
			"awaiting-completion", "-32171"},
		"message fails": {codec.MessageSend, `{"payload":{"type":"event","event":"task.error","text":"Bad"}}`, "failed",
			"failed Bad", "-32186"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t)
				turn := w.run("t1", task.None, "Review", false)
				w.sent()
				want := []string{c.report}
				if c.method == codec.Complete || c.method == codec.Fail {
					check(t, "before it is accepted", w.say("t1", c.method, c.params), "-32171")
					check(t, "accept", w.say("t1", codec.Accept, `{}`), "working")
					want = []string{"working", c.report}
				}
				check(t, "the status", w.say("t1", c.method, c.params), c.status)
				check(t, "the reports", turn.said(), want)
				check(t, "afterwards", w.say("t1", codec.Fail, `{}`), c.after)
				<-turn.done
			})
		})
	}
}

// TestInvalid: an invalid call is refused, and changes nothing.
func TestInvalid(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		turn := w.run("t1", task.None, "Review", false)
		w.sent()
		w.say("t1", codec.Accept, `{}`)
		for _, c := range [][3]string{
			{codec.Complete, `{"artifacts":[{"type":"text","content":"x"}]}`, "-32602"},
			{codec.Complete, `{"artifacts":{}}`, "-32602"},
			{codec.Fail, `{"reason":1}`, "-32602"},
			{codec.UpdatedEvent, `{"status":"done"}`, "-32602"},
			{codec.ArtifactEvent, `{"artifact":{"type":"text","content":"x"}}`, "-32602"},
			{codec.MessageSend, `{"payload":7}`, "-32602"},
			{codec.MessageSend, `{"payload":{"text":7}}`, "-32602"},
			{"task.delegate", `{}`, "-32601"},
			{codec.Accept, `[]`, "-32602"},
		} {
			if got := w.say("t1", c[0], c[1]); got != c[2] {
				t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
			}
		}
		check(t, "the reports", turn.said(), []string{"working"})
		turn.cancel()
		<-turn.done
	})
}

// TestAsked: while a task waits for input, its assignee may say more, complete the task and fail it, but not accept it.
func TestAsked(t *testing.T) {
	const (
		question = `{"task_id":"t1","payload":{"type":"status","state":"input_required","text":"Which?"}}`
		update   = `{"status":"input_required","message":{"type":"text","content":"Which?"}}`
		note     = `{"message_id":"n","payload":{"type":"text","text":"Of the two"}}`
		artifact = `{"artifact":{"id":"a","type":"text","content":"One"}}`
	)
	asked, working := "awaiting-input Which?", "working"
	for name, c := range map[string]struct {
		method, params string // its question
		then           [][3]string
		reports        []string
	}{
		"by a message": {codec.MessageSend, question, [][3]string{{codec.Fail, `{"reason":"no"}`, "failed"}},
			[]string{working, asked, "failed no"}},
		"by an event": {codec.UpdatedEvent, update, [][3]string{{codec.Complete, `{}`, "completed"}},
			[]string{working, asked, "awaiting-completion"}},
		"accept": {codec.UpdatedEvent, update, [][3]string{{codec.Accept, `{}`, "-32176"}, {codec.Reject, `{}`, "-32171"}},
			[]string{working, asked}},
		"a note": {codec.UpdatedEvent, update, [][3]string{{codec.MessageSend, note, "input_required"}},
			[]string{working, asked, "awaiting-input Of the two"}},
		"it works on": {codec.UpdatedEvent, update,
			[][3]string{{codec.ArtifactEvent, artifact, "working"}, {codec.MessageSend, note, "working"}},
			[]string{working, asked, "a=One append=false last=true", "n=Of the two append=false last=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				w := newWorld(t)
				turn := w.run("t1", task.None, "Review", false)
				w.say("t1", codec.Accept, `{}`)
				check(t, "the question", w.say("t1", c.method, c.params), "input_required")
				for _, then := range c.then {
					check(t, then[0], w.say("t1", then[0], then[1]), then[2])
				}
				check(t, "the reports", turn.said(), c.reports)
				turn.cancel()
				<-turn.done
			})
		})
	}
}

// TestAnsweredWhenStored: a call is answered when its content is stored, and not before; one not stored is answered by
// an error.
func TestAnsweredWhenStored(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stored := make(chan bool)
		w.storing = func(*agent.Report) bool { return <-stored }
		turn := w.run("t1", task.None, "Review", false)
		synctest.Wait()
		answers := make(chan string, 1)
		say := func(method, params string) { go func() { answers <- w.call("t1", method, params) }() }
		for _, c := range [][3]string{
			{codec.Accept, `{}`, "working"},
			{codec.MessageSend, `{"message_id":"p","payload":{"type":"text","text":"Half"}}`, "working"},
			{codec.MessageSend, `{"payload":{"type":"event","event":"x"}}`, "working"}, // it says nothing
		} {
			say(c[0], c[1])
			synctest.Wait()
			if len(answers) > 0 {
				t.Errorf("%s is answered with %s before it is stored", c[0], <-answers)
			}
			stored <- true
			check(t, c[0], <-answers, c[2])
		}
		say(codec.Complete, `{}`)
		synctest.Wait()
		time.Sleep(storeWait) // the store cannot be written
		check(t, "complete, without a store", <-answers, "-32603")
		stored <- true // it comes back
		<-turn.done

		turn = w.run("t2", task.None, "Review", false)
		synctest.Wait()
		go func() { answers <- w.call("t2", codec.Accept, `{}`) }()
		stored <- false // the turn is over
		check(t, "accept, of a turn that is over", <-answers, "-32171")
		<-turn.done
	})
}

// TestContinue: a question is answered by the owner, and the agent gets the answer as an event.
func TestContinue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		turn := w.run("t1", task.AwaitingInput, "The second", false)
		check(t, "the event", w.sent(), []string{
			`{"status":"working","task_id":"t1","owner":"alice.aid.pub","assignee":"worker.aid.pub",` +
				`"input":{"type":"text","content":"Review"},` +
				`"messages":[{"role":"owner","from":"alice.aid.pub","type":"text","content":"The second"}],` +
				`"message":{"type":"text","content":"The second"},"artifacts":[]}`})
		check(t, "accept", w.say("t1", codec.Accept, `{}`), "-32176")
		check(t, "a message", w.say("t1", codec.MessageSend, `{"message_id":"p","payload":{"type":"text","text":"Fine"}}`),
			"working")
		check(t, "complete", w.say("t1", codec.Complete, `{}`), "completed")
		check(t, "the reports", turn.said(), []string{"p=Fine append=false last=true", "awaiting-completion"})
	})
}

// TestConnect: an agent gets its open tasks when it connects, the oldest first, and no ended task.
func TestConnect(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var turns []*turn
		for i := range 3 {
			turns = append(turns, w.run(fmt.Sprintf("t%d", i), task.None, "Review", false))
			synctest.Wait()
			time.Sleep(time.Second)
		}
		w.sent()
		w.say("t0", codec.Accept, `{}`)
		w.say("t0", codec.Complete, `{}`)
		w.say("t2", codec.Accept, `{}`)
		var got []string
		synctest.Wait()
		w.hub.Connected(aid, func(event []byte) {
			params := gjson.GetBytes(event, "params")
			got = append(got, params.Get("task_id").Str+" "+params.Get("status").Str)
		})
		check(t, "what it gets", got, []string{"t1 submitted", "t2 working"})
		check(t, "its tasks", len(w.hub.Tasks(aid)), 2)
		got = nil
		w.hub.Connected(aid, func(event []byte) {
			got = append(got, gjson.GetBytes(event, "params.task_id").Str)
			if _, err := w.agent.Cancel(t.Context(), &agent.Turn{Ref: agent.Ref{Task: "t2"}}); err != nil {
				t.Error(err)
			}
		})
		check(t, "what it gets while a task is canceled", got, []string{"t1"})
		for _, one := range turns {
			one.cancel()
			<-one.done
		}
	})
}

// TestOffline: the task of an agent never connecting fails when its time is over, and the agent is informed of it.
func TestOffline(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		began := time.Now()
		turn := w.run("t1", task.None, "Review", false)
		<-turn.done
		if task.KindOf(turn.err) != task.AgentTimeout || time.Since(began) != time.Minute {
			t.Errorf("after %v the turn has failed: %v", time.Since(began), turn.err)
		}
		check(t, "the events", w.sent(), []string{submitted, strings.Replace(submitted, "submitted", "failed", 1)})
		check(t, "accept", w.say("t1", codec.Accept, `{}`), "-32186")
	})
}

// TestCancel: an agent is informed of the cancel of its task, and cannot complete it any more.
func TestCancel(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		turn := w.run("t1", task.None, "Review", false)
		w.sent()
		w.say("t1", codec.Accept, `{}`)
		rep, err := w.agent.Cancel(t.Context(), &agent.Turn{Ref: agent.Ref{Task: "t1"}})
		if err != nil || rep.State != task.Canceled {
			t.Errorf("the cancel: %v %v", rep, err)
		}
		turn.cancel() // as the life-cycle does
		<-turn.done
		check(t, "the event", w.sent(), []string{`{"status":"canceled","task_id":"t1","assignee":"worker.aid.pub"}`})
		check(t, "complete", w.say("t1", codec.Complete, `{}`), "-32173")
	})
}

// TestResume: a turn begun by another process is sent to the agent again, and continues from its place.
func TestResume(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		turn := w.run("t1", task.None, "Review", true)
		check(t, "the event", w.sent(), []string{submitted})
		check(t, "accept", w.say("t1", codec.Accept, `{}`), "working")
		check(t, "complete", w.say("t1", codec.Complete, `{}`), "completed")
		check(t, "the reports", turn.said(), []string{"working", "awaiting-completion"})
	})
}

// TestFlood: an agent is refused if it says more than the gateway stores at once.
func TestFlood(t *testing.T) {
	var hub Hub
	x := &exchange{hub: &hub, agent: aid, id: "t1", ctx: t.Context(), wake: make(chan struct{}, 1), status: "working"}
	hub.add(x)
	artifact := gjson.Parse(`{"artifact":{"id":"a","type":"text","content":"x"}}`)
	for range maxWaiting {
		if err := hub.Report(aid, "t1", codec.ArtifactEvent, artifact); err != nil {
			t.Fatal(err)
		}
	}
	err := hub.Report(aid, "t1", codec.ArtifactEvent, artifact)
	if task.KindOf(err) != task.LimitExceeded {
		t.Errorf("one more: %v", err)
	}
	if _, err := x.Next(); err != nil {
		t.Fatal(err)
	}
	if err := hub.Report(aid, "t1", codec.ArtifactEvent, artifact); err != nil {
		t.Errorf("when one was read: %v", err)
	}
	x.Close(errors.New("test"))
}
