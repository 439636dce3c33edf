// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/front/aunfront"
	"github.com/aip-gateway/aip-gateway/front/aunfront/mailbox"
	"github.com/aip-gateway/aip-gateway/gateway"
)

// aunAgent is an agent that messages reach.
type aunAgent struct {
	*gateway.Gateway
	assignee string // the AID under which the agent connects to the gateway; empty if it does not
}

// Online implements mailbox.Agent.
func (a aunAgent) Online() bool { return a.assignee == "" || process.Clients.Online(a.assignee) }

// messageService has the methods message.*.
type messageService struct{ box *mailbox.Mailbox }

// Call implements aunfront.Service.
func (m messageService) Call(
	ctx context.Context, s *aunfront.Session, method string, params gjson.Result,
) ([]byte, error) {
	return m.box.Call(ctx, callerOf(s), method, params)
}

// TaskOf implements aunfront.ThreadService.
func (m messageService) TaskOf(ctx context.Context, s *aunfront.Session, agent, thread string) (string, error) {
	return m.box.TaskOf(ctx, callerOf(s), agent, thread)
}

// callerOf returns a client as the mailbox knows it.
func callerOf(s *aunfront.Session) mailbox.Caller {
	return mailbox.Caller{AID: s.AID, Device: s.Device, Slot: s.Slot, Peer: s.Peer}
}
