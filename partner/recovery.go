// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// How long the engine waits before it tries again what the store refused: twice as long each time.
const (
	retryFirst = time.Second
	retryMax   = 30 * time.Second
)

// retry calls f until it reports that it is done, or ctx ends. Between two calls it waits, until the store can be
// written again at the latest.
func (e *Engine) retryStore(ctx context.Context, f func() (done bool)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		reopened := e.store.Reopened()
		if f() {
			return
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-reopened:
		case <-timer.C:
		}
	}
}

// recoverReopened makes good, each time that the store can be written again, what could not be done before, until the
// engine closes.
func (e *Engine) recoverReopened() {
	for reopened := e.store.Reopened(); reopened != nil; {
		select {
		case <-e.base.Done():
			return
		case <-reopened:
		}
		reopened = e.store.Reopened()
		e.deadlines.ScanBy(e.wall())
		e.mu.RLock()
		for name := range e.partners {
			if e.base.Err() == nil {
				e.work.Go(func() { e.recoverAll(name) })
			}
		}
		e.mu.RUnlock()
	}
}

// recover resumes the turns of a Partner that no run works on: those that an earlier process left unfinished, or that a
// failing store ended.
func (e *Engine) recoverAll(name string) {
	failed := false
	e.retryStore(e.base, func() bool {
		err := e.recoverOnce(name)
		if p := e.current(name); err != nil && p != nil && !failed && e.base.Err() == nil {
			p.Log.Error("unfinished tasks cannot be resumed; trying again", "error", err)
			failed = true
		}
		return err == nil || errors.Is(err, replay.ErrClosed) || e.current(name) == nil
	})
}

func (e *Engine) recoverOnce(name string) error {
	var group sync.WaitGroup
	defer group.Wait()
	var failure atomic.Pointer[error]
	var resumed atomic.Int64
	slots := make(chan struct{}, concurrency)
	prefix := logname.OfPartner(name)
	for w, err := range e.store.Due(e.base, logname.Task, replay.Recover, replay.EndOfTime) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(w.Log, prefix) {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			adopted, err := e.recoverTask(w)
			if err != nil {
				failure.Store(&err)
			}
			if adopted {
				resumed.Add(1)
			}
		})
	}
	group.Wait()
	if p := e.current(name); p != nil && resumed.Load() > 0 {
		p.Log.Info("unfinished tasks are picked up", "tasks", resumed.Load())
	}
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// resume goes on with the turn of a task that no run works on, if its agent may be at work. It reports whether it did.
func (e *Engine) recoverTask(w replay.DueLog) (adopted bool, _ error) {
	if !w.At.Equal(replay.Recover) {
		// The task waits for its Leader, and mostly its agent does, too.
		head, err := e.store.Head(e.base, w.Log)
		if errors.Is(err, replay.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var n metadata
		if !bytes.Contains(head.Metadata, []byte(`"open":true`)) || json.Unmarshal(head.Metadata, &n) != nil || !n.SelfResuming {
			return false, nil
		}
	}
	tk := e.acquire(w.Log)
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	err := tk.load(e.base)
	switch {
	case errors.Is(err, errDamaged):
		tk.logger().Error("an unfinished task cannot be resumed", "error", err)
		return false, nil
	case err != nil:
		return false, err
	}
	name, _, _ := logname.Split(w.Log)
	if p := e.current(name); p != nil {
		adopted = tk.resumeTurn(p)
	}
	return adopted, nil
}

// mayPass reports whether an error is one of the store's that another attempt may not meet.
func isTransient(err error) bool {
	return errors.Is(err, errStore) && !errors.Is(err, replay.ErrClosed) && !errors.Is(err, errDamaged)
}

// persist calls write until the store takes what it appends, so that nothing that the agent reported is lost while the
// store is full or fails. tk.mu is held while write runs, and not between two calls; what the run is for may have ended
// in the meantime, which write must look at. The callers that wait for the run are answered with the error at once.
func (tk *activeTask) persist(ctx context.Context, r *run, write func() error) error {
	var err error
	failed := false
	tk.engine.retryStore(ctx, func() bool {
		tk.mu.Lock()
		defer tk.mu.Unlock()
		if err = write(); !isTransient(err) {
			r.err = nil
			return true
		}
		if !failed && task.KindOf(err) != task.StoreUnavailable {
			tk.logger().LogAttrs(ctx, slog.LevelError, "a task cannot be stored; trying again", slog.Any("error", err))
		}
		failed = true
		r.err = err
		r.settle()
		return false
	})
	return err
}
