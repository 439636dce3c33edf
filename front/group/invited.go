// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bug"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// clockSkew is the time for which an invitation counts after it has expired, since clocks differ.
const clockSkew = 30 * time.Second

// maxUnsent bounds the remembered refusals, not taken by the broker.
const maxUnsent = 1024

// receive handles a message of the inbox, and acknowledges it. An undecided one is left to the broker, to be delivered
// again by the next link.
func (i *inbox) receive(l link, d *broker.Delivery) {
	ctx := propagation.TraceContext{}.Extract(i.home.base, carrier(d.Header))
	p := i.engine.partner(i.partner)
	if p == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil { // so would the next attempt
			bug.Log(ctx, p.Log, "the gateway failed while it handled an invitation; this is a bug of the gateway", r)
			i.count(Unreadable)
			d.Ack()
		}
	}()
	began := time.Now()
	in, result, err := i.decide(ctx, l, d)
	if result == "" {
		return
	}
	i.count(result)
	i.log(ctx, p, &in, d, result, err, time.Since(began))
	if err == nil || in.Token == "" || in.LeaderAIC == "" || result == Unproven && err != errNoUserID {
		d.Ack()
		return
	}
	i.refuse(ctx, p, l, d, &in, err)
}

// errNoUserID is the error of an invitation in a message without a sender, as in AIP 02.01. It is for the Leader named
// in the invitation.
var errNoUserID = task.Errorf(task.InvitationRejected, "the message has no user_id, so the broker does not say who "+
	"has sent it; set the AMQP property user_id to your AIC, or have this Partner take invitations without it")

// nameUserID is the advice against it.
const nameUserID = "have the Leader set the AMQP property user_id to its AIC, which the broker verifies; or write " +
	`"without_user_id" in the block of inbox, in group: then each user of the broker with access to the inbox can ` +
	"invite in any Leader's name"

// log logs the outcome of a message, without its token.
func (i *inbox) log(ctx context.Context, p *Partner, in *aip.InboxInvitation, d *broker.Delivery, result Result,
	err error, took time.Duration) {
	switch result {
	case Ignored:
		p.Log.DebugContext(ctx, "a message of an inbox is no invitation", "partner", i.partner, "sender", d.UserID)
	case Unproven, Unreadable:
		if err == errNoUserID {
			if may, unlogged := i.nameless.Log(); may {
				// What to do: see docs/groups.md#the-inbox.
				p.Log.WarnContext(ctx, "an invitation to a group without a user_id is refused", "partner", i.partner,
					"leader", in.LeaderAIC, "advice", nameUserID, "unlogged", unlogged)
			}
			return
		}
		if may, unlogged := i.dropped.Log(); may {
			p.Log.WarnContext(ctx, "an invitation to a group is dropped", "partner", i.partner, "sender", d.UserID,
				"reason", err, "unlogged", unlogged)
		}
	default:
		p.Log.InfoContext(ctx, "an invitation to a group was handled", "partner", i.partner, "leader", in.LeaderAIC,
			"group", in.GroupID, "result", result, "error", err, "duration", took)
	}
}

// decide decides about a message. The result is empty if nothing can be decided before the link ends; the error is the
// Partner's reason not to join.
func (i *inbox) decide(ctx context.Context, l link, d *broker.Delivery) (in aip.InboxInvitation, _ Result, _ error) {
	if len(d.Body) == 0 {
		return in, Unreadable, task.Errorf(task.LimitExceeded, "it is empty, or has more than %d bytes", maxInboxMessage)
	}
	limits := defaultLimits
	if p := i.engine.partner(i.partner); p != nil && p.Gateway != nil {
		limits = p.Gateway.Limits()
	}
	in, is, err := aip.ReadInboxInvitation(d.Body, jsonrpc.Limits{Bytes: min(limits.Bytes, maxInboxMessage),
		Depth: limits.Depth})
	if !is {
		return in, Ignored, nil
	}
	sender, unproven := i.sender(d, &in)
	switch {
	case unproven != nil:
		return in, Unproven, unproven
	case err != nil:
		return in, Unreadable, err
	}
	inv := in.Call.Invitation
	sum := sha256.Sum256([]byte(in.Token))
	inv.Inbox = hex.EncodeToString(sum[:])
	peer := identity.Peer{Proof: identity.ByBroker, Kind: identity.AICKind, ID: string(sender)}
	for {
		usable := i.home.store.Reopened()
		p := i.engine.partner(i.partner)
		switch {
		case !time.Now().Before(in.ExpiresAt.Add(clockSkew)):
			return in, Refused, task.Errorf(task.InvitationRejected, "the invitation has expired")
		case p == nil || p.Inbox == nil || p.Gateway == nil:
			return in, "", nil
		}
		inv.Server = task.BrokerServer{Host: p.Inbox.Host, Port: p.Inbox.Port, VHost: p.Inbox.VHost}
		err := i.join(ctx, p, peer, &in, len(d.Body))
		switch {
		case err == nil:
			return in, Accepted, nil
		case i.home.base.Err() != nil:
			return in, "", nil
		case task.KindOf(err) != task.StoreUnavailable && !errors.Is(err, replay.ErrClosed) && !errors.Is(err, errStops):
			return in, Refused, err
		}
		select {
		case <-usable:
		case <-time.After(retryMax):
		case <-l.Done():
			return in, "", nil
		case <-i.home.base.Done():
			return in, "", nil
		}
	}
}

