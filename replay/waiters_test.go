// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWaiters adds, removes and calls functions: each is called once, and may add itself again.
func TestWaiters(t *testing.T) {
	var ws Waiters
	var got []string
	var waiters [5]Waiter
	want := func(want ...string) {
		t.Helper()
		got = nil
		ws.Call()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("called (-want +got):\n%s", diff)
		}
	}
	add := func(i int) { ws.Add(&waiters[i], func() { got = append(got, fmt.Sprint(i)) }) }
	if waiters[0].Remove() {
		t.Error("what was never added was removed")
	}
	want()
	for i := range waiters {
		add(i)
	}
	if !waiters[1].Remove() || waiters[1].Remove() || !waiters[4].Remove() {
		t.Error("what was added is not removed once")
	}
	want("0", "3", "2")
	if waiters[0].Remove() {
		t.Error("what was called is removed")
	}
	want()
	ws.Add(&waiters[2], func() { add(2) })
	want()
	want("2")
	f := func() {}
	if n := testing.AllocsPerRun(100, func() {
		for i := range waiters {
			ws.Add(&waiters[i], f)
		}
		ws.Call()
	}); n > 1 { // the race detector has pools forget some of their content
		t.Errorf("%v allocations for each call", n)
	}
}

// TestAlone: a function knows whether an append has called no other one.
func TestAlone(t *testing.T) {
	var ws Waiters
	var waiters [2]Waiter
	for _, c := range []struct {
		n    int
		call func()
		want bool
	}{{1, ws.Appended, true}, {2, ws.Appended, false}, {1, ws.Call, false}, {1, ws.Appended, true}} {
		called := 0
		for i := range c.n {
			ws.Add(&waiters[i], func() {
				if called++; waiters[i].Alone() != c.want {
					t.Errorf("of %d functions, Alone of one is %t", c.n, !c.want)
				}
			})
		}
		if c.call(); called != c.n {
			t.Errorf("%d functions were called, want %d", called, c.n)
		}
	}
}
