// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// Setup is what the app aip makes of its settings for an examination. Nothing is open, and nothing was sent.
type Setup struct {
	Store    Store
	InMemory bool // the store loses its contents with the process
	Mounts   []Mount
	Obtained []Obtained
	Lists    []string // files with lists of revoked certificates
}

// Store is the store of a Setup.
type Store struct {
	Location string
	Driver   ExaminedStore // nil if the driver cannot be examined
}

// ExaminedStore is a driver that knows whether its store can be used without opening it.
type ExaminedStore interface {
	// Examine returns why no store could be opened, or why it would accept no new tasks, with what to do; nil if there is
	// no reason. It is an UncheckedError where the store can be used, but may be unsafe. It changes nothing.
	Examine() error
}

// UncheckedError says what of a store could not be checked.
type UncheckedError struct{ Text string }

func (e *UncheckedError) Error() string { return e.Text }

// Door is where callers get to a Partner, and how they prove who they are.
type Door struct {
	Partner string // its name
	Path    string // under which it is mounted
	Mode    string // of identity
}

// Mount is a handler aip_gateway. Where Err is set, only the Title is.
type Mount struct {
	Door

	Title string
	Err   error // why the handler is refused

	OnlyAUN     bool   // its callers are of AUN only
	OtherProofs bool   // than certificates are there
	NeedsAIC    bool   // its callers compare its AIC with the certificate of the site
	Logged      string // the header in which callers send keys or tokens, and which access logs show; empty for none

	Agent        Agent
	Gateway      *gateway.Gateway
	Registration *Registration // nil where no registry assigns the AIC
	ACS          ACSCheck
	Brokers      *Brokers // nil without groups
	Issuers      token.Verifiers
	Policy       *Policy // nil for none
	Allow        []string
}

// Agent is the agent behind a Mount.
type Agent struct {
	Name    string
	Dialect *gateway.Dialect
	Config  gateway.AgentConfig
	Wait    error // why it is not asked yet: there is no certificate to show; nil if it is
}

// ACSCheck says with what the ACS of a Mount is compared.
type ACSCheck int

// The checks.
const (
	NoACSCheck    ACSCheck = iota
	RegisteredACS          // with the one that is registered
	DraftedACS             // with what a registry takes
)

// Registration is what is kept of a Partner at its registry.
type Registration struct {
	At      string // its public URL
	Record  *registry.Record
	Err     error // why there is no Record
	AtMount bool  // it is an entity that is registered with its mount point as its endpoint
}

// Brokers are those that a Mount may connect to.
type Brokers struct {
	Dialer *egress.Dialer
	Wait   error // as of an Agent
	All    []Broker
}

// Broker is one of Brokers, which an option names.
type Broker struct {
	group.Broker

	Name, Option string
}

// Policy is what a Mount decides about calls.
type Policy struct {
	*policy.Policy

	DryRun bool
	Rules  []Rule
	Quotas []Quota
	Point  interface { // that is asked; nil for none
		Reach(context.Context) error
	}
}

// Rule is what is examined of a rule.
type Rule struct {
	Name       string
	HasAll     bool // it has no condition
	NeedsProof bool // a condition holds only for callers that have proven something
}

// Quota is what is examined of a quota.
type Quota struct {
	Name   string
	DryRun bool
	OfDay  bool // it counts what is done on a day
}

// Obtained are the certificates of an agent that an authority gives, as they are kept.
type Obtained struct {
	AIC          string
	Status       agentca.Status
	Unreadable   error // why there is no Status
	NoCredential error // why no account at the authority can be made; nil if one can, or none is needed
}
