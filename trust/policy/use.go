// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxQuotas is the most quotas for one call.
const maxQuotas = 8

// Use is an admitted call's use of its quotas. The zero Use is ready for Decide, and its End must be called once
// afterwards. It is used by one goroutine at a time.
type Use struct {
	policy *Policy
	leader string
	ctx    context.Context // of the call, for the log; only if a quota is tried
	at     time.Time       // the time of the call; zero for a stream, which may last
	sent   int64           // bytes not yet counted by Send
	n      int
	of     [maxQuotas]used
}

type used struct {
	quota   *limited
	entry   *entry
	day     int64 // of the counted start, if started
	started bool
	stream  bool // one is counted
}

func (u *Use) add(ctx context.Context, p *Policy, q *limited, e *entry, leader string, now time.Time) {
	u.policy, u.leader, u.at = p, leader, now
	if q.DryRun { // it is only logged
		u.ctx = ctx
	}
	u.of[u.n] = used{quota: q, entry: e}
	u.n++
}

// all returns the used quotas.
func (u *Use) all() []used { return u.of[:u.n] }

// Any reports whether a quota applies to the call.
func (u *Use) Any() bool { return u.n > 0 }

// End ends the call's use of its quotas.
func (u *Use) End() {
	u.CloseStream()
	u.settle()
	for i := range u.all() {
		u.of[i].entry.release()
		u.of[i] = used{}
	}
	u.policy, u.leader, u.ctx, u.n = nil, "", nil, 0
}

// Move returns the Use for a stream, to be ended by the stream's owner, and leaves nothing.
func (u *Use) Move() *Use {
	if u.n == 0 {
		return nil
	}
	u.settle()
	moved := *u
	moved.at = time.Time{}
	*u = Use{}
	return &moved
}

// now returns about the present.
func (u *Use) now(e *entry) time.Time {
	if u.at.IsZero() {
		return e.account.book.now()
	}
	return u.at
}

// uncall takes back the call, because it is refused.
func (u *Use) uncall() {
	for i := range u.all() {
		u.of[i].entry.uncall(u.of[i].quota.Quota)
	}
	u.End()
}

// refused is Policy.refused for the call.
func (u *Use) refused(q *limited, err *task.Error) error {
	return u.policy.refused(u.ctx, q, u.leader, err)
}

// OpenStream counts a stream until CloseStream, or returns the reason of its refusal.
func (u *Use) OpenStream() error {
	for i := range u.all() {
		one := &u.of[i]
		q := one.quota
		if q.Streams == 0 {
			continue
		}
		limits := limit.Limits{Total: math.MaxInt64, PerLeader: q.Streams}
		if q.account.streams.Take(one.entry.key, 1, limits) != nil {
			err := u.refused(q, exceeded(q.Quota, limitStreams, q.Streams, unknownWait))
			if err != nil {
				u.CloseStream()
				return err
			}
			limits.PerLeader = math.MaxInt64
			_ = q.account.streams.Take(one.entry.key, 1, limits) // is within the limits
		}
		one.stream = true
	}
	return nil
}

// CloseStream gives back the stream, if one is counted.
func (u *Use) CloseStream() {
	for i := range u.all() {
		if one := &u.of[i]; one.stream {
			one.quota.account.streams.Give(one.entry.key, 1)
			one.stream = false
		}
	}
}

// CountsStarts reports whether a quota counts a task started by the call.
func (u *Use) CountsStarts() bool {
	for i := range u.all() {
		if u.of[i].quota.Starts > 0 {
			return true
		}
	}
	return false
}

// StartKept is Start if each of these quotas has a start left in the count of the store, so counting it is no write.
// Otherwise it counts nothing, and reports false.
func (u *Use) StartKept() bool {
	for i := range u.all() {
		one := &u.of[i]
		if one.quota.Starts == 0 {
			continue
		}
		day, ok := one.entry.startKept(one.quota.most(), u.now(one.entry))
		if !ok {
			u.unstartKept()
			return false
		}
		one.day, one.started = day, true
	}
	return true
}

// Start counts a task about to be started. full is the error of a quota without a start left: then none is counted, and
// the call must start no task. After an error, the start could not be counted.
func (u *Use) Start(ctx context.Context) (full *task.Error, err error) {
	var starts [maxQuotas]started
	for i := range u.all() {
		if u.of[i].quota.Starts == 0 {
			continue
		}
		if starts[i], full, err = u.start(ctx, &u.of[i]); err != nil || full != nil {
			u.unstart()
			return full, err
		}
	}
	for i := range u.all() {
		one := &u.of[i]
		err := one.entry.stored(ctx, starts[i])
		if errors.Is(err, replay.ErrClosed) { // its shard is lost, and the start with it
			starts[i], full, err = u.startAgain(ctx, one)
		}
		if err != nil || full != nil {
			u.unstart()
			if err != nil {
				err = unreadable(ctx, err)
			}
			return full, err
		}
	}
	return nil, nil
}

