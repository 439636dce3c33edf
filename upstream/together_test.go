// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// bursts is a wire with streams of several messages at once.
type bursts struct {
	wire
	rnd  *rand.Rand
	most int // of 100 messages, so many come together with the one before
}

func (w *bursts) Routes(translate.Operation) []upstream.Route { return []upstream.Route{w} }

func (w *bursts) Open(ctx context.Context, r *upstream.Request) (upstream.Exchange, error) {
	x, err := w.wire.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return &burst{wireExchange: x.(*wireExchange), of: w}, nil
}

type burst struct {
	*wireExchange
	of  *bursts
	buf []byte
}

func (x *burst) Ready() bool { return len(x.answer.messages) > 0 && x.of.rnd.IntN(100) < x.of.most }

// Next uses the memory of each message again for the next.
func (x *burst) Next() (upstream.Message, error) {
	m, err := x.wireExchange.Next()
	x.buf = append(x.buf[:0], m.Data...)
	m.Data = x.buf
	return m, err
}

// speech is the manner of an agent of a dialect in a stream. other is a member to make an event unusual, without a
// meaning.
type speech struct {
	client translate.Client
	begin  string
	piece  func(product, text string, adds bool, other string) string
	status func(state, said string) string // working, completed or failed
	other  string
}

func response(format string, args ...any) string {
	return `{"jsonrpc":"2.0","id":"1","result":` + fmt.Sprintf(format, args...) + `}`
}

var speeches = []speech{
	{
		client: a2a.Legacy(), other: `,"history":[]`,
		begin: response(`{"id":"t","status":{"state":"working"},"final":false}`),
		piece: func(product, text string, adds bool, other string) string {
			return response(`{"id":"t","artifact":{"name":%q,"parts":[{"type":"text","text":%s}],"append":%t}%s}`,
				product, text, adds, other)
		},
		status: func(state, said string) string {
			return response(`{"id":"t","status":{"state":%q,"message":{"role":"agent","parts":[{"type":"text","text":%q}]}},`+
				`"final":false}`, state, said)
		},
	},
	{
		client: a2a.V03(), other: `,"history":[]`,
		begin: response(`{"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}`),
		piece: func(product, text string, adds bool, other string) string {
			return response(`{"kind":"artifact-update","taskId":"t","contextId":"c","append":%t,"artifact":{"artifactId":%q,`+
				`"parts":[{"kind":"text","text":%s}]}%s}`, adds, product, text, other)
		},
		status: func(state, said string) string {
			return response(`{"kind":"status-update","taskId":"t","contextId":"c","status":{"state":%q,"message":{`+
				`"role":"agent","parts":[{"kind":"text","text":%q}]}},"final":false}`, state, said)
		},
	},
	{
		client: a2a.V1(), other: `,"history":[]`,
		begin: response(`{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}`),
		piece: func(product, text string, adds bool, other string) string {
			return response(`{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":%q,`+
				`"parts":[{"text":%s}]},"append":%t%s}}`, product, text, adds, other)
		},
		status: func(state, said string) string {
			return response(`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_%s","message":{`+
				`"role":"ROLE_AGENT","parts":[{"text":%q}]}}}}`, strings.ToUpper(state), said)
		},
	},
	{
		client: aip.Client("gateway"), other: `,"messageHistory":[]`,
		begin: response(`{"eventSeq":1,"eventData":{"type":"task","id":"t","status":{"state":"working",` +
			`"stateChangedAt":"2026-01-01T00:00:00+08:00"},"sessionId":"s"}}`),
		piece: func(product, text string, adds bool, other string) string {
			return response(`{"eventSeq":2,"eventData":{"type":"product-chunk","taskId":"t","product":{"id":%q,"dataItems":[{`+
				`"type":"text","text":%s}]},"append":%t,"lastChunk":false,"sessionId":"s"%s}}`, product, text, adds, other)
		},
		status: func(state, said string) string {
			if state == "completed" {
				state = "awaiting-completion"
			}
			return response(`{"eventSeq":3,"eventData":{"type":"status-update","taskId":"t","status":{"state":%q,`+
				`"stateChangedAt":"2026-01-01T00:00:01+08:00","dataItems":[{"type":"text","text":%q}]}}}`, state, said)
		},
	},
}

