// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Change is one change of a task's state.
type Change = task.Change

// Watches reports whether there are webhooks for a task that is about to be started, so that Tell must be
// called. log is the name of the task's log.
func (e *Engine) Watches(ctx context.Context, log string) (bool, error) {
	if !e.outboxes.used.Load() {
		return false, nil
	}
	head, err := e.store.Head(ctx, logname.OutboxOf(log))
	if errors.Is(err, replay.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, partner.StoreError(err, "the store cannot be read")
	}
	return head.Ended.IsZero(), nil
}

// Tell puts changes of a task's state into its outbox and returns; they are delivered by and by. It is called
// right after they were appended to the task's log, by whoever writes that, in the order of their numbers, and
// is one write that waits for no fsync: after a loss of power the outbox is made good from the task's log. So
// it is when the store will not have the write. Where the task has no webhooks, Tell does nothing.
func (e *Engine) Notify(ctx context.Context, log string, changes []Change) {
	if len(changes) == 0 || !e.outboxes.used.Load() {
		return
	}
	ctx = context.WithoutCancel(ctx) // the changes are there, whether the caller still is or not
	b := e.acquire(logname.OutboxOf(log))
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.tell(ctx, changes)
	if errors.Is(err, replay.ErrConflict) {
		err = b.tell(ctx, changes)
	}
	if err != nil {
		e.fallBehind()
		b.logger().Error("a change cannot be put into the outbox; it is told later", "error", err)
	}
}

// tell is Tell for one try. b.mu is held.
func (b *box) tell(ctx context.Context, changes []Change) error {
	if err := b.load(ctx); err != nil || !b.exists {
		return err
	}
	n := &b.note
	if first := &changes[0]; !n.Ended.IsZero() && first.Seq <= n.Seen && first.Task.Status.ChangedAt.After(n.Told) {
		n.renew()
	}
	epoch := *b.engine.epoch.Load()
	if n.Epoch != epoch && changes[0].Seq > n.Seen+1 {
		return b.catchUp(ctx)
	}
	var traceparent string
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		traceparent = "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + span.TraceFlags().String()
	}
	var out batch
	now, seen := time.Now(), n.Seen
	for i := range changes {
		if changes[i].Seq > n.Seen {
			out.add(n, changes[i].Seq, changes[i].Task, traceparent, now)
		}
	}
	if n.Seen == seen || len(out.records) == 0 && n.Ended.IsZero() && seen > 0 {
		return nil // nobody wants them; to account for them would be a write for nothing, but for the very first
	}
	n.Epoch = epoch
	return b.write(ctx, now, out.records, false)
}

// batch gathers records that are to be added to an outbox.
type batch struct{ records [][]byte }

// add accounts for a change, and makes a record of it if any webhook wants it.
func (r *batch) add(n *note, seq uint64, t *task.Task, traceparent string, now time.Time) {
	n.Seen, n.Told = seq, t.Status.ChangedAt
	if t.Status.State.Terminal() {
		n.Ended = now
	}
	if !n.wants(seq, t.Status.State) {
		return
	}
	data := encodeRecord(&header{Seq: seq, State: t.Status.State, At: now, Trace: traceparent, Life: n.Life}, t)
	r.records = append(r.records, data)
	n.Queue = append(n.Queue, entry{Event: seq, State: t.Status.State, At: now.UnixMilli(), Size: len(data), Life: n.Life})
}

// header is the first line of a record; the second is the Task, without histories, as it was at the event.
type header struct {
	Seq   uint64     `json:"seq"`
	State task.State `json:"state"`
	At    time.Time  `json:"at"`
	Trace string     `json:"trace,omitempty"` // the traceparent of what made the change
	Life  uint64     `json:"life,omitempty"`
}

func encodeRecord(h *header, t *task.Task) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, h.Seq, 10)
	dst = append(dst, `,"state":`...)
	dst = task.AppendString(dst, string(h.State))
	dst = append(dst, `,"at":`...)
	dst = task.AppendTime(dst, h.At)
	if h.Trace != "" {
		dst = append(dst, `,"trace":`...)
		dst = task.AppendString(dst, h.Trace)
	}
	if h.Life > 0 {
		dst = append(dst, `,"life":`...)
		dst = strconv.AppendUint(dst, h.Life, 10)
	}
	dst = append(dst, '}', '\n')
	bare := *t
	bare.MessageHistory, bare.StatusHistory = nil, nil
	return task.AppendTask(dst, &bare)
}

// decodeRecord reads what encodeRecord wrote.
func decodeRecord(data []byte) (h header, t task.Task, err error) {
	head, body, found := bytes.Cut(data, []byte{'\n'})
	if !found {
		return h, t, errors.New("notify: decoding a record of an outbox: it has one line only")
	}
	if err = json.Unmarshal(head, &h); err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err != nil {
		return h, t, fmt.Errorf("notify: decoding a record of an outbox: %w", err)
	}
	return h, t, nil
}
