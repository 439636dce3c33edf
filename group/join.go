// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// joinLimit is how long an invitation takes at most. RabbitMQ holds back the answer to a refused login for 3 s.
const joinLimit = broker.DefaultTimeout

// drainLimit is how long the answer to an invitation waits until the queue at the broker before is empty, so that
// messages keep their order; and drainLater how long that queue is read afterwards.
const (
	drainLimit = time.Second
	drainLater = 30 * time.Second
)

// lateAnswer is how long after joinLimit an answer may come, so that it says what has failed.
const lateAnswer = 300 * time.Millisecond

// maxQueueName is the greatest length of a queue's name in AMQP 0-9-1, in bytes.
const maxQueueName = 255

// processID is the name of this process in answers to invitations.
var processID = "pid-" + strconv.Itoa(os.Getpid())

// connectionName is what a broker shows as the name of a connection.
func connectionName(aic string) string { return "agent-" + aic }

// errOver says that a membership has ended before it took a request.
var errOver = errors.New("group: the membership has ended")

// Join answers an invitation by a Leader. It returns when the agent consumes from its queue. A repeated invitation
// changes nothing. One with a new token or another broker moves the membership there, and if that fails, the membership
// stays as it was. Invitations to one group are answered one at a time. Errors are *task.Error, or that of ctx.
func (p *Partner) Join(ctx context.Context, leader string, inv *task.Invitation) (task.Membership, error) {
	if err := p.check(inv); err != nil {
		return task.Membership{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, joinLimit, errJoinLimit)
	defer cancel()
	for {
		m, err := p.engine.take(p, key{p.Name, leader, inv.Group.ID})
		if err != nil {
			return task.Membership{}, err
		}
		answer, err := m.join(ctx, p, inv)
		if err != errOver {
			return answer, err
		}
		select {
		case <-m.over:
		case <-ctx.Done():
			return task.Membership{}, late(ctx, inv)
		}
	}
}

var errJoinLimit = errors.New("group: the invitation was not answered in time")

// late is the error of an invitation whose time is over.
func late(ctx context.Context, inv *task.Invitation) error {
	if err := context.Cause(ctx); err != errJoinLimit {
		return err
	}
	return connectionFailed(inv.Server.Host, inv.Server.Port, "another invitation to the group was not answered in time")
}

// check checks what an invitation asks for against the configuration. That the agent is not among the partners in the
// invitation is no error: the Leader may invite agents to a group that it has begun without them.
func (p *Partner) check(inv *task.Invitation) error {
	s := &inv.Server
	if ok, _ := allowed(p.Brokers, s.Host, s.Port); !ok {
		return notAllowed(s.Host)
	}
	if _, err := p.login(s.AccessToken); err != nil {
		return err
	}
	if n := len(queueName(inv.Group.Leader.AIC, inv.Group.ID, p.AIC)); n > maxQueueName {
		return task.Errorf(task.InvalidParams, "the name of the agent's queue would have %d bytes, and at most %d are "+
			"allowed; use a shorter groupId", n, maxQueueName).WithField("params.group.groupId")
	}
	return nil
}

func notAllowed(host string) error {
	return task.Errorf(task.InvitationRejected, "this Partner may not connect to %s; its operator decides which brokers "+
		"are allowed", host).WithField("params.server.host")
}

// login returns how the agent logs in with an access token: user:password, or a JSON Web Token. Without a token, the
// client certificate proves who it is.
func (p *Partner) login(token string) (broker.Login, error) {
	user, password, both := strings.Cut(token, ":")
	switch {
	case token == "":
		return p.certificateLogin()
	case both && user != "":
		return broker.Password(user, password), nil
	case !both && strings.Count(token, ".") >= 2 && !strings.ContainsAny(token, " \t\r\n"):
		return broker.Token(p.AIC, token), nil
	}
	return broker.Login{}, task.Errorf(task.AccessTokenInvalid, "accessToken is neither user:password nor a JSON Web "+
		"Token").WithField("params.server.accessToken")
}

// linkConfig returns the configuration of a link for a record.
func (m *membership) linkConfig(p *Partner, r *record, token string, declare bool) (broker.Config, error) {
	ok, secure := allowed(p.Brokers, r.Host, r.Port)
	if !ok {
		return broker.Config{}, notAllowed(r.Host)
	}
	login, err := p.login(token)
	if err != nil {
		return broker.Config{}, err
	}
	return broker.Config{
		Owner: m.partner + "\x00" + m.leader, Name: connectionName(r.AIC), Login: login, Dialer: p.dialer,
		Address: broker.Address{
			Host: r.Host, Port: uint16(r.Port), VHost: r.VHost, TLS: secure || r.Port == portTLS || token == "",
		},
		Exchange: r.Exchange, RoutingKey: r.RoutingKey, Queue: r.Queue, Declare: declare, Prefetch: p.Prefetch,
		MaxMessage: p.maxMessage(),
	}, nil
}

// maxMessage is how large a message of a group may be: as large as the body of a request.
func (p *Partner) maxMessage() int {
	if p.Gateway == nil {
		return 0
	}
	return p.Gateway.MaxBody()
}

// portTLS is the port of AMQP over TLS.
const portTLS = 5671

// join has the supervisor answer an invitation. The error is errOver if the membership has ended before that.
func (m *membership) join(ctx context.Context, p *Partner, inv *task.Invitation) (task.Membership, error) {
	type result struct {
		answer task.Membership
		err    error
	}
	answered := make(chan result, 1)
	ok := m.ask(func() {
		answer, err := m.invited(ctx, p, inv)
		answered <- result{answer, err}
		if !m.isStored && !m.isOver() {
			m.end()
		}
	})
	if !ok {
		return task.Membership{}, errOver
	}
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-m.over:
	case <-ctx.Done():
		// As a rule the answer follows at once: what the supervisor waits for has the same context.
		select {
		case r := <-answered:
			return r.answer, r.err
		case <-m.over:
		case <-time.After(lateAnswer):
			return task.Membership{}, late(ctx, inv)
		}
	}
	select {
	case r := <-answered: // before it ended
		return r.answer, r.err
	default:
		return task.Membership{}, errOver
	}
}

