// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestJoin joins a group, and is invited again.
func TestJoin(t *testing.T) {
	inBubble(t, func(m *memberships) {
		want := task.Membership{
			ConnectionName: "agent-AGENT", VHost: "/v", NodeName: "rabbit@a.example", QueueName: testQueue,
			ProcessID: processID, AIC: testAgent, GroupID: "g1",
		}
		if m.self.Has(testLeader, "g1") {
			t.Error("it is a member before it is invited")
		}
		if diff := cmp.Diff(want, m.mustInvite()); diff != "" {
			t.Errorf("the answer (-want +got):\n%s", diff)
		}
		m.checkEvents(t, "declare "+testQueue, "join a.example", "consume a.example")
		m.checkState(Joined)
		if !m.self.Has(testLeader, "g1") || m.self.Has("OTHER", "g1") {
			t.Error("it is not known as a member, or as that of another Leader")
		}
		c := m.asked()[0]
		if c.Owner != testPartner+"\x00"+testLeader || c.Login != broker.Password("user", "secret") || c.Address.TLS ||
			c.Exchange != "x" || c.Prefetch != DefaultPrefetch {
			t.Errorf("the link is made by %+v", c)
		}

		writes := m.store.writes
		if diff := cmp.Diff(want, m.mustInvite()); diff != "" {
			t.Errorf("the answer to the same invitation (-want +got):\n%s", diff)
		}
		if m.store.writes != writes {
			t.Error("the same invitation is stored again")
		}
		m.mustInvite(func(inv *task.Invitation) { inv.Group.Partners = []task.GroupMember{{AIC: "P2"}} })
		if members := m.engine.List()[0].Members; !slices.Equal(members, []string{"P2"}) {
			t.Errorf("the members are %v", members)
		}
		m.checkEvents(t, "join a.example", "close a.example", "join a.example", "close a.example") // they bind it again

		// A broker taking no publications may not answer.
		m.change(func() { m.byName["a.example"].blocked = true })
		m.mustInvite()
		m.checkEvents(t)
		m.change(func() { m.byName["a.example"].blocked = false })

		// Without the exchange it stays as it was.
		m.change(func() {
			m.byName["a.example"].fails = brokerError(broker.NoExchange, "a.example", "no exchange")
		})
		if _, err := m.invite(); task.KindOf(err) != task.ConnectionFailed {
			t.Errorf("without the exchange: %v", err)
		}
		m.checkState(Joined)
		m.change(func() { m.byName["a.example"].fails = brokerError(broker.QueueGone, "a.example", "no queue") })
		if _, err := m.invite(); err == nil {
			t.Error("without the queue: no error")
		}
		m.checkState("")
	})
}

// certifiedAs returns the TLS configuration of an agent with a common name in its certificate.
func certifiedAs(name string) *tls.Config {
	leaf := &x509.Certificate{Subject: pkix.Name{CommonName: name}}
	return &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &tls.Certificate{Certificate: [][]byte{{0}}, Leaf: leaf}, nil
	}}
}

// TestLogins gives each form of an access token.
func TestLogins(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJ4In0.c2ln"
	for name, tc := range map[string]struct {
		token   string
		port    int
		allowed string
		login   broker.Login
		tls     bool
	}{
		"password":            {"u:p:q", 5672, "a.example", broker.Password("u", "p:q"), false},
		"JWT":                 {jwt, 5672, "a.example", broker.Token(testAgent, jwt), false},
		"EXTERNAL":            {"", 5672, "a.example", broker.Certificate(testAgent), true},
		"EXTERNAL as another": {"", 5672, "a.example", broker.Certificate(""), true},
		"TLS by port":         {"u:p", 5671, "a.example", broker.Password("u", "p"), true},
		"TLS by pattern":      {"u:p", 5672, "amqps://a.example:5672", broker.Password("u", "p"), true},
		"plain by scheme":     {"u:p", 5672, "amqp://*.example", broker.Password("u", "p"), false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				m.config.Brokers = []Broker{mustParse(tc.allowed)}
				if name == "EXTERNAL as another" {
					m.config.TLS = certifiedAs(testAgent + ".acps.pub")
				}
				m.register()
				m.mustInvite(func(inv *task.Invitation) { inv.Server.AccessToken, inv.Server.Port = tc.token, tc.port })
				c := m.asked()[0]
				if c.Login != tc.login || c.Address.TLS != tc.tls || int(c.Address.Port) != tc.port {
					t.Errorf("the link is made by %+v", c)
				}
			})
		})
	}
}

