// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// tasks is a membership's work with the tasks of its group: it executes the commands of the group, and publishes the
// events of the tasks. The supervisor of the membership calls its methods, one at a time. Only receive, follow and
// traffic may be called at any time.
type tasks interface {
	// receive takes a delivery of the group's queue. Deliveries come one after another. It acknowledges the delivery when
	// its command is in a log, or is not for this agent, and passes a command for members to membership.manage. It does
	// not wait for an agent.
	receive(d *broker.Delivery)

	// follow has a task about to be started published, in the form of a dialect, from its first event on. commit is the
	// time until its start is accepted; 0 for the Partner's own time.
	follow(ctx context.Context, log, dialect string, commit time.Duration) (partner.Accepted, error)

	// connect has everything published on a link from now on, beginning with all not confirmed by a broker yet, in order.
	// With nil, nothing is published. The link before may have ended, or ends soon. At most maxUnconfirmed publications
	// are unconfirmed, so there is always room for the member's status.
	connect(l link)

	// mute keeps everything from being published until it is called with false.
	mute(muted bool)

	// stop has no task started from now on. It returns when no command is in work, or with an error when ctx ends.
	stop(ctx context.Context) error

	// cancel is stop, and cancels the running tasks. It returns when their logs say so.
	cancel(ctx context.Context) error

	// flush returns when everything that may be published is confirmed: at once for a muted member. It returns an error
	// when the link or ctx ends before.
	flush(ctx context.Context) error

	// drop forgets all still to be published. The membership is over.
	drop(ctx context.Context) error

	// close ends all work of the process for the tasks, and waits for it. The stored state stays.
	close()

	traffic() Traffic
}

// reservedForStatus is the number of a link's publications kept for the member's status, and maxUnconfirmed the number
// for tasks.
const (
	reservedForStatus = 16
	maxUnconfirmed    = broker.MaxUnconfirmed - reservedForStatus
)

// Traffic counts a membership's received and published messages since the process began.
type Traffic struct {
	Received  uint64 // messages of the group, the agent's own included
	Executed  uint64 // commands
	Ignored   uint64 // messages not for this agent
	Poison    uint64 // unreadable messages
	Published uint64
	Confirmed uint64 // by the broker

	Unconfirmed int // publications still to be confirmed by the broker
	Lag         int // tasks with something still to be published
	Tasks       int // tasks of the group not ended, or not published to their end
}

// groupTasks are the tasks of one group. Commands of the group are read (receive.go), and executed in lanes
// (command.go). Each task has a follower reading the task's log (follower.go). One goroutine publishes the events of
// the followers, in turns (publish.go); it ends when there is nothing to publish.
type groupTasks struct {
	key
	store  replay.Store
	held   func() error                // see replay.HeldBy
	mayAct func(context.Context) error // see replay.WhenHeld
	member groupMember
	tracer trace.TracerProvider // nil for none

	base      context.Context // ends with close
	halt      context.CancelFunc
	work      sync.WaitGroup // all goroutines; added to under mu while closed is false
	recovered chan struct{}  // closed when the followers of an earlier process are known

	mu      sync.Mutex
	changed *sync.Cond // broadcast at any change awaited by cancel, flush or the publishing goroutine
	closed  bool
	ending  bool // cancel was called: no task is started
	muted   bool

	link    link      // nil while nothing can be published
	epoch   uint64    // rises with each link
	running bool      // the publishing goroutine
	current *follower // the one in its turn

	followers map[string]*follower // by the id of the task
	ready     queue[*follower]     // followers with something to publish, perhaps
	replies   replies              // to commands for tasks without a follower
	sent      replies              // those published, and not confirmed
	lanes     map[string]*lane     // of the tasks with commands in work, by their ids

	dirty  []*follower // those with cursors to be stored
	saving bool        // a timer or a goroutine is to store them
	saver  sync.Mutex  // held while they are stored

	counts           Traffic
	unconfirmedBytes int
}

// groupMember is the membership as its tasks need it. It is called while no lock of groupTasks is held.
type groupMember interface {
	gateway() *gateway.Gateway // nil while the Partner is in no configuration
	aic() string               // of the agent, as the group knows it
	logger() *slog.Logger
	access() (*slog.Logger, slog.Level) // for a line for each command
	manage(c *task.Management, dialect string, d *broker.Delivery)
}

// newGroupTasks returns the tasks of a membership. The tracer makes the spans of commands and publications; nil for
// none.
func newGroupTasks(store replay.Store, k key, of groupMember, tracer trace.TracerProvider) *groupTasks {
	t := &groupTasks{
		tracer: tracer,
		key:    k, store: store, held: replay.HeldBy(store), mayAct: replay.WhenHeld(store), member: of,
		recovered: make(chan struct{}),
		followers: make(map[string]*follower), lanes: make(map[string]*lane), epoch: 1,
	}
	t.changed = sync.NewCond(&t.mu)
	t.base, t.halt = context.WithCancel(context.Background())
	t.work.Go(t.recover)
	return t
}

// logger returns a logger with the group's name in its lines.
func (t *groupTasks) logger() *slog.Logger {
	return t.member.logger().With("partner", t.partner, "leader", t.leader, "group", t.group)
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

// wakeAll has all waiting for a change look again.
func (t *groupTasks) wakeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed.Broadcast()
}

// form is the form of a message of a task.
func (t *groupTasks) form(dialect string) aip.GroupForm {
	return aip.GroupForm{Dialect: dialect, AIC: t.member.aic(), GroupID: t.group}
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
	t.halt()
	t.changed.Broadcast()
	t.mu.Unlock()
	t.work.Wait()
	t.save(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.followers {
		f.end()
	}
}
