// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// The parts of a set-up that doctor examines.
const (
	CheckConfiguration = "configuration"
	CheckCertificate   = "certificate"
	CheckClientAuth    = "client_auth"
	CheckBasePath      = "base_path"
	CheckAIC           = "aic"
	CheckAgent         = "agent"
	CheckACS           = "acs"
	CheckStore         = "store"
	CheckClock         = "clock"
	CheckBroker        = "broker"
	CheckConsole       = "console"
	CheckIssuer        = "issuer" // of tokens
	CheckPolicy        = "policy"
	CheckRevocation    = "revocation"
	CheckKeys          = "keys" // of callers
	CheckTimeouts      = "timeouts"
	CheckCard          = "card"
	CheckTry           = "try"

	CheckRegistration = "registration"
)

// Status is how grave a Finding is.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Warning Status = "warning" // it works, but an operator should know
	Broken  Status = "error"
)

// Finding is what doctor has found out about one part of a set-up.
type Finding struct {
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Subject string `json:"subject"` // a file, a Partner, an agent or a directory
	Text    string `json:"text"`    // one sentence: what is wrong, and what to do
}

// Partner is a handler aip_gateway of a configuration that doctor examines.
type Partner struct {
	Handler  json.RawMessage             // its settings
	Policies caddytls.ConnectionPolicies // of the server that it is on

	ShowsAIC bool // its site shows a certificate with an AIC, as far as the configuration says it

	Served []string // the addresses at which servers of the configuration listen

	LogsAccess      bool // that server has access logs
	LogsCredentials bool // they show the header Authorization
}

// Try is a task that the agent of one Partner is sent. The zero Try is for none.
type Try struct {
	Text    string
	Partner string // its name or its AIC; empty where there is only one
}

// Examiner is the app aip of a configuration.
type Examiner interface {
	// Setup returns what is to be examined of the app, which is decoded but not provisioned, and of its Partners, or why
	// the app refuses its settings. The context has the storage of the configuration.
	Setup(ctx caddy.Context, partners []Partner) (*Setup, error)

	// Consoles returns the ways to the consoles of a configuration that is provisioned.
	Consoles() []Console
}
