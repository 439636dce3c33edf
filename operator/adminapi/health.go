// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// The routes of health. Each is a GET or HEAD that is answered by a Health: with 200 if all is well, else with 503.
const (
	HealthLive  = "/aip/health/live"  // the process answers
	HealthReady = "/aip/health/ready" // new tasks are accepted
)

// The values of Health.Status.
const (
	Live    = "live"
	Ready   = "ready"
	Unready = "unready"
)

// The values of AgentHealth.State.
const (
	AgentUp      = "up"      // it has answered the last request
	AgentDown    = "down"    // it has not
	AgentUnknown = "unknown" // nothing was sent to it yet
)

// Health is the health of the gateway. The state of agents is a detail: it has no influence on Status.
type Health struct {
	Status  string        `json:"status"`
	Reasons []string      `json:"reasons,omitempty"` // why the gateway is unready
	Store   *StoreHealth  `json:"store,omitempty"`   // of ready
	Agents  []AgentHealth `json:"agents,omitempty"`  // likewise
	Streams int64         `json:"streams,omitempty"` // likewise: those of Leaders that are open

	Revocation []SourceHealth `json:"revocation,omitempty"` // likewise
	Roots      []RootsHealth  `json:"roots,omitempty"`      // likewise: of trust_pool aip_file
}

// SourceHealth is what the gateway knows of a source of revocation.
type SourceHealth struct {
	Kind       string    `json:"kind"`
	Location   string    `json:"location"`
	Issuer     string    `json:"issuer,omitempty"` // of the list that is in use, as what follows
	Number     string    `json:"number,omitempty"`
	Entries    int       `json:"entries,omitempty"`
	ThisUpdate time.Time `json:"this_update,omitzero"`
	NextUpdate time.Time `json:"next_update,omitzero"`
	Good       time.Time `json:"good,omitzero"`    // when the source has last given it
	Reason     string    `json:"reason,omitempty"` // why there is nothing newer
}

// RootsHealth is what the gateway knows of files of roots.
type RootsHealth struct {
	Files    string   `json:"files"`
	Removed  []string `json:"removed,omitempty"`    // subjects of roots that were taken out of the files
	NotInUse []string `json:"not_in_use,omitempty"` // subjects of roots that a reload would put in use
	Reason   string   `json:"reason,omitempty"`     // why the files cannot be read
}

// StoreHealth says whether the store accepts new tasks.
type StoreHealth struct {
	Driver   string `json:"driver"`
	Writable bool   `json:"writable"`
	Reason   string `json:"reason,omitempty"` // why it is not writable
}

// AgentHealth is what the gateway knows of the agent of a Partner, from the latest requests to it.
type AgentHealth struct {
	Name     string    `json:"name"`              // of the Partner, for people
	URL      string    `json:"url,omitempty"`     // of its mount, for callers on this machine; missing if it is not known
	Partner  string    `json:"partner"`           // the name under which its tasks are stored
	Agent    string    `json:"agent"`             // its URL, or its AID
	Dialect  string    `json:"dialect,omitempty"` // missing until it is found out
	State    string    `json:"state"`
	Answered time.Time `json:"answered,omitzero"` // when it last answered a request
	Failed   time.Time `json:"failed,omitzero"`   // when it last did not
	Reason   string    `json:"reason,omitempty"`  // why it is down
}

// healthRoutes are the routes of health, and of agents' cards and settings.
var healthRoutes = []Route{
	{Path: HealthLive, Method: "GET, HEAD"},
	{Path: HealthReady, Method: "GET, HEAD", Console: MayRead},
	{Path: AgentCardOf, Method: "GET", Query: []string{"partner"}, Console: MayRead},
	{Path: AgentSettingsOf, Method: "GET", Query: []string{"partner"}, Console: MayRead},
}
