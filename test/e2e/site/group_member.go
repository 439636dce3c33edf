// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/identity"
)

// Invitation returns the parameters of an invitation.
func (g *GroupLeader) Invitation(partners ...string) Object {
	var members []Object
	for _, aic := range partners {
		members = append(members, Object{"aic": aic, "skills": []string{"task-processing"}})
	}
	server := Object{"host": g.Host, "port": g.Port, "vhost": g.VHost}
	if g.Token != "" {
		server["accessToken"] = g.Token
	}
	return Object{
		"protocol": "rabbitmq:4.0",
		"group": Object{
			"groupId": g.ID, "partners": members,
			"leader": Object{"aic": g.AIC(), "skills": []string{"task-management", "group-management"}},
		},
		"server": server,
		"amqp":   Object{"exchange": g.Exchange, "exchangeType": "fanout", "routingKey": ""},
	}
}

// Membership is the answer to an invitation.
type Membership struct {
	ConnectionName, VHost, NodeName, QueueName, ProcessID, AIC, Status, GroupID string
}

// InviteError is the error that answers an invitation.
type InviteError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// Invite sends an invitation, and returns the answer.
func (g *GroupLeader) Invite(c *Caller, params Object) (*Membership, *InviteError) {
	c.T.Helper()
	path := "/group"
	if g.V2 {
		path = "/group/rpc"
	}
	body, err := json.Marshal(Object{"jsonrpc": "2.0", "method": "group", "id": "1", "params": params})
	NoError(c.T, err)
	res, body := c.Post(path, body)
	var answer struct {
		ID     string
		Result *Membership
		Error  *InviteError
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&answer); err != nil || res.StatusCode != 200 || answer.ID != "1" ||
		(answer.Result == nil) == (answer.Error == nil) {
		c.T.Fatalf("an invitation was answered %d %s: %v", res.StatusCode, body, err)
	}
	return answer.Result, answer.Error
}

// Late reports whether an invitation was refused because the broker took longer than AIP lets an invitation take.
func (e *InviteError) Late() bool { return e != nil && strings.Contains(string(e.Data), " in time") }

// Join invites a member that must join. It invites again where the broker is slow.
func (g *GroupLeader) Join(m *Member) (joined *Membership) {
	g.t.Helper()
	var refused *InviteError
	Eventually(g.t, "the broker answers an invitation in time", func() bool {
		joined, refused = g.Invite(m.CalledBy(g.Certificate), g.Invitation(m.AIC))
		return !refused.Late()
	})
	if refused != nil {
		g.t.Fatalf("an invitation was refused: %+v %s", *refused, refused.Data)
	}
	return joined
}

// Member is a gateway whose agent may be invited to groups.
type Member struct {
	*Site
	AIC    string // of the agent
	Config Config // the present one
}

// MakeMember makes a member that is not started.
func MakeMember(t testing.TB) *Member {
	t.Helper()
	aic, err := identity.MakeV1(identity.FieldsV1{})
	NoError(t, err)
	return &Member{Site: New(t), AIC: string(aic)}
}

// Fronting returns the configuration of the member.
func (m *Member) Fronting(agent, brokers string, group ...string) Config {
	return Config{Notify: AllowHere, Handle: fmt.Sprintf(
		"aip_gateway %s {\n\t\taic %s\n\t\tcallers aip aip/2\n\t\tgroup {\n\t\t\tallow_brokers %s\n\t\t\t%s\n\t\t}\n\t}",
		agent, m.AIC, brokers, strings.Join(group, "\n\t\t\t"))}
}

// Identify makes a client certificate with the member's AIC.
func (m *Member) Identify() devpki.File {
	m.T.Helper()
	return m.IdentifyFor(time.Hour)
}

// IdentifyFor makes one that is valid for a time, in the same files.
func (m *Member) IdentifyFor(lifetime time.Duration) devpki.File {
	m.T.Helper()
	return m.WritePair("member", IssueFor(m.T, lifetime, m.AIC))
}

// CalledBy returns a Leader at the member's gateway.
func (m *Member) CalledBy(f devpki.File) *Caller {
	m.T.Helper()
	return CallerWith(m.T, m.URL(), string(f.AIC), devpkitest.KeyPair(m.T, f))
}
