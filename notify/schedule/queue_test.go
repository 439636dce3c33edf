// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/notify/delivery"
)

var delivered = delivery.Outcome{Result: delivery.Delivered, Status: 200}

// TestQueuesShareSlots: a Queue has all slots of the process while the others are idle, and none has slots of its own.
func TestQueuesShareSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const slots = 8
		s, goOn := New(Limits{}), make(chan struct{})
		var queues []*recorder
		for range 4 {
			q := &recorder{Queue: s.Open(Config{Run: func(*Attempt) { <-goOn }, Leave: func(time.Time) {},
				Wake: func(time.Time) {}, Log: func() *slog.Logger { return slog.New(slog.DiscardHandler) }})}
			defer q.Close()
			q.Start(slots)
			queues = append(queues, q)
		}
		for i, q := range queues {
			for j := range 20 {
				q.offer(fmt.Sprint("leader", i, j), fmt.Sprint("webhook", i, j))
			}
			if n := s.Counts().InFlight; n != slots/2 { // the other half is for proven endpoints
				t.Errorf("%d attempts are in flight when %d Queues have deliveries", n, i+1)
			}
		}
		close(goOn)
	})
}

// TestQueueCloses: the waiting deliveries of a Queue leave memory when it closes, and those of another one stay. The
// knowledge of endpoints outlives both.
func TestQueueCloses(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := New(Limits{})
		a, b := record(s, delivery.Outcome{Result: delivery.Unavailable, Status: 500}), record(s, delivered)
		reopened := make(chan struct{})
		for _, q := range []*recorder{a, b} {
			q.Pause(reopened)
			q.Start(8)
			q.offer("one", "x")
			q.offer("one", "y")
		}
		if n := s.Counts(); n.Ready != 4 || n.Outboxes != 4 || n.Endpoints != 2 {
			t.Errorf("in memory: %+v", n)
		}
		a.Close()
		a.offer("one", "z") // comes late
		if n := s.Counts(); n.Ready != 2 || n.Outboxes != 2 || n.Endpoints != 2 {
			t.Errorf("in memory after one Queue was closed: %+v", n)
		}
		close(reopened)
		b.Resume()
		synctest.Wait()
		slices.Sort(b.attempts)
		if diff := cmp.Diff([]string{"x", "y"}, b.attempts); diff != "" || len(a.attempts) != 0 {
			t.Errorf("%v; attempts (-want +got):\n%s", a.attempts, diff)
		}
		b.Close()
		if diff := cmp.Diff(Counts{Endpoints: 2}, s.Counts()); diff != "" {
			t.Errorf("in memory (-want +got):\n%s", diff)
		}
	})
}

// TestPausedQueue: a paused Queue holds up no other one, even if they have the same endpoint.
func TestPausedQueue(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := New(Limits{})
		paused, other := record(s, delivered), record(s, delivered)
		defer paused.Close()
		defer other.Close()
		reopened := make(chan struct{})
		paused.Pause(reopened)
		paused.Start(8)
		other.Start(8)
		for range 2 {
			paused.offer("one", "x")
			other.offer("one", "x")
			synctest.Wait()
		}
		if len(paused.attempts) != 0 || len(other.attempts) != 2 {
			t.Errorf("%d attempts of the Queue that is paused, and %d of the other", len(paused.attempts), len(other.attempts))
		}
		close(reopened)
		paused.Resume()
		synctest.Wait()
		if len(paused.attempts) != 1 || s.Counts().Ready != 0 {
			t.Errorf("%d attempts after the pause; in memory: %+v", len(paused.attempts), s.Counts())
		}
	})
}

// TestQueuesShareBreakers: an opening breaker holds back a Leader's deliveries of all Queues. The waiting ones leave
// memory, and the store of each is scanned for them. To disable an endpoint concerns one store.
func TestQueuesShareBreakers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := New(Limits{})
		fails, other := record(s, delivery.Outcome{Result: delivery.Unavailable, Status: 500}), record(s, delivered)
		defer fails.Close()
		defer other.Close()
		fails.Start(8)
		other.Start(8)
		reopened := make(chan struct{})
		other.Pause(reopened)
		other.offer("one", "x")
		left := other.left
		for range failuresToOpen {
			fails.offer("one", "x")
			synctest.Wait()
		}
		if n := s.Counts(); n.Ready != 0 || n.Outboxes != 0 || n.Open != 1 || other.left != left+1 {
			t.Errorf("%d scans; in memory: %+v", other.left-left, n)
		}
		now := time.Now()
		held := func(q *recorder, leader, endpoint string) bool { return !q.HoldUntil(leader, endpoint, now).IsZero() }
		if !held(other, "one", "https://x:443") || held(other, "two", "https://x:443") {
			t.Error("the breaker is not that of the Leader in all Queues")
		}
		fails.Disable("https://y:443", now)
		if !held(fails, "one", "https://y:443") || held(other, "one", "https://y:443") {
			t.Error("an endpoint is not disabled for one store")
		}
		if n := len(s.States()); n != 2 {
			t.Errorf("%d endpoints are known", n)
		}
	})
}

// TestQueuesWithoutRoom: all Queues with deliveries left in their stores are woken when there is room.
func TestQueuesWithoutRoom(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, goOn, woken := New(Limits{}), make(chan struct{}), make([]int, 3)
		var queues []*recorder
		for i := range woken {
			r := new(recorder)
			r.Queue = s.Open(Config{
				Run: func(a *Attempt) {
					<-goOn
					r.Report(a, &delivered)
					r.Remove(a.Job)
				},
				Leave: func(time.Time) { r.left++ }, Wake: func(time.Time) { woken[i]++ },
				Log: func() *slog.Logger { return slog.New(slog.DiscardHandler) },
			})
			r.Start(8)
			queues = append(queues, r)
		}
		now := time.Now()
		for n := range 2 + readyUnproven {
			for i, q := range queues {
				q.Offer(fmt.Sprint(i, n), "one", []Due{{Webhook: "w", Endpoint: "https://x:443"}}, now, now)
			}
		}
		for i, q := range queues {
			if q.left == 0 || woken[i] != 0 {
				t.Errorf("Queue %d has left %d deliveries, and was told of room %d times", i, q.left, woken[i])
			}
		}
		queues[0].cancel(goOn)
		synctest.Wait()
		for i, n := range woken[1:] {
			if n == 0 {
				t.Errorf("Queue %d is not told that there is room", i+1)
			}
		}
		for _, q := range queues[1:] {
			q.Close()
		}
		if n := s.Counts(); n.Ready+n.Outboxes+n.InFlight != 0 {
			t.Errorf("in memory: %+v", n)
		}
	})
}

// cancel closes the Queue. Its attempts end then.
func (r *recorder) cancel(attempts chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Close()
	}()
	synctest.Wait()
	close(attempts)
	<-done
}
