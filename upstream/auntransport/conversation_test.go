// SPDX-License-Identifier: Apache-2.0

package auntransport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// messenger is an agent with messages and no tasks. To "start x" it reports the start. Each word of another text it
// sends in a message of its own; the word "end" is the report of the end.
type messenger struct {
	*gateway
	silent atomic.Bool // it takes messages, and does not answer the calls

	mu    sync.Mutex
	ids   []string // of the messages to it
	inbox []object // its messages

	script func(thread, id string) // answers a message; nil to obey its words
}

// withMessenger runs f in a bubble, with an agent of messages only.
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
			s.work.Go(func() {
				if s.script != nil {
					s.script(thread, id)
				} else {
					s.answer(thread, text)
				}
			})
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
func (s *messenger) say(payload any) {
	s.mu.Lock()
	seq := len(s.inbox) + 1
	m := object{"from": "agent.aid.test", "to": "alice.aid.test", "message_id": fmt.Sprint("a", seq), "seq": seq,
		"payload": payload}
	s.inbox = append(s.inbox, m)
	s.mu.Unlock()
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	for c := range s.conns {
		_ = c.Notify(context.Background(), "event/message.received", marshal(m))
	}
}

// A turn is over when the agent has said something, and then no more. A silent one may still work.
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

// The agent's messages during a cut of the connection are pulled. Those of the turn before are not repeated, not even
// by a process that has not seen them.
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

// A message is sent again with the same id if its answer is lost.
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

// A turn may be sent if no message of it was sent.
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

// says has the agent answer each message to it by a list of payloads, one after the other. A number is a pause in
// seconds.
func (s *messenger) says(list func(n int, thread string) []any) {
	n := 0
	s.script = func(thread, _ string) {
		s.mu.Lock()
		n++
		now := n
		s.mu.Unlock()
		for _, one := range list(now, thread) {
			switch v := one.(type) {
			case int:
				s.pause(time.Duration(v) * time.Second)
			case object:
				s.say(v)
			}
		}
	}
}

func event(name, thread string, more object) object {
	return merge(object{"type": "event", "event": name, "thread_id": thread}, more)
}

func said(text, thread string, more object) object {
	return merge(object{"type": "text", "text": text, "thread_id": thread}, more)
}

// merge returns the members of two objects. An empty thread is none.
func merge(o, more object) object {
	maps.Copy(o, more)
	if o["thread_id"] == "" {
		delete(o, "thread_id")
	}
	return o
}

// goOn returns the next turn of a task.
func goOn(name, text string, ref agent.Ref) *agent.Turn {
	turn := start(name, text)
	turn.Ref, turn.From, turn.Message.Command = ref, task.AwaitingCompletion, task.Continue
	return turn
}

// An agent is at work from its report of the start to its report of the end, however long a tool takes, and also after
// a cut. Its thoughts are no product.
func TestAtWork(t *testing.T) {
	for _, cut := range []bool{false, true} {
		withMessenger(t, func(t *testing.T, a *upstream.Agent, s *messenger) {
			s.says(func(_ int, thread string) []any {
				return []any{event("task.started", thread, nil),
					object{"type": "thought", "thread_id": thread, "items": []any{object{"kind": "tool_call", "name": "Bash"},
						object{"kind": "text", "text": "I test"}}},
					object{"type": "status", "state": "processing", "thread_id": thread, "text": "half of it"},
					said("let me look", thread, nil), 30, said("all tests pass", thread, nil),
					event("task.completed", thread, nil)}
			})
			var cuts sync.WaitGroup
			if cut {
				cuts.Go(func() {
					s.pause(5 * time.Second)
					s.stop()
					s.start()
				})
			}
			got, _ := carryOut(t, a, start("t", "do it"))
			cuts.Wait()
			if got != "working awaiting-completion =let me look =all tests pass" {
				t.Errorf("with a cut %t: %s", cut, got)
			}
		})
	}
}

