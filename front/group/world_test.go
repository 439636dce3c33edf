// SPDX-License-Identifier: Apache-2.0

package group

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

const (
	leaderAIC = "LEADER"
	agentAIC  = "PARTNER"
)

// scripted is an agent. Its turns yield the reports of script, each after a time.
type scripted struct {
	partner.Agent
	script func(t *agent.Turn) []step
}

type step struct {
	after  time.Duration
	report agent.Report
}

func (s scripted) Run(ctx context.Context, t *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		for _, st := range s.script(t) {
			select {
			case <-time.After(st.after):
			case <-ctx.Done():
				return
			}
			if !yield(st.report, nil) {
				return
			}
		}
	}
}

func (s scripted) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return s.Run(ctx, t, true)
}

func (scripted) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	return agent.Report{State: task.Canceled}, nil
}

func (scripted) Complete(context.Context, *agent.Turn) error { return nil }

// working reports work; product a complete product; finished the end of the work, and asks a question.
func working() agent.Report { return agent.Report{State: task.Working} }

func product(text string) agent.Report {
	return agent.Report{Chunks: []task.Chunk{{Last: true,
		Product: task.Product{ID: "p", DataItems: []task.DataItem{task.Text(text)}}}}}
}

func finished() agent.Report { return agent.Report{State: task.AwaitingCompletion} }

func asks() agent.Report {
	return agent.Report{State: task.AwaitingInput, Items: []task.DataItem{task.Text("what?")}}
}

// world is the tasks of one group, with a real gateway and a scripted agent, over a breakable store.
type world struct {
	t       testing.TB
	store   *breakable
	tasks   *gateway.Tasks
	gateway *gateway.Gateway
	group   *groupTasks
	link    *wire
	managed []task.Management
	acked   []string // ids of messages
	headers map[string]string
	tracer  trace.TracerProvider
	mu      sync.Mutex
	calls   int // by rpc
	log     *slog.Logger
	logged  bytes.Buffer // by log
}

// handled returns the log's words about commands: their messages, tasks, names, and errors.
func (w *world) handled() (all []string) {
	for line := range strings.Lines(w.logged.String()) {
		fields := make(map[string]string)
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		all = append(all, strings.TrimSpace(strings.Join([]string{fields["message"], fields["aip.task"],
			fields["aip.command"], fields["aip.error"]}, " ")))
	}
	return all
}

// breakable is a store. While it is unavailable, it takes no appends; after it has crashed, none of class GroupTask.
type breakable struct {
	// notHeld is the time until which nothing may be published; nil for none. Held is called under locks that an append
	// takes, too, to wake its readers, so it takes none itself.
	notHeld atomic.Pointer[time.Time]

	replay.Store
	mu          sync.Mutex
	unavailable chan struct{}
	crashed     bool
	ambiguous   byte // the next append to a log of this class is stored, and returns ErrUnavailable
}

func (s *breakable) Append(ctx context.Context, a replay.Append) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.unavailable != nil:
		return replay.ErrUnavailable
	case s.crashed && a.Log[0] == logname.GroupTask:
		return replay.ErrClosed
	case s.ambiguous == a.Log[0]:
		s.ambiguous = 0
		return errors.Join(s.Store.Append(ctx, a), replay.ErrUnavailable)
	}
	return s.Store.Append(ctx, a)
}

func (s *breakable) Reopened() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unavailable
}

// setAmbiguous has the next append to a log of a class stored, and answered with ErrUnavailable.
func (s *breakable) setAmbiguous(class byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ambiguous = class
}

// holdsAfter has nothing published for so long.
func (s *breakable) holdsAfter(d time.Duration) {
	until := time.Now().Add(d)
	s.notHeld.Store(&until)
}

// Held is described at replay.HeldBy.
func (s *breakable) Held() error {
	if until := s.notHeld.Load(); until != nil && time.Now().Before(*until) {
		return replay.ErrUnavailable
	}
	return nil
}

func (s *breakable) setUnavailable(is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is {
		s.unavailable = make(chan struct{})
		return
	}
	close(s.unavailable)
	s.unavailable = nil
}

