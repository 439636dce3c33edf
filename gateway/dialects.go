// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"maps"
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

// A2A is the name of all versions of A2A: the one that an agent speaks is found out.
const A2A = "a2a"

// AgentAPI is the name of the Agent API, whose agents have settings of their own.
const AgentAPI = "agentapi"

// AUN is the name of AUN, whose agents are reached by connections of their own.
const AUN = "aun"

// clients are the dialects of agents by name.
var clients = map[string]func(c *AgentConfig) translate.Client{
	"aip":          func(c *AgentConfig) translate.Client { return aip.Client(c.Sender) },
	"aip/2":        func(c *AgentConfig) translate.Client { return aip.ClientV2(c.Sender) },
	"a2a/legacy":   func(*AgentConfig) translate.Client { return a2a.Legacy() },
	"a2a/0.3":      func(*AgentConfig) translate.Client { return a2a.V03() },
	"a2a/1.0":      func(*AgentConfig) translate.Client { return a2a.V1() },
	"a2a/1.0-rest": func(*AgentConfig) translate.Client { return a2a.V1REST() },
	"a2a/1.0-grpc": func(*AgentConfig) translate.Client { return a2a.V1GRPC() },
	AUN:            func(c *AgentConfig) translate.Client { return aun.Client(string(c.AUN.Peer)) },
	AgentAPI:       func(c *AgentConfig) translate.Client { return agentapi.Client(c.agentAPI()) },
}

// caller is a dialect of callers. A name may stand for several of them.
type caller struct {
	name string
	make func(confirm bool, aic string) translate.Server
}

// servers are the dialects of callers. The first one that matches a request decodes it.
var servers = []caller{
	{"aip/2", func(_ bool, aic string) translate.Server { return aip.ServerV2(aic) }},
	{"aip", func(bool, string) translate.Server { return aip.Server() }},
	{"a2a/1.0", func(confirm bool, _ string) translate.Server { return a2a.V1Server(confirm) }},
	{"a2a/1.0", func(confirm bool, _ string) translate.Server { return a2a.V1RESTServer(confirm) }},
	{"a2a/1.0", func(confirm bool, _ string) translate.Server { return a2a.V1GRPCServer(confirm) }},
	{"a2a/0.3", func(confirm bool, _ string) translate.Server { return a2a.V03Server(confirm) }},
	{"a2a/0.3", func(confirm bool, _ string) translate.Server { return a2a.V03RESTServer(confirm) }},
	{"a2a/legacy", func(confirm bool, _ string) translate.Server { return a2a.LegacyServer(confirm) }},
	{"agentapi", func(confirm bool, _ string) translate.Server { return agentapi.Server(confirm) }},
	{aun.Name, func(confirm bool, _ string) translate.Server { return aun.Server{Confirm: confirm} }}, // of wsfront
}

// CheckAgentDialect returns an error if agents have no dialect of a name. The error lists the names.
func CheckAgentDialect(name string) error {
	if _, ok := clients[name]; ok || name == A2A || name == aun.AssigneeName {
		return nil
	}
	list := append(slices.Collect(maps.Keys(clients)), A2A, aun.AssigneeName)
	slices.Sort(list)
	return fmt.Errorf("there is no dialect %q; this gateway can front %s", name, strings.Join(list, ", "))
}

// Connects reports whether the agents of a dialect connect to the gateway, so that they have an AID in place of a URL.
func Connects(dialect string) bool { return dialect == aun.AssigneeName }

// Callers returns the dialects of callers with the given names, in the order in which they are matched. With confirm, a
// finished task waits until its caller confirms it, also in dialects that have no such state. aic is that of the
// Partner.
func Callers(names []string, confirm bool, aic string) ([]translate.Server, error) {
	for _, name := range names {
		if name != A2A && !slices.ContainsFunc(servers, func(s caller) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no dialect %q; this gateway can serve %s", name, callerDialects())
		}
	}
	var list []translate.Server
	for _, s := range servers {
		if slices.Contains(names, s.name) || strings.HasPrefix(s.name, A2A+"/") && slices.Contains(names, A2A) {
			list = append(list, s.make(confirm, aic))
		}
	}
	return list, nil
}

func callerDialects() string {
	list := []string{A2A}
	for _, s := range servers {
		if !slices.Contains(list, s.name) {
			list = append(list, s.name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Wire returns the dialect in which a webhook of a Partner's task is notified, also where callers may not use it any
// more. nil where there is no such dialect.
func Wire(w *task.Webhook, partner string) translate.Notifier {
	if _, err := identity.ParseAIC(partner); err != nil {
		partner = "" // a Partner without an AIC has the URL of its agent for a name
	}
	for _, s := range servers {
		if s.name == w.Dialect {
			return s.make(w.Confirm, partner)
		}
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
