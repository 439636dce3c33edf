// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// leaveLimit is the time for which a leave is continued after its begin, if it has lost its link. lastLimit is the time
// for the last member status, and for the deletion of the queue. parallelDeletes is the number of queues deleted at a
// time.
const (
	leaveLimit      = time.Minute
	lastLimit       = 10 * time.Second
	parallelDeletes = 4
)

// memberCommand is a command for members from the group.
type memberCommand struct {
	task.Management
	dialect  string
	delivery *broker.Delivery
}

// statusAnswer is the member's status on its way to the group. acknowledge is called when the broker has it.
type statusAnswer struct {
	message     broker.Message
	acknowledge func()
	announces   bool // it is published by announce
}

// manage has the supervisor execute a command for members, addressed to this agent, in the order of the calls. The
// delivery is acknowledged when the command is stored and answered.
func (m *membership) manage(c *task.Management, dialect string, d *broker.Delivery) {
	next := memberCommand{*c, dialect, d}
	// The id of the answer is made of the id of the command. v01.00 does not require the latter.
	next.ID = cmp.Or(next.ID, d.ID, rand.Text())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands = append(m.commands, next) // at most as many as the prefetch
	m.wake()
}

// executeCommands executes the arrived commands. It stops at one not storable now.
func (m *membership) executeCommands() {
	for m.storeUsable == nil && m.record.Leaving == nil {
		m.mu.Lock()
		if len(m.commands) == 0 {
			m.mu.Unlock()
			return
		}
		c := m.commands[0]
		m.mu.Unlock()
		usable := m.home.store.Reopened()
		if err := m.execute(&c); err != nil {
			m.logger().Warn("a command for a member of a group could not be stored", m.about("error", err)...)
			if usable == nil {
				usable = m.soon()
			}
			m.storeUsable = usable
			return
		}
		m.set(func() { m.commands = m.commands[1:] })
	}
}

// soon returns a channel, closed after a while, for a store without a signal of its recovery.
func (m *membership) soon() <-chan struct{} {
	ctx, cancel := context.WithTimeout(m.home.base, firstRetry)
	context.AfterFunc(ctx, cancel)
	return ctx.Done()
}

// execute executes a command. An error means a command not stored.
func (m *membership) execute(c *memberCommand) error {
	switch c.Command {
	case task.Mute, task.Unmute:
		if err := m.mute(c.Command == task.Mute); err != nil {
			return err
		}
	case task.LeaveGroup, task.Disband:
		if err := m.beginLeave(&departure{Command: c.ID, Dialect: c.dialect, SessionID: c.SessionID}); err != nil {
			return err
		}
		m.departure = c.delivery
		return nil // answered when it has left
	}
	message := m.status(c.ID, c.dialect, c.SessionID, task.MemberStatus{Connected: true, Muted: m.record.Muted})
	m.set(func() { m.answers = append(m.answers, statusAnswer{message, c.delivery.Ack, false}) })
	return nil
}

// mute mutes the member, or unmutes it.
func (m *membership) mute(muted bool) error {
	if m.record.Muted == muted {
		return nil
	}
	next := m.record
	next.Muted = muted
	if err := m.store(&next); err != nil {
		return err
	}
	m.tasks.mute(muted)
	return nil
}

// status returns the message with the member's status as the answer to a command, in a dialect. The same answer has the
// same id at any time.
func (m *membership) status(command, dialect, session string, s task.MemberStatus) broker.Message {
	sum := sha256.Sum256([]byte(m.log + "\x00" + command))
	id := "status-" + hex.EncodeToString(sum[:16])
	return broker.Message{ID: id, Body: m.form(dialect).AppendMemberStatus(nil, id, time.Now(), session, s)}
}

// announcement returns a record.Announce for an invitation in a dialect.
func (m *membership) announcement(dialect string) string {
	if !m.form(dialect).AnnouncesMembers() {
		return ""
	}
	return rand.Text()
}

// announce publishes the status requested by record.Announce, once on each link. The broker may have it already.
func (m *membership) announce() {
	id := m.record.Announce
	if id == "" || id == m.announcing || m.record.Leaving != nil {
		return
	}
	m.announcing = id
	message := m.status(id, m.record.Dialect, "", task.MemberStatus{Connected: true, Muted: m.record.Muted})
	m.set(func() {
		m.answers = append(m.answers, statusAnswer{message, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.announced = id
			m.wake()
		}, true})
	})
}

// isAnnouncing reports whether a status of announce has yet to be published on the link.
func (m *membership) isAnnouncing() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.answers, func(a statusAnswer) bool { return a.announces })
}

// endAnnouncement records that a broker has confirmed the status of announce. If this cannot be stored now, it is tried
// again later.
func (m *membership) endAnnouncement() {
	m.mu.Lock()
	id := m.announced
	m.mu.Unlock()
	if id == "" || id != m.record.Announce {
		return
	}
	next := m.record
	next.Announce = ""
	if err := m.store(&next); err != nil {
		m.logger().Warn("what a member of a group has published could not be stored", m.about("error", err)...)
	}
}

