// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/notify/delivery"
)

// recorder is a Queue with a record of its requests.
type recorder struct {
	*Queue
	mu       sync.Mutex
	attempts []string // webhooks, in order
	left     int
}

// record returns a Queue of a Scheduler. Its attempts have an outcome at once.
func record(s *Scheduler, outcome delivery.Outcome) *recorder {
	r := new(recorder)
	r.Queue = s.Open(Config{
		Run: func(a *Attempt) {
			r.mu.Lock()
			r.attempts = append(r.attempts, a.Webhook)
			r.mu.Unlock()
			r.Report(a, &outcome)
			r.Remove(a.Job)
		},
		Leave: func(time.Time) { r.left++ }, // under the Scheduler's lock
		Wake:  func(time.Time) {},
		Log:   func() *slog.Logger { return slog.New(slog.DiscardHandler) },
	})
	return r
}

// offer offers the delivery of one webhook, at an endpoint of its own.
func (r *recorder) offer(leader, webhook string) {
	now := time.Now()
	r.Offer("outbox of "+webhook, leader, []Due{{Webhook: webhook, Endpoint: "https://" + webhook + ":443"}}, now, now)
}

// No attempt begins while the Scheduler is paused. Then Leaders take turns: one with many deliveries delays no other
// one.
func TestLeadersTakeTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := record(New(Limits{}), delivery.Outcome{Result: delivery.Delivered, Status: 200})
		defer r.Close()
		reopened := make(chan struct{})
		r.Pause(reopened)
		r.Start(1)
		for i := range 100 {
			r.offer("one", fmt.Sprint("one", i))
		}
		r.offer("two", "two")
		synctest.Wait()
		if len(r.attempts) != 0 {
			t.Errorf("%d attempts while the store is unavailable", len(r.attempts))
		}
		close(reopened)
		r.Resume()
		synctest.Wait()
		if i := slices.Index(r.attempts, "two"); len(r.attempts) != 101 || i < 0 || i > 2 {
			t.Errorf("%d attempts; the other Leader's is number %d", len(r.attempts), i+1)
		}
		if diff := cmp.Diff(Counts{Endpoints: 101}, r.Counts()); diff != "" {
			t.Errorf("in memory (-want +got):\n%s", diff)
		}
	})
}

// An endpoint has a breaker for each Leader, and only open ones are counted.
func TestOpenBreakersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(New(Limits{}), delivery.Outcome{Result: delivery.Unavailable, Status: 500})
		defer r.Close()
		r.Start(1)
		for range failuresToOpen {
			r.offer("one", "a")
			synctest.Wait()
			r.offer("two", "a")
			synctest.Wait()
		}
		r.offer("one", "b")
		synctest.Wait()
		if n := r.Counts().Open; n != 2 {
			t.Errorf("%d breakers are open", n)
		}
		time.Sleep(2 * firstOpen)
		if n := r.Counts().Open; n != 0 {
			t.Errorf("%d breakers are open after their time", n)
		}
	})
}

// An outbox in quarantine is neither attempted nor read, until its time is over.
func TestQuarantine(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := record(New(Limits{}), delivery.Outcome{Result: delivery.Delivered, Status: 200})
		defer r.Close()
		r.Start(8)
		r.Quarantine("outbox of a", time.Now())
		before := r.left
		r.offer("one", "a")
		r.offer("one", "b")
		synctest.Wait()
		if diff := cmp.Diff([]string{"b"}, r.attempts); diff != "" || r.left != before+1 {
			t.Errorf("%d outboxes were left; attempts (-want +got):\n%s", r.left-before, diff)
		}
		if !r.Skip("outbox of a", time.Now(), time.Now()) {
			t.Error("a scan reads an outbox in quarantine")
		}
		time.Sleep(quarantineFor)
		if r.Skip("outbox of a", time.Now(), time.Now()) {
			t.Error("a scan skips an outbox after its quarantine")
		}
		r.offer("one", "a")
		synctest.Wait()
		if diff := cmp.Diff([]string{"b", "a"}, r.attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
}

// The breaker of an endpoint holds back one Leader's deliveries to it, and no other Leader's. A disabled endpoint holds
// back all of them.
func TestHoldUntil(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := record(New(Limits{}), delivery.Outcome{Result: delivery.Unavailable, Status: 500})
		defer r.Close()
		r.Start(8)
		for range failuresToOpen {
			r.offer("one", "a")
			synctest.Wait()
		}
		now := time.Now()
		held := func(leader string) bool { return !r.HoldUntil(leader, "https://a:443", now).IsZero() }
		if !held("one") || held("two") {
			t.Errorf("held: %v, and for another Leader: %v", held("one"), held("two"))
		}
		r.Disable("https://a:443", now)
		since, disabled := r.Disabled("https://a:443")
		if !held("one") || !held("two") || !disabled || !since.Equal(now) {
			t.Error("a disabled endpoint holds back nothing")
		}
		r.Enable("https://a:443")
		if held("one") || held("two") {
			t.Error("an endpoint that was enabled holds back deliveries")
		}
	})
}
