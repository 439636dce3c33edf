// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// notice is a notification sent to a receiver.
type notice struct {
	url, id string
	state   task.State
	at      time.Time
	header  http.Header
	body    []byte
	status  int
}

// sink is a receiver standing in for the network.
type sink struct {
	mu     sync.Mutex
	got    []notice // answered, in order
	answer func(n *notice) (delay time.Duration, status int, err error)
	after  http.Header
	body   string // of answers; default "ok"
	news   chan struct{}
}

func (s *sink) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var t task.Task
	if err := json.Unmarshal(body, &t); err != nil {
		return nil, err
	}
	n := notice{
		url: r.URL.String(), id: r.Header.Get("webhook-id"), state: t.Status.State, at: time.Now(),
		header: r.Header, body: body, status: 200,
	}
	var delay time.Duration
	s.mu.Lock()
	if s.answer != nil {
		delay, n.status, err = s.answer(&n)
	}
	s.mu.Unlock()
	if delay > 0 {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, n)
	if s.news != nil {
		select {
		case s.news <- struct{}{}:
		default:
		}
	}
	h := s.after.Clone()
	if h == nil {
		h = http.Header{}
	}
	answer := io.NopCloser(strings.NewReader(cmp.Or(s.body, "ok")))
	return &http.Response{StatusCode: n.status, Header: h, Body: answer}, nil
}

// history returns the states accepted by a URL, each webhook-id once. It fails if one came again after a later one.
func (s *sink) history(t *testing.T, url string) (states []task.State) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for _, n := range s.got {
		if n.url != url || n.status/100 != 2 {
			continue
		}
		if i := slices.Index(ids, n.id); i >= 0 {
			if i != len(ids)-1 {
				t.Errorf("%s got %q again, after later ones", url, n.state)
			}
			continue
		}
		ids, states = append(ids, n.id), append(states, n.state)
	}
	return states
}

func (s *sink) all() []notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *sink) set(answer func(n *notice) (time.Duration, int, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// status answers everything with one status.
func status(code int) func(*notice) (time.Duration, int, error) {
	return func(*notice) (time.Duration, int, error) { return 0, code, nil }
}

var errReset = errors.New("connection reset")

// plain is a dialect.
type plain struct{}

func (plain) AppendNotification(dst []byte, t *task.Task) []byte { return task.AppendTask(dst, t) }

func (plain) NotificationHeader(w *task.Webhook) []translate.Field {
	return []translate.Field{{Name: "Content-Type", Value: "application/json"}, {Name: "X-Token", Value: w.Token}}
}

func dialects(w *task.Webhook, _ string) translate.Notifier {
	if w.Dialect == "aip" {
		return plain{}
	}
	return nil
}

// world is an engine over a store, with helpers of its tests for both.
type world struct {
	t     testing.TB
	store replay.Store
	sink  *sink
	e     *Engine
	log   *asynctest.Buffer
	conf  Config

	limits schedule.Limits
}

func newWorld(t testing.TB, store replay.Store) *world {
	w := &world{t: t, store: store}
	w.init()
	return w
}

// init makes the missing parts of the world, and opens the engine.
func (w *world) init() {
	w.sink, w.log = new(sink), new(asynctest.Buffer)
	w.conf = Config{
		Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Dialects: dialects,
	}
	w.open()
}

func memory() replay.Store { return replay.NewMemory(replay.Settings{Retention: 30 * 24 * time.Hour}) }

func (w *world) open() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w.log, nil))
	e, err := newProcess(log, w.limits).open(context.Background(), w.store, w.sink)
	if err != nil {
		w.t.Fatal(err)
	}
	e.Configure(w.conf)
	w.e = e
}

func (w *world) restart() {
	w.e.Close()
	w.open()
}

func (w *world) hook(log, url string, at At, states ...task.State) task.Webhook {
	w.t.Helper()
	hook := task.Webhook{URL: url, Token: "secret-token", Dialect: "aip", States: states}
	h, err := w.e.Set(w.t.Context(), log, hook, at)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *world) deliveries(f Filter) []Delivery {
	w.t.Helper()
	d, _, err := w.all().Deliveries(w.t.Context(), f)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// writer writes the log of a task, as the life-cycle does.
type writer struct {
	w        *world
	log      string
	revision uint64
	fold     task.Fold
	states   []task.State // changes in the log
	silent   bool         // Notify is not called
}

func taskLog(id string) string { return logname.New("partner", "leader", id) }

func (w *world) task(id string) *writer { return &writer{w: w, log: taskLog(id)} }

// move appends changes of state, and notifies of each of them.
func (l *writer) move(states ...task.State) error {
	for _, s := range states {
		if err := l.moveAtOnce(s); err != nil {
			return err
		}
	}
	return nil
}

// moveAtOnce appends changes of state, and notifies of them together.
func (l *writer) moveAtOnce(states ...task.State) error {
	var changes []Change
	for _, s := range states {
		at := time.Now().Truncate(time.Millisecond)
		if !at.After(l.fold.Status().ChangedAt) {
			at = l.fold.Status().ChangedAt.Add(time.Millisecond)
		}
		_, _, id := logname.Split(logname.OutboxOf(l.log))
		ev := task.Event{Status: &task.Status{State: s, ChangedAt: at}}
		if l.fold.Seq == 0 {
			ev = task.Event{Task: &task.Task{ID: id, SessionID: "s", Status: *ev.Status}}
		}
		if err := l.add(ev, s.Terminal()); err != nil {
			return err
		}
		l.states = append(l.states, s)
		t := *l.fold.Task()
		changes = append(changes, Change{Seq: l.fold.Seq, Task: &t})
	}
	if !l.silent {
		l.w.e.Notify(context.Background(), l.log, changes)
	}
	return nil
}

// say appends a piece of a product. This is no change of state.
func (l *writer) say(text string) error {
	piece := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(text)}}
	return l.add(task.Event{Chunk: &task.Chunk{Product: piece, Append: true}}, false)
}

func (l *writer) add(ev task.Event, end bool) error {
	err := l.append(replay.Append{
		Records: [][]byte{task.AppendEvent(nil, &ev)}, DueAt: replay.Recover, End: end, Durable: true,
	})
	if err == nil {
		ev.Seq = l.fold.Seq + 1
		l.fold.Apply(ev)
	}
	return err
}

// append appends to the log of the task.
func (l *writer) append(a replay.Append) error {
	a.Log, a.Expect = l.log, l.revision
	err := l.w.store.Append(context.Background(), a)
	if err == nil {
		l.revision++
	}
	return err
}

// at is the present position of the task.
func (l *writer) at() At { return At{Seq: l.fold.Seq, Ended: l.fold.Status().State.Terminal()} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// whole is the life of a task.
var whole = []task.State{
	task.Accepted, task.Working, task.AwaitingInput, task.Working, task.AwaitingCompletion, task.Completed,
}

const here = "https://hooks.example.org/x?secret=query"

// all returns the engine as those of a process.
func (w *world) all() Engines { return Engines{w.e} }
