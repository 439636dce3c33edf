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