// start counts a start in one quota.
func (u *Use) start(ctx context.Context, one *used) (s started, full *task.Error, err error) {
	q := one.quota
	if s, full, err = one.entry.start(ctx, q.Quota, q.most(), u.now(one.entry)); err == nil && full == nil {
		one.day, one.started = s.day, true
	}
	return s, full, err
}

// startAgain counts a start again after the loss of its shard before the start was stored. The next owner counts it, as
// soon as this process has noticed the loss.
func (u *Use) startAgain(ctx context.Context, one *used) (s started, full *task.Error, err error) {
	limit := time.Now().Add(ask.Patience)
	for tries := (ask.Tries{}); ; {
		one.started = false
		if s, full, err = u.start(ctx, one); err == nil && full == nil {
			err = one.entry.stored(ctx, s)
		}
		left := time.Until(limit)
		if !errors.Is(err, replay.ErrFenced) || left <= 0 || tries.Wait(ctx, left) != nil {
			return s, full, err
		}
	}
}

// Started says whether the call has started a task. Otherwise the start is taken back.
func (u *Use) Started(started bool) {
	if !started {
		u.unstart()
		return
	}
	for i := range u.all() {
		one := &u.of[i]
		if q := one.quota; one.started && q.DryRun && one.entry.startsOf(one.day) > q.Starts {
			_ = u.refused(q, exceeded(q.Quota, limitStarts, q.Starts, unknownWait)) // in a dry run, nil
		}
		one.started = false
	}
}

func (u *Use) unstart() {
	for i := range u.all() {
		if one := &u.of[i]; one.started {
			one.entry.unstart(one.day)
			one.started = false
		}
	}
}

// unstartKept takes back the counts of StartKept.
func (u *Use) unstartKept() {
	for i := range u.all() {
		if one := &u.of[i]; one.started {
			one.entry.unstartKept(one.day)
			one.started = false
		}
	}
}

// Refuse counts a refusal of a start by a quota, and returns it.
func (u *Use) Refuse(err *task.Error) error {
	for i := range u.all() {
		if q := u.of[i].quota; err.Data["limit"] == q.Name+"."+limitStarts {
			return u.refused(q, err)
		}
	}
	return err
}

// Tasks returns the bounds of unfinished tasks at the Partner, of the Leader and of all Leaders; 0 for no limit.
func (u *Use) Tasks() (ofLeader, ofAll int) {
	for i := range u.all() {
		q := u.of[i].quota
		switch {
		case q.Tasks == 0 || q.DryRun:
		case q.Of == OfAgent:
			ofAll = least(ofAll, q.Tasks)
		default:
			ofLeader = least(ofLeader, q.Tasks)
		}
	}
	return ofLeader, ofAll
}

// TriesTasks reports whether a limit of tasks is tried in a dry run, so Unfinished is to be called for a new task.
func (u *Use) TriesTasks() bool {
	for i := range u.all() {
		if q := u.of[i].quota; q.Tasks > 0 && q.DryRun {
			return true
		}
	}
	return false
}

// Unfinished takes the number of unfinished tasks of the Leader, and of all, after a start.
func (u *Use) Unfinished(ofLeader, ofAll int64) {
	for i := range u.all() {
		q, n := u.of[i].quota, ofLeader
		if q.Of == OfAgent {
			n = ofAll
		}
		if q.Tasks > 0 && q.DryRun && n > int64(q.Tasks) {
			_ = u.refused(q, exceeded(q.Quota, limitTasks, int64(q.Tasks), unknownWait)) // nil
		}
	}
}

// least returns the lesser of two limits; 0 is no limit.
func least(a, b int) int {
	if a == 0 {
		return b
	}
	return min(a, b)
}

// TooManyTasks returns the error for a start beyond a limit of Tasks, either of all Leaders or of one.
func (u *Use) TooManyTasks(ofAll bool) error {
	ofLeader, most := u.Tasks()
	if !ofAll {
		most = ofLeader
	}
	for i := range u.all() {
		if q := u.of[i].quota; q.Tasks == most && (q.Of == OfAgent) == ofAll && !q.DryRun {
			return u.refused(q, exceeded(q.Quota, limitTasks, int64(q.Tasks), unknownWait))
		}
	}
	return nil
}

// Sent adds bytes sent to the agent. They are counted together with the next ones.
func (u *Use) Sent(n int64) { u.sent += n }

// settle counts the bytes sent.
func (u *Use) settle() {
	if u.sent > 0 {
		_ = u.Send(0) // it is sent already
	}
}

// Send counts bytes sent to the caller, or to the agent. An error means no more should be sent, although these may be.
func (u *Use) Send(n int64) error {
	n += u.sent
	u.sent = 0
	for i := range u.all() {
		one := &u.of[i]
		if q := one.quota; q.Bytes > 0 && n > 0 {
			if err := u.refused(q, one.entry.send(q.Quota, n, u.now(one.entry))); err != nil {
				return err
			}
		}
	}
	return nil
}