// An agent's last status of a turn comes after its event, and does not end the next turn.
func TestLateStatus(t *testing.T) {
	for what, id := range map[string]string{"with the id of the task": "task-1", "without": ""} {
		withMessenger(t, func(t *testing.T, a *upstream.Agent, s *messenger) {
			run := func(n int) object {
				if id == "" {
					return nil
				}
				return object{"task_id": "task-" + string(rune('0'+n))}
			}
			s.says(func(n int, thread string) []any {
				late := merge(object{"type": "status", "state": "completed", "thread_id": thread}, run(n-1))
				end := []any{said("answer "+string(rune('0'+n)), thread, run(n)), event("task.completed", thread, run(n))}
				if n == 1 {
					return end
				}
				return append([]any{1, late, 1}, end...)
			})
			got, ref := carryOut(t, a, start("t", "one"))
			if got != "working awaiting-completion =answer 1" {
				t.Errorf("%s, the first turn: %s", what, got)
			}
			got, ref = carryOut(t, a, goOn("u", "two", ref))
			if got != "working awaiting-completion =answer 2" {
				t.Errorf("%s, the second turn: %s", what, got)
			}
			a.Close()
			again := s.process("ws://gw.test/aun") // knows as much of the turns as the store
			defer again.Close()
			if got, _ = carryOut(t, again, goOn("v", "three", ref)); got != "working awaiting-completion =answer 3" {
				t.Errorf("%s, by another process: %s", what, got)
			}
		})
	}
}

// A question leaves the agent's task open: the agent's later messages of the same task are the next turn.
func TestTaskGoesOnAfterQuestion(t *testing.T) {
	withMessenger(t, func(t *testing.T, a *upstream.Agent, s *messenger) {
		own := object{"task_id": "one"}
		s.says(func(n int, thread string) []any {
			if n == 1 {
				asks := object{"type": "status", "state": "input_required", "text": "which?", "thread_id": thread}
				return []any{event("task.started", thread, own), merge(asks, own)}
			}
			return []any{said("blue", thread, own), event("task.completed", thread, own)}
		})
		got, ref := carryOut(t, a, start("t", "ask"))
		if got != "working awaiting-input which?" {
			t.Error(got)
		}
		turn := goOn("u", "blue", ref)
		turn.From = task.AwaitingInput
		if got, _ = carryOut(t, a, turn); got != "working awaiting-completion =blue" {
			t.Error(got)
		}
	})
}

// If an agent answers without a thread, or with the chat of the message, or by a reply to the message of the turn, the
// answer is the turn's. With several open turns, only an answer naming one is placed.
//
// Lenient: an answer without a thread, a chat and a reply
func TestAnswersWithoutThread(t *testing.T) {
	withMessenger(t, func(t *testing.T, a *upstream.Agent, s *messenger) {
		for what, answer := range map[string]any{
			"nothing": object{"text": "hi"}, "a string": "hi", "the chat": object{"text": "hi", "chat_id": "THREAD"},
			"a reply":          object{"type": "text", "text": "hi", "reply_to": "MESSAGE"},
			"an id of its own": object{"type": "text", "text": "hi", "task_id": "run of MESSAGE"},
		} {
			s.script = func(thread, id string) {
				text := strings.NewReplacer("THREAD", thread, "MESSAGE", id).Replace(string(marshal(answer)))
				s.pause(time.Second)
				s.say(json.RawMessage(text))
			}
			_, ref := carryOut(t, a, start(what, "one"))
			turn := goOn(what+" 2", "two", ref)
			turn.Known = nil
			if got, _ := carryOut(t, a, turn); got != "working awaiting-completion =hi" {
				t.Errorf("%s: %s", what, got)
			}
		}
		s.script = func(thread, id string) {
			s.pause(time.Second)
			s.say(object{"text": "whose?"})
			s.pause(5 * time.Second)
			s.say(object{"text": "of " + id, "chat_id": thread})
		}
		var turns sync.WaitGroup
		for _, name := range []string{"p", "q"} {
			turns.Go(func() {
				if got, _ := carryOut(t, a, start(name, "one")); got != "working awaiting-completion =of m-"+name {
					t.Errorf("%s: %s", name, got)
				}
			})
		}
		turns.Wait()
	})
}
