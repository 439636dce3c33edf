// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// world is a mailbox, with online clients, and an agent scripted by its tests.
type world struct {
	t     *testing.T
	store replay.Store
	box   *Mailbox

	mu        sync.Mutex
	online    map[string]bool
	events    map[string][]string // by AID
	said      []task.Message      // to the agent
	tasks     map[string]task.State
	revisions map[string]uint64 // of the logs, by task
	quiet     bool              // started tasks have no event yet
	device    string            // of callers
	begins    map[string]int64  // the number before the first message to an AID
	acted     func()            // called when the agent has a message, before the mailbox knows; nil for nothing
}

const agentAID = "agent.aid.pub"

func newWorld(t *testing.T) *world {
	w := &world{t: t, device: "d", store: replay.NewMemory(replay.Settings{}),
		online: map[string]bool{"alice.aid.pub": true}, begins: make(map[string]int64), events: make(map[string][]string),
		tasks: make(map[string]task.State), revisions: make(map[string]uint64)}
	w.open()
	t.Cleanup(func() {
		w.box.Close()
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) open() {
	var err error
	if w.box, err = Open(shard.One(w.store), w, nil, slog.New(slog.DiscardHandler)); err != nil {
		w.t.Fatal(err)
	}
	w.box.Set(map[string]Agent{agentAID: w.agent()})
}

// restart does what the death of the process does.
func (w *world) restart() {
	w.box.Close()
	w.open()
}

func (w *world) Notify(aid, method string, params []byte) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !json.Valid(params) {
		w.t.Errorf("the params of %s are no JSON: %s", method, params)
	}
	if !w.online[aid] {
		return 0
	}
	p := gjson.ParseBytes(params)
	w.events[aid] = append(w.events[aid],
		summary(strings.TrimPrefix(method, "event/message."), p, w.before(p.Get("to").Str)))
	return 1
}

func (w *world) Deliver(
	aid string, _ bool, method string, params []byte, again func(context.Context) ([]byte, error),
) int {
	// The mailbox may deliver until it is closed, after the end of the test's context.
	if read, err := again(context.WithoutCancel(w.t.Context())); err != nil || string(read) != string(params) {
		w.t.Errorf("a message is read again as %s, %v; want %s", read, err, params)
	}
	return w.Notify(aid, method, params)
}

func (w *world) Online(aid string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.online[aid]
}

// before returns the number before the first message to an AID. w.mu is held.
func (w *world) before(aid string) int64 {
	if w.begins[aid] == 0 {
		head, err := w.store.Head(context.Background(), logname.InboxOf(aid))
		if err == nil && len(head.Gaps) > 0 && head.Gaps[0].From == 1 {
			w.begins[aid] = int64(head.Gaps[0].To)
		}
	}
	return w.begins[aid]
}

// summary returns the relevant parts of a message. Its number is shown without those before the first one.
func summary(method string, m gjson.Result, before int64) string {
	switch method {
	case "ack":
		return fmt.Sprintf("ack %s %d", m.Get("to").Str, m.Get("ack_seq").Int()-before)
	case "recalled":
		return "recalled " + m.Get("message_ids").Raw
	}
	p := m.Get("payload")
	text := p.Get("text").Str + p.Get("event").Str
	if text == "" {
		text = p.Get("state").Str
	}
	return fmt.Sprintf("%d %s %s: %s", m.Get("seq").Int()-before, m.Get("from").Str, p.Get("type").Str, text)
}

// numbers are the members with numbers of messages.
var numbers = regexp.MustCompile(`"([a-z_]*seq)":([0-9]+)`)

// shift adds a number to each number of a message.
func shift(text string, by int64) string {
	return numbers.ReplaceAllStringFunc(text, func(member string) string {
		m := numbers.FindStringSubmatch(member)
		n, _ := strconv.ParseInt(m[2], 10, 64)
		if n == 0 || n+by < 0 {
			return member
		}
		return fmt.Sprintf("%q:%d", m[1], n+by)
	})
}

// got returns the events of an AID since the last call.
func (w *world) got(aid string) []string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.events[aid]
	w.events[aid] = nil
	return list
}

// scripted is the agent.
type scripted struct{ *world }

func (w *world) agent() Agent { return scripted{w} }

func (scripted) Online() bool { return true }

