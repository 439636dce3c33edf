// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Status is a membership as an operator sees it.
type Status struct {
	Partner string
	Leader  string // as in the names of its tasks' logs
	Group   string

	State       State
	Since       time.Time // of State
	LastError   string    // the reason for having no link; empty with one
	NextAttempt time.Time // to connect; zero if none is planned
	Muted       bool
	Blocked     bool // the broker takes no publications now
	Joined      time.Time
	Dialect     string

	LeaderAIC string
	Members   []string // AICs of the partners, as the last invitation has named them
	Broker    string   // host:port
	VHost     string
	Node      string // the broker's own name
	Exchange  string
	Queue     string

	Traffic
}

// List returns the memberships of all Partners, in the order of Partner, Leader and group.
func (e *Engine) List() []Status {
	e.mu.Lock()
	all := make([]*membership, 0, len(e.memberships))
	for _, m := range e.memberships {
		all = append(all, m)
	}
	e.mu.Unlock()
	list := make([]Status, 0, len(all))
	for _, m := range all {
		list = append(list, m.view())
	}
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Partner, b.Partner), cmp.Compare(a.Leader, b.Leader), cmp.Compare(a.Group, b.Group))
	})
	return list
}

// Leave makes a Partner leave a group, as its Leader's command would, and waits for it. Without a link to the broker,
// the tasks are canceled and the membership ends, but the queue stays at the broker. The error is of kind InvalidParams
// if there is no such membership. When the shard moves or the engine closes after the leave was stored, the next owner
// completes it, and Leave returns nil.
func (e *Engine) Leave(ctx context.Context, partner, leader, groupID string) error {
	m := e.membership(key{partner, leader, groupID})
	if m == nil {
		return errNoMembership()
	}
	stored := make(chan error, 1)
	switch err := m.ask(maxRequests, func() { stored <- m.leaveNow(new(departure)) }); {
	case err == errOver:
		return m.notTaken(stored)
	case err != nil:
		return err
	}
	select {
	case err := <-stored:
		if err != nil {
			return err
		}
	case <-m.over:
		return m.notTaken(stored)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-m.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// notTaken returns the outcome of a request to leave when the supervisor takes no more: its answer, or its reason for
// not taking the request.
func (m *membership) notTaken(stored <-chan error) error {
	select {
	case err := <-stored:
		return err
	default:
	}
	if m.home.base.Err() != nil {
		return errStops
	}
	return errNoMembership()
}

// LeaveAll makes all Partners leave all groups of a Leader that may lead no more, and does not wait for it. Running
// tasks go on, without the groups. A leave not storable now is tried again by the next call.
func (e *Engine) LeaveAll(leader string) {
	e.leaveAll(func(k key) bool { return k.leader == leader })
}

// LeaveAllOf makes a Partner leave all its groups, as LeaveAll does.
func (e *Engine) LeaveAllOf(partner string) {
	e.leaveAll(func(k key) bool { return k.partner == partner })
}

func (e *Engine) leaveAll(selects func(key) bool) {
	e.mu.Lock()
	var all []*membership
	for k, m := range e.memberships {
		if selects(k) {
			all = append(all, m)
		}
	}
	e.mu.Unlock()
	for _, m := range all {
		if !m.isMember() {
			continue
		}
		failed := func(err error) {
			m.logger().Warn("a group that must be left cannot be left now; it is tried again", m.about("error", err)...)
		}
		err := m.ask(maxRepeated, func() {
			if err := m.leaveNow(&departure{KeepTasks: true}); err != nil {
				failed(err)
			}
		})
		if err != nil && err != errOver {
			failed(err)
		}
	}
}

// leaveNow begins a leave; without a link to the broker, the membership ends at once. Only the supervisor calls it.
func (m *membership) leaveNow(d *departure) error {
	if !m.isStored {
		return errNoMembership()
	}
	err := m.beginLeave(d)
	if err == nil && m.link == nil {
		m.leaveBy = time.Now()
	}
	return err
}

func errNoMembership() error {
	return task.Errorf(task.InvalidParams, "there is no such membership of a group")
}

// view returns an operator's view.
func (m *membership) view() Status {
	m.mu.Lock()
	r := m.record
	s := Status{
		Partner: m.partner, Leader: m.leader, Group: m.group, State: m.state, Since: m.since, Muted: r.Muted,
		Joined: r.Joined, Dialect: r.Dialect, LeaderAIC: r.Leader.AIC, VHost: r.VHost, Node: r.Node,
		Exchange: r.Exchange, Queue: r.Queue,
	}
	if m.lastError != nil {
		s.LastError = m.lastError.Error()
	}
	if m.link == nil && (m.state == Reconnecting || m.state == Waiting) {
		s.NextAttempt = m.nextAttempt
	}
	l := m.link
	m.mu.Unlock()
	s.Blocked = l != nil && l.Blocked()
	if r.Host != "" {
		s.Broker = net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
	}
	for _, p := range r.Partners {
		s.Members = append(s.Members, p.AIC)
	}
	s.Traffic = m.tasks.traffic()
	return s
}
