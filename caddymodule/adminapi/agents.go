// SPDX-License-Identifier: Apache-2.0

package adminapi

import (
	"encoding/json"
	"time"
)

// AgentCardOf is the route of the card of a Partner's agent, as the gateway has read it.
const AgentCardOf = "/aip/agents/card" // GET, with the query partner: AgentCard

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
