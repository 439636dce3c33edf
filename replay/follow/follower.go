// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Follower reads the log of one task from a position on: the stored events, and then new ones. Unlike a replay.Reader
// it goes on if the next events are no longer kept, or were lost with the power: see Steps. At rest it is a position
// and nothing else. One goroutine at a time uses a Follower.
type Follower struct {
	store replay.Logs
	log   string
	folds bool

	at     Position
	fold   *task.Fold    // nil if it must be made again
	reader replay.Reader // nil at rest
}

// New returns a follower of a log, with the log read up to a position. If it folds, it has the Task at each step, and
// reads the log from its beginning when it wakes up.
func New(store replay.Logs, log string, from Position, folds bool) *Follower {
	return &Follower{store: store, log: log, at: from, folds: folds}
}

// At returns the position behind the last step taken.
func (f *Follower) At() Position { return f.at }

// Next returns the next steps, and whether more follow at once. The caller takes them, one after the other; steps not
// taken are returned again after Rest. No steps, no more and a nil error mean everything was read. The error is io.EOF
// at the end of an ended log, or one of replay.Reader.Next.
func (f *Follower) Next(ctx context.Context) (steps []Step, more bool, err error) {
	if f.reader == nil || f.folds && f.fold == nil {
		if f.folds && f.at.Seq > 0 {
			return f.load(ctx)
		}
		f.Rest()
		f.fold, f.reader = new(task.Fold), f.store.Read(f.log, f.at.Seq)
	}
	records, more, err := f.reader.Next(ctx, nil)
	if isGone(err) {
		return f.load(ctx)
	}
	if err != nil {
		return nil, false, err
	}
	at := f.at
	for _, r := range records {
		s, err := at.step(r)
		if err != nil {
			return nil, false, err
		}
		at = s.After
		steps = append(steps, s)
	}
	return steps, more || len(records) > 0, nil
}

// isGone reports whether the next event of a log is no longer kept, or was lost.
func isGone(err error) bool {
	_, compacted := errors.AsType[*replay.CompactedError](err)
	_, future := errors.AsType[*replay.FutureError](err)
	return compacted || future
}

// load reads the whole log, and continues at its end.
func (f *Follower) load(ctx context.Context) (steps []Step, more bool, err error) {
	f.Rest()
	head, snapshot, records, err := f.store.Load(ctx, f.log)
	if err != nil {
		return nil, false, err
	}
	f.at.Seq = min(f.at.Seq, head.Last) // events after it were lost with the power
	fold := new(task.Fold)
	for s, err := range Steps(f.at, head, snapshot, records) {
		switch {
		case err != nil:
			return nil, false, err
		case s.Seq > f.at.Seq:
			steps = append(steps, s)
		case f.folds:
			fold.Apply(s.Event)
		}
	}
	f.fold, f.reader = fold, f.store.Read(f.log, head.Last)
	return steps, true, nil
}

// Take moves the position behind a step, and, if the follower folds, returns the Task at the step.
func (f *Follower) Take(s *Step) *task.Task {
	f.at = s.After
	if !f.folds {
		return nil
	}
	f.fold.Apply(s.Event)
	return f.fold.Task()
}

// Task returns the task as it is at the position; nil if the follower must read first.
func (f *Follower) Task() *task.Task {
	if f.fold == nil || !f.folds {
		return nil
	}
	return f.fold.Task()
}

// Wake has f called when there is something to read, as replay.Reader.Wake does. A follower with everything read calls
// it. While the task waits for its Leader, the fold is not kept.
func (f *Follower) Wake(wake func()) {
	if f.at.State.Settled() {
		f.fold = nil
	}
	f.reader.Wake(wake)
}

// Rest drops all but the position.
func (f *Follower) Rest() {
	if f.reader != nil {
		f.reader.Close()
	}
	f.fold, f.reader = nil, nil
}

// Rewind has a follower at rest read again from a position.
func (f *Follower) Rewind(to Position) {
	f.Rest()
	f.at = to
}

// Follow yields the steps of a log behind a position, and waits for more until the log has ended, without an error, or
// ctx is done. It does not fold.
func Follow(ctx context.Context, store replay.Logs, log string, from Position) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		f := New(store, log, from, false)
		defer f.Rest()
		news := make(chan struct{}, 1)
		for {
			steps, more, err := f.Next(ctx)
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(Step{}, err)
				return
			}
			for i := range steps {
				f.Take(&steps[i])
				if !yield(steps[i], nil) {
					return
				}
			}
			if more {
				continue
			}
			f.Wake(func() {
				select {
				case news <- struct{}{}:
				default:
				}
			})
			select {
			case <-news:
			case <-ctx.Done():
			}
		}
	}
}
