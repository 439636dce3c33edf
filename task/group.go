// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"strings"
	"time"
)

// Invitation asks an agent to join a group (AIP v01.00 §7.1): its Leader has made an exchange at a message broker, and
// the agent connects to it.
type Invitation struct {
	Protocol string // the broker's, such as rabbitmq:4.0
	Group    Group
	Server   BrokerServer
	Exchange Exchange

	// Inbox is a digest of the token of an invitation received by the agent's inbox (AIP v02.02 §7.1). Such an invitation
	// counts once. It is empty for a call.
	Inbox string

	// Dialect is the name of the dialect of the invitation. The gateway's unasked messages are written in it.
	Dialect string
}

// Group has the members of a group.
type Group struct {
	ID       string
	Leader   GroupMember
	Partners []GroupMember // perhaps without the invited agent
}

// GroupMember is an agent of a group.
type GroupMember struct {
	AIC    string
	Skills []string
}

// BrokerServer is the place of a group's message broker. AccessToken is a secret; if it is empty, the agent proves
// itself by its certificate.
type BrokerServer struct {
	Host        string // a name or an IP address, without a port and without brackets
	Port        int    // from 1 to 65535
	VHost       string
	AccessToken string
}

// Exchange is the place for publishing the messages of a group. Its Leader has declared it.
type Exchange struct {
	Name       string
	Type       string // fanout in AIP's examples
	RoutingKey string // for published messages, and for the binding of the agent's queue
}

// Membership is an agent's answer to an Invitation when it has joined (AIP v01.00 §7.1 and §7.3): with it, its Leader
// finds the agent's connection and queue at the broker.
type Membership struct {
	ConnectionName string
	VHost          string
	NodeName       string // the broker's own name
	QueueName      string
	ProcessID      string
	AIC            string // of the agent
	GroupID        string
}

// All is the entry of Message.Mentions for every member of a group.
const All = "all"

// Mentioned reports whether a list of mentions names an agent or all members. AICs are compared without regard to case.
func Mentioned(mentions []string, aic string) bool {
	return slices.ContainsFunc(mentions, func(m string) bool { return m == All || strings.EqualFold(m, aic) })
}

// GroupCommand is a Leader's command to a member of its group, beside the commands for tasks (AIP v01.00 §7.2). AIP
// v01.00 has a name for LeaveGroup only; the others are those of v02.
type GroupCommand string

// The commands for members.
const (
	LeaveGroup GroupCommand = "leave-group" // cancel the tasks, publish the last MemberStatus, and leave
	GetStatus  GroupCommand = "get-status"  // publish the MemberStatus
	Mute       GroupCommand = "mute"        // publish no tasks until Unmute
	Unmute     GroupCommand = "unmute"
	Disband    GroupCommand = "disband" // leave: the group ends
)

// GroupCommands lists every command for members.
func GroupCommands() []GroupCommand {
	return []GroupCommand{LeaveGroup, GetStatus, Mute, Unmute, Disband}
}

// Management is a message with a command for members of a group.
type Management struct {
	ID        string
	SentAt    time.Time // zero if the message has no time
	SenderID  string
	Mentions  []string // the members to act; see Mentioned
	Command   GroupCommand
	GroupID   string // empty in AIP v01.00
	SessionID string // in v02 only; the answer repeats it
}

// MemberStatus is the status of a member of a group, published by itself.
type MemberStatus struct {
	Connected bool
	Muted     bool
}