// form returns the form of the member's publications in a dialect.
func (m *membership) form(dialect string) aip.GroupForm {
	return aip.GroupForm{Dialect: dialect, AIC: m.record.AIC, GroupID: m.group}
}

// publishAnswers publishes the answers to commands, a few at a time.
func (m *membership) publishAnswers() {
	l := m.link
	for {
		m.mu.Lock()
		if len(m.answers) == 0 || m.inFlight >= reservedForStatus-1 {
			m.mu.Unlock()
			return
		}
		a := m.answers[0]
		m.answers = m.answers[1:]
		m.inFlight++
		m.mu.Unlock()
		if m.home.mayAct != nil && m.home.mayAct(m.home.base) != nil {
			return
		}
		err := l.Publish(a.message, func(err error) {
			if err == nil {
				a.acknowledge()
				m.confirmed(l)
			}
		})
		if err != nil {
			return // the link has ended, and the command comes again
		}
	}
}

// confirmed counts an answer confirmed by the broker.
func (m *membership) confirmed(by link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.link == by {
		m.inFlight--
		m.wake()
	}
}

// beginLeave stores the leave of the membership. From then on it starts no task.
func (m *membership) beginLeave(d *departure) error {
	if m.record.Leaving != nil {
		return nil
	}
	d.Since = time.Now()
	next := m.record
	next.Leaving = d
	if err := m.store(&next); err != nil {
		return err
	}
	m.leaveBy = d.Since.Add(leaveLimit)
	m.enter(Leaving, m.lastError)
	return nil
}

// leave ends a membership with a link, in the order of AIP (v01.00 §7.2): its tasks are canceled, and the group sees
// it; then comes the last member status; then the queue is deleted. If the link is lost meanwhile, the rest follows
// when there is another one.
func (m *membership) leave() {
	m.publishAnswers()
	l := m.link
	err := m.endTasks(l)
	if m.mustReturn(l) {
		return
	}
	if err != nil {
		m.logger().Warn("not all tasks of a group that the agent leaves could be canceled", m.about("error", err)...)
	}
	err = m.sayGoodbye(l)
	if err == nil {
		if m.departure != nil {
			m.departure.Ack()
		}
		err = m.deleteQueue(l)
	}
	switch {
	case m.home.base.Err() != nil:
	case err != nil:
		m.disconnect()
		m.failures++
		m.retry(Leaving, backoff(m.failures), err)
	default:
		m.logger().Info("the agent has left a group", m.about()...)
		m.end()
	}
}

// endTasks cancels the tasks, and waits until the group has got their ends by a link.
func (m *membership) endTasks(l link) error {
	ctx, cancel := context.WithTimeout(m.home.base, cancelLimit)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel()
	watch.Go(func() {
		select {
		case <-l.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	if m.record.Leaving.KeepTasks {
		return m.tasks.stop(ctx)
	}
	if err := m.tasks.cancel(ctx); err != nil {
		return err
	}
	return m.tasks.flush(ctx)
}

// mustReturn reports whether a leave has to be continued later, because its link has ended or the engine closes.
func (m *membership) mustReturn(l link) bool {
	select {
	case <-l.Done():
		return true
	case <-m.home.base.Done():
		return true
	default:
		return false
	}
}

// deleteQueue deletes the queue, and ends the link. Few memberships do this at a time, because a broker deletes queues
// one after another, and a late answer costs the connection shared by groups.
func (m *membership) deleteQueue(l link) error {
	base := m.home.base
	select {
	case m.engine.deleting <- struct{}{}:
		defer func() { <-m.engine.deleting }()
	case <-base.Done():
		return context.Cause(base)
	}
	ctx, cancel := context.WithTimeout(base, lastLimit)
	defer cancel()
	m.set(func() { m.link = nil })
	m.lost = time.Now()
	m.tasks.connect(nil)
	return l.Leave(ctx)
}

// sayGoodbye publishes the last member status, and waits until the broker has it.
func (m *membership) sayGoodbye(l link) error {
	ctx, cancel := context.WithTimeout(m.home.base, lastLimit)
	defer cancel()
	d := m.record.Leaving
	dialect := d.Dialect
	if dialect == "" {
		dialect = m.record.Dialect
	}
	confirmed := make(chan error, 1)
	message := m.status(d.Command, dialect, d.SessionID, task.MemberStatus{Connected: false, Muted: m.record.Muted})
	if m.home.mayAct != nil {
		if err := m.home.mayAct(ctx); err != nil {
			return err
		}
	}
	if err := l.Publish(message, func(err error) { confirmed <- err }); err != nil {
		return err
	}
	select {
	case err := <-confirmed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
