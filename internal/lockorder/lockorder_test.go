// SPDX-License-Identifier: Apache-2.0

package lockorder

import (
	"strings"
	"sync"
	"testing"
)

func init() { Checked = true }

// TestOrder: locks taken in another order than theirs panic, though no other goroutine holds one.
func TestOrder(t *testing.T) {
	var shard Mutex[Shard]
	var one, other Mutex[Task]
	var cluster Mutex[Cluster]
	for _, test := range []struct {
		name   string
		locks  []sync.Locker
		panics string
	}{
		{"the order", []sync.Locker{&shard, &one, &cluster}, ""},
		{"levels left out", []sync.Locker{&shard, &cluster}, ""},
		{"back", []sync.Locker{&cluster, &one}, "the lock of a task is asked for under that of a cluster"},
		{"back over one", []sync.Locker{&one, &cluster, &shard}, "the lock of a shard is asked for under that of a task"},
		{"two of one level", []sync.Locker{&one, &other}, "the lock of a task is asked for under that of a task"},
		{"the same twice", []sync.Locker{&one, &one}, "the lock of a task is asked for under that of a task"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := lock(test.locks)
			if test.panics == "" && got != "" || !strings.HasSuffix(got, test.panics) {
				t.Errorf("it panics with %q, want %q", got, test.panics)
			}
		})
	}
	var work sync.WaitGroup
	cluster.Lock()
	work.Go(func() { // locks of another goroutine do not matter
		if got := lock([]sync.Locker{&one}); got != "" {
			t.Error(got)
		}
	})
	work.Wait()
	if cluster.TryLock() {
		t.Error("a lock that is held is taken")
	}
	cluster.Unlock()
	if !one.TryLock() {
		t.Error("a lock that nobody holds is not taken")
	}
	if got, want := lock([]sync.Locker{&other}), "of a task"; !strings.HasSuffix(got, want) {
		t.Errorf("under it, another one panics with %q", got)
	}
	one.Unlock()
	if len(held.by) != 0 {
		t.Errorf("these are still held: %v", held.by)
	}
}

// lock takes locks one after the other, and releases them. It returns the value of its panic.
func lock(all []sync.Locker) (panicked string) {
	defer func() {
		if what := recover(); what != nil {
			panicked = what.(string)
		}
	}()
	for _, l := range all {
		l.Lock()
		defer l.Unlock()
	}
	return ""
}
