// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/identity"
)

// invitation returns the parameters of an invitation.
func (g *groupLeader) invitation(partners ...string) object {
	var members []object
	for _, aic := range partners {
		members = append(members, object{"aic": aic, "skills": []string{"task-processing"}})
	}
	server := object{"host": g.host, "port": g.port, "vhost": g.vhost}
	if g.token != "" {
		server["accessToken"] = g.token
	}
	return object{
		"protocol": "rabbitmq:4.0",
		"group": object{
			"groupId": g.id, "partners": members,
			"leader": object{"aic": g.aic(), "skills": []string{"task-management", "group-management"}},
		},
		"server": server,
		"amqp":   object{"exchange": g.exchange, "exchangeType": "fanout", "routingKey": ""},
	}
}

// membership is the answer to an invitation.
type membership struct {
	ConnectionName, VHost, NodeName, QueueName, ProcessID, AIC, Status, GroupID string
}

// inviteError is the error that answers an invitation.
type inviteError struct {
	Code    int
	Message string
	Data    json.RawMessage
}

// invite sends an invitation, and returns the answer.
func (g *groupLeader) invite(c *caller, params object) (*membership, *inviteError) {
	c.t.Helper()
	path := "/group"
	if g.v2 {
		path = "/group/rpc"
	}
	body, err := json.Marshal(object{"jsonrpc": "2.0", "method": "group", "id": "1", "params": params})
	noError(c.t, err)
	res, body := c.post(path, body)
	var answer struct {
		ID     string
		Result *membership
		Error  *inviteError
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	if err := decoder.Decode(&answer); err != nil || res.StatusCode != 200 || answer.ID != "1" ||
		(answer.Result == nil) == (answer.Error == nil) {
		c.t.Fatalf("an invitation was answered %d %s: %v", res.StatusCode, body, err)
	}
	return answer.Result, answer.Error
}

// late reports whether an invitation was refused because the broker took longer than AIP lets an invitation take.
func (e *inviteError) late() bool { return e != nil && strings.Contains(string(e.Data), " in time") }

// join invites a member that must join. It invites again where the broker is slow.
func (g *groupLeader) join(m *member) (joined *membership) {
	g.t.Helper()
	var refused *inviteError
	eventually(g.t, "the broker answers an invitation in time", func() bool {
		joined, refused = g.invite(m.calledBy(g.certificate), g.invitation(m.aic))
		return !refused.late()
	})
	if refused != nil {
		g.t.Fatalf("an invitation was refused: %+v %s", *refused, refused.Data)
	}
	return joined
}

// member is a gateway whose agent may be invited to groups.
type member struct {
	*site
	aic    string
	config config
}

// newMember starts a gateway that may connect to a broker. brokers are patterns of allow_brokers; group are further
// settings of the group block.
func newMember(t testing.TB, agent, brokers string, group ...string) *member {
	t.Helper()
	m := makeMember(t)
	m.config = m.fronting(agent, brokers, group...)
	m.start(m.config)
	return m
}

// makeMember makes a member that is not started.
func makeMember(t testing.TB) *member {
	t.Helper()
	aic, err := identity.MakeV1(identity.FieldsV1{})
	noError(t, err)
	return &member{site: newSite(t), aic: string(aic)}
}

// fronting returns the configuration of the member.
func (m *member) fronting(agent, brokers string, group ...string) config {
	return config{notify: here, handle: fmt.Sprintf(
		"aip_gateway %s {\n\t\taic %s\n\t\tcallers aip aip/2\n\t\tgroup {\n\t\t\tallow_brokers %s\n\t\t\t%s\n\t\t}\n\t}",
		agent, m.aic, brokers, strings.Join(group, "\n\t\t\t"))}
}

// identify makes a client certificate with the member's AIC.
func (m *member) identify() devpki.File {
	m.t.Helper()
	return m.identifyFor(time.Hour)
}

// identifyFor makes one that is valid for a time, in the same files.
func (m *member) identifyFor(lifetime time.Duration) devpki.File {
	m.t.Helper()
	pair := issueFor(m.t, lifetime, m.aic)
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	noError(m.t, err)
	f := devpki.File{Cert: filepath.Join(m.dir, "member.pem"), Key: filepath.Join(m.dir, "member-key.pem")}
	for path, block := range map[string]*pem.Block{
		f.Cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, f.Key: {Type: "PRIVATE KEY", Bytes: key},
	} {
		noError(m.t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return f
}

// calledBy returns a Leader at the member's gateway.
func (m *member) calledBy(f devpki.File) *caller {
	m.t.Helper()
	return callerWith(m.t, m.url(), string(f.AIC), keyPair(m.t, f))
}
