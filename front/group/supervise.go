// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// The delays before a membership without a link is connected again, give or take a half.
const (
	firstRetry   = time.Second
	longestRetry = 20 * time.Second
	// waitingRetry is the interval at which a membership waiting for an invitation finds out whether it may log in by now,
	// because the broker has another password, or the certificate on disk was renewed.
	waitingRetry = 5 * time.Minute
	// keepLost is the time for which a membership without a link is kept.
	keepLost = 7 * 24 * time.Hour
	// cancelLimit is the time to cancel the tasks of an ending membership.
	cancelLimit = 20 * time.Second
)

// run is the supervisor.
func (m *membership) run() {
	timer := time.NewTimer(0)
	for !m.isOver() {
		timer.Reset(m.attend())
		select {
		case <-m.home.base.Done():
			m.refuseRequests()
		case <-timer.C:
		case <-m.kick:
			m.answerRequests()
		case <-m.storeUsable:
			m.storeUsable = nil
		case <-m.linkDone():
			m.lose(m.link.Err())
		case <-m.restDone():
			m.loseRest()
		}
	}
	timer.Stop()
	m.disconnect()
	m.tasks.close()
	m.engine.forget(m)
	close(m.over)
}

// isOver reports whether the membership has ended, or the engine closes.
func (m *membership) isOver() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refuses
}

// linkDone is closed when the link has ended; it is nil without one.
func (m *membership) linkDone() <-chan struct{} {
	if m.link == nil {
		return nil
	}
	return m.link.Done()
}

// restDone is the same for the link only reading the queue.
func (m *membership) restDone() <-chan struct{} {
	if m.rest == nil {
		return nil
	}
	return m.rest.Done()
}

// answerRequests makes the requested calls.
func (m *membership) answerRequests() {
	for call := m.nextRequest(); call != nil; call = m.nextRequest() {
		call()
	}
}

func (m *membership) nextRequest() func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses || len(m.requests) == 0 {
		return nil
	}
	call := m.requests[0]
	m.requests = m.requests[1:]
	return call
}

// refuseRequests is for the end: no further request is taken.
func (m *membership) refuseRequests() {
	m.set(func() { m.refuses, m.requests = true, nil })
}

// attend does all due work, and returns the time until the next.
func (m *membership) attend() time.Duration {
	if !m.isStored {
		return time.Hour // its invitation is a request
	}
	if p := m.engine.partner(m.partner); p != m.config || p == nil && m.link != nil {
		m.adopt(p)
	}
	now := time.Now()
	switch {
	case m.link != nil:
	case m.rest != nil && m.record.Leaving != nil: // below
	case m.isForsaken(now):
		m.dissolved()
		return 0
	case m.record.Leaving != nil && !now.Before(m.leaveBy), now.Sub(m.lost) >= keepLost:
		// What to do: delete the queue at the broker.
		m.logger().Warn("a membership of a group has ended, but its queue may still be there",
			m.about("error", m.lastError)...)
		m.abandon()
		return 0
	case m.config != nil && !now.Before(m.nextAttempt):
		m.reconnect()
	}
	switch {
	case m.isOver():
		return 0
	case m.link != nil:
		m.endAnnouncement()
		m.executeCommands()
		m.publishAnswers()
	case m.rest != nil:
		m.attendRest()
	}
	if m.link != nil && !m.isOver() && m.record.Leaving != nil {
		m.leave()
	}
	return m.untilDue()
}

// untilDue returns the time until the next work is due, if nothing happens before.
func (m *membership) untilDue() time.Duration {
	if m.link != nil {
		return time.Hour
	}
	due := m.lost.Add(keepLost)
	if m.config != nil && m.nextAttempt.Before(due) {
		due = m.nextAttempt
	}
	if m.record.Leaving != nil && m.leaveBy.Before(due) {
		due = m.leaveBy
	}
	if m.config != nil && !m.lacking.IsZero() && m.lacking.Add(m.config.ExchangeWait).Before(due) {
		due = m.lacking.Add(m.config.ExchangeWait)
	}
	return max(time.Until(due), 0)
}

