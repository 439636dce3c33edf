// SPDX-License-Identifier: Apache-2.0

// Package logname builds the names of logs and of lists of logs, and takes them apart. A name begins with the log's
// class, one byte. By the class the writers of a common store find their own logs. The logs of tasks and of their
// outboxes then name the Partner, the Leader and the task, so two Leaders with the same taskId never meet.
package logname

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay"
)

// The classes. They are stored, and so is the separator.
const (
	Task     = 't' // a task, written by package partner
	Outbox   = 'n' // the messages to a task's webhooks, written by package notify
	Endpoint = 'e' // an endpoint of webhooks disabled by an operator, written by package notify
	Inbox    = 'i' // the messages to an AID, written by package mailbox
	AUN      = 'u' // AUN's part of a task, and its followers with their positions, written by package aunfront

	Membership = 'm' // an agent's membership of a group, written by package group
	GroupTask  = 'g' // the publications of a task in a group, written by package group

	Quota     = 'q' // the counts of a quota, written by package policy
	UsedToken = 'j' // a token for a single use, written by package aac
	Standing  = 'c' // the certificates of a Leader, written by package kept
	Secret    = 'k' // the secret in the names of tasks for their agents, written by package partner
)

// SecretOfTasks is the name of the log with the secret in the names of tasks for their agents. Each shard has one.
const SecretOfTasks = string(Secret) + "tasks"

// Separator stands between the parts of a name. None of them can hold it.
const Separator = "\x00"

// New returns the name of a task's own log.
func New(partner, leader, taskID string) string {
	return string(Task) + partner + Separator + leader + Separator + taskID // one allocation
}

// OfPartner begins the names of the logs of all tasks at a Partner.
func OfPartner(partner string) string { return string(Task) + partner + Separator }

// BehindPartner comes behind the names of the logs of all tasks at a Partner, and before those of the next Partner.
func BehindPartner(partner string) string { return string(Task) + partner + "\x01" }

// OfLeader begins the names of the logs of all tasks of a Leader at a Partner.
func OfLeader(partner, leader string) string { return OfPartner(partner) + leader + Separator }

// OutboxOf returns the name of the outbox of a task, given the name of its own log.
func OutboxOf(task string) string { return string(Outbox) + task[1:] }

// TaskOf returns the name of a task's own log, given the name of its outbox.
func TaskOf(outbox string) string { return string(Task) + outbox[1:] }

// InboxOf returns the name of the inbox of an AID.
func InboxOf(aid string) string { return string(Inbox) + aid }

// AUNTask returns the name of the log with AUN's part of a task.
func AUNTask(taskID string) string { return string(AUN) + taskID }

// FollowerOf returns the AID in the name of a log of AUNPosition; empty for other names.
func FollowerOf(log string) string {
	_, rest, _ := strings.Cut(log, Separator)
	aid, _, _ := strings.Cut(rest, Separator)
	return aid
}

// AUNPosition returns the name of the log with a device's position in the events of a task.
func AUNPosition(taskID, aid, device, slot string) string {
	return AUNTask(taskID) + Separator + aid + Separator + device + Separator + slot
}

// MembershipsOf begins the names of the logs of all memberships of a Partner in a Leader's group. At most one of them
// has not ended.
func MembershipsOf(partner, leader, groupID string) string {
	return string(Membership) + partner + Separator + leader + Separator + groupID + Separator
}

// SplitMembership takes apart the name of a membership's log.
func SplitMembership(log string) (partner, leader, groupID string) {
	partner, leader, rest := Split(log)
	groupID, _, _ = strings.Cut(rest, Separator)
	return partner, leader, groupID
}

// GroupTasksOf begins the names of the logs about the publications of a group's tasks. Behind it are the id of the task
// and a part unlike that of any other such log, since tasks may have the same id one after the other.
func GroupTasksOf(partner, leader, groupID string) string {
	return string(GroupTask) + partner + Separator + leader + Separator + groupID + Separator
}