// invited answers an invitation.
func (m *membership) invited(ctx context.Context, p *Partner, inv *task.Invitation) (task.Membership, error) {
	if ctx.Err() != nil {
		return task.Membership{}, late(ctx, inv)
	}
	next, token := newRecord(inv, p.AIC, time.Now()), inv.Server.AccessToken
	if m.isStored && m.record.Leaving != nil {
		return task.Membership{}, m.finishLeave(ctx, p, &next, token)
	}
	if m.isStored {
		next.Joined, next.Muted, next.Node = m.record.Joined, m.record.Muted, m.record.Node
	}
	var err error
	if m.link != nil && m.knowsToken && m.token == token && m.record.sameLink(&next) {
		if err = m.rebind(ctx, p, &next, token); err == nil {
			err = m.update(&next)
		}
	} else {
		next.Sealed = p.sealer.seal(token, m.log)
		err = m.move(ctx, p, &next, token)
	}
	switch {
	case err == errOver:
		return task.Membership{}, errOver
	case err != nil:
		return task.Membership{}, m.refusal(err, &next)
	}
	return m.joined(), nil
}

// rebind checks that the exchange is there, and binds the queue to it again: the Leader may have deleted it and
// declared another one, of which the link does not learn. A second link does that, which consumes nothing.
func (m *membership) rebind(ctx context.Context, p *Partner, next *record, token string) error {
	c, err := m.linkConfig(p, next, token, false)
	if err != nil {
		return err
	}
	second, err := m.engine.dial.Join(ctx, c)
	switch {
	case isKind(err, broker.QueueGone):
		m.removed()
		return errOver
	case err != nil:
		return err
	}
	second.Close()
	return nil
}

// update stores what an invitation changes though the link stays, if it changes anything.
func (m *membership) update(next *record) error {
	next.Sealed = m.record.Sealed
	if reflect.DeepEqual(*next, m.record) {
		return nil
	}
	return m.store(next)
}

// finishLeave is for an invitation to a group that the agent is leaving: the leave ends first, and with it the queue,
// which may still have the command to leave. The error is errOver if it has ended.
func (m *membership) finishLeave(ctx context.Context, p *Partner, next *record, token string) error {
	if m.link == nil {
		c, err := m.linkConfig(p, next, token, false)
		if err != nil {
			return err
		}
		l, err := m.engine.dial.Join(ctx, c)
		switch {
		case isKind(err, broker.QueueGone):
			m.abandon()
			return errOver
		case err != nil:
			return m.refusal(err, next)
		}
		m.connected(l)
	}
	m.leave()
	if m.isOver() {
		return errOver
	}
	return connectionFailed(next.Host, next.Port, "the agent is still leaving the group")
}

