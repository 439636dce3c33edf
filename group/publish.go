// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/group/broker"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// groupTasks are the tasks of one group. Commands of the group are executed in lanes (command.go), and each task has a
// follower, which reads the task's log (follower.go). One goroutine publishes what the followers have to say, in turns;
// it ends when there is nothing to publish.
type groupTasks struct {
	key
	store  replay.Store
	place  place
	tracer trace.TracerProvider // nil for none

	base      context.Context // ends with close
	stop      context.CancelFunc
	work      sync.WaitGroup // all goroutines; added to under mu while closed is false
	recovered chan struct{}  // closed when the followers of an earlier process are known

	mu      sync.Mutex
	changed *sync.Cond // broadcast when something happened that cancel, flush or the publishing goroutine may wait for
	closed  bool
	ending  bool // cancel was called: no task is started
	muted   bool

	link    link      // nil while nothing can be published
	epoch   uint64    // rises with each link
	running bool      // the publishing goroutine
	current *follower // whose turn it is

	followers map[string]*follower // by the id of the task
	ready     queue[*follower]     // those that may have something to publish
	replies   replies              // to commands for tasks that have no follower
	sent      replies              // those that are published, and not confirmed
	lanes     map[string]*lane     // of the tasks with commands in work, by their ids

	dirty  []*follower // whose cursors are to be stored
	saving bool        // a timer or a goroutine is to store them
	saver  sync.Mutex  // held while they or copies are stored

	keeping bool  // a timer or a goroutine is to copy tasks
	copied  int64 // bytes of all copies

	counts           Traffic
	unconfirmedBytes int
}

// place is what the tasks of a group need of their membership. It is called while no lock of groupTasks is held.
type place interface {
	gateway() *gateway.Gateway // nil while the Partner is in no configuration
	aic() string               // of the agent, as the group knows it
	logger() *slog.Logger
	manage(c *task.Management, dialect string, d *broker.Delivery)
}

// newGroupTasks returns the tasks of a membership. The tracer makes the spans of commands and publications; nil for
// none.
func newGroupTasks(store replay.Store, k key, at place, tracer trace.TracerProvider) *groupTasks {
	t := &groupTasks{
		tracer: tracer,
		key:    k, store: store, place: at, recovered: make(chan struct{}),
		followers: make(map[string]*follower), lanes: make(map[string]*lane), epoch: 1,
	}
	t.changed = sync.NewCond(&t.mu)
	t.base, t.stop = context.WithCancel(context.Background())
	t.work.Go(t.recover)
	return t
}

// reply is a Task that is published because of a command, and not because of an event: the answer to a get, or the
// refusal of a start. It is not stored, so its command is acknowledged when the reply is confirmed, and executed again
// after a crash.
type reply struct {
	id     string
	append func(dst []byte, t *task.Task) []byte // appends the Task; t is nil where the reply has no follower
	trace  map[string]string                     // the headers with the trace of the command
	acks   []func()                              // of the commands that it answers
}

// acknowledge acknowledges the commands. mu is held.
func (r *reply) acknowledge() {
	for _, ack := range r.acks {
		ack()
	}
	r.acks = nil
}

// replies are in the order of their commands.
type replies []*reply

// add adds a reply, unless it is there already: a command that was delivered again has the same.
func (list *replies) add(r *reply) {
	for _, had := range *list {
		if had.id == r.id {
			had.acks = append(had.acks, r.acks...)
			return
		}
	}
	*list = append(*list, r)
}

// publication is what a follower has published and the broker has not confirmed.
type publication struct {
	at    position // of the log, after it
	reply *reply   // nil for an event
}

// errPaused says that nothing can be published now.
var errPaused = errors.New("group: publishing is paused")

// logger returns a logger whose lines name the group.
func (t *groupTasks) logger() *slog.Logger {
	return t.place.logger().With("partner", t.partner, "leader", t.leader, "group", t.group)
}

// do runs f in a goroutine, unless the tasks are closed.
func (t *groupTasks) do(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.doLocked(f)
}

// doLocked is do while mu is held.
func (t *groupTasks) doLocked(f func()) {
	if !t.closed {
		t.work.Go(f)
	}
}

