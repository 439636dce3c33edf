// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/front/aunfront"
	"github.com/aip-gateway/aip-gateway/front/aunfront/directory"
	"github.com/aip-gateway/aip-gateway/front/aunfront/mailbox"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
)

// AUN is what a configuration sets for the gateway as a gateway of AUN.
type AUN struct {
	Authority  *aun.Authority
	Identity   *aun.Identity
	Roots      *aun.Roots
	Identities *identity.Identities
	Origins    []string                         // the hosts of pages that may connect
	Agents     map[aun.AID][]*x509.Certificate  // the certificates of agents' AIDs
	URL        func(*http.Request) string       // at which clients connect, for a request to a host
	Address    func(*http.Request) string       // of a client
	AccessLog  func(*http.Request) *slog.Logger // of the site of a request; nil for none

	box    *mailbox.Mailbox
	agents map[string]mailbox.Agent // by their AIDs
}

// startAUN makes the front and the documents for AUN clients.
func (c *Configuration) startAUN(a *AUN) (err error) {
	if a == nil {
		return nil
	}
	n, p := c.Node(), c.process
	if a.box, err = n.Mailbox(); err != nil {
		return err
	}
	front := aunfront.Config{
		Authority: a.Authority, Identity: a.Identity, Roots: a.Roots, Identities: a.Identities,
		Index: n.Index(), Assignees: n.Assignees, Connections: &p.Clients, Origins: a.Origins,
		Drain: c.Draining, DrainFor: c.settings.Drain, Exiting: p.IsExiting, Begin: c.Detach, AccessLog: a.AccessLog,
		Log: p.log("aip.aun"), Address: a.Address,
		Memory: limit.Budget{Counter: &p.Memory, Limits: c.settings.Partners.aunMemory()},
	}
	p.Assignees.NotifyBy(p.Clients.Send)
	c.Site = &directory.Site{Directory: p.Directory, Identity: a.Identity, Roots: a.Roots,
		CRL: a.Roots.Lists(a.Identity), Issued: time.Now(), Client: p.Clients.CertificateOf, Agents: a.Agents,
		Gateway: a.URL, Healthy: func() bool { return c.Draining.Err() == nil }}
	a.agents = make(map[string]mailbox.Agent)
	for _, of := range c.settings.Partners {
		if of.AID != "" {
			front.Agents = append(front.Agents, aunfront.Agent{AID: of.AID, Gateway: of.Gateway, Confirm: of.Confirm,
				Worker: of.Assignee})
			a.agents[of.AID] = aunAgent{of.Gateway, of.Assignee, &p.Clients}
		}
	}
	front.Services = map[string]aunfront.Service{
		"search": searchService{p.Directory}, "meta": metaService{c.Site}, "message": messageService{a.box},
	}
	c.Front = aunfront.New(front)
	return nil
}

// aunMemory returns the limits of the memory of AUN clients outside Partners: the least of their Partners.
func (all Partners) aunMemory() limit.Limits {
	most := limit.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64}
	for _, p := range all {
		if p.AID != "" {
			most.Total = min(most.Total, p.Memory.Total)
			most.PerLeader = min(most.PerLeader, p.Memory.PerLeader)
		}
	}
	return most
}

// aunAgent is an agent that messages reach.
type aunAgent struct {
	*gateway.Gateway
	assignee string // the AID under which the agent connects to the gateway; empty if it does not
	clients  *aunfront.Connections
}

// Online implements mailbox.Agent.
func (a aunAgent) Online() bool { return a.assignee == "" || a.clients.Online(a.assignee) }

// searchService has the methods search.*.
type searchService struct{ directory *directory.Directory }

// Call implements aunfront.Service.
func (s searchService) Call(
	ctx context.Context, _ *aunfront.Session, method string, params gjson.Result,
) ([]byte, error) {
	result, ok, err := s.directory.Search(ctx, method, params)
	if !ok && err == nil {
		err = aun.Errorf(codes.MethodNotFound, "Method not found")
	}
	return result, err
}

// metaService has the methods meta.* that are not of the connection.
type metaService struct{ site *directory.Site }

// Call implements aunfront.Service.
func (m metaService) Call(_ context.Context, _ *aunfront.Session, method string, _ gjson.Result) ([]byte, error) {
	if method != "meta.trust_roots" {
		return nil, aun.Errorf(codes.MethodNotFound, "Method not found")
	}
	list, err := m.site.TrustRoots()
	return bytes.TrimSpace(list), err
}

// messageService has the methods message.*.
type messageService struct{ box *mailbox.Mailbox }

// Call implements aunfront.Service.
func (m messageService) Call(
	ctx context.Context, s *aunfront.Session, method string, params gjson.Result,
) ([]byte, error) {
	return m.box.Call(ctx, callerOf(s), method, params)
}

// TaskOf implements aunfront.ThreadService.
func (m messageService) TaskOf(ctx context.Context, s *aunfront.Session, agent, thread string) (string, error) {
	return m.box.TaskOf(ctx, callerOf(s), agent, thread)
}

// callerOf returns a client as the mailbox knows it.
func callerOf(s *aunfront.Session) mailbox.Caller {
	return mailbox.Caller{AID: s.AID, Device: s.Device, Slot: s.Slot, Peer: s.Peer}
}