// sender returns the sender of an invitation.
func (i *inbox) sender(d *broker.Delivery, in *aip.InboxInvitation) (identity.AIC, error) {
	said := d.UserID // the broker has verified it
	if said == "" {
		if leader, err := identity.ParseAIC(in.LeaderAIC); err == nil {
			if p := i.engine.partner(i.partner); p != nil && p.InboxWithoutUserID {
				return leader, nil
			}
			return "", errNoUserID
		}
	}
	sender, err := identity.ParseAIC(said)
	switch {
	case err != nil:
		return "", task.Errorf(task.AuthorizationFailed, "the broker does not say by an AIC who has sent it")
	case in.LeaderAIC != "" && !sender.Is(in.LeaderAIC):
		return "", task.Errorf(task.AuthorizationFailed, "its sender is not the Leader that it names")
	}
	return sender, nil
}

// join makes the call of the invitation.
func (i *inbox) join(ctx context.Context, p *Partner, peer identity.Peer, in *aip.InboxInvitation, size int) error {
	var q gateway.Request
	defer q.Release()
	if err := p.Gateway.Hold(ctx, peer, &q, size); err != nil {
		return err
	}
	_, err := p.Gateway.Do(ctx, peer, &q, &gateway.Call{Call: in.Call, Dialect: in.Call.Invitation.Dialect})
	return err
}

// refuse writes the Partner's reason not to join to the inbox of the Leader, and acknowledges the invitation when the
// broker has the refusal. If the invitation comes again, its refusal has the same id.
func (i *inbox) refuse(ctx context.Context, p *Partner, l link, d *broker.Delivery, in *aip.InboxInvitation,
	why error) {
	sum := sha256.Sum256([]byte(i.partner + "\x00" + in.Token))
	id := "invite-err-" + hex.EncodeToString(sum[:16])
	if i.wasUnsent(id) {
		d.Ack()
		return
	}
	if i.home.mayAct != nil && i.home.mayAct(ctx) != nil {
		return
	}
	leader, err := identity.ParseAIC(in.LeaderAIC)
	if err != nil || why == errNoUserID && !i.claims.take(string(leader)) {
		d.Ack()
		return
	}
	// After an error the link has ended, and the invitation comes again.
	_ = l.Publish(broker.Message{
		ID: id, RoutingKey: inboxPrefix + string(leader), Headers: traceHeaders(ctx),
		Body: aip.AppendInboxRefusal(nil, id, time.Now(), p.AIC, in, why),
	}, func(err error) {
		switch {
		case err == nil:
			d.Ack()
		case isKind(err, broker.PermissionDenied, broker.Refused):
			i.noteUnsent(id)
			if why == errNoUserID {
				i.claims.stop()
			}
		}
	})
}

func (i *inbox) noteUnsent(id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.unsent) >= maxUnsent {
		clear(i.unsent)
	}
	i.unsent[id] = true
}

// wasUnsent reports whether the broker did not take a refusal, once.
func (i *inbox) wasUnsent(id string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	was := i.unsent[id]
	delete(i.unsent, id)
	return was
}

func (i *inbox) count(r Result) {
	i.engine.mu.Lock()
	defer i.engine.mu.Unlock()
	i.engine.inboxCount(i.partner).Messages[r]++
}

// checkUnused returns an error if an invitation by the inbox has begun a membership before, now ended: the broker may
// deliver it again. An invitation by a call has no digest.
func (m *membership) checkUnused(ctx context.Context, digest string) error {
	if digest == "" {
		return nil
	}
	for entry, err := range m.home.store.List(ctx, logname.MembershipsOf(m.partner, m.leader, m.group), "") {
		if err != nil {
			return partner.StoreError(err, "the memberships of the group cannot be read")
		}
		var r record
		if !entry.Head.Ended.IsZero() && json.Unmarshal(entry.Head.Metadata, &r) == nil && r.Inbox == digest {
			return task.Errorf(task.InvitationRejected, "the invitation was accepted before, and the membership has ended; "+
				"invite with a new invitationToken")
		}
	}
	return nil
}
