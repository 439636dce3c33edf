// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/front/aunfront"
	"github.com/aip-gateway/aip-gateway/front/aunfront/directory"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/trust/aac"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/trust/token"
)

// Process is the state of all configurations together. There is one in a process.
type Process struct {
	gateway.Process // what gateways share

	// Detached counts what has outlived its request, in all configurations: streams, and connections of AUN. TakenOver
	// counts the streams alone.
	Detached, TakenOver Counter

	host    Host
	nodes   nodes
	inForce inForce
	newest  atomic.Pointer[Configuration] // see Newest

	// Exiting is done when the process is about to exit. It ends calls that wait for a task, also those of configurations
	// that were replaced, and the answers of the sample agent.
	Exiting context.Context
	// Exit ends Exiting.
	Exit context.CancelFunc

	// Beside opens the host's side of each node. Nil for nothing. It is set before the first node is opened.
	Beside func(*Node) Beside

	Feeds     Feeds           // of registries
	Roots     Roots           // of Leaders, in files
	Began     time.Time       // when the process began
	TokenKeys token.Keys      // of issuers of callers' tokens
	Reported  amp.Counts      // of records for a monitor
	Agents    catalog.Catalog // of the configuration in force

	// The certificates of callers that were refused: by calls those that were verified but count no more, by handshakes
	// those, too, that could not be verified.
	RefusedHandshakes, RefusedCalls Refusals

	Clients     aunfront.Connections // of AUN
	Directory   *directory.Directory // of Agents, for AUN
	Authorities Authorities          // for logins of AUN

	// Reloaded are the AICs for which the configuration was loaded again: once for each, whatever comes of it.
	Reloaded sync.Map

	policies, tokens sync.Map // meters of all Partners, by their names. They are small and are kept
}

// Host is the environment of a process. The zero value logs nothing.
type Host struct {
	Log     func(name string) *slog.Logger // the log of a part of the process
	Exiting func() bool                    // whether the process is about to exit, and so no configuration follows
}

// Beside is the host's side of a node, and is closed before it.
type Beside interface{ Close() }

// NewProcess returns the state of a process that begins.
func NewProcess(h Host) *Process {
	p := &Process{Began: time.Now(), host: h}
	p.RefusedHandshakes.log = p.log("aip")
	p.RefusedHandshakes.others = []string{WrongRoot, Expired, WrongUsage, NotVerified}
	p.Roots.refused = &p.RefusedHandshakes
	p.Directory = directory.New(&p.Agents)
	p.Exiting, p.Exit = context.WithCancel(context.Background())
	return p
}

// log returns the log of a part of the process.
func (p *Process) log(name string) *slog.Logger {
	if p.host.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return p.host.Log(name)
}

// IsExiting reports whether the process is about to exit, and so no configuration follows.
func (p *Process) IsExiting() bool { return p.host.Exiting != nil && p.host.Exiting() }

// PolicyMeter returns the meter of the decisions of a Partner's policies.
func (p *Process) PolicyMeter(partner string) *policy.Meter {
	m, _ := p.policies.LoadOrStore(partner, new(policy.Meter))
	return m.(*policy.Meter)
}

// TokenMeter returns the meter of the access tokens of a Partner's callers.
func (p *Process) TokenMeter(partner string) *aac.Meter {
	m, _ := p.tokens.LoadOrStore(partner, new(aac.Meter))
	return m.(*aac.Meter)
}