// after calls f after a time, unless the tasks are closed by then.
func (t *groupTasks) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { t.do(f) })
}

// connect implements tasks. Everything that no broker has confirmed is published again.
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

// mute implements tasks. Commands whose replies wait are acknowledged, so that they do not hold up the command that
// ends it.
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

// wakeAll has all that wait for a change look again.
func (t *groupTasks) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed.Broadcast()
}

// enqueue has a follower published, after those before it. mu is held.
func (t *groupTasks) enqueue(f *follower) {
	if !f.queued && f.begun && !f.over {
		f.queued = true
		t.ready.push(f)
		t.keepLater()
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
			f.rest()
		}
		t.mu.Unlock()
		var more bool
		err := t.guard(func() (err error) {
			more, err = f.advance(t.base)
			return err
		})
		if errors.Is(err, errPanic) {
			f.rest()
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
func (t *groupTasks) publish(f *follower, m broker.Message, at position, r *reply) error {
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

// maxUnconfirmedBytes is how many bytes the unconfirmed publications may have together. One may always be published.
const maxUnconfirmedBytes = 8 << 20

// await waits until there is room for one more publication, of size bytes, on the link of an epoch. It reports false if
// there will not be any. mu is held.
func (t *groupTasks) await(epoch uint64, size int) bool {
	full := func() bool {
		n := t.counts.Unconfirmed
		return n >= maxUnconfirmed || n > 0 && t.unconfirmedBytes+size > maxUnconfirmedBytes
	}
	for t.open(epoch) && full() {
		t.changed.Wait()
	}
	return t.open(epoch)
}

// published counts a publication. mu is held.
func (t *groupTasks) published(size int) {
	t.counts.Published++
	t.counts.Unconfirmed++
	t.unconfirmedBytes += size
}

// confirm takes the answer of the broker, which comes in the order of publication. What a link has not confirmed at its
// end is published again on the next one.
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

// sendReply publishes the first of the replies. mu is held.
func (t *groupTasks) sendReply(epoch uint64) {
	r := t.replies[0]
	body := r.append(nil, nil)
	if !t.await(epoch, len(body)) || len(t.replies) == 0 || t.replies[0] != r {
		return
	}
	err := t.send(broker.Message{ID: r.id, Body: body, Headers: r.trace},
		func(err error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			if err != nil || epoch != t.epoch {
				return
			}
			t.confirmed(len(body))
			t.sent = t.sent[1:]
			r.acknowledge()
		})
	if err != nil {
		t.link = nil
		return
	}
	t.replies, t.sent = t.replies[1:], append(t.sent, r)
	t.published(len(body))
}

// maxReplies is how many replies wait at most while the member is muted: their commands are acknowledged, so the
// prefetch does not bound them.
const maxReplies = 64

// reply has a reply published that has no follower.
func (t *groupTasks) reply(r *reply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replies.add(r)
	if t.muted {
		r.acknowledge()
		t.replies = t.replies[max(0, len(t.replies)-maxReplies):]
	}
	t.resume()
}

// get has a task published as it is, when all its events up to now are. It reports false if the task has no follower.
func (t *groupTasks) get(taskID string, r *reply) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.followers[taskID]
	if f == nil {
		return false
	}
	f.gets.add(r)
	if t.muted {
		r.acknowledge()
		f.gets = f.gets[len(f.gets)-1:] // the others would be the same
	}
	f.finished = false
	t.enqueue(f)
	return true
}

// form is how a message of a task is written.
func (t *groupTasks) form(dialect string) aip.GroupForm {
	return aip.GroupForm{Dialect: dialect, AIC: t.place.aic(), GroupID: t.group}
}

// traffic implements tasks.
func (t *groupTasks) traffic() Traffic {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counts
	c.Tasks, c.Lag = len(t.followers), t.ready.len()
	return c
}

// close implements tasks.
func (t *groupTasks) close() {
	t.mu.Lock()
	t.closed = true
	t.stop()
	t.changed.Broadcast()
	t.mu.Unlock()
	t.work.Wait()
	t.save(context.Background())
	t.keep(context.Background(), 0) // the next process may begin when the logs of the tasks are gone
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.followers {
		f.end()
	}
}