func (a scripted) Do(
	ctx context.Context, _ identity.Peer, _ *gateway.Request, c *gateway.Call,
) (r gateway.Result, err error) {
	m := c.Message
	if !c.Followed {
		a.t.Errorf("%s does not ask the agent to report while it works", m.Command)
	}
	a.mu.Lock()
	state, exists := a.tasks[m.TaskID]
	a.mu.Unlock()
	r.Log = "t" + m.TaskID
	switch {
	case m.Command == task.Continue && !exists:
		return r, task.Errorf(task.TaskNotFound, "no such task")
	case m.Command == task.Continue && state != task.AwaitingInput:
		return r, task.Errorf(task.UnsupportedOperation, "no").WithCause(&task.StateError{State: state})
	case m.Command == task.Start && exists:
		return r, nil
	}
	a.mu.Lock()
	a.said = append(a.said, m)
	quiet := a.quiet
	a.mu.Unlock()
	if quiet {
		a.mu.Lock()
		a.revisions[m.TaskID]++
		a.mu.Unlock()
		return r, a.store.Append(ctx, replay.Append{Log: r.Log, DueAt: replay.Recover, Intent: true})
	}
	a.move(m.TaskID, task.Working, "", &m)
	if a.acted != nil {
		a.acted()
	}
	return r, nil
}

// append appends an event to a task.
func (w *world) append(id string, ev *task.Event, end bool) {
	w.mu.Lock()
	expect := w.revisions[id]
	w.revisions[id]++
	w.mu.Unlock()
	err := w.store.Append(context.Background(), replay.Append{
		Log: "t" + id, Expect: expect, Records: [][]byte{task.AppendEvent(nil, ev)}, End: end})
	if err != nil {
		w.t.Error(err)
	}
}

// move moves a task to a state.
func (w *world) move(id string, state task.State, text string, cause *task.Message) {
	w.mu.Lock()
	w.tasks[id] = state
	w.mu.Unlock()
	s := &task.Status{State: state, ChangedAt: time.Now()}
	if text != "" {
		s.DataItems = []task.DataItem{task.Text(text)}
	}
	w.append(id, &task.Event{Status: s, Cause: cause}, state.Terminal())
}

// trim replaces the events of a task by a snapshot.
func (w *world) trim(id string) {
	head, snapshot, records, err := w.store.Load(context.Background(), "t"+id)
	var fold task.Fold
	for s, err := range follow.Steps(follow.Position{}, head, snapshot, records) {
		if err != nil {
			w.t.Fatal(err)
		}
		fold.Apply(s.Event)
	}
	w.mu.Lock()
	expect := w.revisions[id]
	w.revisions[id]++
	w.mu.Unlock()
	a := replay.Append{Log: "t" + id, Expect: expect, Trim: head.Last,
		Snapshot: task.AppendEvent(nil, &task.Event{Task: fold.Task()})}
	if err = errors.Join(err, w.store.Append(context.Background(), a)); err != nil {
		w.t.Fatal(err)
	}
}

// deliver has the agent deliver a piece of a product.
func (w *world) deliver(id, product, text string, more bool) {
	w.append(id, &task.Event{Chunk: &task.Chunk{
		Product: task.Product{ID: product, DataItems: []task.DataItem{task.Text(text)}}, Append: more}}, false)
}

// call calls a method as a client, and returns the result, or the code of the error. The numbers of messages are those
// of an inbox beginning with 1.
func (w *world) call(aid, method, params string) string {
	w.t.Helper()
	before := func(aid string) int64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.before(aid)
	}
	if method != "message.send" {
		params = shift(params, before(aid))
	}
	c := Caller{AID: aid, Device: w.device, Peer: identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: aid}}
	result, err := w.box.Call(w.t.Context(), c, method, gjson.Parse(params))
	if refused, ok := errors.AsType[*aun.Error](err); ok {
		return fmt.Sprint(refused.Code)
	}
	if err != nil {
		return gjson.GetBytes(codec.AppendError(nil, nil, err), "error.code").Raw
	}
	if !json.Valid(result) {
		w.t.Errorf("the result of %s is no JSON: %s", method, result)
	}
	if to := gjson.Get(params, "to").Str; to != "" {
		return shift(string(result), -before(to))
	}
	return shift(string(result), -before(aid))
}

// say sends a text to an AID, and returns its seq.
func (w *world) say(from, to, id, text string) string {
	w.t.Helper()
	params := fmt.Sprintf(`{"to":%q,"message_id":%q,"payload":{"type":"text","text":%q,"thread_id":"th"}}`, to, id, text)
	return w.call(from, "message.send", params)
}

// pulled returns the messages of a client's pull.
func (w *world) pulled(aid string, after int) (list []string) {
	w.t.Helper()
	result := w.call(aid, "message.pull", fmt.Sprintf(`{"after_seq":%d}`, after))
	for _, m := range gjson.Get(result, "messages").Array() {
		list = append(list, summary("received", m, 0))
	}
	return list
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

const alice = "alice.aid.pub"
