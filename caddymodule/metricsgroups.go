// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/node"
)

// The metrics of groups, of AUN, and of what agents push.
var (
	metricMembers = newGauge("group_memberships", "Memberships of groups, by their state.", "agent", "state")
	metricGroupIn = newCounter("group_received_total", "Messages that were received from groups.", "agent")
	metricOrders  = newCounter("group_commands_total", "Commands of groups that were carried out.", "agent")
	metricIgnored = newCounter("group_dropped_total", "Messages of groups that were not for the agent, or not readable.",
		"agent", "reason")
	metricGroupOut    = newCounter("group_published_total", "Messages that were published in groups.", "agent")
	metricConfirmed   = newCounter("group_confirmed_total", "Published messages that the broker has confirmed.", "agent")
	metricUnconfirmed = newGauge("group_unconfirmed", "Published messages that the broker has still to confirm.", "agent")
	metricInbox       = newGauge("group_inbox_connected",
		"Whether the inbox of groups is read, by the gateway that is to read it: 1 or 0.", "agent")
	metricInvited = newCounter("group_inbox_total", "Messages from the inbox of groups, by their result.",
		"agent", "result")
	metricGroupLag = newGauge("group_tasks_behind", "Tasks with events that are still to be published.", "agent")

	metricAUN    = newGauge("aun_connections", "Connections of AUN: of clients to the gateway, or to agents.", "peer")
	metricFrames = newCounter("aun_frames_total", "Frames of AUN.", "peer", "direction")

	metricPushable = newGauge("callbacks_open", "Turns that agents may push to.")
	metricPushes   = newCounter("callbacks_total", "Push notifications of agents, by their result.", "result")
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
			s.add(metricMembers, float64(c.ByState[state]), name, string(state))
		}
		s.add(metricGroupIn, float64(c.Received), name)
		s.add(metricOrders, float64(c.Executed), name)
		s.add(metricIgnored, float64(c.Ignored), name, "ignored")
		s.add(metricIgnored, float64(c.Poison), name, "unreadable")
		s.add(metricGroupOut, float64(c.Published), name)
		s.add(metricConfirmed, float64(c.Confirmed), name)
		s.add(metricUnconfirmed, float64(c.Unconfirmed), name)
		s.add(metricGroupLag, float64(c.Lag), name)
		if c.Mail.Messages == nil {
			continue // it has had no inbox
		}
		for _, result := range group.Results() {
			s.add(metricInvited, float64(c.Mail.Messages[result]), name, string(result))
		}
		if c.Mail.Open {
			s.flag(metricInbox, c.Mail.Connected, name)
		}
	}
}

// aun adds what concerns AUN.
func (s samples) aun() {
	s.add(metricAUN, float64(process.Clients.Open()), "client")
	s.add(metricAUN, float64(process.AUN.Connections()), "agent")
	for peer, frames := range map[string]*aun.Frames{"client": &process.Clients.Frames, "agent": &process.AUN.Frames} {
		s.add(metricFrames, float64(frames.Received.Load()), peer, "received")
		s.add(metricFrames, float64(frames.Sent.Load()), peer, "sent")
	}
}

// callbacks adds what concerns the push notifications of agents.
func (s samples) callbacks() {
	c := process.Callbacks.Counts()
	s.add(metricPushable, float64(c.Open))
	s.add(metricPushes, float64(c.Taken), "taken")
	s.add(metricPushes, float64(c.Refused), "refused")
}