// adopt puts a configuration in force; nil if the Partner is in none any more.
func (m *membership) adopt(p *Partner) {
	m.config, m.failures = p, 0
	m.set(func() { m.nextAttempt = time.Time{} })
	if p == nil {
		m.disconnect()
		m.enter(Unregistered, nil)
		return
	}
	if !m.knowsToken && !m.record.HasToken {
		m.set(func() { m.knowsToken = true })
	} else if !m.knowsToken {
		if token, ok := p.sealer.open(m.record.Sealed, m.log); ok {
			m.set(func() { m.token, m.knowsToken = token, true })
		}
	}
	m.reseal(p)
	if m.link != nil || m.rest != nil {
		if err := m.mayConnect(p); err != nil {
			m.disconnect()
			m.wait(err)
		}
	}
}

// reseal seals the token with the present key, if it is not sealed with it.
func (m *membership) reseal(p *Partner) {
	if _, ok := p.sealer.open(m.record.Sealed, m.log); ok || p.sealer == nil || m.token == "" {
		return
	}
	next := m.record
	next.Sealed = p.sealer.seal(m.token, m.log)
	if err := m.store(&next); err != nil {
		p.Log.Warn("the access token of a group could not be stored", "group", m.group, "leader", m.leader, "error", err)
	}
}

// errAIC is the reason of a membership waiting though its Partner is registered.
var errAIC = errors.New("the agent has another AIC than when it was invited")

// errNoToken is the reason of a membership waiting after a restart.
var errNoToken = errors.New("the access token is not known any more, because it was not stored, or by another key")

// mayConnect returns an error if a configuration does not allow the link of the membership.
func (m *membership) mayConnect(p *Partner) error {
	switch ok, _ := allowed(p.Brokers, m.record.Host, m.record.Port); {
	case p.AIC != m.record.AIC:
		return errAIC
	case !ok:
		return notAllowed(m.record.Host)
	}
	if err := p.mayUse(m.key, &m.record, false); err != nil {
		return err
	}
	return m.engine.holds(m)
}

// reconnect connects a membership after it has lost its link, or was loaded.
func (m *membership) reconnect() {
	err := m.mayConnect(m.config)
	if err == nil && !m.knowsToken {
		err = errNoToken
	}
	if err != nil {
		m.wait(err)
		return
	}
	ctx, cancel := context.WithTimeout(m.home.base, joinLimit)
	defer cancel()
	if !m.mayWait(cancel) {
		return // a request comes first
	}
	l, err := m.open(ctx)
	interrupted := !m.mayWait(nil)
	switch {
	case err == nil:
		m.connected(l)
	case isKind(err, broker.QueueGone):
		m.removed()
	case lacksExchange(err):
		m.withoutExchange(ctx, err)
	case m.home.base.Err() != nil || interrupted && errors.Is(ctx.Err(), context.Canceled):
	case isKind(err, broker.LoginRefused, broker.AddressRefused), task.KindOf(err) == task.AccessTokenInvalid:
		m.wait(err)
	default:
		m.lacking = time.Time{}
		m.failures++
		m.retry(Reconnecting, backoff(m.failures), err)
	}
}

// mayWait is called before the supervisor waits for a broker, with the function to end the wait at a request, and with
// nil afterwards. It reports whether there is no request.
func (m *membership) mayWait(cancel context.CancelFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) > 0 {
		cancel = nil
	}
	m.interrupt = cancel
	return len(m.requests) == 0
}

