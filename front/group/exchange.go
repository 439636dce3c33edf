// SPDX-License-Identifier: Apache-2.0

package group

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
)

// A broker knows users and not Leaders. If one user of the broker serves several Leaders, as the client certificate of
// the Partner does, an invitation may name an exchange without its Leader having a right to it: the Partner would write
// into the group of another Leader, as a trusted member, and would have a queue bound to that group, readable by the
// inviter. So an exchange belongs to one Leader: by its name, because the operator says so, or because this Leader was
// there first.

// groupPrefix begins the names of exchanges and queues of a group of a Leader. The Leader's AIC follows.
const groupPrefix = "group_"

// exchangeName returns the name for a group of a Leader, as the SDK of AIP v02 has it.
func exchangeName(leader, groupID string) string { return groupPrefix + leader + "_" + groupID }

// isNamedFor reports whether an exchange has the name of a Leader's group. AICs are compared without regard to case.
func isNamedFor(exchange, leader, groupID string) bool {
	name, begins := strings.CutPrefix(exchange, groupPrefix)
	name, ends := strings.CutSuffix(name, "_"+groupID)
	return begins && ends && strings.EqualFold(name, leader)
}

// isNamedForAnother reports whether an exchange has the name of a group of another Leader.
func isNamedForAnother(exchange, leader string) bool {
	rest, ok := strings.CutPrefix(exchange, groupPrefix)
	name, _, named := strings.Cut(rest, "_")
	if !ok || !named || strings.EqualFold(name, leader) {
		return false
	}
	_, err := identity.ParseAIC(name)
	return err == nil
}

// isListed reports whether the operator has listed an exchange for a Leader. A pattern with a star does not have the
// names of other Leaders' groups.
func (p *Partner) isListed(exchange, leader string) bool {
	for aic, patterns := range p.Exchanges {
		if !strings.EqualFold(aic, leader) {
			continue
		}
		for _, pattern := range patterns {
			begin, isPattern := strings.CutSuffix(pattern, "*")
			if pattern == exchange ||
				isPattern && strings.HasPrefix(exchange, begin) && !isNamedForAnother(exchange, leader) {
				return true
			}
		}
	}
	return false
}

// mayUse returns an error if a Leader may not have its group at the exchange of a record. With shared, the user of the
// broker serves another Leader, too. A Leader without a proof has no right by the AIC it names.
func (p *Partner) mayUse(k key, r *record, shared bool) error {
	leader, unproven := strings.CutPrefix(k.leader, limit.Unverified)
	own := isNamedFor(r.Exchange, leader, k.group) || p.isListed(r.Exchange, leader)
	var because string
	switch {
	case own && !unproven:
		return nil
	case !own && isNamedForAnother(r.Exchange, leader):
		because = "the exchange has the name of another Leader's group"
	case !r.HasToken:
		because = "this Partner logs in to the broker by its certificate, which serves all Leaders"
	case shared:
		because = "the user of accessToken serves another Leader, too"
	default:
		return nil
	}
	err := task.Errorf(task.InvitationRejected, "%s: name the exchange %s, or ask the operator of this Partner to list "+
		"it for you", because, exchangeName(r.Leader.AIC, k.group))
	if unproven {
		err = task.Errorf(task.InvitationRejected, "%s: call with a client certificate, or with the accessToken of a user "+
			"of your own and an exchange of yours", because)
	}
	return err.WithField("params.amqp.exchange")
}

// claim is an exchange in use by a membership, or about to be.
type claim struct {
	host        string // as hosts are compared
	port        int
	node        string // the broker's own name; empty before it is asked
	vhost, name string
	byName      bool // the login is by certificate: two addresses of one broker are one place
}

// claimOf returns the claim of a record.
func claimOf(r *record) claim {
	return claim{normaliseHost(r.Host), r.Port, r.Node, normaliseVHost(r.VHost), r.Exchange, !r.HasToken}
}

