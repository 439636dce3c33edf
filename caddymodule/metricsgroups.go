// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/node"
)

// The metrics of groups, of AUN, and of what agents push.
var (
	metricMembers = metrics.Gauge("group_memberships", "Memberships of groups, by their state.", "agent", "state")
	metricGroupIn = metrics.Counter("group_received_total", "Messages that were received from groups.", "agent")
	metricOrders  = metrics.Counter("group_commands_total", "Commands of groups that were carried out.", "agent")
	metricIgnored = metrics.Counter("group_dropped_total",
		"Messages of groups that were not for the agent, or not readable.",
		"agent", "reason")
	metricGroupOut  = metrics.Counter("group_published_total", "Messages that were published in groups.", "agent")
	metricConfirmed = metrics.Counter("group_confirmed_total",
		"Published messages that the broker has confirmed.", "agent")
	metricUnconfirmed = metrics.Gauge("group_unconfirmed",
		"Published messages that the broker has still to confirm.", "agent")
	metricInbox = metrics.Gauge("group_inbox_connected",
		"Whether the inbox of groups is read, by the gateway that is to read it: 1 or 0.", "agent")
	metricInvited = metrics.Counter("group_inbox_total", "Messages from the inbox of groups, by their result.",
		"agent", "result")
	metricGroupLag = metrics.Gauge("group_tasks_behind", "Tasks with events that are still to be published.", "agent")

	metricAUN    = metrics.Gauge("aun_connections", "Connections of AUN: of clients to the gateway, or to agents.", "peer")
	metricFrames = metrics.Counter("aun_frames_total", "Frames of AUN.", "peer", "direction")

	metricPushable = metrics.Gauge("callbacks_open", "Turns that agents may push to.")
	metricPushes   = metrics.Counter("callbacks_total", "Push notifications of agents, by their result.", "result")
)

// groups adds what concerns groups.
func (s samples) groups(partners node.Partners, counts map[string]*group.Counts) {
	agents := make(map[string]string) // by the name of the Partner
	for _, p := range partners {
		agents[p.Name] = p.Title
	}
	all := make(map[string]*group.Counts)
	for partner, c := range counts {
		name := agents[partner]
		if name == "" {
			name = partner // it is in no configuration now
		}
		if all[name] == nil {
			all[name] = new(group.Counts)
		}
		all[name].Add(c)
	}
	for name, c := range all {
		for _, state := range group.States() {
			s.Add(metricMembers, float64(c.ByState[state]), name, string(state))
		}
		s.Add(metricGroupIn, float64(c.Received), name)
		s.Add(metricOrders, float64(c.Executed), name)
		s.Add(metricIgnored, float64(c.Ignored), name, "ignored")
		s.Add(metricIgnored, float64(c.Poison), name, "unreadable")
		s.Add(metricGroupOut, float64(c.Published), name)
		s.Add(metricConfirmed, float64(c.Confirmed), name)
		s.Add(metricUnconfirmed, float64(c.Unconfirmed), name)
		s.Add(metricGroupLag, float64(c.Lag), name)
		if c.Mail.Messages == nil {
			continue // it has had no inbox
		}
		for _, result := range group.Results() {
			s.Add(metricInvited, float64(c.Mail.Messages[result]), name, string(result))
		}
		if c.Mail.Open {
			s.Flag(metricInbox, c.Mail.Connected, name)
		}
	}
}

// aun adds what concerns AUN.
func (s samples) aun() {
	s.Add(metricAUN, float64(process.Clients.Open()), "client")
	s.Add(metricAUN, float64(process.AUN.Connections()), "agent")
	for peer, frames := range map[string]*aun.Frames{"client": &process.Clients.Frames, "agent": &process.AUN.Frames} {
		s.Add(metricFrames, float64(frames.Received.Load()), peer, "received")
		s.Add(metricFrames, float64(frames.Sent.Load()), peer, "sent")
	}
}

// callbacks adds what concerns the push notifications of agents.
func (s samples) callbacks() {
	c := process.Callbacks.Counts()
	s.Add(metricPushable, float64(c.Open))
	s.Add(metricPushes, float64(c.Taken), "taken")
	s.Add(metricPushes, float64(c.Refused), "refused")
}
