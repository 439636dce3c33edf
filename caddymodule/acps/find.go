// SPDX-License-Identifier: Apache-2.0

package acps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"sync"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/locate"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
)

// Find says how agents are found that are given by their AIC.
type Find struct {
	// A registry of ACPs 2, followed for news. Default: that of the option registry.
	Registries []FindServer `json:"registries,omitempty"`

	// A discovery server (ADP v02). Default: none.
	Discovery []FindServer `json:"discovery,omitempty"`

	// The place of one agent. Default: none.
	Agents []FoundAgent `json:"agents,omitempty"`

	finder *locate.Finder
	feeds  []*node.Feed
}

// FindServer is a registry or a discovery server.
type FindServer struct {
	// Its base URL, https, or http on this host; that of a registry without a path.
	URL string `json:"url,omitempty"`

	// PEM files with its roots. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// PEM files with the client certificate for it, and its key.
	Cert string `json:"cert,omitempty"`

	// Default: none.
	Key string `json:"key,omitempty"`
}

// FoundAgent is where an agent is.
type FoundAgent struct {
	// Its AIC.
	AIC string `json:"aic"`

	// Its https URL.
	URL string `json:"url"`

	// Its dialect, aip or aip/2. Default: aip/2 for an AIC with dots, otherwise aip.
	Dialect string `json:"dialect,omitempty"`
}

// FindOption returns what reads the option. Syntax:
//
//	find {
//		registry  [<url>] {
//			ca <file>...
//		}
//		discovery <url> {
//			ca          <file>...
//			client_cert <cert> <key>
//		}
//		agent <aic> <url> [<dialect>]
//	}
func FindOption(p *conf.Parser, into **Find) func() {
	return func() {
		f := new(Find)
		*into = f
		p.Section(conf.Options{
			"registry":  findServerOption(p, "registry", &f.Registries),
			"discovery": findServerOption(p, "discovery", &f.Discovery),
			"agent": func() {
				args := p.RemainingArgs()
				if len(args) < 2 || len(args) > 3 {
					p.Fail("agent is written as: agent <aic> <url> [<dialect>]")
					return
				}
				a := FoundAgent{AIC: args[0], URL: args[1]}
				if len(args) == 3 {
					a.Dialect = args[2]
				}
				f.Agents = append(f.Agents, a)
			},
		})()
	}
}

func findServerOption(p *conf.Parser, kind string, into *[]FindServer) func() {
	return func() {
		var s FindServer
		if p.NextArg() {
			s.URL = p.Val()
		}
		in := conf.Options{"ca": p.Words(&s.CA)}
		if kind == "discovery" {
			in["client_cert"] = p.CertAndKey(&s.Cert, &s.Key)
		}
		p.Block(kind, in)
		*into = append(*into, s)
	}
}

// Provision reads files, and sends nothing. Stop must be called afterwards. own is the app's option registry; nil for
// none. feeds are those of all configurations.
func (f *Find) Provision(own *Registry, feeds *node.Feeds, log *slog.Logger) error {
	if f == nil {
		return nil
	}
	registries := f.Registries
	if len(registries) == 0 && own != nil {
		registries = []FindServer{{}}
	}
	var sources []locate.Source
	for i := range registries {
		s, err := f.registry(&registries[i], own, feeds, log)
		if err != nil {
			return fmt.Errorf("find: registry: %w", err)
		}
		sources = append(sources, s)
	}
	for i := range f.Discovery {
		s, err := f.Discovery[i].discovery()
		if err != nil {
			return fmt.Errorf("find: discovery: %w", err)
		}
		sources = append(sources, s)
	}
	fixed := make(map[string]locate.Agent)
	for _, a := range f.Agents {
		agent, err := a.agent()
		if err != nil {
			return fmt.Errorf("find: %w", err)
		}
		if _, twice := fixed[agent.AIC]; twice {
			return fmt.Errorf("find: agent: %s is given twice; leave one of them out", agent.AIC)
		}
		fixed[agent.AIC] = agent
	}
	if len(sources)+len(fixed) == 0 {
		return errors.New("find: it has nothing to find agents by; name a registry, a discovery server or an agent")
	}
	f.finder = locate.New(sources, fixed)
	return nil
}

