// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// GroupName names a group of a Partner.
type GroupName struct {
	Partner string `json:"partner"` // as in Group
	Leader  string `json:"leader"`
	Group   string `json:"group"`
}

// Group is a group in which a Partner takes part.
type Group struct {
	GroupName
	Of
	OfAgent

	State       string    `json:"state"` // joining, joined, reconnecting, waiting, unregistered or leaving
	Since       time.Time `json:"since"` // of state
	Muted       bool      `json:"muted"`
	Blocked     bool      `json:"blocked"`               // the broker takes no messages now
	LastError   string    `json:"last_error,omitempty"`  // why there is no connection
	NextAttempt time.Time `json:"next_attempt,omitzero"` // to connect
	Joined      time.Time `json:"joined"`
	Dialect     string    `json:"dialect"` // of the invitation

	LeaderAIC string   `json:"leader_aic"`
	Members   []string `json:"members"` // the AICs of the Partners in the invitation
	Broker    string   `json:"broker"`  // host and port
	VHost     string   `json:"vhost"`
	Node      string   `json:"node,omitempty"` // what the broker says of itself
	Exchange  string   `json:"exchange"`
	Queue     string   `json:"queue"`

	Tasks       int `json:"tasks"`       // that have not ended, or not been published to their end
	Lag         int `json:"lag"`         // tasks with changes that are still to be published
	Unconfirmed int `json:"unconfirmed"` // messages that the broker has not confirmed

	// What happened since the process began, in messages.
	Received  uint64 `json:"received"`
	Executed  uint64 `json:"executed"`
	Ignored   uint64 `json:"ignored"`
	Poison    uint64 `json:"poison"`
	Published uint64 `json:"published"`
	Confirmed uint64 `json:"confirmed"`
}

// GroupList holds the groups that a query selects.
type GroupList struct {
	Partial

	Groups []Group `json:"groups"`
}

// ofGroup are the flags of commands about a group.
var ofGroup = []Flag{
	{"partner", "of this Partner: its name, or its AIC", false}, {"leader", "of this Leader", false},
}

// groupRoutes are the routes of groups, and their commands.
var groupRoutes = []Route{
	{
		Path: Groups, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "group", "state"},
		Commands: []Command{{
			Name:  "groups list",
			Args:  "[--state <state>] [--leader <aic>] [--partner <name>]",
			Short: "Lists the groups in which the gateway's Partners take part",
			Long: `
Lists the groups in which the gateway's Partners take part: joining (the invitation is
being answered), joined (connected to the broker), reconnecting (the connection is
lost), waiting (for an invitation, because the broker refuses the token, or it is not
known any more), unregistered (the Partner is not in the configuration) or leaving. LAG
is the number of tasks with changes that are still to be published.
`,
			Example: `  $ caddy aip groups list
  $ caddy aip groups list --state waiting --json`,
			Flags: append([]Flag{
				{"state", "joining, joined, reconnecting, waiting, unregistered or leaving", false},
			}, ofGroup...),
		}, {
			Name:  "groups show",
			Args:  "<group> [--leader <aic>] [--partner <name>]",
			Short: "Shows a group: its members, its broker and its counters",
			Long: `
Shows a group in which a Partner of the gateway takes part. The counters begin with the
process. If several Leaders or Partners have a group of this name, say which.
`,
			Example: `  $ caddy aip groups show trip-1`,
			Flags:   ofGroup,
		}},
	},
	{
		Path: LeaveGroup, Method: "POST", Console: MayLeave,
		Commands: []Command{{
			Name:  "groups leave",
			Args:  "<group> [--leader <aic>] [--partner <name>]",
			Short: "Leaves a group",
			Long: `
Leaves a group, as if its Leader had asked for it: tasks of the group that have not
ended are canceled, the Partner says in the group that it is not connected any more,
and its queue is deleted. AIP has Leaders decide who leaves, so use it only for a group
that its Leader has given up.
`,
			Example: `  $ caddy aip groups leave trip-1`,
			Flags:   ofGroup,
		}},
	},
}
