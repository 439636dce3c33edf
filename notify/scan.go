// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	scanPause = 50 * time.Millisecond // between two scans, at least
	soon      = time.Second
)

// scanner finds the due outboxes in the store, and reviews them: their due deliveries are offered to the scheduler. It
// takes no more than a tenth of the time: deliveries becoming due while there is room are offered without a scan.
type scanner struct {
	outboxes *outboxes
	queue    *schedule.Queue
	due      *replay.DueScanner
	log      func() *slog.Logger
}

// run scans whenever a scan is due. It returns when ctx ends.
func (s *scanner) run(ctx context.Context) {
	for s.due.Wait(ctx) {
		began := time.Now()
		complete, err := s.due.Scan(ctx, 1, func(due replay.DueLog, now time.Time) error {
			return s.visit(ctx, due, now)
		})
		if err != nil && ctx.Err() == nil {
			background(s.log(), err).ErrorContext(ctx, "outboxes that are due cannot be read; trying again", "error", err)
		}
		if complete {
			s.queue.NothingLeft()
		}
		if !sleep(ctx, max(9*time.Since(began), scanPause)) {
			return
		}
	}
}

// visit reviews a due outbox. A damaged one goes into quarantine, so it holds up no other one.
func (s *scanner) visit(ctx context.Context, due replay.DueLog, now time.Time) error {
	if s.queue.Skip(due.Log, due.At, now) {
		return nil
	}
	err := s.outboxes.review(ctx, due.Log)
	if err == nil || ctx.Err() != nil || errors.Is(err, replay.ErrUnavailable) {
		return err
	}
	s.log().ErrorContext(ctx, "an outbox cannot be read; trying again", "error", err)
	s.queue.Quarantine(due.Log, now)
	return nil
}

// sleep waits, and reports false when ctx ends.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
