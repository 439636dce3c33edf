// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/node"
)

var ofGroups metric.Set

// The metrics of groups.
var (
	metricMembers = ofGroups.Gauge("group_memberships", "Memberships of groups, by their state.", "agent", "state")
	metricGroupIn = ofGroups.Counter("group_received_total", "Messages that were received from groups.", "agent")
	metricOrders  = ofGroups.Counter("group_commands_total", "Commands of groups that were carried out.", "agent")
	metricIgnored = ofGroups.Counter("group_dropped_total",
		"Messages of groups that were not for the agent, or not readable.",
		"agent", "reason")
	metricGroupOut  = ofGroups.Counter("group_published_total", "Messages that were published in groups.", "agent")
	metricConfirmed = ofGroups.Counter("group_confirmed_total",
		"Published messages that the broker has confirmed.", "agent")
	metricUnconfirmed = ofGroups.Gauge("group_unconfirmed",
		"Published messages that the broker has still to confirm.", "agent")
	metricInbox = ofGroups.Gauge("group_inbox_connected",
		"Whether the inbox of groups is read, by the gateway that is to read it: 1 or 0.", "agent")
	metricInvited = ofGroups.Counter("group_inbox_total", "Messages from the inbox of groups, by their result.",
		"agent", "result")
	metricGroupLag = ofGroups.Gauge("group_tasks_behind", "Tasks with events that are still to be published.", "agent")
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
