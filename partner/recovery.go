// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// The delay before the engine retries a write refused by the store. It doubles each time.
const (
	retryFirst = time.Second
	retryMax   = 30 * time.Second
)

// retryStore calls f until f reports done, or ctx ends. Between two calls it waits for a delay, or until the store can
// be written again.
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

// recoverReopened resumes the turns ended by a failing store, each time the store can be written again, until the
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
		e.spawn(func(context.Context) {
			for name, n := range e.recoverAll(e.unfinished) {
				if p := e.current(name); p != nil {
					p.Log.Info("unfinished tasks are resumed", "tasks", n)
				}
			}
		})
	}
}

// unfinished yields the logs of all tasks not ended.
func (e *Engine) unfinished() iter.Seq2[replay.DueLog, error] {
	return e.store.Due(e.base, logname.Task, replay.Recover, replay.EndOfTime)
}

// maxRemembered bounds the number of unfinished tasks remembered by an engine for Partners not registered yet. If there
// are more, the store is scanned for each Partner.
const maxRemembered = 1 << 16

// countUnfinished counts the store's unfinished tasks, and remembers them. On began it sends nil when it sees them as
// they are now, or the error if it cannot. If the store fails later, it begins again.
func (e *Engine) countUnfinished(began chan<- error) {
	first := true
	e.retryStore(e.base, func() (done bool) {
		e.open.begin()
		all := found{logs: make(map[string][]replay.DueLog), registered: make(map[string]bool)}
		counts, logs := make(map[string]int64), make(map[uint64]struct{})
		for due, err := range e.unfinished() {
			if first {
				first = false
				began <- err
				done = err != nil // the engine is not opened
			}
			if err != nil {
				if !done {
					e.open.fail()
				}
				return done || errors.Is(err, replay.ErrClosed)
			}
			counts[logname.Owner(due.Log)]++
			logs[e.states.hash(due.Log)] = struct{}{}
			all.remember(due)
		}
		if first {
			began <- nil
		}
		e.mu.Lock()
		e.found = all
		e.mu.Unlock()
		e.states.finish(logs)
		e.open.finish(counts)
		return true
	})
}

// found holds the store's unfinished tasks at the opening of the engine. So the store is scanned once, not again for
// each registered Partner.
type found struct {
	logs       map[string][]replay.DueLog // by the name of the Partner; nil if there are too many
	n          int
	registered map[string]bool // the names registered so far
}

// remember adds a task.
func (f *found) remember(due replay.DueLog) {
	if f.n++; f.n > maxRemembered {
		f.logs = nil
	}
	if f.logs != nil {
		name, _, _ := logname.Split(due.Log)
		f.logs[name] = append(f.logs[name], due)
	}
}

// take returns the tasks of a Partner registered for the first time. It reports false if the store must be scanned for
// them.
func (f *found) take(name string) (logs []replay.DueLog, ok bool) {
	if f.logs == nil || f.registered[name] {
		return nil, false
	}
	f.registered[name] = true
	logs = f.logs[name]
	delete(f.logs, name)
	return logs, true
}

// recoverPartner resumes, in the background, the turns of a Partner without a run. e.mu is held.
func (e *Engine) recoverPartner(p *Partner) {
	name := p.Name
	e.work.Go(func() {
		select {
		case <-e.base.Done():
			return
		case <-e.open.counted:
		}
		e.mu.Lock()
		logs, ok := e.found.take(name)
		e.mu.Unlock()
		if ok && len(logs) == 0 {
			p.recovered(0)
			return
		}
		prefix := logname.OfPartner(name)
		resumed := e.recoverAll(func() iter.Seq2[replay.DueLog, error] {
			return func(yield func(replay.DueLog, error) bool) {
				for _, due := range logs {
					if !yield(due, nil) {
						return
					}
				}
				if ok {
					return
				}
				for due, err := range e.unfinished() {
					if (err != nil || strings.HasPrefix(due.Log, prefix)) && !yield(due, err) {
						return
					}
				}
			}
		})
		if e.base.Err() == nil {
			p.recovered(resumed[name])
		}
	})
}

// recovered calls Recovered.
func (p *Partner) recovered(turns int) {
	if p.Recovered != nil {
		p.Recovered(turns)
	}
}

// recoverAttempts is the number of attempts to read an unreadable task, while the store can be used, before it is left.
const recoverAttempts = 8