// normaliseVHost returns a virtual host without a slash that the broker may not know: see broker.Info.
func normaliseVHost(name string) string {
	if rest := strings.TrimPrefix(name, "/"); rest != "" {
		return rest
	}
	return name
}

// meets reports whether two claims are for one exchange. A broker's own name counts only between logins restricted to
// exchanges of their Leader: a broker may lie.
func (c claim) meets(d claim) bool {
	sameBroker := c.host == d.host && c.port == d.port || c.byName && d.byName && c.node != "" && c.node == d.node
	return sameBroker && c.vhost == d.vhost && c.name == d.name
}

// isFree returns an error if a membership of another Leader uses an exchange.
func (e *Engine) isFree(k key, c claim) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.isFreeLocked(k, c)
}

func (e *Engine) isFreeLocked(k key, c claim) error {
	for other, m := range e.memberships {
		if other.leader == k.leader {
			continue
		}
		for _, claimed := range m.claims {
			if claimed.meets(c) {
				return errExchangeTaken()
			}
		}
	}
	return nil
}

// claim has a membership claim the exchange of a record, if no membership of another Leader has. Its earlier claims
// stay until claimOnly.
func (e *Engine) claim(m *membership, r *record) error {
	if err := e.claimHere(m, claimOf(r)); err != nil {
		return err
	}
	others, err := e.askOthers(m.leader, r, "")
	if err == nil && others.Meets {
		err = errExchangeTaken()
	}
	if err != nil {
		e.unclaim(m)
	}
	return err
}

// claimHere is claim in this process.
func (e *Engine) claimHere(m *membership, c claim) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.isFreeLocked(m.key, c); err != nil {
		return err
	}
	m.claims = append(m.claims, c)
	return nil
}

// unclaim has a membership give up its last claim.
func (e *Engine) unclaim(m *membership) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m.claims = m.claims[:len(m.claims)-1]
}

// claimOnly has a membership claim the exchange of its record, and nothing else.
func (e *Engine) claimOnly(m *membership) {
	e.mu.Lock()
	defer e.mu.Unlock()
	m.claims = append(m.claims[:0], claimOf(&m.record))
}

// holds has a membership claim the exchange of its record, unless it has.
func (e *Engine) holds(m *membership) error {
	e.mu.Lock()
	n := len(m.claims)
	e.mu.Unlock()
	if n > 0 {
		return nil
	}
	return e.claim(m, &m.record)
}

// mayMove returns an error if an invitation must not have the membership use the exchange of the next record. A
// membership keeps its exchange, though the user of the broker serves another Leader since.
func (m *membership) mayMove(p *Partner, next *record, token string) error {
	keeps := m.isStored && m.record.Exchange == next.Exchange && m.record.HasToken == next.HasToken &&
		m.record.sameBroker(next)
	others, err := m.engine.askOthers(m.leader, next, token)
	if err != nil {
		return err
	}
	shared := others.Serves || m.engine.serves(m.key, next, token)
	if err := p.mayUse(m.key, next, !keeps && shared); err != nil {
		return err
	}
	if others.Meets {
		return errExchangeTaken()
	}
	return m.engine.isFree(m.key, claimOf(next))
}

// serves reports whether the user of the broker of an invited membership serves another Leader already.
func (e *Engine) serves(k key, r *record, token string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for other, m := range e.memberships {
		if other.leader != k.leader && m.isAt(r, token) {
			return true
		}
	}
	return false
}

// isAt reports whether the membership logs in to the broker of a record as the user of a token. The rights of a JSON
// Web Token come with it, so another one is another user.
func (m *membership) isAt(r *record, token string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isStored || !m.record.HasToken || !m.knowsToken || !m.record.sameAddress(r) {
		return false
	}
	user, _, isPassword := strings.Cut(token, ":")
	own, _, hasPassword := strings.Cut(m.token, ":")
	return isPassword == hasPassword && user == own
}
