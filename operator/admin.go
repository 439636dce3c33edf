// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
)

// Admin answers operators, for a node and its configuration in force.
type Admin struct {
	*node.Node

	log *slog.Logger
	of  func(*node.Configuration) *Configuration

	routes  map[string]route // by path; those of the package but in tests
	asked   *ask.Service[question, answered]
	tails   *tails
	tailing atomic.Int32 // streams of tasks
}

// Config is the environment of an Admin.
type Config struct {
	Log *slog.Logger // of the process

	// Of returns what the host has of a configuration.
	Of func(*node.Configuration) *Configuration
}

// Reporter is a node.SharedStore with a report for operators.
type Reporter interface {
	// Report returns the processes that this one knows, and, unless it is brief, what they and the store say when they are
	// asked.
	Report(ctx context.Context, brief bool) (*adminapi.ClusterReport, error)
}

// Configuration is what a host has of a configuration for operators. It does not change.
type Configuration struct {
	// TraceLink returns the link to a trace; empty where there is none.
	TraceLink func(id string) string

	// Settings returns the settings of one of the Partners.
	Settings func(partner string) []adminapi.Setting

	Servers     []adp.Client             // for discovery, at which the Partners are to be found
	Keepers     func() []*agentca.Keeper // of the certificates that are obtained
	Registrants []*Registrant            // one for each URL
}

// Registrant is a Partner whose AIC a registry assigns.
type Registrant struct {
	Partner *node.Partner
	URL     string // by which it is registered
	Account *registry.Account

	// Register registers the Partner. The record may be there beside an error; without it nothing was sent.
	Register func(context.Context, *adminapi.RegistrationOrder) (*registry.Record, error)

	HasAIC  bool                      // its URL has the AIC in it
	NamedBy func(aic string) []string // what else of the configuration has an AIC in it
}

// Open has the gateway answer operators, and other gateways whom they ask.
func Open(n *node.Node, c Config) *Admin {
	a := &Admin{Node: n, log: c.Log, of: c.Of, routes: routes}
	a.asked = ask.New(a.Shards, "admin", a.answerOthers)
	a.tails = openTails(a.Shards, a.Tasks.Process())
	return a
}

// Close ends what other gateways follow here. The node is open still.
func (a *Admin) Close() { a.tails.close() }

// current returns what the host has of the configuration in force; nothing while there is none.
func (a *Admin) current() *Configuration {
	if c := a.InForce(); c != nil {
		return a.of(c)
	}
	return new(Configuration)
}

// titleOf names a Partner for people.
func titleOf(p *node.Partner) adminapi.OfAgent { return adminapi.OfAgent{AgentName: p.Title} }

// agent returns the title of a Partner by the name under which its tasks are stored.
func (a *Admin) agent(partner string) (of adminapi.OfAgent) {
	if p := a.Partners().Named(partner); p != nil {
		of = titleOf(p)
	}
	return of
}

// partnerOf returns the name under which the tasks of a Partner are stored, by that name or its title. A name that no
// Partner has is returned as it is: its tasks may be stored still.
func (a *Admin) partnerOf(typed string) string { return a.Partners().Resolve(typed) }

// traceLink returns the link to a trace; empty where there is none.
func (a *Admin) traceLink(id string) string {
	if link := a.current().TraceLink; link != nil {
		return link(id)
	}
	return ""
}
