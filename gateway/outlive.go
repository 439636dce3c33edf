// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// CutRefused ends the open streams outliving their configuration (translate.Unresumer) whose callers would be refused
// by the present gateways of their Partner, with the reason as their last frame. inForce returns these gateways. A
// stream of a removed Partner goes on, as its turn does. It is called when a configuration was replaced.
func (p *Process) CutRefused(inForce func(partner string) []*Gateway) {
	for _, s := range p.open.all() {
		if s.unresumed == nil {
			continue
		}
		now := inForce(s.g.config.Partner.Name)
		if err := s.g.refusedBy(now, s.peer, s.dialect.Name(), s.command); err != nil {
			s.Cut(err)
		}
	}
}

// checkOutlived refuses a call if its configuration was replaced while its body was received, and the present gateways
// of the Partner would refuse its caller. peer is as the front knows it.
func (x *exchange) checkOutlived(peer identity.Peer) error {
	c := &x.g.config
	if c.InForce == nil || c.Streaming.Drain.Err() == nil {
		return nil
	}
	return x.g.refusedBy(c.InForce(c.Partner.Name), peer, x.call.Dialect, methodNames[methodOf(&x.call.Call)])
}

// refusedBy returns the reason why the present gateways of the Partner refuse a caller; nil if one of them accepts it,
// if this gateway is one of them, or if there are none.
func (g *Gateway) refusedBy(now []*Gateway, peer identity.Peer, dialect, command string) (err error) {
	for _, other := range now {
		if other == g {
			return nil
		}
		if _, err = other.accepts(peer, dialect, command); err == nil {
			return nil
		}
	}
	return err
}

// accepts returns a peer as the guard accepts it, or the reason why the guard or the rules refuse its calls, as far as
// known without one.
func (g *Gateway) accepts(peer identity.Peer, dialect, command string) (identity.Peer, error) {
	if issues := g.config.Issues; issues != nil && !issues(peer.Kind, peer.ID) {
		return peer, task.Errorf(task.AuthenticationRequired,
			"what has proven who you are is not accepted any more; show a key or a token that is")
	}
	peer, err := g.config.Guard.CheckIn(dialect, peer)
	if err != nil {
		return peer, err
	}
	leader, err := g.config.Guard.Anonymous(peer)
	if err != nil {
		return peer, err
	}
	return peer, g.Denies(&policy.Call{Peer: &peer, Leader: leader, Dialect: dialect, Command: command})
}