// TestRefusals refuses invitations. Nothing stays.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*memberships, *task.Invitation)
		kind   task.Kind
	}{
		"another broker": {func(_ *memberships, inv *task.Invitation) { inv.Server.Host = "10.0.0.1" },
			task.InvitationRejected},
		"a private address": {func(m *memberships, _ *task.Invitation) {
			m.byName["a.example"].fails = brokerError(broker.AddressRefused, "a.example", "loopback")
		}, task.InvitationRejected},
		"no such host": {func(_ *memberships, inv *task.Invitation) { inv.Server.Host = "unknown.example" },
			task.ConnectionFailed},
		"a silent broker": {func(m *memberships, _ *task.Invitation) { m.byName["a.example"].hangs = true },
			task.ConnectionFailed},
		"a wrong password": {func(m *memberships, _ *task.Invitation) {
			m.byName["a.example"].refuses = func(broker.Login) bool { return true }
		}, task.AccessTokenInvalid},
		"no certificate": {func(m *memberships, inv *task.Invitation) {
			inv.Server.AccessToken = ""
			m.config.TLS = nil
			m.register()
		}, task.AccessTokenInvalid},
		"a wrong certificate": {func(m *memberships, inv *task.Invitation) {
			inv.Server.AccessToken = ""
			m.byName["a.example"].refuses = func(broker.Login) bool { return true }
		}, task.ConnectionFailed},
		"a malformed token": {func(_ *memberships, inv *task.Invitation) { inv.Server.AccessToken = "secret" },
			task.AccessTokenInvalid},
		"a token without a user": {func(_ *memberships, inv *task.Invitation) { inv.Server.AccessToken = ":x" },
			task.AccessTokenInvalid},
		"a foreign vhost": {func(m *memberships, _ *task.Invitation) {
			m.byName["a.example"].fails = brokerError(broker.VHostRefused, "a.example", "NOT_ALLOWED")
		}, task.ConnectionFailed},
		"no permission to read": {func(m *memberships, _ *task.Invitation) { m.byName["a.example"].noRead = true },
			task.ConnectionFailed},
		"a store that is down": {func(m *memberships, _ *task.Invitation) { m.store.setDown(true) },
			task.StoreUnavailable},
		"a groupId too long": {func(_ *memberships, inv *task.Invitation) {
			inv.Group.ID = strings.Repeat("g", 250)
		}, task.InvalidParams},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *memberships) {
				inv := invitation()
				tc.change(m, inv)
				began := time.Now()
				_, err := m.self.Join(m.Context(), testLeader, inv)
				if task.KindOf(err) != tc.kind {
					t.Errorf("the error is %v, want one of kind %v", err, tc.kind)
				}
				if tc.kind == task.ConnectionFailed {
					e, _ := errors.AsType[*task.Error](err)
					if e.Data["host"] != inv.Server.Host || e.Data["port"] != inv.Server.Port || e.Detail == "" {
						t.Errorf("the error has the data %v and the detail %q", e.Data, e.Detail)
					}
				}
				if time.Since(began) > 5*time.Second {
					t.Errorf("the answer took %v", time.Since(began))
				}
				if strings.Contains(fmt.Sprint(err), "secret") || strings.Contains(m.log.String(), "secret") {
					t.Error("an error or a log line has the access token")
				}
				if m.store.down {
					m.store.setDown(false)
				}
				synctest.Wait()
				m.checkState("")
				for _, at := range m.byName {
					if len(at.queues) > 0 || len(at.links) > 0 {
						t.Errorf("queues %v and %d links stay", at.queues, len(at.links))
					}
				}
				m.restart()
				m.checkState("")
			})
		})
	}
}

// TestLimitOfGroups refuses a membership more than are allowed.
func TestLimitOfGroups(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.config.MaxGroups, m.config.MaxGroupsPerLeader = 3, 2
		m.register()
		for i, tc := range []struct {
			leader, group string
			limit         any
		}{{"L1", "1", nil}, {"L1", "2", nil}, {"L1", "3", "groups_per_leader"}, {"L2", "3", nil}, {"L2", "4", "groups"},
			{"L1", "1", nil}} {
			_, err := m.self.Join(m.Context(), tc.leader, invitation(func(inv *task.Invitation) {
				inv.Group.ID, inv.Group.Leader.AIC = tc.group, tc.leader
				inv.Exchange.Name = exchangeName(tc.leader, tc.group)
			}))
			if e, _ := errors.AsType[*task.Error](err); tc.limit == nil && err != nil || tc.limit != nil &&
				(e == nil || e.Kind != task.LimitExceeded || e.Data["limit"] != tc.limit) {
				t.Errorf("invitation %d: %v, want the limit %v", i, err, tc.limit)
			}
		}
	})
}

// TestLimitOfUnverified counts all Leaders without a proof as one.
func TestLimitOfUnverified(t *testing.T) {
	inBubble(t, func(m *memberships) {
		m.config.MaxGroupsPerLeader = 1
		m.register()
		for i, leader := range []string{limit.Unverified + "L1", limit.Unverified + "L2"} {
			_, err := m.self.Join(m.Context(), leader, invitation())
			if (err == nil) != (i == 0) {
				t.Errorf("invitation %d: %v", i, err)
			}
		}
	})
}

// TestTwoInvitations sends two different invitations to one group at once.
func TestTwoInvitations(t *testing.T) {
	inBubble(t, func(m *memberships) {
		var all sync.WaitGroup
		for _, token := range []string{"u:1", "u:2", "u:3"} {
			all.Go(func() {
				_, err := m.self.Join(m.Context(), testLeader, invitation(func(inv *task.Invitation) {
					inv.Server.AccessToken = token
				}))
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if at := m.byName["a.example"]; len(at.links) != 1 || len(m.asked()) != 3 {
			t.Errorf("there were %d joins, and there are %d links", len(m.asked()), len(at.links))
		}
	})
}

func token(token string) func(*task.Invitation) {
	return func(inv *task.Invitation) { inv.Server.AccessToken = token }
}

func host(host string) func(*task.Invitation) {
	return func(inv *task.Invitation) { inv.Server.Host = host }
}