// move connects the membership as next says, and only then gives up the link that it had. Messages that wait in the
// queue at another broker are taken before those at the new one.
func (m *membership) move(ctx context.Context, p *Partner, next *record, token string) error {
	// A queue that should be there and is not means that the Leader has removed the agent from the group before: then
	// this invitation is for a new membership.
	old, declare := m.link, !m.isStored || !m.record.sameBroker(next)
	c, err := m.linkConfig(p, next, token, declare)
	if err != nil {
		return err
	}
	fresh, err := m.engine.dial.Join(ctx, c)
	switch {
	case isKind(err, broker.QueueGone) && !declare:
		m.removed()
		return errOver
	case err != nil:
		return err
	}
	next.Node = fresh.Info().ClusterName
	// Two addresses may be of one cluster, and so of one queue.
	sameQueue := m.isStored && (!declare || next.Node == m.record.Node && next.VHost == m.record.VHost &&
		next.Queue == m.record.Queue)
	if old != nil && sameQueue {
		m.disconnect()
	} else if old != nil {
		m.drain(ctx, old)
	}
	if !m.isStored {
		err = m.store(next)
	}
	if err == nil {
		err = fresh.Receive(ctx, m.tasks.receive)
	}
	if err == nil && m.isStored {
		err = m.store(next)
	}
	if err != nil {
		m.discard(fresh, declare && !sameQueue)
		return err
	}
	m.set(func() { m.isStored, m.token, m.knowsToken = true, token, true })
	m.connected(fresh)
	m.announce()
	if old != nil && !sameQueue {
		m.engine.retire(old)
	}
	return nil
}

// drain waits a moment for the queue of a link to become empty.
func (m *membership) drain(ctx context.Context, l link) {
	ctx, cancel := context.WithTimeout(ctx, drainLimit)
	defer cancel()
	_ = waitIdle(ctx, l) // otherwise the rest comes beside the messages at the new broker
}

// discard gives up a link that is not used, and its queue if that was made for it.
func (m *membership) discard(l link, made bool) {
	if made {
		ctx, cancel := context.WithTimeout(m.engine.base, joinLimit)
		defer cancel()
		_ = l.Leave(ctx)
	}
	l.Close()
}

// refusal is the error that the Leader gets.
func (m *membership) refusal(err error, r *record) error {
	var failed *broker.Error
	if !errors.As(err, &failed) {
		return err
	}
	switch failed.Kind {
	case broker.AddressRefused:
		return task.Errorf(task.InvitationRejected, "this Partner may not connect to %s: %s", r.Host,
			failed.Reason).WithField("params.server.host").WithCause(err)
	case broker.LoginRefused:
		if r.HasToken {
			return task.Errorf(task.AccessTokenInvalid, "the broker refuses accessToken: %s", failed.Reason).
				WithField("params.server.accessToken").WithCause(err)
		}
	}
	return connectionFailed(r.Host, r.Port, failed.Reason).WithCause(err)
}

func connectionFailed(host string, port int, reason string) *task.Error {
	return task.Errorf(task.ConnectionFailed, "%s", reason).WithData("host", host).WithData("port", port)
}

// isKind reports whether an error is one of a broker, of a kind.
func isKind(err error, kinds ...broker.Kind) bool {
	var failed *broker.Error
	if !errors.As(err, &failed) {
		return false
	}
	for _, k := range kinds {
		if failed.Kind == k {
			return true
		}
	}
	return false
}

// idlePoll is how often a link is asked whether its queue is empty.
const idlePoll = 50 * time.Millisecond

// waitIdle waits until the queue of a link is empty and everything is acknowledged. It returns an error if the link or
// ctx ends before.
func waitIdle(ctx context.Context, l link) error {
	for times := 0; ; {
		idle, err := l.Idle(ctx)
		if err != nil {
			return err
		}
		if times++; !idle {
			times = 0
		} else if times == 2 {
			return nil
		}
		select {
		case <-time.After(idlePoll):
		case <-l.Done():
			return l.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
