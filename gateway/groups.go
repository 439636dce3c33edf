// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Groups are the groups of a Partner. Its methods may be called by any number of goroutines at once.
type Groups interface {
	// Join joins the group of an invitation by a Leader, with the Guard's name for the Leader. It returns when the Partner
	// receives the messages of the group. A repeated invitation changes nothing. Every error is a *task.Error, or the
	// error of ctx.
	Join(ctx context.Context, leader string, in *task.Invitation) (task.Membership, error)

	// Has reports whether the Partner is a member of a Leader's group.
	Has(leader, groupID string) bool
}

// TakePart makes a Partner with Config.Groups take part in groups. It is called once, before Ready allows the first
// request.
func (g *Gateway) TakePart(in Groups) { g.groups = in }

var errNoGroups = task.Errorf(task.GroupNotSupported, "this Partner takes part in no groups")

// inviter returns the Leader of an invitation. It must be the peer.
func (x *exchange) inviter() (leader string, err error) {
	if !x.g.config.Groups {
		return "", errNoGroups
	}
	if x.peer.Verified() && !x.peer.Is(x.call.Message.SenderID) {
		return "", task.Errorf(task.InvitationRejected, "only the Leader of a group may invite to it: "+
			"group.leader.aic is not the AIC of the client certificate").WithField("params.group.leader.aic")
	}
	return x.g.config.Guard.Admit(x.peer, x.call.Message.SenderID)
}

// startsInGroup reports whether the command may start a task in a group.
func (g *Gateway) startsInGroup(c *Call) bool {
	m := &c.Message
	return g.config.Groups && m.Command == task.Start && m.GroupID != ""
}

// checkGroup refuses a start in a group the Partner takes no part in.
func (g *Gateway) checkGroup(c *Call) error {
	if !g.startsInGroup(c) || g.groups.Has(c.Leader, c.Message.GroupID) {
		return nil
	}
	return task.Errorf(task.InvalidParams, "this Partner is not in the group; invite it first, or leave out groupId").
		WithField("params.message.groupId")
}

// Limits bound the body of a request.
func (g *Gateway) Limits() jsonrpc.Limits { return g.config.Limits }

// ResponseTimeout returns the time for which a start waits for its agent, if its Leader does not set one.
func (g *Gateway) ResponseTimeout() time.Duration { return g.config.Partner.Terms.Response }
