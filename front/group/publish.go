// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"errors"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/replay/follow"
)

// publication is a follower's publication, not confirmed by the broker.
type publication struct {
	at    follow.Position // of the log, after it
	reply *reply          // nil for an event
}

// errPaused is the error while nothing can be published.
var errPaused = errors.New("group: publishing is paused")

// connect implements tasks. Everything not confirmed by a broker is published again.
func (t *groupTasks) connect(l link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.link = l
	t.epoch++
	t.counts.Unconfirmed, t.unconfirmedBytes = 0, 0
	t.replies, t.sent = append(t.sent, t.replies...), nil
	for _, f := range t.followers {
		if len(f.flight) > 0 {
			f.rewind()
			t.enqueue(f)
		}
	}
	t.resume()
}

// mute implements tasks. Commands with waiting replies are acknowledged, so that they do not hold up the command to
// unmute.
func (t *groupTasks) mute(muted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.muted = muted; !muted {
		t.resume()
		return
	}
	for _, r := range t.replies {
		r.acknowledge()
	}
	for _, f := range t.followers {
		for _, r := range f.gets {
			r.acknowledge()
		}
	}
	t.changed.Broadcast()
}

// flush implements tasks.
func (t *groupTasks) flush(ctx context.Context) error {
	defer context.AfterFunc(ctx, t.wakeAll)()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		switch {
		case t.muted:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case t.closed || t.link == nil:
			return errPaused
		case !t.running && t.ready.len()+len(t.replies) == 0 && t.counts.Unconfirmed == 0:
			return nil
		}
		t.changed.Wait()
	}
}

// enqueue has a follower published, after those before it. mu is held.
func (t *groupTasks) enqueue(f *follower) {
	if !f.queued && f.begun && !f.over {
		f.queued = true
		t.ready.push(f)
		t.resume()
	}
}

// resume starts the publishing goroutine if it is needed. mu is held.
func (t *groupTasks) resume() {
	t.changed.Broadcast()
	if !t.running && t.open(t.epoch) && t.ready.len()+len(t.replies) > 0 {
		t.running = true
		t.doLocked(t.run)
	}
}

// open reports whether something may be published on the link of an epoch. mu is held.
func (t *groupTasks) open(epoch uint64) bool {
	return t.link != nil && t.epoch == epoch && !t.muted && !t.closed
}

// run publishes until there is nothing to publish, or nothing may be.
func (t *groupTasks) run() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.open(t.epoch) {
		if len(t.replies) > 0 {
			t.sendReply(t.epoch)
			continue
		}
		if t.ready.len() == 0 {
			break
		}
		f := t.ready.pop()
		if f.queued = false; f.over {
			continue
		}
		t.current = f
		f.epoch = t.epoch
		if f.rewound {
			f.rewound, f.at = false, f.confirmed
			f.tail.Rewind(f.at)
		}
		t.mu.Unlock()
		var more bool
		err := t.guard(t.base, func() (err error) {
			more, err = f.advance(t.base)
			return err
		})
		if errors.Is(err, errPanic) {
			f.tail.Rewind(f.at)
		}
		if err != nil && !errors.Is(err, errPaused) && !errors.Is(err, errEnded) {
			f.report(err)
		}
		t.mu.Lock()
		t.stepped(f, more, err)
	}
	t.running = false
	t.changed.Broadcast()
}

// stepped concludes a step of a follower. mu is held.
func (t *groupTasks) stepped(f *follower, more bool, err error) {
	t.current = nil
	switch {
	case f.over:
		f.end()
		return
	case f.epoch != t.epoch: // the link was lost
		f.rewind()
		t.enqueue(f)
	case errors.Is(err, errPaused) || more:
		t.enqueue(f)
	case errors.Is(err, errEnded):
		f.finished = true
	case err != nil:
		f.failed(err)
	default:
		f.delay, f.reported = 0, false
	}
	if f.epoch != t.epoch {
		return
	}
	if n := len(f.flight); n > 0 {
		f.flight[n-1].at = f.at
	} else {
		f.confirmedUpTo(f.at)
	}
}

// publish gives a message of a follower to the link; the follower is then at a position of its log. It waits while too
// many are unconfirmed. The error is errPaused if the message is not published.
func (t *groupTasks) publish(f *follower, m broker.Message, at follow.Position, r *reply) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	epoch := f.epoch
	size := len(m.Body)
	if !t.await(epoch, size) || f.over {
		return errPaused
	}
	if err := t.send(m, func(err error) { t.confirm(f, epoch, size, err) }); err != nil {
		t.link = nil // it has ended: the next one is on its way
		return errPaused
	}
	f.flight = append(f.flight, publication{at, r})
	f.at = at
	t.published(size)
	return nil
}

// maxUnconfirmedBytes is the most bytes of the unconfirmed publications together. One may always be published.
const maxUnconfirmedBytes = 8 << 20

// await waits until there is room for one more publication, of size bytes, on the link of an epoch, and this process
// may act on the shard (see replay.HeldBy). It reports false if there will not be any. mu is held.
func (t *groupTasks) await(epoch uint64, size int) bool {
	full := func() bool {
		n := t.counts.Unconfirmed
		return n >= maxUnconfirmed || n > 0 && t.unconfirmedBytes+size > maxUnconfirmedBytes
	}
	for {
		for t.open(epoch) && full() {
			t.changed.Wait()
		}
		if t.held == nil || !t.open(epoch) || t.held() == nil {
			return t.open(epoch)
		}
		t.mu.Unlock()
		t.mayAct(t.base) // after an error t is closed
		t.mu.Lock()
	}
}

// published counts a publication. mu is held.
func (t *groupTasks) published(size int) {
	t.counts.Published++
	t.counts.Unconfirmed++
	t.unconfirmedBytes += size
}

// confirm takes the answer of the broker. Answers come in the order of publication. Publications unconfirmed at the end
// of a link are published again on the next one.
func (t *groupTasks) confirm(f *follower, epoch uint64, size int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || epoch != t.epoch {
		return
	}
	t.confirmed(size)
	if f.over {
		return
	}
	p := f.flight[0]
	if f.flight = f.flight[1:]; len(f.flight) == 0 {
		f.flight = nil
	}
	if p.reply != nil {
		p.reply.acknowledge()
	}
	f.confirmedUpTo(p.at)
}

// confirmed counts a confirmed publication. mu is held.
func (t *groupTasks) confirmed(size int) {
	t.counts.Confirmed++
	t.counts.Unconfirmed--
	t.unconfirmedBytes -= size
	t.changed.Broadcast()
}
