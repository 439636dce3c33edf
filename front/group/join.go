// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/task"
)

// joinLimit is the longest time of an invitation. RabbitMQ holds back the answer to a refused login for 3 s.
const joinLimit = broker.DefaultTimeout

// lateAnswer is the time after joinLimit for an answer to come, so that it names the failure.
const lateAnswer = 300 * time.Millisecond

// maxQueueName is the greatest length of a queue's name in AMQP 0-9-1, in bytes.
const maxQueueName = 255

// processID is the name of this process in answers to invitations.
var processID = "pid-" + strconv.Itoa(os.Getpid())

// connectionName is the name of a connection, as a broker shows it.
func connectionName(aic string) string { return "agent-" + aic }

// errOver is the error of a membership that has ended before it took a request.
var errOver = errors.New("group: the membership has ended")

// Join answers an invitation by a Leader. It returns when the agent consumes from its queue. A repeated invitation
// changes nothing. One with a new token or another broker moves the membership there, and if that fails, the membership
// stays as it was. Invitations to one group are answered one at a time. Errors are *task.Error, or the error of ctx.
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

// late is the error of an invitation after its time.
func late(ctx context.Context, inv *task.Invitation) error {
	if err := context.Cause(ctx); err != errJoinLimit {
		return err
	}
	return connectionFailed(inv.Server.Host, inv.Server.Port, "another invitation to the group was not answered in time")
}

// check checks the requests of an invitation against the configuration. The agent need not be among the partners in the
// invitation: the Leader may invite agents to a group begun without them.
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

// login returns the agent's login with an access token: user:password, or a JSON Web Token. Without a token, the client
// certificate proves its identity.
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

// dial makes a link for a record, by a configuration and an access token. declare is broker.Config.Declare.
func (m *membership) dial(ctx context.Context, p *Partner, r *record, token string, declare bool) (link, error) {
	ok, secure := allowed(p.Brokers, r.Host, r.Port)
	if !ok {
		return nil, notAllowed(r.Host)
	}
	login, err := p.login(token)
	if err != nil {
		return nil, err
	}
	return m.engine.dial.Join(ctx, broker.Config{
		Owner: m.partner + "\x00" + m.leader, Name: connectionName(r.AIC), Login: login, Dialer: p.dialer,
		Address: broker.Address{
			Host: r.Host, Port: uint16(r.Port), VHost: r.VHost, TLS: secure || r.Port == portTLS || token == "",
		},
		Exchange: r.Exchange, RoutingKey: r.RoutingKey, Queue: r.Queue, Declare: declare, Prefetch: p.Prefetch,
		MaxMessage: p.maxMessage(),
	})
}

// maxMessage is the largest size of a message of a group: as large as the body of a request.
func (p *Partner) maxMessage() int {
	if p.Gateway == nil {
		return 0
	}
	return p.Gateway.MaxBody()
}

// The ports of AMQP, and of AMQP over TLS.
const (
	portPlain = 5672
	portTLS   = 5671
)

// join has the supervisor answer an invitation. The error is errOver if the membership has ended before.
func (m *membership) join(ctx context.Context, p *Partner, inv *task.Invitation) (task.Membership, error) {
	type result struct {
		answer task.Membership
		err    error
	}
	answered := make(chan result, 1)
	err := m.ask(maxRepeated, func() {
		answer, err := m.invited(ctx, p, inv)
		answered <- result{answer, err}
		if !m.isStored && !m.isOver() {
			m.end()
		}
	})
	if err != nil {
		return task.Membership{}, err
	}
	select {
	case r := <-answered:
		return r.answer, r.err
	case <-m.over:
	case <-ctx.Done():
		// As a rule the answer follows at once: all waits of the supervisor have the same context.
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
	if err := m.mayMove(p, &next, token); err != nil {
		return task.Membership{}, err
	}
	if m.isStored && m.record.Leaving != nil {
		return task.Membership{}, m.finishLeave(ctx, p, &next, token)
	}
	if m.isStored {
		next.Joined, next.Muted, next.Node = m.record.Joined, m.record.Muted, m.record.Node
		next.Announce = m.record.Announce
		next.Inbox = cmp.Or(next.Inbox, m.record.Inbox)
	} else if err := m.checkUnused(ctx, inv.Inbox); err != nil {
		return task.Membership{}, err
	}
	var err error
	if m.link != nil && m.knowsToken && m.token == token && m.record.sameLink(&next) {
		if inv.Inbox != "" && !m.isAnnouncing() { // the Leader gets nothing else
			next.Announce = m.announcement(next.Dialect)
		}
		if err = m.rebind(ctx, p, &next, token); err == nil {
			err = m.update(&next)
		}
		if err == nil {
			m.announce()
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

// refusal is the error for the Leader.
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