// recoverAll resumes the turns without a run, in the logs yielded by unfinished: an earlier process left them
// unfinished, or a failing store ended them. It returns the numbers of resumed turns by the names of their Partners.
func (e *Engine) recoverAll(unfinished func() iter.Seq2[replay.DueLog, error]) (resumed map[string]int) {
	failed, attempt := false, 0
	resumed = make(map[string]int)
	e.retryStore(e.base, func() bool {
		attempt++
		err := e.recoverOnce(unfinished(), resumed, attempt >= recoverAttempts)
		if err == nil || errors.Is(err, replay.ErrClosed) || e.base.Err() != nil {
			return true
		}
		if errors.Is(err, replay.ErrUnavailable) {
			attempt = 0
		}
		logger := e.logger()
		if logger != nil && !failed {
			logger.Error("unfinished tasks cannot be resumed; trying again", "error", err)
			failed = true
		}
		return logger == nil // there is no Partner to resume them for
	})
	return resumed
}

// Millions of tasks may wait for their Leader, and hardly any of them is to be resumed. So the search rests after each
// batch of them, for recoverPause times the duration of the batch.
const (
	recoverBatch = 256
	recoverPause = 3
)

// recoverOnce is one attempt of recoverAll. It adds to resumed. With last, it leaves tasks it cannot read although the
// store can be used.
func (e *Engine) recoverOnce(unfinished iter.Seq2[replay.DueLog, error], resumed map[string]int, last bool) error {
	var group sync.WaitGroup
	defer group.Wait()
	var mu sync.Mutex
	var failure error
	slots := make(chan struct{}, concurrency)
	began, waiting := time.Now(), 0
	for due, err := range unfinished {
		if err != nil {
			return err
		}
		if !due.At.Equal(replay.Recover) {
			if waiting++; waiting%recoverBatch == 0 {
				group.Wait()
				select {
				case <-time.After(recoverPause * time.Since(began)):
				case <-e.base.Done():
				}
				began = time.Now()
			}
		}
		name, leader, id := logname.Split(due.Log)
		p := e.current(name)
		if p == nil {
			continue
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ok, err := e.recoverTask(p, due)
			if errors.Is(err, errDamaged) || err != nil && last && !isPassing(err) {
				// What to do: see docs/operations.md#a-damaged-store.
				p.Log.Error(`an unfinished task cannot be resumed; run "caddy aip store verify"`,
					"task", id, "leader", leader, "error", err)
				err = nil
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
			}
			if ok {
				resumed[name]++
			}
		})
	}
	group.Wait()
	return failure
}

// recoverTask resumes the turn of a task without a run, if its agent may be working on it, and reports whether it did.
func (e *Engine) recoverTask(p *Partner, w replay.DueLog) (resumed bool, _ error) {
	if !w.At.Equal(replay.Recover) { // the task waits for its Leader, and its agent mostly does, too
		head, err := e.waitingHead(w.Log)
		switch {
		case errors.Is(err, replay.ErrNotFound):
			return false, nil
		case err != nil:
			return false, err
		}
		if s, resumes := stateIn(head.Lists); s != task.None && !resumes {
			return false, nil
		}
	}
	tk := e.acquire(w.Log)
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	if err := tk.load(e.base); err != nil {
		return false, err
	}
	return tk.resumeTurn(p), nil
}

// waitingHead returns the head of the log of a task waiting for its Leader, and counts the task.
func (e *Engine) waitingHead(log string) (replay.Head, error) {
	if e.states.complete.Load() {
		return e.store.Head(e.base, log)
	}
	tk := e.acquire(log)
	defer tk.release()
	tk.mu.Lock()
	defer tk.mu.Unlock()
	head, err := e.store.Head(e.base, log)
	if s, _ := stateIn(head.Lists); err == nil && s != task.None {
		e.states.see(log, s)
	}
	return head, err
}

// isTransient reports whether an error is one of the store, and another attempt may not meet it.
func isTransient(err error) bool {
	return errors.Is(err, errStore) && !errors.Is(err, replay.ErrClosed) && !errors.Is(err, errDamaged)
}

// isPassing reports whether an error of the store says nothing of the log read.
func isPassing(err error) bool {
	return errors.Is(err, replay.ErrUnavailable) || errors.Is(err, replay.ErrClosed) ||
		errors.Is(err, context.Canceled)
}

// persist calls write until the store takes its append. So no report of the agent is lost while the store is full or
// fails. tk.mu is held while write runs, but not between two calls, so write must check whether its run still counts.
// The callers waiting for the run are answered with the error at once.
func (tk *activeTask) persist(ctx context.Context, r *run, write func() error) error {
	var err error
	failed := false
	tk.engine.retryStore(ctx, func() bool {
		tk.mu.Lock()
		defer tk.mu.Unlock()
		if err = replay.RetryConflict(write); !isTransient(err) {
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
