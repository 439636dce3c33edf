// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// line is a budget, and the leases waiting for some of it.
type line struct {
	t      *testing.T
	budget Budget
	leases map[string]*Lease

	mu   sync.Mutex
	said []string // the events, in order
}

// wait has a lease wait for up to a second, in a goroutine of its own. Its name begins with its Leader's, one letter.
func (l *line) wait(ctx context.Context, name string, n int64) {
	lease := l.budget.Lease(name[:1])
	l.leases[name] = &lease
	go func() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := lease.Wait(ctx, n)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.said = append(l.said, fmt.Sprint(name, ": ", err))
		} else {
			l.said = append(l.said, name)
		}
	}()
	synctest.Wait() // it stands in the line before the next one comes
}

// want checks the events since the last check.
func (l *line) want(step string, said ...string) {
	l.t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if diff := cmp.Diff(said, l.said); diff != "" {
		l.t.Errorf("%s: %s", step, diff)
	}
	l.said = nil
}

const unit = 2 * Free

func testLine(t *testing.T, total, perLeader int64, test func(t *testing.T, l *line)) {
	bubble.Test(t, func(t *testing.T) {
		var counter Counter
		l := &line{t: t, leases: make(map[string]*Lease),
			budget: Budget{Counter: &counter, Limits: Limits{Total: total * unit, PerLeader: perLeader * unit}}}
		test(t, l)
		time.Sleep(time.Minute) // every wait is over
		for _, lease := range l.leases {
			lease.Release()
		}
		if counter.Total() != 0 || len(counter.held) != 0 || len(counter.lines) != 0 {
			t.Errorf("in the end %d are held, by %v, and %d Leaders wait", counter.Total(), counter.held, len(counter.lines))
		}
	})
}

// TestWaitInOrder: the leases of one Leader are served as they came, a large one before a later small one.
func TestWaitInOrder(t *testing.T) {
	testLine(t, 8, 4, func(t *testing.T, l *line) {
		l.wait(t.Context(), "a1", 3*unit)
		l.wait(t.Context(), "a2", 3*unit)
		l.wait(t.Context(), "a3", unit)
		l.want("at once", "a1")
		late := l.budget.Lease("a")
		if err := late.Hold(unit); err == nil {
			t.Error("the last lease was served first")
		}
		l.leases["a1"].Hold(unit + unit/2)
		l.want("too little is given back")
		l.leases["a1"].Hold(unit)
		l.want("enough is given back", "a2")
		l.leases["a1"].Release()
		l.want("and more", "a3")
		if err := late.Hold(Free); err != nil {
			t.Errorf("what is not counted: %v", err)
		}
	})
}

// TestWaitLimit: a waiting lease is refused when its time is over or its context ends, and delays no other then.
func TestWaitLimit(t *testing.T) {
	testLine(t, 8, 4, func(t *testing.T, l *line) {
		leaving, leave := context.WithCancel(t.Context())
		l.wait(t.Context(), "a1", 3*unit)
		l.wait(leaving, "a2", 2*unit)
		l.wait(t.Context(), "a3", unit)
		l.want("at once", "a1")
		leave()
		l.want("when the second has left", "a2: limit: one Leader may hold no more than 262144", "a3")
		l.wait(t.Context(), "a4", 2*unit)
		time.Sleep(999 * time.Millisecond)
		l.want("before its time is over")
		time.Sleep(time.Millisecond)
		l.want("then", "a4: limit: one Leader may hold no more than 262144")
		l.wait(t.Context(), "a5", 99*unit)
		l.leases["a1"].Release()
		l.leases["a3"].Release()
		l.want("more than the limit can be had when nothing else is held", "a5")
	})
}

// TestWaitOfTwoLeaders: a Leader waits for another only if the total is reached, and then in the order of arrival.
func TestWaitOfTwoLeaders(t *testing.T) {
	testLine(t, 6, 4, func(t *testing.T, l *line) {
		l.wait(t.Context(), "a1", 4*unit)
		l.wait(t.Context(), "a2", 4*unit)
		l.wait(t.Context(), "b1", 2*unit)
		l.want("another Leader goes past one whose own limit is reached", "a1", "b1")
		l.wait(t.Context(), "b2", 2*unit)
		l.wait(t.Context(), "c1", unit)
		l.want("the total is reached")
		l.leases["a1"].Hold(3 * unit)
		l.want("one that needs more came first")
		l.leases["a1"].Hold(2 * unit)
		l.want("and is served first", "b2")
		l.leases["b1"].Release()
		l.want("the next that its Leader's limit does not stop", "c1")
	})
}
