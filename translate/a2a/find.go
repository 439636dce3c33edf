// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
)

// The bindings named in cards.
const (
	bindingJSONRPC = "JSONRPC"
	bindingREST    = "HTTP+JSON"
	bindingGRPC    = "GRPC"
)

// Finder returns the finder of an A2A agent's version.
func Finder() translate.Finder { return finder{} }

type finder struct{}

// The places of cards: from 0.3 on, and before.
const (
	placeOf03     = "/.well-known/agent-card.json"
	placeBefore03 = "/.well-known/agent.json"
)

// Places implements translate.Finder. Some agents show another card for each version, and that of the newest version
// says the most.
func (finder) Places() ([]string, []translate.Field) {
	return []string{placeOf03, placeBefore03},
		[]translate.Field{{Name: "A2A-Version", Value: "1.0"}}
}

// Card implements translate.Finder.
func (finder) Card(body []byte) (*translate.Card, error) { return ParseCard(body) }

// Offers implements translate.Finder. It leaves out interfaces with a tenant, as no dialect supports them, and those of
// HTTP+JSON and gRPC before 1.0, protocols of their own. gRPC comes last, at any place in the card: it needs a port of
// its own, perhaps out of the gateway's reach, and brings nothing new.
func (finder) Offers(c *translate.Card, path string) []translate.Offer {
	// 0.1 and early 0.2 look the same. Agents of 0.2 are made with SDKs, and know the methods for webhooks; those of 0.1
	// are written by hand, and know only the few methods they need.
	likely := version.NameLegacy
	if path == placeOf03 {
		likely = version.Name03
	}
	if len(c.Interfaces) == 0 {
		return []translate.Offer{{Likely: likely, Why: "its card names no URL"}}
	}
	var offers, last []translate.Offer
	for _, i := range c.Interfaces {
		if i.URL == "" || i.Tenant != "" {
			continue
		}
		// Agents with one binding only leave it out.
		rpc := i.Binding == "" || strings.EqualFold(i.Binding, bindingJSONRPC)
		rest := strings.EqualFold(i.Binding, bindingREST)
		o := translate.Offer{URL: i.URL}
		switch generation := version.Parse(i.Version); {
		case rpc && generation == version.V1:
			o.Dialect, o.Why = version.Name10, "its card lists JSONRPC 1.0"
		case rest && generation == version.V1:
			o.Dialect, o.Why = version.Name10REST, "its card lists HTTP+JSON 1.0"
		case isGRPC(i) && generation == version.V1:
			o.Dialect, o.Why, o.OwnPort = version.Name10GRPC, "its card lists GRPC 1.0", true
			last = append(last, o)
			continue
		case rpc && generation == version.V03:
			o.Dialect, o.Why = version.Name03, "its card names a protocolVersion of 0.2 or 0.3"
		case rpc && generation == version.Legacy:
			o.Dialect, o.Why = version.NameLegacy, "its card names a protocolVersion of 0.1"
		case rpc && i.Version == "" && (c.Security.Version == "0.2" || c.Extended):
			// 0.2 named its version from 0.2.5 on, and had these members from 0.2.1 on.
			o.Dialect, o.Why = version.Name03, "its card has members that 0.2 brought"
		case rpc && i.Version == "":
			o.Why, o.Likely = "its card names no version", likely
		default:
			continue
		}
		offers = append(offers, o)
	}
	return append(offers, last...)
}

func isGRPC(i translate.Interface) bool { return strings.EqualFold(i.Binding, bindingGRPC) }

// Unsupported implements translate.Finder.
func (finder) Unsupported(c *translate.Card) string {
	other := func(i translate.Interface) bool { return !isGRPC(i) }
	if len(c.Interfaces) == 0 || slices.ContainsFunc(c.Interfaces, other) {
		return ""
	}
	return "the agent's card offers only gRPC of A2A before 1.0, which this gateway does not speak; " +
		"let the agent serve gRPC of 1.0, JSONRPC or HTTP+JSON as well, and list it in its card"
}

// Probes implements translate.Finder. tasks/get is no probe: it is the same in all versions before 1.0.
func (finder) Probes(id string) []translate.Probe {
	probe := func(dialect, method, version string, no ...int64) translate.Probe {
		body := jsonrpc.BeginRequest(nil, jsonrpc.ID("1"), method)
		body = append(body, `{"id":`...)
		body = task.AppendString(body, id)
		body = jsonrpc.End(append(body, '}'))
		p := translate.Probe{
			Dialect: dialect, Body: body, Asks: method, Why: "it knows " + method,
			Judge: func(body []byte) translate.Verdict { return judge(body, no) },
		}
		if version != "" {
			p.Header = []translate.Field{{Name: "A2A-Version", Value: version}}
		}
		return p
	}
	return []translate.Probe{
		// Only here a failure of the agent proves nothing: any server of 1.0 can look up a task. An error about the version
		// is a No as well, and so is a task: an agent finding one has not read the question.
		probe(version.Name10, "GetTask", "1.0", -32603, -32009, found),
		// An agent may have no webhooks, or fail because it does not know the id, and still know the method.
		probe(version.NameLegacy, "tasks/pushNotification/get", ""),
		probe(version.Name03, "tasks/pushNotificationConfig/get", ""),
	}
}

// judge reads the answer to a probe. Some agents report an unknown method; others call the request invalid or
// unreadable. no holds more codes for a No.
func judge(body []byte, no []int64) translate.Verdict {
	res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{})
	switch {
	case bad != nil:
		return translate.Unsure
	case slices.Contains(append(no, -32601, -32600, -32700), code(res)):
		return translate.No
	}
	return translate.Yes
}

// found stands for a success among the codes of errors. Their codes are never 0.
const found = 0

func code(res jsonrpc.Response) int64 {
	if res.Failure == nil {
		return found
	}
	return res.Failure.Code
}
