// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"encoding/json"
	"time"
)

// The routes of one Partner. Each is a GET with the query partner.
const (
	AgentCardOf     = "/aip/agents/card"     // AgentCard: that of its agent, as the gateway has read it
	AgentSettingsOf = "/aip/agents/settings" // AgentSettings
)

// AgentCard is what the card of an agent says, unchecked. Callers are shown a card that the gateway makes of it.
type AgentCard struct {
	Partner      string          `json:"partner"`          // as in AgentHealth
	Reason       string          `json:"reason,omitempty"` // why there is no card; nothing follows then
	Changed      time.Time       `json:"changed,omitzero"` // when the gateway first read it as it is
	Name         string          `json:"name,omitempty"`
	Description  string          `json:"description,omitempty"`
	Version      string          `json:"version,omitempty"` // of the agent
	Provider     string          `json:"provider,omitempty"`
	Streaming    bool            `json:"streaming"`
	Push         bool            `json:"push"` // it notifies webhooks
	Signed       bool            `json:"signed"`
	Interfaces   []CardInterface `json:"interfaces,omitempty"`
	Skills       []CardSkill     `json:"skills,omitempty"`
	OriginalCard json.RawMessage `json:"card,omitempty"` // as the agent has sent it
}

// CardInterface is where an agent says that it can be reached.
type CardInterface struct {
	URL     string `json:"url"`
	Binding string `json:"binding,omitempty"`
	Version string `json:"version,omitempty"` // of the protocol
}

// CardSkill is one thing that an agent says it can do.
type CardSkill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// AgentSettings are the settings of a Partner that are in force, with the defaults of those that were not set.
type AgentSettings struct {
	Partner  string    `json:"partner"`
	Settings []Setting `json:"settings"`
}

// Setting is one of them. Of a secret, only the placeholders are shown that it has.
type Setting struct {
	Name   string `json:"name"` // as in the JSON of the configuration: agent.timeout
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"`
}