func newWorld(t testing.TB, script func(*agent.Turn) []step, change func(*gateway.Config)) *world {
	return newWorldOver(t, replay.NewMemory(replay.Settings{}), script, change)
}

func newWorldOver(
	t testing.TB, store replay.Store, script func(*agent.Turn) []step, change func(*gateway.Config),
) *world {
	w := &world{t: t, store: &breakable{Store: store}}
	w.log = slog.New(slog.NewTextHandler(&w.logged, nil))
	log := slog.New(slog.DiscardHandler)
	c := gateway.Config{
		Process: new(gateway.Process), Callers: []translate.Server{aip.Server()}, Guard: new(identity.Guard),
		Partner: partner.Config{
			Name: "agent", Agent: scripted{script: script}, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 1000,
			Terms: task.Terms{Response: 25 * time.Second, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour},
		},
		Limits:    jsonrpc.Limits{Bytes: 64 << 10, Depth: 16},
		Memory:    limit.Limits{Total: 1 << 24, PerLeader: 1 << 24},
		Streaming: gateway.Streaming{Max: 2, MaxPerLeader: 2, Drain: t.Context()},
		Groups:    true,
		Log:       log,
	}
	if change != nil {
		change(&c)
	}
	var err error
	if w.tasks, err = gateway.OpenTasks(shard.One(w.store), nil, log); err != nil {
		t.Fatal(err)
	}
	if w.gateway, err = gateway.New(c); err != nil {
		t.Fatal(err)
	}
	w.tasks.Process().AddAcceptor(w)
	w.gateway.TakePart(w)
	w.gateway.Register(w.tasks)
	w.open()
	t.Cleanup(func() {
		w.group.close()
		w.gateway.Unregister()
		if err := w.tasks.Close(); err != nil {
			t.Error(err)
		}
		w.gateway.Close()
		if n := c.Process.Memory.Total(); n != 0 {
			t.Errorf("%d bytes of memory are still counted", n)
		}
	})
	return w
}

// open opens the tasks of the group, as a new process does.
func (w *world) open() {
	w.group = newGroupTasks(w.store, key{"agent", leaderAIC, "g"}, groupMember(&desk{w}), w.tracer)
	<-w.group.recovered
}

// connect gives the group a link.
func (w *world) connect(confirms bool) *wire {
	w.link = &wire{confirms: confirms}
	w.group.connect(w.link)
	return w.link
}

// crash ends the process, as far as the group knows: nothing more is stored.
func (w *world) crash() {
	w.store.mu.Lock()
	w.store.crashed = true
	w.store.mu.Unlock()
	w.group.close()
	w.store.mu.Lock()
	w.store.crashed = false
	w.store.mu.Unlock()
	w.open()
}

// desk is the member with the tasks.
type desk struct{ *world }

func (d *desk) gateway() *gateway.Gateway { return d.world.gateway }
func (*desk) aic() string                 { return agentAIC }
func (*desk) logger() *slog.Logger        { return slog.New(slog.DiscardHandler) }
func (d *desk) access() (*slog.Logger, slog.Level) {
	return d.log, slog.LevelInfo
}
func (d *desk) manage(c *task.Management, _ string, _ *broker.Delivery) {
	d.managed = append(d.managed, *c)
}

// The world is the groups of its gateway.

func (w *world) Join(context.Context, string, *task.Invitation) (task.Membership, error) {
	panic("no invitation")
}
func (w *world) Has(_, group string) bool { return group == "g" }

// Accept takes a start as the engine of groups does.
func (w *world) Accept(
	ctx context.Context, log string, at task.Position, c *partner.Request,
) (partner.Accepted, error) {
	if c.Group == "" || at.Exists {
		return partner.Accepted{}, nil
	}
	return w.group.follow(ctx, log, c.Dialect, c.Commit)
}