// events returns an agent's events in a turn. rnd decides about them, and other is the number of unusual pieces in 100.
func (s *speech) events(rnd *rand.Rand, other int) []string {
	unusual := rand.New(rand.NewPCG(1, uint64(other)))
	texts := []string{`"a"`, `"two words "`, `""`, `"line\nfeed \"quoted\" \\ \/"`, `"\u00e9\ud83d\ude00é"`, `"\u0000\b"`}
	list := []string{s.begin}
	for i := range rnd.IntN(60) {
		adds := rnd.IntN(10) > 0
		product, text, with := fmt.Sprint("p", rnd.IntN(2)), texts[rnd.IntN(len(texts))], ""
		if unusual.IntN(100) < other {
			with = s.other
		}
		list = append(list, s.piece(product, text, adds, with))
		if rnd.IntN(12) == 0 {
			list = append(list, s.status("working", fmt.Sprint("news ", i)))
		}
	}
	return append(list, s.status([]string{"completed", "failed"}[rnd.IntN(2)], "done"))
}

// TestReadsDoNotMatter: the log of a task, the task, and the frames of its callers are the same for all ways of the
// agent's events to come in, and whether they are read by Text or by Event.
func TestReadsDoNotMatter(t *testing.T) {
	for _, s := range speeches {
		t.Run(s.client.Name(), func(t *testing.T) {
			for seed := range uint64(25) {
				events := func(other int) []string { return s.events(rand.New(rand.NewPCG(3, seed)), other) }
				want := shownOf(t, s.client, &bursts{wire: oneStream(events(100)), rnd: rand.New(rand.NewPCG(4, seed))})
				for _, cut := range []struct{ most, other int }{{0, 0}, {50, 0}, {90, 10}, {100, 0}, {100, 50}} {
					got := shownOf(t, s.client, &bursts{wire: oneStream(events(cut.other)), most: cut.most,
						rnd: rand.New(rand.NewPCG(5, seed))})
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("seed %d, %+v (-each event alone, by Event +together, by Text):\n%s", seed, cut, diff)
					}
				}
			}
		})
	}
}

func oneStream(events []string) wire {
	return wire{answers: answers{translate.SendStream: {streamed(events...)}}}
}

// shownOf returns all about a task carried out by an agent: the records of its log, the frames to callers of each
// dialect, and the answer to a get.
func shownOf(t *testing.T, codec translate.Client, w upstream.Transport) (all []string) {
	t.Helper()
	const leader = "10001000011K912345E789ABCDEF2353"
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{})
		engine, err := partner.Open(t.Context(), store, partner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		a := upstream.New(upstream.Config{Resolver: upstream.NewEndpoint(codec, w), Logger: slog.New(slog.DiscardHandler)})
		a.NumberAll("1")
		p := engine.Register(partner.Config{
			Name: "agent", Agent: a, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 10, Log: slog.New(slog.DiscardHandler),
			Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour},
		})
		call := func(command task.Command) *partner.Request {
			return &partner.Request{Histories: true, Call: task.Call{Message: task.Message{ID: "m-" + string(command),
				SenderRole: task.Leader, SenderID: leader, Command: command, TaskID: "t", SessionID: "s"}}}
		}
		if _, err := p.Stream(t.Context(), leader, call(task.Start)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got, err := p.Do(t.Context(), leader, call(task.Get))
		if err != nil {
			t.Fatal(err)
		}
		_, _, records, err := store.Load(t.Context(), logname.New("agent", leader, "t"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []translate.Server{aip.Server(), a2a.LegacyServer(true), a2a.V03Server(true), a2a.V1Server(true)} {
			all = append(all, frames(t, s, &got.Task, records)...)
		}
		for _, rec := range records {
			all = append(all, fmt.Sprint(rec.Seq, " ", string(rec.Data)))
		}
		all = append(all, string(task.AppendTask(nil, &got.Task)))
		p.Unregister()
		engine.Close()
		a.Close()
		store.Close()
	})
	return all
}

// frames returns the frames of all events for a caller of a dialect.
func frames(t *testing.T, s translate.Server, tk *task.Task, records []replay.Record) (all []string) {
	out := s.NewStream(jsonrpc.ID("1"), new(translate.Call), &task.Task{ID: tk.ID, SessionID: tk.SessionID})
	direct, _ := out.(translate.RecordEncoder)
	for _, rec := range records {
		ev, err := task.DecodeEvent(rec.Data)
		if err != nil {
			t.Fatal(err)
		}
		ev.Seq = rec.Seq
		next := func(dst []byte) translate.Frame { return out.Event(dst, &ev) }
		if direct != nil {
			next = func(dst []byte) translate.Frame { return direct.Record(dst, rec.Seq, rec.Data) }
		}
		for next != nil {
			f := next(nil)
			all, next = append(all, string(f.Data)), f.Next
		}
	}
	return all
}
