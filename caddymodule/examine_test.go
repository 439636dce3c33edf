// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/acps/agentca/catest"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/notify"
)

// TestExaminedCertificates: doctor says how the certificates stand that the storage has, and connections that it makes
// show them.
func TestExaminedCertificates(t *testing.T) {
	const aic = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
	ca := catest.New(t)
	ca.Serve(t)
	ca.Add(aic, catest.Agent{DNS: []string{"agent.example.com"}})
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	client := &agentca.Client{Directory: ca.Directory(), HTTP: http.DefaultClient}
	examined := func() (c *pki.Certificates, said []doctor.Finding) {
		c = &pki.Certificates{Directory: ca.Directory()}
		if err := c.Provision(storage, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		a := &App{Certificates: c, members: []*Gateway{{AIC: aic}}}
		setup := &doctor.Setup{Obtained: a.keptCertificates(t.Context())}
		return c, setup.Examine(t.Context(), nil, doctor.Try{})
	}
	if _, said := examined(); len(said) != 2 || said[0].Status != doctor.Warning || said[1].Status != doctor.Broken ||
		!strings.Contains(said[1].Text, "no credential for one") {
		t.Errorf("at first: %v", said)
	}
	k := agentca.New(agentca.Config{AIC: aic, Client: client, Storage: storage, Log: slog.New(slog.DiscardHandler),
		EAB: func(context.Context) (agentca.EAB, error) { return agentca.ReadEAB(ca.EAB(aic)) }})
	k.Start()
	t.Cleanup(k.Close)
	asynctest.Eventually(t, "there are certificates", func() bool { return len(k.Status().Certificates) == 2 })
	c, said := examined()
	if len(said) != 2 || said[0].Status != doctor.OK || said[1].Status != doctor.OK {
		t.Errorf("with certificates: %v", said)
	}
	if _, err := c.ClientCert(aic); err != nil {
		t.Errorf("none is shown: %v", err)
	}
	// So do brokers of groups and receivers of webhooks see them.
	broker, err := (&GroupTLS{Obtained: true}).config(caddy.NewReplacer(), (&Gateway{AIC: aic}).presenter(c))
	if err != nil {
		t.Fatal(err)
	}
	shown := shownTo([]*Gateway{{AIC: aic, Agent: agents.Config{TLS: agents.TLS{Obtained: true}}}, {AIC: groupAIC}}, c)
	if len(shown) != 1 {
		t.Errorf("receivers are shown certificates of %d Partners", len(shown))
	}
	for to, show := range map[string]notify.ClientCertificate{
		"broker": broker.GetClientCertificate, "receiver": shown[aic],
	} {
		pair, err := show(nil)
		if err != nil || !pair.Leaf.Equal(k.Certificate(agentca.ClientAuth).Leaf) {
			t.Errorf("the %s is not shown the certificate: %v", to, err)
		}
	}
	if err := k.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, said = examined()
	if len(said) != 1 || said[0].Status != doctor.Warning || !strings.Contains(said[0].Text, "were retired") {
		t.Errorf("retired: %v", said)
	}
	if _, err := c.ClientCert(aic); err == nil || !strings.Contains(err.Error(), "were retired") {
		t.Errorf("why none is shown: %v", err)
	}
}