// TaskOfGroup returns the id of the task in the name of a log beginning with GroupTasksOf.
func TaskOfGroup(log string) (taskID string) {
	_, _, rest := Split(log)
	_, rest, _ = strings.Cut(rest, Separator)
	taskID, _, _ = strings.Cut(rest, Separator)
	return taskID
}

// QuotaOf returns the name of the log of a quota's count under a key: a Leader, a Partner, or nothing.
func QuotaOf(name, key string) string { return string(Quota) + name + Separator + key }

// UsedTokenOf returns the name of the log of a token used at a Partner. key is one of the token's own.
func UsedTokenOf(partner, key string) string { return string(UsedToken) + partner + Separator + key }

// StandingOf returns the name of the log with the certificates of a Leader.
func StandingOf(leader string) string { return string(Standing) + leader }

// The lists of tasks in the store. Their names begin like those of the tasks' logs, behind the first byte.
const (
	byState   = 'l' // the tasks of a Leader in a state, by the time of their change
	bySession = 's' // the tasks of a Leader in a session, likewise
	byID      = 'i' // the tasks at a Partner with an id, of all Leaders
	byChange  = 'a' // the tasks of all Partners and Leaders in a state, by the time of their change
)

// ListOfState returns the name of the list of a Leader's tasks in a state.
func ListOfState(partner, leader, state string) string {
	return string(byState) + partner + Separator + leader + Separator + state
}

// StateOfList returns the state in the name of a list of ListOfState. It reports false for other lists.
func StateOfList(list string) (state string, ok bool) {
	if list == "" || list[0] != byState {
		return "", false
	}
	return list[strings.LastIndex(list, Separator)+1:], true
}

// ListOfAll returns the name of the list of all tasks in a state.
func ListOfAll(state string) string { return string(byChange) + state }

// ListOfSession returns the name of the list of a Leader's tasks in a session, given by a short key.
func ListOfSession(partner, leader, session string) string {
	return string(bySession) + partner + Separator + leader + Separator + session
}

// ListOfID returns the name of the list of the tasks at a Partner with an id.
func ListOfID(partner, taskID string) string { return string(byID) + partner + Separator + taskID }

// Shard returns the shard, of a number of shards, for a Leader at a Partner: for its tasks, outboxes and memberships.
// All counting towards one limit is in one shard. The tasks of an AID are in one shard at whichever Partner, together
// with its inbox, as the inbox pins their logs.
func Shard(shards int, partner, leader string) int {
	switch {
	case shards == 1:
		return 0
	case strings.HasPrefix(leader, aidLeader):
		return replay.ShardOf(shards, leader)
	}
	return replay.ShardOf(shards, partner, limit.Key(leader))
}

// aidLeader begins the name of a Leader with an AID; see identity.Peer.
const aidLeader = "aid:"

// ShardOfAID returns the shard, of a number of shards, with the inbox of an AID, and its tasks.
func ShardOfAID(shards int, aid string) int { return Shard(shards, "", aidLeader+aid) }

// ShardOf returns the shard, of a number of shards, with the log of a task.
func ShardOf(shards int, log string) int {
	partner, leader, _ := Split(log)
	return Shard(shards, partner, leader)
}

// Split takes apart the name of a task's log, or of its outbox.
func Split(log string) (partner, leader, taskID string) {
	if log == "" {
		return "", "", ""
	}
	partner, rest, _ := strings.Cut(log[1:], Separator)
	leader, taskID, _ = strings.Cut(rest, Separator)
	return partner, leader, taskID
}

// Owner returns the key for counting the logs of a class: one for each Leader of each Partner, and one for all
// unverified Leaders of a Partner.
func Owner(log string) string {
	partner, leader, _ := Split(log)
	if key := limit.Key(leader); key != leader {
		return log[:1] + partner + Separator + key + Separator
	}
	return log[:strings.LastIndex(log, Separator)+1]
}
