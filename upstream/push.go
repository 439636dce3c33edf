// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// listen returns the inbox of the agent's unasked messages about the turn, or nil if it sends none.
func (r *run) listen() *Inbox {
	if l, ok := r.transport.(Listener); ok {
		return l.Listen(r.ctx, r.turn.Ref)
	}
	if r.config.Listener == nil || r.trial != nil {
		return nil
	}
	return r.config.Listener.Listen(r.ctx, r.turn.Ref)
}

// answer is the answer to a message.
type answer struct {
	rep   agent.Report
	err   error
	panic any
}

// sendAndListen sends the turn's message for one answer, and reports the agent's unasked messages in the meantime. A
// report sent twice, or late, changes nothing. The task is polled as well, so a lost report only costs time.
func (r *run) sendAndListen(inbox *Inbox) error {
	if err := r.acquire(); err != nil {
		return err
	}
	release := sync.OnceFunc(func() { r.config.Slots.turns.release(r.turn.Leader) })
	defer release()
	turn := *r.turn
	if turn.Webhook = inbox.Webhook; turn.Webhook != nil {
		r.registerWebhook(turn.Webhook)
	}
	sending, stop := context.WithCancel(r.ctx)
	answers := make(chan answer, 1)
	var sender sync.WaitGroup
	defer sender.Wait()
	defer stop()
	q := r.message(translate.Send, &turn)
	sender.Go(func() {
		var a answer
		defer func() {
			if p := recover(); p != nil { // it belongs to the run: its goroutine handles it
				a.panic = &senderPanic{p, debug.Stack()}
			}
			answers <- a
		}()
		defer release()
		a.rep, a.err = r.roundTrip(sending, q, turn.Known)
	})
	var revision string
	take := func(body []byte) (over bool) {
		rep, ok := r.readPush(body, revision)
		if !ok {
			return false
		}
		revision = rep.Revision
		return !r.report(rep) || rep.EndsTurn()
	}
	for {
		select {
		case body := <-inbox.Messages:
			if take(body) {
				return nil
			}
		case a := <-answers:
			if a.panic != nil {
				panic(a.panic)
			}
			for len(inbox.Messages) > 0 { // messages sent before the answer come before it
				if take(<-inbox.Messages) {
					return nil
				}
			}
			if a.err == nil {
				a.err = r.renamed(&a.rep)
			}
			if a.err != nil {
				return r.failed(a.err, task.State.Terminal)
			}
			if revision != "" && !a.rep.EndsTurn() {
				// The agent may have answered before it sent the messages already reported, so it is asked.
				r.turn = named(r.turn, &a.rep)
				return r.poll(polling{revision: revision, pushed: inbox.Messages, atOnce: true})
			}
			return r.follow(a.rep, inbox.Messages)
		}
	}
}

// registerWebhook registers the webhook, if the agent takes webhooks by a request of their own.
func (r *run) registerWebhook(w *task.Webhook) {
	if r.facets.Registrar == nil {
		return
	}
	q := r.query(translate.Register)
	q.Body = q.codec.(translate.Registrar).AppendRegister(nil, r.turn.Ref, w)
	if err := r.register(q); err != nil {
		r.logger().LogAttrs(r.ctx, slog.LevelDebug, "the agent takes no webhook; the task is polled",
			slog.Any("error", err))
	}
}

// senderPanic is a panic of the sending goroutine, for the goroutine of the turn.
type senderPanic struct {
	value any
	stack []byte
}

// Error implements runtime.Error.
func (p *senderPanic) Error() string { return fmt.Sprintf("%T while sending\n%s", p.value, p.stack) }

// RuntimeError implements runtime.Error.
func (p *senderPanic) RuntimeError() {}

// readPush reads an unasked message of an agent. ok is false if it says nothing new of the whole task: a piece cannot
// be distinguished from an earlier one, so it is only a reason to ask.
func (r *run) readPush(body []byte, revision string) (rep agent.Report, ok bool) {
	if len(body) == 0 {
		return rep, false
	}
	rep, err := r.pushCodec().Push(body, r.turn.Known)
	if err != nil {
		r.logger().LogAttrs(r.ctx, slog.LevelDebug, "what the agent has sent unasked is not understood",
			slog.Any("error", err))
		return rep, false
	}
	isNew := revision == "" || rep.Revision != revision
	return rep, rep.State != task.None && rep.Full && isNew && !untouched(r.turn, &rep) && r.ignored(&rep) == nil
}

// pushCodec returns the client to read the agent's unasked messages. Of another task than the turn's, it reads nothing.
func (r *run) pushCodec() translate.Client {
	q := translate.Query{Task: r.turn.Ref.Task, Session: r.turn.Ref.Session, Withdrawn: r.turn.Withdrawn}
	if r.unnamed(r.turn) && !r.turn.Named && (r.naming == nil || r.naming.ref == nil) {
		q.Task = "" // the agent has not named it yet
	}
	return r.codec.For(q)
}
