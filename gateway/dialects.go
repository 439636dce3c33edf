// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/translate/aun"
)

// The dialects named here.
const (
	A2A      = "a2a"      // all versions of A2A: the agent's one is found out
	AgentAPI = "agentapi" // the Agent API; its agents have settings of their own
	AUN      = "aun"      // AUN, likewise
)

// A Dialect is one protocol at one version, or A2A for all of its versions. The gateway's and its host's knowledge of
// it is here.
type Dialect struct {
	Name      string    // in a configuration
	Transport Transport // of agents

	client  func(c *AgentConfig) translate.Client // the side towards agents; nil if it is found out
	servers []newServer                           // the sides towards callers, one for each binding; nil for none

	// older is the dialect to try if an agent does not know the methods of this one, though its card names it. Cards are
	// wrong in either direction.
	older string
	found bool // agents are found by their AIC
	cards bool // agents show cards of A2A: they are found by these, and the Partner's are made of them
}

// newServer makes a side towards callers. With confirm, a finished task waits until its caller confirms it, also in a
// dialect without such a state. sender returns the AIC under which the Partner answers; nil: none.
type newServer = func(confirm bool, sender func() string) translate.Server

// dialects are all dialects, in the order of asking their servers whether a request is theirs.
var dialects = []Dialect{
	{Name: "aip/2", found: true,
		client:  func(c *AgentConfig) translate.Client { return aip.ClientV2(c.Sender) },
		servers: []newServer{func(_ bool, sender func() string) translate.Server { return aip.ServerV2As(sender) }}},
	{Name: "aip", found: true,
		client:  func(c *AgentConfig) translate.Client { return aip.Client(c.Sender) },
		servers: []newServer{func(bool, func() string) translate.Server { return aip.Server() }}},
	{Name: A2A, cards: true},
	{Name: "a2a/1.0", cards: true, older: "a2a/0.3", client: agents(a2a.V1),
		servers: callers(a2a.V1Server, a2a.V1RESTServer, a2a.V1GRPCServer)},
	{Name: "a2a/1.0-rest", cards: true, older: "a2a/1.0", client: agents(a2a.V1REST)},
	{Name: "a2a/1.0-grpc", cards: true, Transport: OverGRPC, client: agents(a2a.V1GRPC)},
	{Name: "a2a/0.3", cards: true, older: "a2a/legacy", client: agents(a2a.V03),
		servers: callers(a2a.V03Server, a2a.V03RESTServer)},
	{Name: "a2a/legacy", cards: true, older: "a2a/0.3", client: agents(a2a.Legacy), servers: callers(a2a.LegacyServer)},
	{Name: AgentAPI,
		client:  func(c *AgentConfig) translate.Client { return agentapi.Client(c.AgentAPI) },
		servers: callers(agentapi.Server)},
	{Name: AUN, Transport: OverAUN,
		client:  func(c *AgentConfig) translate.Client { return aun.Client(string(c.AUN.Peer)) },
		servers: callers(func(confirm bool) translate.Server { return aun.Server{Confirm: confirm} })}, // of wsfront
	{Name: aun.AssigneeName, Transport: Connecting,
		client: func(c *AgentConfig) translate.Client { return aun.Assignee(c.HTTP.URL, c.Owner) }},
}

// agents returns the side towards agents of a dialect without settings.
func agents(client func() translate.Client) func(*AgentConfig) translate.Client {
	return func(*AgentConfig) translate.Client { return client() }
}

// callers returns the sides towards callers of a dialect without a name for the Partner.
func callers(servers ...func(confirm bool) translate.Server) (list []newServer) {
	for _, server := range servers {
		list = append(list, func(confirm bool, _ func() string) translate.Server { return server(confirm) })
	}
	return list
}

// Transport is the way to the agents of a dialect.
type Transport uint8

// The transports.
const (
	OverHTTP   Transport = iota // at their URL
	OverGRPC                    // at their URL
	OverAUN                     // by their AID
	Connecting                  // they connect to the gateway, and have an AID in place of a URL
)

// AgentDialects returns the names of the dialects of agents, sorted.
func AgentDialects() []string { return namesOf(func(*Dialect) bool { return true }) }

// CallerDialects returns the names of the dialects of callers, sorted.
func CallerDialects() []string { return namesOf((*Dialect).serves) }

func namesOf(has func(*Dialect) bool) (list []string) {
	for i := range dialects {
		if has(&dialects[i]) {
			list = append(list, dialects[i].Name)
		}
	}
	slices.Sort(list)
	return list
}

// AgentDialect returns the dialect of agents with a name. The error lists the names.
func AgentDialect(name string) (*Dialect, error) {
	if d := dialectOf(name); d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("there is no dialect %q; this gateway can front %s", name, strings.Join(AgentDialects(), ", "))
}

// dialectOf returns the dialect with a name; nil for none.
func dialectOf(name string) *Dialect {
	if i := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Name == name }); i >= 0 {
		return &dialects[i]
	}
	return nil
}

// Polled reports whether agents can be asked, at their URL, for the state of a task.
func (d *Dialect) Polled() bool {
	if d.Transport != OverHTTP && d.Transport != OverGRPC {
		return false
	}
	return d.client == nil || translate.FacetsOf(d.client(new(AgentConfig))).Getter != nil
}

// Found reports whether agents can be found by their AIC.
func (d *Dialect) Found() bool { return d.found }

// serves reports whether callers may use the dialect.
func (d *Dialect) serves() bool { return d.Name == A2A || d.servers != nil }

// isA2A reports whether a dialect is a version of A2A.
func isA2A(dialect string) bool { return strings.HasPrefix(dialect, A2A) }

// Callers returns the dialects of callers with the given names, in the order of their matching; see newServer.
func Callers(names []string, confirm bool, sender func() string) (list []translate.Server, err error) {
	for _, name := range names {
		if d := dialectOf(name); d == nil || !d.serves() {
			return nil, fmt.Errorf("there is no dialect %q; this gateway can serve %s", name,
				strings.Join(CallerDialects(), ", "))
		}
	}
	for _, d := range dialects {
		if slices.Contains(names, d.Name) || isA2A(d.Name) && slices.Contains(names, A2A) {
			for _, server := range d.servers {
				list = append(list, server(confirm, sender))
			}
		}
	}
	return list, nil
}

// Wire returns the dialect of the notifications of a webhook of a Partner's task, also if callers may not use it any
// more. nil if there is no such dialect.
func Wire(w *task.Webhook, partner string) translate.Notifier {
	if _, err := identity.ParseAIC(partner); err != nil {
		partner = "" // a Partner without an AIC has the URL of its agent for a name
	}
	if d := dialectOf(w.Dialect); d != nil && d.servers != nil {
		return d.servers[0](w.Confirm, func() string { return partner })
	}
	return nil
}

// names returns the names of dialects.
func names(callers []translate.Server) (list []string) {
	for _, s := range callers {
		list = append(list, s.Name())
	}
	return list
}
