// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// messenger is an agent that has messages and no tasks. To "start x" it reports the start. Each word of another text it
// sends in a message of its own; the word "end" is the report of the end.
type messenger struct {
	*gateway
	silent atomic.Bool // it is sent messages, and does not answer the calls

	mu    sync.Mutex
	ids   []string // of the messages to it
	inbox []object // its messages
}

// withMessenger runs f in a bubble, with an agent that has messages only.
func withMessenger(t *testing.T, f func(t *testing.T, a *upstream.Agent, g *messenger)) {
	t.Helper()
	withGateway(t, func(t *testing.T, a *upstream.Agent, g *gateway) {
		g.namespaces = []string{"message"}
		s := &messenger{gateway: g}
		g.intercept(s.take)
		f(t, a, s)
	})
}

// take takes a message to the agent, or returns its messages.
func (s *messenger) take(r *aun.Request) bool {
	switch r.Method {
	case "message.pull":
		s.mu.Lock()
		messages := slices.Clone(s.inbox[min(len(s.inbox), int(r.Params.Get("after_seq").Int())):])
		s.mu.Unlock()
		_ = r.Reply(marshal(object{"messages": messages}))
		return false
	case "message.send":
		payload, id := r.Params.Get("payload"), r.Params.Get("message_id").String()
		s.mu.Lock()
		repeated := slices.Contains(s.ids, id)
		s.ids = append(s.ids, id)
		s.mu.Unlock()
		thread, text := payload.Get("thread_id").String(), payload.Get("text").String()
		if !repeated {
			s.work.Go(func() { s.answer(thread, text) })
		}
		if s.silent.Swap(false) {
			go s.net.Cut("gw.test")
		} else {
			_ = r.Reply(marshal(object{"message_id": id, "status": "sent"}))
		}
		return false
	}
	return true
}

func (s *messenger) answer(thread, text string) {
	if strings.HasPrefix(text, "start ") {
		s.say(object{"type": "event", "event": "task.started", "thread_id": thread})
		return
	}
	for _, part := range strings.Fields(text) {
		s.pause(5 * time.Second)
		if part == "end" {
			s.say(object{"type": "event", "event": "task.completed", "thread_id": thread})
		} else {
			s.say(object{"type": "text", "text": part, "thread_id": thread})
		}
	}
}

// say keeps a message of the agent, and sends it to all connections.
func (s *messenger) say(payload object) {
	s.mu.Lock()
	seq := len(s.inbox) + 1
	m := object{"from": "agent.aid.test", "to": "alice.aid.test", "message_id": "a" + string(rune('0'+seq)), "seq": seq,
		"payload": payload}
	s.inbox = append(s.inbox, m)
	s.mu.Unlock()
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for c := range s.conns {
		_ = c.Notify(context.Background(), "event/message.received", marshal(m))
	}
}

// A turn is over when the agent has said something, and then no more. One that has said nothing may still work.
func TestIdleWindow(t *testing.T) {
	withMessenger(t, func(t *testing.T, a *upstream.Agent, _ *messenger) {
		got, _ := carryOut(t, a, start("t", "one two"))
		if got != "working awaiting-completion =one =two" {
			t.Error(got)
		}
		got, _ = carryOut(t, a, start("u", "start something"))
		if !strings.HasPrefix(got, "working ") || strings.Contains(got, "awaiting-completion") {
			t.Error(got)
		}
	})
}

// What an agent says while the connection is cut is pulled. What it has said in the turn before is not repeated, also
// by a process that has not seen it.
func TestMessagesAfterACut(t *testing.T) {
	withMessenger(t, func(t *testing.T, a *upstream.Agent, s *messenger) {
		var cuts sync.WaitGroup
		cuts.Go(func() {
			s.pause(7 * time.Second)
			s.stop()
			s.pause(4 * time.Second)
			s.start()
		})
		got, ref := carryOut(t, a, start("t", "one two three"))
		cuts.Wait()
		if got != "working awaiting-completion =one =two =three" || s.count("message.pull") == 0 {
			t.Error(got)
		}
		a.Close() // and with it the connection
		again := s.process("ws://gw.test/aun")
		turn := start("t", "four")
		turn.Message.ID, turn.Ref, turn.From, turn.Message.Command = "next", ref, task.AwaitingCompletion, task.Continue
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for rep := range again.Run(ctx, turn, true) {
			if rep.Ref != nil {
				turn.Ref = *rep.Ref
				cancel() // the process dies
			}
		}
		again.Close()
		again = s.process("ws://gw.test/aun")
		defer again.Close()
		fold, state := task.NewFold(task.Task{}), task.None
		for rep, err := range again.Resume(t.Context(), turn) {
			if err != nil {
				t.Fatal(err)
			}
			apply(&fold, &rep)
			state = rep.State
		}
		if p := fold.Task().Products; state != task.AwaitingCompletion || len(p) != 1 || p[0].DataItems[0].Text != "four" {
			t.Errorf("%s with %+v", state, p)
		}
	})
}

// A message whose answer is lost is sent again with the same id.
func TestLostMessage(t *testing.T) {
	withMessenger(t, func(t *testing.T, a *upstream.Agent, s *messenger) {
		s.silent.Store(true)
		turn := start("t", "one")
		got, ref := carryOut(t, a, turn)
		if got != "working awaiting-completion =one" || ref.Task != turn.Message.ID {
			t.Errorf("%s: %s", ref.Task, got)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if want := []string{turn.Message.ID, turn.Message.ID}; !slices.Equal(s.ids, want) {
			t.Errorf("it was sent %q", s.ids)
		}
	})
}

// A turn of which no message was sent may be sent.
func TestUnsentConversation(t *testing.T) {
	withMessenger(t, func(t *testing.T, a *upstream.Agent, _ *messenger) {
		turn := start("t", "one")
		turn.Ref = agent.Ref{Task: "made-by-the-gateway", Session: "session"}
		for _, err := range a.Resume(t.Context(), turn) {
			if task.KindOf(err) != task.AgentUnavailable {
				t.Error(err)
			}
		}
	})
}
