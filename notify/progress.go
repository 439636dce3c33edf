// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Delivered is the status of a webhook with nothing left to be delivered.
const Delivered Status = "delivered"

// Progress is the progress of the notifications of a webhook, as an operator sees it. The attempts of an undelivered
// notification are in its Delivery.
type Progress struct {
	Webhook    string
	Endpoint   string       // scheme://host:port
	Path       string       // see Delivery.Path
	States     []task.State // to be notified of; empty for all
	Status     Status       // of its next delivery; Dead or Delivered if there is none
	Reached    uint64       // number of the last event with each notification up to it delivered, or a dead letter
	Pending    int          // notifications to be delivered, and replayed dead letters
	Dead       int          // dead letters
	Attempts   int          // at the next delivery, so far
	Next       time.Time    // of the next attempt; zero if none is planned
	LastStatus int          // of HTTP, of the last attempt; 0 if there was no answer, or no attempt
	LastError  string       // likewise
	Reason     string       // the reason if the webhook is disabled
}

// Progress returns the progress of a task's webhooks.
func (e *Engine) Progress(ctx context.Context, partner, leader, id string) ([]Progress, error) {
	b := e.outboxes.lock(logname.OutboxOf(logname.New(partner, leader, id)))
	defer b.unlock()
	if err := b.load(ctx); err != nil || !b.exists {
		return nil, err
	}
	out := make([]Progress, 0, len(b.metadata.Hooks))
	for i := range b.metadata.Hooks {
		h := &b.metadata.Hooks[i]
		out = append(out, b.metadata.progress(h, e.held(h, partner, leader)))
	}
	return out, nil
}

// progress returns the progress of a webhook. held is the reason if nothing is sent to it.
func (m *metadata) progress(h *hook, held string) Progress {
	p := Progress{
		Webhook: h.Webhook.ID, Endpoint: h.endpoint(), Path: h.path(), States: append([]task.State(nil), h.Webhook.States...),
		Reached: m.Seen, Attempts: h.Attempts, Next: m.next(h),
		LastStatus: h.LastStatus, LastError: h.LastError, Reason: held,
	}
	if m.pending(h) {
		p.Reached = 0 // an earlier task with the same id
		if en := m.entry(h.Cursor + 1); en.Generation == m.Generation {
			p.Reached = en.Event - 1
		}
	}
	for i := range h.Dead {
		if h.Dead[i].Next.IsZero() {
			p.Dead++
		} else {
			p.Pending++
		}
	}
	for record := h.Cursor + 1; record <= m.last(); record++ {
		if s := m.entry(record).State; s != task.None && h.Webhook.Wants(s) {
			p.Pending++
		}
	}
	switch {
	case held != "":
		p.Status, p.Next = Disabled, time.Time{}
	case p.Attempts > 0:
		p.Status = Failing
	case p.Pending > 0:
		p.Status = Pending
	case p.Dead > 0:
		p.Status = Dead
	default:
		p.Status = Delivered
	}
	return p
}
