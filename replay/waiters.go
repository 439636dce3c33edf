// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"sync"
	"sync/atomic"
)

// Waiters are functions called once, at the next change of something. Drivers implement Reader.Wake with them: a reader
// adds its function and then looks whether there is anything to read, a writer makes its change visible and then calls
// Call, so one of both sees the other. The zero value has no functions. Its methods, and those of its Waiters, may be
// called by any number of goroutines at once.
type Waiters struct {
	mu  sync.Mutex
	all []*Waiter
}

// Waiter is the place of one function in Waiters. It is in at most one of them.
type Waiter struct {
	in *Waiters // the one it was added to last; only the owner of the Waiter uses this field
	f  func()   // nil once it has been called or removed; guarded by in.mu
	at int      // its index in in.all; likewise

	alone atomic.Bool // see Alone
}

// Alone reports whether the function of w was called by Appended as the only one. It is for that function.
func (w *Waiter) Alone() bool { return w.alone.Load() }

// Add has f called at the next change. w must not be in any Waiters.
func (ws *Waiters) Add(w *Waiter, f func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.in, w.f, w.at = ws, f, len(ws.all)
	ws.all = append(ws.all, w)
}

// Remove takes the function of w back, and reports whether there was one not called yet. Only the goroutine calling Add
// may call it.
func (w *Waiter) Remove() bool {
	if w.in == nil {
		return false
	}
	w.in.mu.Lock()
	defer w.in.mu.Unlock()
	if w.f == nil {
		return false
	}
	all := w.in.all
	last := len(all) - 1
	all[w.at] = all[last]
	all[w.at].at = w.at
	all[last] = nil
	w.in.all = all[:last]
	w.f = nil
	return true
}

// calls has slices of functions for Call.
var calls = sync.Pool{New: func() any { return new([]func()) }}

// Appended is Call for the goroutine having appended records: a function called alone may take a little time.
func (ws *Waiters) Appended() { ws.call(true) }

// Call calls the functions, outside of the lock, and forgets them.
func (ws *Waiters) Call() { ws.call(false) }

func (ws *Waiters) call(appended bool) {
	ws.mu.Lock()
	if len(ws.all) == 0 {
		ws.mu.Unlock()
		return
	}
	list := calls.Get().(*[]func())
	for i, w := range ws.all {
		*list = append(*list, w.f)
		w.alone.Store(appended && len(ws.all) == 1)
		w.f = nil
		ws.all[i] = nil
	}
	ws.all = ws.all[:0]
	ws.mu.Unlock()
	for _, f := range *list {
		f()
	}
	clear(*list)
	*list = (*list)[:0]
	calls.Put(list)
}
