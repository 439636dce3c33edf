// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// State is the state of a membership.
type State string

// The states.
const (
	Joining      State = "joining"      // its first invitation is being answered
	Joined       State = "joined"       // it has a link
	Reconnecting State = "reconnecting" // it has lost its link
	Waiting      State = "waiting"      // for an invitation: it cannot log in, or may not
	Unregistered State = "unregistered" // its Partner is in no configuration
	Leaving      State = "leaving"
)

// membership is the membership of a Partner in one group. It has a goroutine of its own, its supervisor. Only the
// supervisor changes it: others send it requests. So there is one invitation, one command, one connection at a time.
type membership struct {
	key
	engine *Engine
	home   *home
	log    string // the name of its log
	tasks  tasks
	claims []claim // under Engine.mu

	kick chan struct{} // holds one value while the supervisor has something to look at
	over chan struct{} // closed when the supervisor has ended

	mu        sync.Mutex
	requests  []func()           // at most maxRequests
	refuses   bool               // no request is taken any more: the membership has ended, or the engine closes
	interrupt context.CancelFunc // ends the supervisor's wait for a broker; nil while it does not wait
	commands  []memberCommand    // for members, not executed yet
	answers   []statusAnswer     // those not published yet
	inFlight  int                // answers still to be confirmed by the broker
	announced string             // the last record.Announce confirmed by a broker

	// The supervisor writes the fields below under mu, and reads them without.
	isStored    bool // false until the first invitation has been accepted
	record      record
	token       string // the access token; empty if there is none, or it is not known
	knowsToken  bool   // the token is known, or there is none
	state       State
	since       time.Time // of state
	lastError   error     // the reason for having no link; nil with one
	link        link      // nil for none
	nextAttempt time.Time // to connect; zero for now, and while there is a link

	// The supervisor's own.
	config      *Partner         // in force; nil while the Partner is not registered
	written     bool             // there is a log
	revision    uint64           // of the log; 0 while there is none
	failures    int              // attempts to connect since there was a link
	refusals    int              // links in a row ended by a refusal of the broker
	lost        time.Time        // when there was a link last, or when the membership was loaded
	storeUsable <-chan struct{}  // closed when the store may take a command refused before; nil for none
	rest        link             // reads the queue while the exchange is out of reach; nil for none
	lacking     time.Time        // since when the exchange is out of reach; zero if it is not
	leaveBy     time.Time        // when a leave ends also without a link
	departure   *broker.Delivery // the command to leave; nil if there is none
	announcing  string           // the record.Announce published on the link
	drained     <-chan struct{}  // closed when nothing of the broker before waits any more; nil if there was none
}

// newMembership makes a membership of its stored form; without one, it has not joined yet.
func newMembership(h *home, s *stored) *membership {
	m := &membership{
		key: s.key, engine: h.engine, home: h, log: s.log, revision: s.revision,
		kick: make(chan struct{}, 1), over: make(chan struct{}),
		state: Joining, since: time.Now(), lost: time.Now(), leaveBy: time.Now().Add(leaveLimit),
	}
	if s.revision > 0 {
		m.isStored, m.written, m.record, m.state = true, true, s.record, Unregistered
	}
	m.tasks = h.engine.newTasks(m)
	m.tasks.mute(m.record.Muted)
	return m
}

// The most requests waiting for the supervisor; it may wait for the store or a broker. Repeated requests, for example
// the invitations of a Leader, have fewer places, so they do not keep the operator from a leave.
const (
	maxRepeated = 16
	maxRequests = 32
)

// ask has the supervisor make a call, and ends its wait for a broker. The error is errOver if the membership has ended,
// and another one if at least most requests wait already. The call is not made if the membership ends before.
func (m *membership) ask(most int, call func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses {
		return errOver
	}
	if len(m.requests) >= most {
		return task.Errorf(task.LimitExceeded, "as many requests to this group wait for the store or the broker as may; "+
			"try again when the one before was answered").WithData("limit", "group_requests").
			WithData("max", int64(most)).WithData(task.RetryAfter, int64(1))
	}
	m.requests = append(m.requests, call)
	if m.interrupt != nil {
		m.interrupt()
	}
	m.wake()
	return nil
}

// wake has the supervisor look at the configuration and at its requests.
func (m *membership) wake() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// isMember reports whether the membership has begun and has not begun to end.
func (m *membership) isMember() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isStored && !m.refuses && m.record.Leaving == nil
}

// aic returns the AIC of the agent in the group.
func (m *membership) aic() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record.AIC
}

// gateway returns the executor of the commands of the group; nil while the Partner is not registered.
func (m *membership) gateway() *gateway.Gateway {
	if p := m.engine.partner(m.partner); p != nil {
		return p.Gateway
	}
	return nil
}

// set changes fields read by others. Only the supervisor calls it.
func (m *membership) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// enter changes the state, and keeps the reason for having no link. A leaving membership stays so.
func (m *membership) enter(s State, err error) {
	if m.record.Leaving != nil {
		s = Leaving
	}
	m.set(func() {
		if m.state != s {
			m.state, m.since = s, time.Now()
		}
		m.lastError = err
	})
}

// store stores the next record, and puts it in force.
func (m *membership) store(next *record) error {
	m.written = true // perhaps also after an error
	err := m.write(func(revision uint64) error {
		return next.put(m.home.base, m.home.store, m.log, revision)
	})
	if err != nil {
		return partner.StoreError(err, "the membership of the group cannot be stored")
	}
	m.set(func() { m.record = *next })
	return nil
}

// errLogEnded is the error of an ended log of a membership.
var errLogEnded = errors.New("group: the log of the membership has ended")

// write has the log appended to at the revision known to the membership. A conflict is with an own write, failed as far
// as it knows: the log has no other writer.
func (m *membership) write(put func(revision uint64) error) error {
	return replay.RetryConflict(func() error {
		err := put(m.revision)
		switch {
		case err == nil:
			m.revision++
		case errors.Is(err, replay.ErrConflict):
			head, bad := m.home.store.Head(m.home.base, m.log)
			if bad != nil && !errors.Is(bad, replay.ErrNotFound) {
				return bad
			}
			if m.revision = head.Revision; !head.Ended.IsZero() {
				return errLogEnded
			}
		}
		return err
	})
}

// logger returns the logger of the present configuration, or of the engine.
func (m *membership) logger() *slog.Logger {
	if p := m.engine.partner(m.partner); p != nil {
		return p.Log
	}
	return m.engine.log
}

// access returns the log of commands, and the level of its lines.
func (m *membership) access() (*slog.Logger, slog.Level) {
	if p := m.engine.partner(m.partner); p != nil && p.Access != nil {
		return p.Access, slog.LevelInfo
	}
	return m.logger(), slog.LevelDebug
}

// about returns the attributes of a log line about the membership, and more.
func (m *membership) about(more ...any) []any {
	return append([]any{"partner", m.partner, "leader", m.leader, "group", m.group}, more...)
}

// joined is the answer to an invitation.
func (m *membership) joined() task.Membership {
	r := &m.record
	return task.Membership{
		ConnectionName: connectionName(r.AIC), VHost: r.VHost, NodeName: r.Node, QueueName: r.Queue,
		ProcessID: processID, AIC: r.AIC, GroupID: m.group,
	}
}
