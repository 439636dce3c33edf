// SPDX-License-Identifier: Apache-2.0

// Package adminapi is the interface of the gateway's part of Caddy's admin API: its routes, and the JSON that they
// take and answer. The aip app serves it, and the commands of package cli use it.
package adminapi

import (
	"encoding/json"
	"strconv"
)

// The routes.
const (
	Groups     = "/aip/groups"       // GET: GroupList
	LeaveGroup = "/aip/groups/leave" // POST GroupName: GroupName
)

// Of says which of several gateways has something; it is empty where one is alone.
type Of struct {
	Gateway string `json:"gateway,omitempty"`
}

// AtGateway returns the name of the gateway.
func (o Of) AtGateway() string { return o.Gateway }

// SetGateway sets the name of the gateway.
func (o *Of) SetGateway(name string) { o.Gateway = name }

// OfAgent is the name for people of the Partner that something belongs to; empty if it is in no configuration now.
type OfAgent struct {
	AgentName string `json:"agent_name,omitempty"`
}

// Partial says what a list lacks that several gateways answer: the names of those that have not answered, and shards
// that none of them owns now.
type Partial struct {
	Missing []string `json:"missing,omitempty"`
}

// Cursor is where a page of a list begins that a gateway that is alone numbers. It is a number then, and else a text.
type Cursor string

// MarshalJSON implements json.Marshaler.
func (c Cursor) MarshalJSON() ([]byte, error) {
	if _, err := strconv.ParseUint(string(c), 10, 64); err == nil {
		return []byte(c), nil
	}
	return json.Marshal(string(c))
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Cursor) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] != '"' {
		*c = Cursor(text)
		return nil
	}
	return json.Unmarshal(text, (*string)(c))
}