// open makes the link of the record. It declares no queue: a missing one was deleted by the Leader. A leaving
// membership receives nothing any more.
func (m *membership) open(ctx context.Context) (link, error) {
	l, err := m.dial(ctx, m.config, &m.record, m.token, false)
	if err != nil {
		return nil, err
	}
	m.closeRest()
	if m.record.Leaving == nil {
		err = l.Receive(ctx, m.receiveAfter(l, m.drained))
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// backoff returns the wait after a number of failures: about twice as long each time, and never at the same time as
// others.
func backoff(failures int) time.Duration {
	d := min(firstRetry<<min(failures-1, 10), longestRetry)
	return d/2 + rand.N(d)
}

// connected has the membership use a consuming link.
func (m *membership) connected(l link) {
	m.failures, m.lacking = 0, time.Time{}
	m.closeRest()
	m.set(func() {
		m.link, m.inFlight = l, 0 // no answer is in flight on a new link
		m.record.Node, m.nextAttempt = l.Info().ClusterName, time.Time{}
	})
	m.engine.claimOnly(m)
	m.enter(Joined, nil)
	m.announcing = ""
	m.announce()
	m.tasks.connect(l)
	m.logger().Info("a group is connected to its broker", m.about("host", m.record.Host, "port", m.record.Port)...)
}

// lose is for an ended link.
func (m *membership) lose(err error) {
	m.disconnect()
	if isKind(err, broker.QueueGone) {
		m.removed()
		return
	}
	if isKind(err, broker.Closed, broker.LoginRefused) {
		m.refusals = 0
	} else {
		m.refusals++
	}
	// All groups of a connection lose it at once. A broker that refuses what is published does that again.
	m.retry(Reconnecting, rand.N(min(firstRetry<<min(m.refusals, 10), longestRetry)), err)
	m.logger().Warn("the connection of a group to its broker was lost", m.about("error", err)...)
}

// loseRest is for a link that only reads the queue and has ended.
func (m *membership) loseRest() {
	err := m.rest.Err()
	m.closeRest()
	if isKind(err, broker.QueueGone) {
		m.removed()
	}
}

// wait is for a membership that cannot be connected before something is changed, as a rule by an invitation.
func (m *membership) wait(err error) {
	if m.state != Waiting {
		m.logger().Warn("a group waits for an invitation by its Leader", m.about("error", err)...)
	}
	m.closeRest()
	m.lacking = time.Time{}
	m.retry(Waiting, waitingRetry/2+rand.N(waitingRetry), err)
}

// retry enters a state without a link, in which the next attempt to connect is made after a while.
func (m *membership) retry(s State, after time.Duration, err error) {
	m.set(func() { m.nextAttempt = time.Now().Add(after) })
	m.enter(s, err)
}

// disconnect closes the link, if there is one. Commands for members that were not answered come again.
func (m *membership) disconnect() {
	m.closeRest()
	l := m.link
	if l == nil {
		return
	}
	m.set(func() { m.link, m.commands, m.answers = nil, nil, nil })
	m.lost = time.Now()
	m.tasks.connect(nil)
	l.Close()
}

// removed ends a membership without its queue: its Leader has removed the agent from the group. Its tasks are canceled,
// because their Leader does not read them any more.
func (m *membership) removed() {
	m.logger().Info("the agent was removed from a group, its queue is gone", m.about()...)
	m.abandon()
}

// abandon ends a membership without a link.
func (m *membership) abandon() {
	m.cancelTasks()
	m.end()
}

// cancelTasks cancels the tasks of an ending membership, whether the group gets to know it or not. Tasks to be kept go
// on.
func (m *membership) cancelTasks() {
	ctx, cancel := context.WithTimeout(m.home.base, cancelLimit)
	defer cancel()
	end := m.tasks.cancel
	if d := m.record.Leaving; d != nil && d.KeepTasks {
		end = m.tasks.stop
	}
	if err := end(ctx); err != nil && m.home.base.Err() == nil {
		m.logger().Warn("not all tasks of a group could be canceled", m.about("error", err)...)
	}
}

// end ends the membership. It returns when the end is stored, or the engine closes: then the next one ends it.
func (m *membership) end() {
	m.disconnect()
	base := m.home.base
	for {
		usable := m.home.store.Reopened()
		err := m.tasks.drop(base)
		if err == nil && m.written {
			err = m.write(func(revision uint64) error { return m.record.end(base, m.home.store, m.log, revision) })
		}
		if errors.Is(err, errLogEnded) { // by an attempt before, failed as far as it knew
			err = nil
		}
		if err == nil || base.Err() != nil {
			break
		}
		m.enter(m.state, err)
		select {
		case <-base.Done():
		case <-usable:
		case <-time.After(longestRetry):
		}
	}
	m.refuseRequests()
}