// send delivers a command of the group. members are more members of the message.
func (w *world) send(command, taskID, id, members string) {
	w.deliver(fmt.Sprintf(`{"type":"message","id":%q,"sentAt":"2025-09-01T11:59:45+08:00","senderRole":"leader",`+
		`"senderId":%q,"command":%q,"dataItems":[{"type":"text","text":"hello"}],"taskId":%q,"groupId":"g",`+
		`"sessionId":"s"%s}`, id, leaderAIC, command, taskID, members), id, "")
}

// deliver delivers a message.
func (w *world) deliver(body, id, userID string) {
	d := &broker.Delivery{Body: []byte(body), ID: id, UserID: userID}
	w.group.read(d, func(name string) string { return w.headers[name] }, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.acked = append(w.acked, id)
	})
}

// rpc sends a command by rpc, and returns the state of the answer.
func (w *world) rpc(command, taskID, members string) string {
	w.t.Helper()
	w.calls++
	var r gateway.Request
	defer r.Release()
	if !w.gateway.Match(&r, "POST", "") {
		w.t.Fatal("no dialect has the request")
	}
	r.Body = gateway.NewBody()
	*r.Body = fmt.Appendf(*r.Body, `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"type":"message",`+
		`"id":"rpc%d","senderRole":"leader","senderId":%q,"command":%q,"taskId":%q,"sessionId":"s",`+
		`"dataItems":[{"type":"text","text":"hello"}]%s}}}`, w.calls, leaderAIC, command, taskID, members)
	peer := identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: leaderAIC}
	a := w.gateway.Dispatch(w.t.Context(), peer, &r)
	if a.Err != nil {
		return a.Err.Error()
	}
	var answer struct{ Result shown }
	if err := json.Unmarshal(a.Reply, &answer); err != nil {
		w.t.Fatal(err)
	}
	return string(answer.Result.Status.State)
}

// acknowledged returns the ids of the messages acknowledged since the last call.
func (w *world) acknowledged() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := w.acked
	w.acked = nil
	return ids
}

// wire is a link. It confirms at once, or when it is told to.
type wire struct {
	link
	confirms bool

	mu    sync.Mutex
	sent  []broker.Message
	done  []func(error)
	ended bool
}

func (l *wire) Publish(m broker.Message, done func(error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return &broker.Error{Kind: broker.Closed}
	}
	m.Body = slices.Clone(m.Body)
	l.sent = append(l.sent, m)
	l.done = append(l.done, done)
	if l.confirms {
		go l.confirm(1)
	}
	return nil
}

// confirm confirms the next n messages.
func (l *wire) confirm(n int) {
	l.mu.Lock()
	n = min(n, len(l.done))
	confirmed := l.done[:n]
	l.done = l.done[n:]
	l.mu.Unlock()
	for _, done := range confirmed {
		done(nil)
	}
}

// end ends the link: unconfirmed messages are never confirmed.
func (l *wire) end() { l.endAfter(func() {}) }

// endAfter is end; in the same step, last is called before it, while mu is held.
func (l *wire) endAfter(last func()) {
	l.mu.Lock()
	last()
	l.ended = true
	rest := l.done
	l.done = nil
	l.mu.Unlock()
	for _, done := range rest {
		done(&broker.Error{Kind: broker.Closed})
	}
}

// taken returns the publications since the last call.
func (l *wire) taken() []broker.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.sent
	l.sent = nil
	return list
}

// shown is a Task as it is published.
type shown struct {
	Type, ID, SenderID, GroupID, SessionID string
	Status                                 struct {
		State          task.State
		StateChangedAt time.Time
		DataItems      []task.DataItem
	}
	Products      []task.Product
	StatusHistory []task.Status
}

func decode(t testing.TB, m broker.Message) (s shown) {
	t.Helper()
	if err := json.Unmarshal(m.Body, &s); err != nil {
		t.Fatalf("%s: %v", m.Body, err)
	}
	return s
}

// lines describes messages: the task, its state, and the texts of its products.
func lines(t testing.TB, list []broker.Message) (out []string) {
	t.Helper()
	for _, m := range list {
		s := decode(t, m)
		line := s.ID + " " + string(s.Status.State)
		for _, p := range s.Products {
			line += " " + p.DataItems[0].Text
		}
		out = append(out, line)
	}
	return out
}
