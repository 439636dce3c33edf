// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/gateway/wsfront"
	"github.com/aip-gateway/aip-gateway/mailbox"
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

// Call implements wsfront.Service.
func (m messageService) Call(
	ctx context.Context, s *wsfront.Session, method string, params gjson.Result,
) ([]byte, error) {
	return m.box.Call(ctx, callerOf(s), method, params)
}

// TaskOf implements wsfront.ThreadService.
func (m messageService) TaskOf(ctx context.Context, s *wsfront.Session, agent, thread string) (string, error) {
	return m.box.TaskOf(ctx, callerOf(s), agent, thread)
}

// callerOf returns a client as the mailbox knows it.
func callerOf(s *wsfront.Session) mailbox.Caller {
	return mailbox.Caller{AID: s.AID, Device: s.Device, Slot: s.Slot, Peer: s.Peer}
}
