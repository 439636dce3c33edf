// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLend: a waiting lease gets bytes lent by others for a while, from the first to lend first, and no more than it
// lacks; from other Leaders, only if the total is reached.
func TestLend(t *testing.T) {
	testLine(t, 8, 4, func(t *testing.T, l *line) {
		lend := func(name string) {
			lease := l.leases[name]
			lease.Lend(func() {
				l.said = append(l.said, name+" is asked")
				go func() { // the owner, a little later
					lease.TakeBack()
					lease.Release()
				}()
			})
		}
		wait := func(name string, n int64) { // for longer than l.wait does
			lease := l.budget.Lease(name[:1])
			l.leases[name] = &lease
			go func() {
				err := lease.Wait(context.Background(), n)
				l.mu.Lock()
				defer l.mu.Unlock()
				if err == nil {
					l.said = append(l.said, name)
				}
			}()
			synctest.Wait()
		}
		for _, name := range []string{"a1", "a2", "a3", "b1"} {
			wait(name, unit)
		}
		l.want("at once", "a1", "a2", "a3", "b1")
		lend("b1")
		lend("a2")
		time.Sleep(time.Minute)
		lend("a1")
		l.want("while nothing waits")
		wait("a4", 2*unit)
		l.want("the one that was lent first is asked", "a2 is asked", "a4")
		wait("a5", 2*unit)
		time.Sleep(lendFor - time.Millisecond)
		l.want("one that has just been lent is not asked")
		l.leases["a1"].TakeBack()
		time.Sleep(time.Minute)
		l.want("one that was taken back is not asked")
		lend("a1")
		lend("a3")
		time.Sleep(time.Minute)
		l.want("two are asked for what one lacks", "a1 is asked", "a3 is asked", "a5")
		wait("c1", 3*unit)
		wait("d1", unit)
		time.Sleep(time.Minute)
		l.want("of another Leader, where the total is reached", "c1", "b1 is asked", "d1")
	})
}

// TestRenew: a lease is not asked back while the other party takes part after part, but is when it has stopped.
func TestRenew(t *testing.T) {
	testLine(t, 8, 2, func(t *testing.T, l *line) {
		l.wait(t.Context(), "a1", 2*unit)
		lease := l.leases["a1"]
		lease.Renew() // is nothing to a lease not lent
		lease.Lend(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.said = append(l.said, "a1 is asked")
			go func() {
				lease.TakeBack()
				lease.Release()
			}()
		})
		waits := l.budget.Lease("a")
		l.leases["a2"] = &waits
		var all sync.WaitGroup
		all.Go(func() {
			if err := waits.Wait(context.Background(), unit); err != nil {
				t.Error(err)
			}
		})
		for range 10 {
			time.Sleep(lendFor - time.Millisecond)
			lease.Renew()
		}
		l.want("at once, and while it is renewed", "a1")
		time.Sleep(lendFor)
		all.Wait()
		l.want("when it is not renewed", "a1 is asked")
	})
}

// TestLendNothing: uncounted bytes are not asked for.
func TestLendNothing(t *testing.T) {
	testLine(t, 1, 1, func(t *testing.T, l *line) {
		small := l.budget.Lease("a")
		small.Take(Free)
		small.Lend(func() { t.Error("what is not counted is asked for") })
		l.wait(t.Context(), "a1", unit)
		l.wait(t.Context(), "a2", unit)
		time.Sleep(time.Minute)
		small.TakeBack()
		l.want("the second has waited in vain", "a1", "a2: limit: one Leader may hold no more than 65536")
	})
}
