// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"strings"
	"time"
)

// Invitation asks an agent to join a group (AIP v01.00 §7.1): its Leader has made an exchange at a message broker, and
// the agent connects to that.
type Invitation struct {
	Protocol string // that of the broker, such as rabbitmq:4.0
	Group    Group
	Server   BrokerServer
	Exchange Exchange

	// Inbox is a digest of the token of an invitation that has come by the inbox of the agent (AIP v02.02 §7.1). Such an
	// invitation counts once. It is empty for a call.
	Inbox string

	// Dialect is the name of the dialect of the invitation. What the gateway publishes unasked is written in it.
	Dialect string
}

// Group is who takes part in a group.
type Group struct {
	ID       string
	Leader   GroupMember
	Partners []GroupMember // perhaps without the agent that is invited
}

// GroupMember is an agent of a group.
type GroupMember struct {
	AIC    string
	Skills []string
}

// BrokerServer is where the message broker of a group is. AccessToken is a secret; where it is empty, the agent proves
// itself by its certificate.
type BrokerServer struct {
	Host        string // a name or an IP address, without a port and without brackets
	Port        int    // from 1 to 65535
	VHost       string
	AccessToken string
}

// Exchange is where the messages of a group are published. Its Leader has declared it.
type Exchange struct {
	Name       string
	Type       string // fanout in AIP's examples
	RoutingKey string // for what is published, and for the binding of the agent's queue
}

// Membership is what an agent answers to an Invitation when it has joined (AIP v01.00 §7.1 and §7.3): with it, its
// Leader finds the agent's connection and queue at the broker.
type Membership struct {
	ConnectionName string
	VHost          string
	NodeName       string // what the broker says of itself
	QueueName      string
	ProcessID      string
	AIC            string // of the agent
	GroupID        string
}

// All is the entry of Message.Mentions that stands for every member of a group.
const All = "all"

// Mentioned reports whether a list of mentions names an agent or all members. AICs are compared without regard to case.
func Mentioned(mentions []string, aic string) bool {
	return slices.ContainsFunc(mentions, func(m string) bool { return m == All || strings.EqualFold(m, aic) })
}

// GroupCommand is what a Leader asks of a member of its group, beside the commands for tasks (AIP v01.00 §7.2). AIP
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
	SentAt    time.Time // zero where the message has no time
	SenderID  string
	Mentions  []string // the members that are to act; see Mentioned
	Command   GroupCommand
	GroupID   string // empty in AIP v01.00
	SessionID string // in v02 only; the answer repeats it
}

// MemberStatus is what a member of a group publishes of itself.
type MemberStatus struct {
	Connected bool
	Muted     bool
}