// registry returns a registry as a source, with its feed.
func (f *Find) registry(s *FindServer, own *Registry, feeds *node.Feeds, log *slog.Logger) (source locate.Source,
	err error) {
	switch {
	case s.Cert+s.Key != "":
		return source, errors.New("a registry is shown no certificate; leave cert and key out")
	case s.URL == "" && own == nil:
		return source, errors.New("it has no URL, and there is no option registry whose URL it could be")
	case s.URL == "":
		server, err := own.server()
		if err != nil {
			return source, err
		}
		if len(s.CA) > 0 {
			server.CA = s.CA
		}
		s = &server
	}
	if u, err := url.Parse(s.URL); err == nil && u.Path != "" && u.Path != "/" {
		return source, fmt.Errorf("%q has a path; write the URL of the registry without one", s.URL)
	}
	roots, err := certfile.ReadRoots(s.CA)
	if err != nil {
		return source, err
	}
	client, err := registry.New(registry.Config{URL: s.URL, Roots: node.PoolOf(roots)})
	if err != nil {
		return source, err
	}
	feed, err := feeds.Use(client.URL(), roots, log)
	if err != nil {
		return source, err
	}
	f.feeds = append(f.feeds, feed)
	return locate.Registry(client, feed.Feed), nil
}

// discovery returns a discovery server as a source.
func (s *FindServer) discovery() (source locate.Source, err error) {
	base, err := registry.CheckURL(s.URL)
	if err != nil {
		return source, err
	}
	client, err := discoveryClient(s.CA, s.Cert, s.Key)
	if err != nil {
		return source, err
	}
	return locate.Discovery(&adp.Client{URL: base, HTTP: client}), nil
}

func (a *FoundAgent) agent() (agent locate.Agent, err error) {
	aic, err := conf.AIC("agent", a.AIC)
	if err != nil {
		return agent, err
	}
	if agent.URL, err = locate.CheckURL(a.URL); err != nil {
		return agent, fmt.Errorf("agent: %w", err)
	}
	agent.AIC, agent.Dialect, agent.Source = string(aic), a.Dialect, "the option find"
	switch a.Dialect {
	case "":
		agent.Dialect = locate.DialectOf(agent.AIC, "")
	case locate.V1, locate.V2:
	default:
		return agent, fmt.Errorf("agent: the dialect is %s, but must be %s or %s", strconv.Quote(a.Dialect),
			locate.V1, locate.V2)
	}
	return agent, nil
}

// Start begins to follow the registries.
func (f *Find) Start() {
	if f == nil {
		return
	}
	for _, feed := range f.feeds {
		feed.Start()
	}
}

// Stop ends the use of the feeds.
func (f *Find) Stop() {
	if f == nil {
		return
	}
	for _, feed := range f.feeds {
		feed.Leave()
	}
	f.feeds = nil
}

// agentFinder finds the agent of a Partner. It implements discovery.Finder.
type agentFinder struct {
	finder  *locate.Finder
	feeds   []*node.Feed
	aic     string
	dialect string // as configured; empty for that of the ACS
}

// Fresh implements discovery.Finder.
func (f *agentFinder) Fresh() bool { return f.finder.Fresh(f.aic) }

// Find implements discovery.Finder. What a Leader reads names no server.
func (f *agentFinder) Find(ctx context.Context) (discovery.Found, error) {
	a, err := f.finder.Find(ctx, f.aic)
	if err == nil {
		found := discovery.Found{Dialect: a.Dialect, URL: a.URL, Why: a.Source + " says so"}
		if f.dialect != "" {
			found.Dialect = f.dialect
		}
		return found, nil
	}
	why := "where the agent is could not be found out"
	switch {
	case registry.Is(err, registry.Inactive):
		why = "the agent is not active at its registry"
	case registry.Is(err, registry.NotFound):
		why = "the agent is not registered"
	}
	return discovery.Found{}, task.Errorf(task.AgentUnavailable, "%s", why).WithCause(err)
}

// errDisabled ends turns of an agent that its registry has disabled meanwhile. The gateway does not ask the agent
// whether it works on.
var errDisabled = task.Errorf(task.AgentTimeout, "the agent is not active at its registry any more")

// lost has f called when a registry says that the agent is not active.
func (f *agentFinder) lost(call func(*task.Error)) (stop func()) {
	once := sync.OnceFunc(func() { call(errDisabled) })
	stops := make([]func() bool, len(f.feeds))
	for i, feed := range f.feeds {
		stops[i] = context.AfterFunc(feed.Active(f.aic), once)
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// FindAgent has an agent that is given by its AIC found, and its turns end when it is disabled.
func (f *Find) FindAgent(a *agents.Config, c *gateway.AgentConfig) error {
	switch {
	case a.AIC == "":
		return nil
	case f == nil:
		return errors.New("an agent by its AIC needs the global option aip { find { registry <url> } }")
	}
	pinned := a.Dialect
	if pinned == locate.V1 {
		pinned = "" // of any version
	}
	finder := &agentFinder{f.finder, f.feeds, a.AIC, pinned}
	c.Finder, c.Turns.Lost = finder, finder.lost
	return nil
}
